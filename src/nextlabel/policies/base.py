"""What a policy is: tables of scores, one for every state a task can be in; the arrival gets the largest score.

========= ========== ================ ==============================================================
symbol    code       shape            meaning
========= ========== ================ ==============================================================
(i, w)    [w, i]     --               belief node i of the class's own lattice, w labels in flight
m         level      (nodes,)         labels come in
a         ones       (nodes,)         of them positive (two answers)
R         reward     (nodes,)         reward of deciding now
========= ========== ================ ==============================================================

The same tables drive the simulator and a live campaign: neither asks the policy anything else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError, refuse
from nextlabel.kernels.choice import LevelTables
from nextlabel.kernels.inputs import NO_SLACK_TIME, TIED, SlackTime
from nextlabel.model.lattice import Lattice, after_labels, level_of
from nextlabel.model.problem import Problem, reward_unit
from nextlabel.model.simplex import deepest, simplex
from nextlabel.model.tasks import TaskClass

if TYPE_CHECKING:
    from nextlabel.kernels.crowd_campaign import CrowdPlan
    from nextlabel.policies.crowd.allocator import CrowdAllocator

#: Labels a task can be given in a simulation, and of them in flight at once, unless told otherwise.
MOST_LABELS = 64
MOST_IN_FLIGHT = 24
#: Beliefs of one task; with more than two answers they limit the labels per task.
MOST_NODES = 60_000


def knows_two(rule: str, answers: int) -> InputError:
    """The error of a rule for two answers that meets more."""
    return InputError(
        f"the policy {rule} knows two answers, and the tasks have {answers}.",
        "Use a policy for any number of answers, such as index, okg-pending, uncertainty or uniform.",
    )


def alike(rule: str) -> InputError:
    """The error of a rule for equal workers that meets others."""
    return InputError(
        f"policy {rule!r} takes workers to be alike, and the problem has workers who differ.",
        "Use crowd, crowd-uncertainty or uniform, or leave out the [[workers]].",
    )


class ClassView:
    """One class of tasks as policies see it."""

    def __init__(self, entry: TaskClass, depth: int, flight: int, unit: float = 1.0) -> None:
        self.entry = entry
        self.unit = unit
        self.flight = flight
        self.lattice: Lattice = entry.lattice(depth)
        self.level = level_of(self.lattice.first)
        self.threshold = entry.threshold

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.lattice.nodes

    @cached_property
    def counts(self) -> Ints:
        """(nodes, answers) labels of each answer."""
        return simplex(self.lattice.answers, self.lattice.depth)[2]

    @cached_property
    def ones(self) -> Ints:
        """Labels with answer 1, for rules that know two answers only."""
        if self.lattice.answers != 2:
            raise knows_two("that counts ones", self.lattice.answers)
        return np.asarray(self.counts[:, 1])

    @cached_property
    def inner(self) -> int:
        """Nodes that have children."""
        return int(self.lattice.first[self.lattice.depth])

    @cached_property
    def gains(self) -> Floats:
        """(nodes, answers) R after the answer minus R now; 0 on the last level."""
        out = np.zeros((self.nodes, self.lattice.answers))
        inner = self.inner
        out[:inner] = self.lattice.reward[self.lattice.child[:inner]] - self.lattice.reward[:inner, None]
        return out

    def after_flight(self, values: Floats, more: int = 0) -> Floats:
        """(flight + 1 + more, nodes) E[values where the w labels in flight lead to]; the last level stays put."""
        return after_labels(self.lattice, values, self.flight + more)

    def whatever_in_flight(self, values: Floats) -> Floats:
        """(flight + 1, nodes) the same values for every number in flight."""
        return np.tile(values, (self.flight + 1, 1))

    @cached_property
    def given(self) -> Ints:
        """(flight + 1, nodes) labels come in and in flight."""
        return np.arange(self.flight + 1)[:, None] + self.level[None, :]


@dataclass(frozen=True)
class Setting:
    """A problem with the lattices that simulation and policies share."""

    problem: Problem
    depth: int
    flight: int
    views: tuple[ClassView, ...] = field(repr=False)

    @property
    def own(self) -> Ints:
        """``first`` of the classes' own lattices."""
        return self.views[0].lattice.first

    @classmethod
    def of(cls, problem: Problem, most_labels: int | None = None, most_in_flight: int | None = None) -> Setting:
        """Lattices deep enough for ``most_labels`` a task."""
        depth = min(
            problem.budget,
            most_labels if most_labels is not None else MOST_LABELS,
            deepest(problem.answers, MOST_NODES),
        )
        flight = min(depth, most_in_flight if most_in_flight is not None else MOST_IN_FLIGHT)
        unit = reward_unit(problem)
        return cls(problem, depth, flight, tuple(ClassView(c, depth, flight, unit) for c in problem.classes))


@dataclass(frozen=True)
class ScoreTables:
    """Tables of one class: ``static`` [w, node], and ``rows`` (n, core, layers) for the states in ``core`` [w, node].

    Row n - 1 is for n arrivals left, the last row for all larger n. ``planned`` (U, core), if any, is the cumulative
    number of labels that the relaxed solution gives each core state: ties then go to the largest deficit. ``facts``
    and ``quantiles`` replace the tables for rules that count or draw (see ``kernels.choice``). ``levels`` of the first
    class serve all classes, whose ``static`` scores break ties. ``tau`` are times left, or what ``slack_time`` makes
    of them.
    """

    static: Floats
    rows: Floats | None = None
    core: Ints | None = None
    tau: Floats | None = None
    planned: Floats | None = None
    facts: Floats | None = None
    quantiles: Floats | None = None
    levels: LevelTables | None = None
    slack_time: SlackTime = NO_SLACK_TIME

    def with_left(self, n: int) -> Floats:
        """[w, node] scores with n arrivals left."""
        out = self.static.copy()
        if self.rows is not None and self.core is not None:
            inside = self.core >= 0
            out[inside] = self.rows[min(n, len(self.rows)) - 1, self.core[inside], 0]
        return out

    def times(self, factor: float) -> ScoreTables:
        """The tables in another unit."""
        return replace(self, static=factor * self.static, rows=None if self.rows is None else factor * self.rows)


class Policy(ABC):
    """A rule for the next arrival. What is special about it is said by attributes of its class."""

    #: What the policy is called in tables and files.
    name: str
    #: What it knows of labels in flight, in a few words for tables and documents.
    in_flight: str = "nothing"
    #: Ties are broken by lot among the tied tasks; otherwise the lowest state is taken.
    random_ties: bool = True
    #: Scores closer than this are tied; in units of the reward (``reward_unit``) if ``in_reward_units``.
    tied: float = TIED
    in_reward_units: bool = True
    #: It knows tasks with two answers only.
    two_answers: bool = False
    #: It looks at the prior, and not at the labels alone.
    uses_prior: bool = True
    #: The score is what a label is worth, so that an arrival whose best score is below a label's cost is turned away.
    priced: bool = False
    #: The task's own state and the arrivals left decide alone: nothing is counted over all tasks, drawn or planned.
    by_table: bool = True
    #: It plans the labels of all tasks together for one budget, so that it does not serve several budgets at once.
    planned_ahead: bool = False
    #: It can run a campaign whose tasks and budget may change.
    live: bool = True
    #: Its tables are for a number of tasks and of labels per task, and for any number of labels in flight.
    follows_load: bool = False
    #: It solves again while the campaign runs: seconds to minutes for each replication.
    solves_again: bool = False
    #: It takes part in problems with workers who differ (``plan``); it puts tasks in order by their labels alone.
    knows_workers: bool = False
    by_count: bool = False
    #: It draws from posterior quantiles that are tabulated first, about a second for each problem.
    draws: bool = False

    @abstractmethod
    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Tables for each class of the problem."""

    def plan(self, crowd: CrowdAllocator) -> CrowdPlan:
        """Who gets which task where workers differ; for rules that know workers (``policies.crowd.policies``)."""
        raise alike(self.name)

    def check_answers(self, answers: int) -> None:
        """Refuse tasks with more answers than the rule knows."""
        if self.two_answers and answers != 2:
            raise knows_two(self.name, answers)


class StaticPolicy(Policy):
    """A rule that looks at the task alone, not at the arrivals left."""

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """One static table for each class."""
        return [ScoreTables(self.checked_score(view)) for view in setting.views]

    @abstractmethod
    def score(self, view: ClassView) -> Floats:
        """(flight + 1, nodes) scores of one class."""

    def checked_score(self, view: ClassView) -> Floats:
        """``score``, refused if it is not a table of finite numbers of the right shape."""
        return checked_table(self.name, self.score(view), view)


def checked_table(policy: str, table: object, view: ClassView) -> Floats:
    """A table of scores as floats; a policy that returns anything else gets one sentence."""
    shape = view.given.shape
    try:
        scores = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"policy {policy!r} scores with a {type(table).__name__}, which is not an array of numbers.",
            f"Return an array of shape {shape}: labels in flight by belief nodes.",
        ) from None
    wrong = int(np.count_nonzero(~np.isfinite(scores)))
    refuse(
        (
            scores.shape != shape,
            f"policy {policy!r} returns scores of shape {scores.shape}, and {shape} is needed.",
            "Return one row for each number of labels in flight and one column for each belief node.",
        ),
        (
            wrong,
            f"policy {policy!r} returns {wrong:,} of {scores.size:,} scores that are not finite numbers.",
            "Return a finite score for every state; a large negative one for a task that should wait.",
        ),
    )
    return scores
