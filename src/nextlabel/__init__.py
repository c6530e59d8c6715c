"""Which task should the next worker label? Certified bounds, index policies and exact optima for crowdsourcing.

The names that you type most are here; the others are in the namespaces ``nl.priors``, ``nl.rewards``, ``nl.policies``,
``nl.errors`` and ``nl.results``. A name is imported when it is first used, so that ``import nextlabel`` costs next to
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nextlabel.lazy import lazy_names
from nextlabel.version import __version__ as __version__

if TYPE_CHECKING:  # what there is, for type checkers, for editors and for ``lazy_names``
    from nextlabel import errors as errors
    from nextlabel import policies as policies
    from nextlabel import priors as priors
    from nextlabel import results as results
    from nextlabel import rewards as rewards
    from nextlabel.application.service import Campaign as Campaign
    from nextlabel.backtesting.backtest import BacktestOptions as BacktestOptions
    from nextlabel.backtesting.backtest import backtest as backtest
    from nextlabel.client.client import AsyncClient as AsyncClient
    from nextlabel.client.client import Client as Client
    from nextlabel.crowd.agreement import agreement as agreement
    from nextlabel.crowd.audit import audit as audit
    from nextlabel.crowd.guarantee import guarantee as guarantee
    from nextlabel.crowd.learn import learn_crowd as learn_crowd
    from nextlabel.crowd.numbers import learn_numbers as learn_numbers
    from nextlabel.files.labels import read_labels as read_labels
    from nextlabel.model.beta import Beta as Beta
    from nextlabel.model.prior_learning import compare_priors as compare_priors
    from nextlabel.model.prior_learning import learn_prior as learn_prior
    from nextlabel.model.problem import PiecewiseRate as PiecewiseRate
    from nextlabel.model.problem import Problem as Problem
    from nextlabel.model.problem import WorkerType as WorkerType
    from nextlabel.model.rates import estimate_rates
    from nextlabel.model.tables import load_problem as load_problem
    from nextlabel.model.tables import problem_to_toml as problem_to_toml
    from nextlabel.model.tasks import TaskClass as TaskClass
    from nextlabel.model.tasks import read_scores as read_scores
    from nextlabel.model.tasks import score_classes as score_classes
    from nextlabel.planning.plan import plan as plan
    from nextlabel.policies.exact_value import policy_value as policy_value
    from nextlabel.simulation.crowd_replay import replay_crowd as replay_crowd
    from nextlabel.simulation.engine import Engine as Engine
    from nextlabel.simulation.replay import CrowdRecord as CrowdRecord
    from nextlabel.simulation.study import simulate as simulate
    from nextlabel.solve.bound import upper_bound as upper_bound
    from nextlabel.solve.crowd.from_labels import bound_from_labels as bound_from_labels
    from nextlabel.solve.exact import exact_value as exact_value
    from nextlabel.solve.index import check_indexability as check_indexability
    from nextlabel.solve.index import index_table as index_table

    rates = estimate_rates

_lazy, _names = lazy_names(__name__)
#: Where names are that were here in an earlier version, and what some of them are called now.
_NAMESPACES, _RENAMED = ("priors", "rewards", "policies", "errors", "results"), {
    "ReadReport": "LabelSummary", "Told": "Receipt",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _names() or name.startswith("_"):
        return _lazy(name)
    now = _RENAMED.get(name, name)
    for namespace in map(_lazy, _NAMESPACES):
        if str(getattr(getattr(namespace, now, None), "__module__", "")).startswith(__name__):
            raise AttributeError(f"nl.{name} has moved: it is nl.{namespace.__name__.partition('.')[2]}.{now} now.")
    return _lazy(name)


def __dir__() -> list[str]:
    return [*_names(), "__version__"]
