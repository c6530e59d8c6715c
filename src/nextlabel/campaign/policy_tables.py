"""The policy at work: score tables for a campaign's classes, and the group whose task the next worker gets.

Tables depend on the policy, the priors and rho alone, not on the tasks or the budget, so they are made once and kept
(``campaigns.table_cache``). Those of a policy that follows the load are for a number of tasks and of labels per task
besides, rounded, so that a campaign that grows has new ones now and then (``TableLoad``).
Guarantee: the choice of ``kernels.choice``, which simulations use, for the same groups, n and uniforms.
Cost: a visit to each group that has tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.campaign.rates import labels_before_deadline
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.kernels.choice import (
    BY_LEVELS,
    PolicyArrays,
    StateScores,
    choose_group,
    scores_by_state,
)
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.policies.allocation import TIES, Group, chance, draw_key
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.rollout_arrays import checked_scores, join_scores, make_policy_arrays, make_problem_arrays

#: Tables are made for so many arrivals, far past where their rows settle, and for so many labels per task: past two
#: and a half times as many and four the index without delay takes over (``solve.truncation.make_cut``).
ARRIVALS, LABELS_PER_TASK = 20_000, 2.4
#: Numbers of tasks and of labels per task that tables are for are powers of two to these fractions.
TASK_STEPS, LABEL_STEPS = 2, 4
#: Answers of ``PolicyTables.choose`` when it has no group.
NO_ROOM: Final = "no room"
BELOW_PRICE: Final = "below price"


class TableLoad(NamedTuple):
    """What tables are for: labels in flight and, where the policy follows them, tasks and labels per task (else 0).

    ``lost``: the campaign ends at a deadline, and labels in flight then are lost.
    """

    rho: float
    tasks: int = 0
    labels: float = 0.0
    lost: bool = False

    def distance(self, other: TableLoad) -> float:
        """How different two loads are, in doublings."""
        pairs = zip(self, other, strict=True)
        return sum(abs(math.log2(a / b)) if a > 0 and b > 0 else float(a != b) for a, b in pairs)


def as_load(load: TableLoad | float) -> TableLoad:
    """A load, or rho alone."""
    return load if isinstance(load, TableLoad) else TableLoad(load)


def load_of(row: CampaignRow, now: float = 0.0, rho: float | None = None) -> TableLoad:
    """The load whose tables serve a campaign as it stands ``now``, at ``rho`` if that is given."""
    at = row.rho if rho is None else rho
    if not row.config.follows_load:
        return TableLoad(at)
    tasks = max(row.tasks, 1)
    to_give = labels_before_deadline(row, now)
    labels = max(to_give + row.spent + row.reserved, 1) / tasks
    return TableLoad(at, round(_rounded(tasks, TASK_STEPS)), _rounded(labels, LABEL_STEPS), to_give < row.left)


def _rounded(number: float, steps: int) -> float:
    return float(2.0 ** (round(steps * math.log2(number)) / steps))


@dataclass(slots=True)
class PolicyTables:
    """Tables of one policy for some classes at one load."""

    load: TableLoad
    level: Ints
    child: Ints
    tables: PolicyArrays  # without ``static`` and ``core``, which ``by_state`` has
    by_state: StateScores
    least: float
    start: Ints
    flight: int
    nodes: int
    members: Ints
    lock: Lock = field(default_factory=Lock)  # ``members`` is scratch space

    @classmethod
    def of(
        cls,
        config: CampaignSettings,
        classes: Sequence[Prior],
        load: TableLoad | float,
        policy: Policy,
        give_way: Callable[[], None] = lambda: None,
    ) -> PolicyTables:
        """Make the tables; ``give_way`` is called after each prior of a policy that takes long for one."""
        setting = Setting.of(table_problem(config, classes, load), config.most_labels, config.most_in_flight)
        problem, tables = make_problem_arrays(setting, True), _policy_arrays(setting, policy, give_way)
        by_state = scores_by_state(tables, problem.level, problem.limit, problem.child)
        sizes = [view.nodes for view in setting.views]
        start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        least = config.label_cost - tables.tied if config.label_cost > 0 else -math.inf
        members = np.zeros(tables.static.size, dtype=np.int64)
        rest = tables._replace(static=np.zeros((0, 0)), core=np.zeros((0, 0), dtype=np.int64), price=tables.price[:1])
        return cls(
            as_load(load),
            problem.level,
            problem.child,
            rest,
            by_state,
            least,
            start,
            setting.flight,
            int(sum(sizes)),
            members,
        )

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        arrays = (self.level, self.child, self.members, *self.tables, *self.tables.levels, *self.by_state)
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def choose(
        self, groups: Mapping[Group, int], barred: Iterable[Group], n: int, ell: int, seed: int, number: int
    ) -> Group | Literal["no room", "below price"]:
        """The group for lease ``number``, with ``n`` labels left and ``ell`` handed out before."""
        excluded = set(barred)
        # A task may hold more than ``flight`` after an answer was taken back: no room there.
        mine = {self._state(g): g for g in groups if g[2] < self.flight and g not in excluded}
        if not mine:
            return NO_ROOM
        # The price that clears is that of all tasks, also of those that the worker may not have.
        everyone, share = {s: groups[g] for s, g in mine.items()}, 0.0
        if self.tables.mode == BY_LEVELS:
            everyone, share = {self._state(g): groups[g] for g in groups if g[2] <= self.flight}, float(n)
        active, states = (np.array([*sorted(part), len(part)], dtype=np.int64) for part in (mine, everyone))
        u = chance(seed, TIES, number)
        with self.lock:
            self.members[states[:-1]] = [everyone[s] for s in states[:-1].tolist()]
            chosen = choose_group(
                self.tables, self.by_state, self.level, self.child, states, active, self.members, n, ell, 0, share,
                draw_key(seed), u, self.least, np.zeros(self.tables.planned.shape[1]),
                np.zeros(len(active) + 2 * len(self.tables.levels.level)),
            )  # fmt: skip
            self.members[states[:-1]] = 0
        if chosen < 0:
            return NO_ROOM if chosen == -1 else BELOW_PRICE
        return mine[chosen]

    def _state(self, group: Group) -> int:
        """The number of a group's state."""
        class_id, node, w = group
        return w * self.nodes + int(self.start[class_id]) + node


class TableSource(Protocol):
    """Where commands get tables from."""

    def crowd_ready(self, row: CampaignRow) -> None:
        """Return if a model of the campaign's crowd may be made here and now, else a TablesPendingError."""

    def refit_later(self, id: str) -> Future[None] | None:
        """A refit of the campaign's crowd that goes on in the background; None if it is to be made here and now."""

    def ready(self, config: CampaignSettings, classes: Sequence[Prior], load: TableLoad | float) -> PolicyTables:
        """The tables for a load (rho alone for most policies), or the nearest that there are while those are made."""

    def has(self, config: CampaignSettings, classes: Sequence[Prior], load: TableLoad | float) -> bool:
        """Whether the tables are there; if not, they are made in the background."""


def table_problem(config: CampaignSettings, classes: Sequence[Prior], load: TableLoad | float) -> Problem:
    """The problem whose tables a campaign uses; neither its tasks nor its budget enter them, save by the load."""
    at = as_load(load)
    tasks, arrivals = int(ARRIVALS / LABELS_PER_TASK), ARRIVALS
    if at.tasks > 0:
        tasks, arrivals = at.tasks, max(round(at.tasks * at.labels), 1)
    entries = tuple(config.class_of(prior, max(tasks // len(classes), 1)) for prior in classes)
    horizon = arrivals / at.rho if at.lost else math.inf
    return Problem(entries, arrivals, at.rho, 1.0, horizon, config.label_cost)


def _policy_arrays(setting: Setting, policy: Policy, give_way: Callable[[], None]) -> PolicyArrays:
    if not policy.draws:
        return make_policy_arrays(setting, policy)
    policy.check_answers(setting.problem.answers)
    scores: list[ScoreTables] = []
    for view in setting.views:
        scores += checked_scores(replace(setting, views=(view,)), policy)
        give_way()
    return join_scores(setting, policy, scores)
