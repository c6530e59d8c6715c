"""Which task should the next worker label? Certified bounds, index policies and exact optima for crowdsourcing.

The names that you type most are here; the others are in the namespaces ``nl.priors``, ``nl.rewards``, ``nl.policies``,
``nl.errors`` and ``nl.results``. A name is imported when it is first used, so that ``import nextlabel`` costs next to
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nextlabel.version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers and editors; tests/test_public_names.py compares it with the table below
    from nextlabel import errors as errors
    from nextlabel import policies as policies
    from nextlabel import priors as priors
    from nextlabel import results as results
    from nextlabel import rewards as rewards
    from nextlabel.application.facade import Campaign as Campaign
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

#: The modules that have the names; ``rates`` is called ``estimate_rates`` there.
_HOMES = {
    "nextlabel": "errors policies priors results rewards",
    "nextlabel.backtesting.backtest": "BacktestOptions backtest",
    "nextlabel.model.beta": "Beta",
    "nextlabel.application.facade": "Campaign",
    "nextlabel.client.client": "AsyncClient Client",
    "nextlabel.crowd.agreement": "agreement",
    "nextlabel.crowd.audit": "audit",
    "nextlabel.crowd.guarantee": "guarantee",
    "nextlabel.crowd.learn": "learn_crowd",
    "nextlabel.crowd.numbers": "learn_numbers",
    "nextlabel.files.labels": "read_labels",
    "nextlabel.model.prior_learning": "compare_priors learn_prior",
    "nextlabel.model.rates": "rates",
    "nextlabel.planning.plan": "plan",
    "nextlabel.policies.exact_value": "policy_value",
    "nextlabel.model.problem": "PiecewiseRate Problem WorkerType",
    "nextlabel.model.tasks": "TaskClass read_scores score_classes",
    "nextlabel.model.tables": "load_problem problem_to_toml",
    "nextlabel.simulation.crowd_replay": "replay_crowd",
    "nextlabel.simulation.replay": "CrowdRecord",
    "nextlabel.simulation.engine": "Engine",
    "nextlabel.simulation.study": "simulate",
    "nextlabel.solve.bound": "upper_bound",
    "nextlabel.solve.crowd.from_labels": "bound_from_labels",
    "nextlabel.solve.exact": "exact_value",
    "nextlabel.solve.index": "check_indexability index_table",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

#: Names that were here in an earlier version, by the namespace that has them now.
_MOVED = {
    "priors": "BetaMixture Dirichlet Fact Histogram LogitNormal OneCoin Prior",
    "rewards": "Accuracy Reward SquaredError Utility",
    "policies": "ClassView CrowdView IndexPolicy OKG Policy ScoreTables Setting StaticPolicy WorkerPolicy make_policy",
    "errors": "BusyError ClockError ConflictError FileFormatError GoneError InputError MediaTypeError NextlabelError "
    "NotAllowedError NotFoundError ProblemError SolverError TablesPendingError TokenError TooLargeError "
    "TooManyRequestsError UnavailableError",
    "results": "Added AddedPredictions Audit AuditItem Backtest Bound BoundFromLabels CampaignStatus "
    "Certificate ChangedLabels CrowdReplayed Event ExactResult IndexTable ItemScores LabelTable LearntCrowd "
    "LearntPrior LearntWorker Lease NoTask Plan Rates LabelSummary Receipt Result Skipped Study WorkerReport",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        module = _HOME[name]
        if module == __name__:
            value = import_module(f"{module}.{name}")
        else:
            value = getattr(import_module(module), "estimate_rates" if name == "rates" else name)
        globals()[name] = value
        return value
    now = {"ReadReport": "LabelSummary", "Told": "Receipt"}.get(name, name)
    for namespace, names in _MOVED.items():
        if now in names.split():
            raise AttributeError(f"nl.{name} has moved: it is nl.{namespace}.{now} now.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
