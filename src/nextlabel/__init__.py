"""Which task should the next worker label? Certified bounds, index policies and exact optima for crowdsourcing.

Names are imported when they are first used, so that ``import nextlabel`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nextlabel.beliefs.beta import Beta
    from nextlabel.errors import NextlabelError
    from nextlabel.policies.base import Policy
    from nextlabel.policies.index import Index as IndexPolicy
    from nextlabel.policies.okg import OKG
    from nextlabel.policies.registry import make_policy
    from nextlabel.problem.problem import Problem, TaskClass
    from nextlabel.problem.toml import load_problem
    from nextlabel.simulate.engine import Engine
    from nextlabel.simulate.study import Study, simulate
    from nextlabel.solve.bound import Bound, upper_bound
    from nextlabel.solve.exact import ExactResult, exact_value, policy_value
    from nextlabel.solve.index import IndexTable, index_table
    from nextlabel.solve.indexability import check_indexability

__version__ = "0.1.0"

__all__ = [
    "OKG",
    "Beta",
    "Bound",
    "Engine",
    "ExactResult",
    "IndexPolicy",
    "IndexTable",
    "NextlabelError",
    "Policy",
    "Problem",
    "Study",
    "TaskClass",
    "__version__",
    "check_indexability",
    "exact_value",
    "index_table",
    "load_problem",
    "make_policy",
    "policy_value",
    "simulate",
    "upper_bound",
]

#: Where each name lives; after the colon its name there, if it is another.
_HOME = {
    "Beta": "nextlabel.beliefs.beta",
    "Bound": "nextlabel.solve.bound",
    "Engine": "nextlabel.simulate.engine",
    "ExactResult": "nextlabel.solve.exact",
    "IndexPolicy": "nextlabel.policies.index:Index",
    "IndexTable": "nextlabel.solve.index",
    "NextlabelError": "nextlabel.errors",
    "OKG": "nextlabel.policies.okg",
    "Policy": "nextlabel.policies.base",
    "Problem": "nextlabel.problem.problem",
    "Study": "nextlabel.simulate.study",
    "TaskClass": "nextlabel.problem.problem",
    "check_indexability": "nextlabel.solve.indexability",
    "exact_value": "nextlabel.solve.exact",
    "index_table": "nextlabel.solve.index",
    "load_problem": "nextlabel.problem.toml",
    "make_policy": "nextlabel.policies.registry",
    "policy_value": "nextlabel.solve.exact",
    "upper_bound": "nextlabel.solve.bound",
}


def __getattr__(name: str) -> Any:
    if name == "simulate":
        return import_module("nextlabel.simulate")  # a package that can be called: see its docstring
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, _, there = _HOME[name].partition(":")
    value = globals()[name] = getattr(import_module(home), there or name)
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
