"""Which task should the next worker label? Certified bounds, index policies and exact optima for crowdsourcing.

Names are imported when they are first used, so that ``import nextlabel`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nextlabel.version import __version__

if TYPE_CHECKING:
    from nextlabel.backtesting.backtest import backtest
    from nextlabel.backtesting.options import BacktestOptions
    from nextlabel.backtesting.result import Backtest
    from nextlabel.beliefs.beta import Beta, BetaMixture
    from nextlabel.beliefs.density import Histogram, LogitNormal
    from nextlabel.beliefs.dirichlet import Dirichlet
    from nextlabel.beliefs.fact import Fact, OneCoin
    from nextlabel.beliefs.prior import Prior
    from nextlabel.beliefs.rewards import Accuracy, Reward, SquaredError, Utility
    from nextlabel.campaign.events import Event
    from nextlabel.campaign.outside_answers import Skipped
    from nextlabel.campaign.replies import Added, AddedPredictions, AuditItem, ChangedLabels, Lease, NoTask, Told
    from nextlabel.campaign.results import Result
    from nextlabel.campaigns.certificate import AuditedAccuracy, Certificate
    from nextlabel.campaigns.facade import Campaign
    from nextlabel.campaigns.status import CampaignStatus
    from nextlabel.campaigns.worker_reports import WorkerReport
    from nextlabel.client.client import AsyncClient, Client
    from nextlabel.crowd.audit import Audit, audit
    from nextlabel.crowd.learn import LearntCrowd, LearntWorker, learn_crowd
    from nextlabel.errors import (
        BusyError,
        ClockError,
        ConflictError,
        FileFormatError,
        GoneError,
        InputError,
        MediaTypeError,
        NextlabelError,
        NotAllowedError,
        NotFoundError,
        ProblemError,
        SolverError,
        TablesPendingError,
        TokenError,
        TooLargeError,
        TooManyRequestsError,
        UnavailableError,
    )
    from nextlabel.files.labels import LabelTable, ReadReport, read_labels
    from nextlabel.learn.priors import LearntPrior, compare_priors, learn_prior
    from nextlabel.learn.rates import Rates
    from nextlabel.learn.rates import estimate_rates as rates
    from nextlabel.planning.plan import plan
    from nextlabel.planning.result import Plan
    from nextlabel.policies.base import ClassView, Policy, ScoreTables, Setting, StaticPolicy
    from nextlabel.policies.crowd.policies import CrowdView, WorkerPolicy
    from nextlabel.policies.exact_value import policy_value
    from nextlabel.policies.index import Index as IndexPolicy
    from nextlabel.policies.okg import OKG
    from nextlabel.policies.registry import make_policy
    from nextlabel.problem.problem import Problem
    from nextlabel.problem.rates import PiecewiseRate
    from nextlabel.problem.scores import ItemScores, read_scores, score_classes
    from nextlabel.problem.task_class import TaskClass
    from nextlabel.problem.toml import load_problem, problem_to_toml
    from nextlabel.problem.workers import WorkerType
    from nextlabel.simulation.crowd_replay import CrowdRecord, CrowdReplayed, replay_crowd
    from nextlabel.simulation.engine import Engine
    from nextlabel.simulation.study import Study, simulate
    from nextlabel.solve.bound import Bound, upper_bound
    from nextlabel.solve.crowd.from_labels import BoundFromLabels, bound_from_labels
    from nextlabel.solve.exact import ExactResult, exact_value
    from nextlabel.solve.index import IndexTable, check_indexability, index_table

__all__ = [
    "OKG",
    "Accuracy",
    "Added",
    "AddedPredictions",
    "AsyncClient",
    "Audit",
    "AuditItem",
    "AuditedAccuracy",
    "Backtest",
    "BacktestOptions",
    "Beta",
    "BetaMixture",
    "Bound",
    "BoundFromLabels",
    "BusyError",
    "Campaign",
    "CampaignStatus",
    "Certificate",
    "ChangedLabels",
    "ClassView",
    "Client",
    "ClockError",
    "ConflictError",
    "CrowdRecord",
    "CrowdReplayed",
    "CrowdView",
    "Dirichlet",
    "Engine",
    "Event",
    "ExactResult",
    "Fact",
    "FileFormatError",
    "GoneError",
    "Histogram",
    "IndexPolicy",
    "IndexTable",
    "InputError",
    "ItemScores",
    "LabelTable",
    "LearntCrowd",
    "LearntPrior",
    "LearntWorker",
    "Lease",
    "LogitNormal",
    "MediaTypeError",
    "NextlabelError",
    "NoTask",
    "NotAllowedError",
    "NotFoundError",
    "OneCoin",
    "PiecewiseRate",
    "Plan",
    "Policy",
    "Prior",
    "Problem",
    "ProblemError",
    "Rates",
    "ReadReport",
    "Result",
    "Reward",
    "ScoreTables",
    "Setting",
    "Skipped",
    "SolverError",
    "SquaredError",
    "StaticPolicy",
    "Study",
    "TablesPendingError",
    "TaskClass",
    "TokenError",
    "Told",
    "TooLargeError",
    "TooManyRequestsError",
    "UnavailableError",
    "Utility",
    "WorkerPolicy",
    "WorkerReport",
    "WorkerType",
    "__version__",
    "audit",
    "backtest",
    "bound_from_labels",
    "check_indexability",
    "compare_priors",
    "exact_value",
    "index_table",
    "learn_crowd",
    "learn_prior",
    "load_problem",
    "make_policy",
    "plan",
    "policy_value",
    "problem_to_toml",
    "rates",
    "read_labels",
    "read_scores",
    "replay_crowd",
    "score_classes",
    "simulate",
    "upper_bound",
]

#: Where each name lives; after the colon its name there, if it is another.
_HOME = {
    "Accuracy": "nextlabel.beliefs.rewards",
    "Added": "nextlabel.campaign.replies",
    "AddedPredictions": "nextlabel.campaign.replies",
    "AsyncClient": "nextlabel.client.client",
    "audit": "nextlabel.crowd.audit",
    "Audit": "nextlabel.crowd.audit",
    "AuditItem": "nextlabel.campaign.replies",
    "AuditedAccuracy": "nextlabel.campaigns.certificate",
    "backtest": "nextlabel.backtesting.backtest",
    "Backtest": "nextlabel.backtesting.result",
    "BacktestOptions": "nextlabel.backtesting.options",
    "Beta": "nextlabel.beliefs.beta",
    "BetaMixture": "nextlabel.beliefs.beta",
    "Bound": "nextlabel.solve.bound",
    "bound_from_labels": "nextlabel.solve.crowd.from_labels",
    "BoundFromLabels": "nextlabel.solve.crowd.from_labels",
    "BusyError": "nextlabel.errors",
    "Campaign": "nextlabel.campaigns.facade",
    "CampaignStatus": "nextlabel.campaigns.status",
    "Certificate": "nextlabel.campaigns.certificate",
    "ChangedLabels": "nextlabel.campaign.replies",
    "check_indexability": "nextlabel.solve.index",
    "ClassView": "nextlabel.policies.base",
    "Client": "nextlabel.client.client",
    "compare_priors": "nextlabel.learn.priors",
    "ClockError": "nextlabel.errors",
    "ConflictError": "nextlabel.errors",
    "CrowdRecord": "nextlabel.simulation.crowd_replay",
    "CrowdReplayed": "nextlabel.simulation.crowd_replay",
    "CrowdView": "nextlabel.policies.crowd.policies",
    "Dirichlet": "nextlabel.beliefs.dirichlet",
    "Engine": "nextlabel.simulation.engine",
    "Event": "nextlabel.campaign.events",
    "exact_value": "nextlabel.solve.exact",
    "ExactResult": "nextlabel.solve.exact",
    "Fact": "nextlabel.beliefs.fact",
    "FileFormatError": "nextlabel.errors",
    "Histogram": "nextlabel.beliefs.density",
    "index_table": "nextlabel.solve.index",
    "IndexPolicy": "nextlabel.policies.index:Index",
    "IndexTable": "nextlabel.solve.index",
    "GoneError": "nextlabel.errors",
    "InputError": "nextlabel.errors",
    "ItemScores": "nextlabel.problem.scores",
    "LabelTable": "nextlabel.files.labels",
    "learn_crowd": "nextlabel.crowd.learn",
    "learn_prior": "nextlabel.learn.priors",
    "LearntCrowd": "nextlabel.crowd.learn",
    "LearntPrior": "nextlabel.learn.priors",
    "LearntWorker": "nextlabel.crowd.learn",
    "Lease": "nextlabel.campaign.replies",
    "load_problem": "nextlabel.problem.toml",
    "LogitNormal": "nextlabel.beliefs.density",
    "make_policy": "nextlabel.policies.registry",
    "MediaTypeError": "nextlabel.errors",
    "NextlabelError": "nextlabel.errors",
    "NotAllowedError": "nextlabel.errors",
    "NoTask": "nextlabel.campaign.replies",
    "NotFoundError": "nextlabel.errors",
    "OKG": "nextlabel.policies.okg",
    "OneCoin": "nextlabel.beliefs.fact",
    "PiecewiseRate": "nextlabel.problem.rates",
    "plan": "nextlabel.planning.plan",
    "Plan": "nextlabel.planning.result",
    "Policy": "nextlabel.policies.base",
    "policy_value": "nextlabel.policies.exact_value",
    "Prior": "nextlabel.beliefs.prior",
    "Problem": "nextlabel.problem.problem",
    "problem_to_toml": "nextlabel.problem.toml",
    "ProblemError": "nextlabel.errors",
    "Rates": "nextlabel.learn.rates",
    "rates": "nextlabel.learn.rates:estimate_rates",
    "read_labels": "nextlabel.files.labels",
    "read_scores": "nextlabel.problem.scores",
    "ReadReport": "nextlabel.files.labels",
    "Result": "nextlabel.campaign.results",
    "Reward": "nextlabel.beliefs.rewards",
    "replay_crowd": "nextlabel.simulation.crowd_replay",
    "score_classes": "nextlabel.problem.scores",
    "ScoreTables": "nextlabel.policies.base",
    "Setting": "nextlabel.policies.base",
    "simulate": "nextlabel.simulation.study",
    "Skipped": "nextlabel.campaign.outside_answers",
    "SolverError": "nextlabel.errors",
    "SquaredError": "nextlabel.beliefs.rewards",
    "StaticPolicy": "nextlabel.policies.base",
    "Study": "nextlabel.simulation.study",
    "TablesPendingError": "nextlabel.errors",
    "TaskClass": "nextlabel.problem.problem",
    "TokenError": "nextlabel.errors",
    "Told": "nextlabel.campaign.replies",
    "TooLargeError": "nextlabel.errors",
    "TooManyRequestsError": "nextlabel.errors",
    "UnavailableError": "nextlabel.errors",
    "upper_bound": "nextlabel.solve.bound",
    "Utility": "nextlabel.beliefs.rewards",
    "WorkerReport": "nextlabel.campaigns.worker_reports",
    "WorkerPolicy": "nextlabel.policies.crowd.policies",
    "WorkerType": "nextlabel.problem.workers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, _, there = _HOME[name].partition(":")
    value = globals()[name] = getattr(import_module(home), there or name)
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
