"""Which task should the next worker label? Certified bounds, index policies and exact optima for crowdsourcing.

Names are imported when they are first used, so that ``import nextlabel`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nextlabel.beliefs.beta import Beta
    from nextlabel.errors import NextlabelError
    from nextlabel.problem.problem import Problem, TaskClass
    from nextlabel.problem.toml import load_problem
    from nextlabel.solve.bound import Bound, upper_bound
    from nextlabel.solve.exact import ExactResult, exact_value, policy_value
    from nextlabel.solve.index import IndexTable, index_table
    from nextlabel.solve.indexability import check_indexability

__version__ = "0.1.0"

__all__ = [
    "Beta",
    "Bound",
    "ExactResult",
    "IndexTable",
    "NextlabelError",
    "Problem",
    "TaskClass",
    "__version__",
    "check_indexability",
    "exact_value",
    "index_table",
    "load_problem",
    "policy_value",
    "upper_bound",
]

_HOME = {
    "Beta": "nextlabel.beliefs.beta",
    "Bound": "nextlabel.solve.bound",
    "ExactResult": "nextlabel.solve.exact",
    "IndexTable": "nextlabel.solve.index",
    "NextlabelError": "nextlabel.errors",
    "Problem": "nextlabel.problem.problem",
    "TaskClass": "nextlabel.problem.problem",
    "check_indexability": "nextlabel.solve.indexability",
    "exact_value": "nextlabel.solve.exact",
    "index_table": "nextlabel.solve.index",
    "load_problem": "nextlabel.problem.toml",
    "policy_value": "nextlabel.solve.exact",
    "upper_bound": "nextlabel.solve.bound",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
