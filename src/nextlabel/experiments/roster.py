"""Who takes part in a study: every policy of the registry but the slow ones, with tables shared between runs."""

from __future__ import annotations

from collections.abc import Iterable

from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.index import Index
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.problem.problem import Problem
from nextlabel.solve.index.table import index_table

#: Index accuracy that simulations need.
TOLERANCE = 1e-6


class Shared(Policy):
    """A policy whose tables are made once for each problem and used again by every run on it."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        for trait in Policy.__annotations__:
            setattr(self, trait, getattr(policy, trait))
        self._made: dict[tuple[Problem, int, int], list[ScoreTables]] = {}

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """The held policy's tables."""
        key = (setting.problem, setting.depth, setting.flight)
        if key not in self._made:
            self._made[key] = self.policy.scores(setting)
        return self._made[key]


def names(*, planned: bool = True, drawn: bool = True) -> list[str]:
    """Every policy but those that solve again, the index first; without those that plan ahead or draw, if so said."""
    some = [p for p in POLICIES.values() if not p.solves_again and planned >= p.planned_ahead and drawn >= p.draws]
    return sorted((policy.name for policy in some), key=lambda name: (name != "index", name))


def shared(policies: Iterable[str], index: Policy | None = None) -> list[Policy]:
    """The policies by name, tables shared between runs; ``index`` in the place of the usual index policy."""
    return [Shared(index if name == "index" and index is not None else make_policy(name)) for name in policies]


def index_for(problem: Problem, cap: int | None = None) -> Index:
    """The index policy with a table solved for the largest problem of a family: rows of small n serve them all."""
    return Index(index_table(problem, cap=cap, tolerance=TOLERANCE))
