"""Who takes part in a study: every policy of the registry but the slow ones, with tables shared between runs."""

from __future__ import annotations

from collections.abc import Iterable

from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.index import Index
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.problem.problem import Problem
from nextlabel.solve.index.table import index_table

#: Solves again and again while it runs: minutes a replication of a large problem.
SLOW = ("resolve",)
#: Solves for a price of every arrival first: seconds to a minute a problem.
PRICED = ("lagrangian",)
#: Tabulates quantiles first: a second a problem.
DRAWN = ("thompson",)
#: Index accuracy that simulations need.
TOLERANCE = 1e-6


class Shared(Policy):
    """A policy whose tables are made once a problem and used again by every run on it."""

    name = "shared"
    in_flight = "as the policy it holds"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name = policy.name  # type: ignore[misc]
        self.random_ties, self.tied = policy.random_ties, policy.tied
        self.priced = policy.priced  # type: ignore[misc]
        self._made: dict[tuple[Problem, int, int], list[ScoreTables]] = {}

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """The held policy's tables."""
        key = (setting.problem, setting.depth, setting.flight)
        if key not in self._made:
            self._made[key] = self.policy.scores(setting)
        return self._made[key]


def names(without: Iterable[str] = ()) -> list[str]:
    """Every policy but the slow ones and those left out, the index first."""
    out = set(SLOW) | set(without)
    return sorted((name for name in POLICIES if name not in out), key=lambda name: (name != "index", name))


def shared(policies: Iterable[str], index: Policy | None = None) -> list[Policy]:
    """The policies by name, tables shared between runs; ``index`` in the place of the usual index policy."""
    return [Shared(index if name == "index" and index is not None else make_policy(name)) for name in policies]


def index_for(problem: Problem, cap: int | None = None) -> Index:
    """The index policy with a table solved for the largest problem of a family: rows of small n serve them all."""
    return Index(index_table(problem, cap=cap, tolerance=TOLERANCE))
