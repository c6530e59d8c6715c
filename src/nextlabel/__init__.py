"""Which task should the next worker label? Certified bounds, index policies and exact optima for crowdsourcing.

Names are imported when they are first used, so that ``import nextlabel`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nextlabel.version import __version__

if TYPE_CHECKING:
    from nextlabel.beliefs.beta import Beta
    from nextlabel.beliefs.density import Histogram, LogitNormal
    from nextlabel.beliefs.dirichlet import Dirichlet
    from nextlabel.beliefs.mixture import BetaMixture
    from nextlabel.beliefs.one_coin import OneCoin
    from nextlabel.beliefs.prior import Prior
    from nextlabel.beliefs.rewards import Accuracy, Reward, SquaredError, Utility
    from nextlabel.campaign.events import Event
    from nextlabel.campaign.replies import Added, Lease, NoTask, Told
    from nextlabel.campaign.results import Result
    from nextlabel.campaigns.certificate import Certificate
    from nextlabel.campaigns.facade import Campaign
    from nextlabel.client.client import Client
    from nextlabel.errors import (
        ConflictError,
        FileFormatError,
        InputError,
        NextlabelError,
        NotFoundError,
        ProblemError,
        SolverError,
        TooLargeError,
    )
    from nextlabel.files.label_table import LabelTable, ReadReport
    from nextlabel.files.labels import read_labels
    from nextlabel.policies.base import ClassView, Policy, ScoreTables, Setting, StaticPolicy
    from nextlabel.policies.exact_value import policy_value
    from nextlabel.policies.index import Index as IndexPolicy
    from nextlabel.policies.okg import OKG
    from nextlabel.policies.registry import make_policy
    from nextlabel.problem.problem import Problem, TaskClass
    from nextlabel.problem.rates import PiecewiseRate
    from nextlabel.problem.scores import ItemScores, read_scores, score_classes
    from nextlabel.problem.toml import load_problem, problem_to_toml
    from nextlabel.simulation.engine import Engine
    from nextlabel.simulation.study import Study, simulate
    from nextlabel.solve.bound import Bound, upper_bound
    from nextlabel.solve.exact import ExactResult, exact_value
    from nextlabel.solve.index.indexability import check_indexability
    from nextlabel.solve.index.table import IndexTable, index_table

__all__ = [
    "OKG",
    "Accuracy",
    "Added",
    "Beta",
    "BetaMixture",
    "Bound",
    "Campaign",
    "Certificate",
    "ClassView",
    "Client",
    "ConflictError",
    "Dirichlet",
    "Engine",
    "Event",
    "ExactResult",
    "FileFormatError",
    "Histogram",
    "IndexPolicy",
    "IndexTable",
    "InputError",
    "ItemScores",
    "LabelTable",
    "Lease",
    "LogitNormal",
    "NextlabelError",
    "NoTask",
    "NotFoundError",
    "OneCoin",
    "PiecewiseRate",
    "Policy",
    "Prior",
    "Problem",
    "ProblemError",
    "ReadReport",
    "Result",
    "Reward",
    "ScoreTables",
    "Setting",
    "SolverError",
    "SquaredError",
    "StaticPolicy",
    "Study",
    "TaskClass",
    "Told",
    "TooLargeError",
    "Utility",
    "__version__",
    "check_indexability",
    "exact_value",
    "index_table",
    "load_problem",
    "make_policy",
    "policy_value",
    "problem_to_toml",
    "read_labels",
    "read_scores",
    "score_classes",
    "simulate",
    "upper_bound",
]

#: Where each name lives; after the colon its name there, if it is another.
_HOME = {
    "Accuracy": "nextlabel.beliefs.rewards",
    "Added": "nextlabel.campaign.replies",
    "Beta": "nextlabel.beliefs.beta",
    "BetaMixture": "nextlabel.beliefs.mixture",
    "Bound": "nextlabel.solve.bound",
    "Campaign": "nextlabel.campaigns.facade",
    "Certificate": "nextlabel.campaigns.certificate",
    "ClassView": "nextlabel.policies.base",
    "Client": "nextlabel.client.client",
    "ConflictError": "nextlabel.errors",
    "Dirichlet": "nextlabel.beliefs.dirichlet",
    "Engine": "nextlabel.simulation.engine",
    "Event": "nextlabel.campaign.events",
    "ExactResult": "nextlabel.solve.exact",
    "FileFormatError": "nextlabel.errors",
    "Histogram": "nextlabel.beliefs.density",
    "IndexPolicy": "nextlabel.policies.index:Index",
    "IndexTable": "nextlabel.solve.index.table",
    "InputError": "nextlabel.errors",
    "ItemScores": "nextlabel.problem.scores",
    "LabelTable": "nextlabel.files.label_table",
    "Lease": "nextlabel.campaign.replies",
    "LogitNormal": "nextlabel.beliefs.density",
    "NextlabelError": "nextlabel.errors",
    "NoTask": "nextlabel.campaign.replies",
    "NotFoundError": "nextlabel.errors",
    "OKG": "nextlabel.policies.okg",
    "OneCoin": "nextlabel.beliefs.one_coin",
    "PiecewiseRate": "nextlabel.problem.rates",
    "Policy": "nextlabel.policies.base",
    "Prior": "nextlabel.beliefs.prior",
    "Problem": "nextlabel.problem.problem",
    "ProblemError": "nextlabel.errors",
    "ReadReport": "nextlabel.files.label_table",
    "Result": "nextlabel.campaign.results",
    "Reward": "nextlabel.beliefs.rewards",
    "ScoreTables": "nextlabel.policies.base",
    "Setting": "nextlabel.policies.base",
    "SolverError": "nextlabel.errors",
    "SquaredError": "nextlabel.beliefs.rewards",
    "StaticPolicy": "nextlabel.policies.base",
    "Study": "nextlabel.simulation.study",
    "TaskClass": "nextlabel.problem.problem",
    "Told": "nextlabel.campaign.replies",
    "TooLargeError": "nextlabel.errors",
    "Utility": "nextlabel.beliefs.rewards",
    "check_indexability": "nextlabel.solve.index.indexability",
    "exact_value": "nextlabel.solve.exact",
    "index_table": "nextlabel.solve.index.table",
    "load_problem": "nextlabel.problem.toml",
    "make_policy": "nextlabel.policies.registry",
    "policy_value": "nextlabel.policies.exact_value",
    "problem_to_toml": "nextlabel.problem.toml",
    "read_labels": "nextlabel.files.labels",
    "read_scores": "nextlabel.problem.scores",
    "score_classes": "nextlabel.problem.scores",
    "simulate": "nextlabel.simulation.study",
    "upper_bound": "nextlabel.solve.bound",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, _, there = _HOME[name].partition(":")
    value = globals()[name] = getattr(import_module(home), there or name)
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
