"""Problems with many kinds of tasks: one score table per class, small lattices, a heap of tasks.

The index is here that of the settled table without delay (Gittins for a task with nothing in flight, the least of it
over the outcomes of the labels in flight otherwise), which does not depend on the arrivals left. A campaign meets few
of the states that 100,000 priors have, so the index of a state is worked out when a task first gets there.

Priors that are one family with one parameter, a model's score, are ranked by the tables of GRID priors: a task's score
is interpolated between the two around its own. Its answers and its reward are those of its own prior.
One campaign passes through several budgets: the rule looks at the task alone, so that what it does does not depend on
the budget. The value of budget b is read when worker b has been served: the sum over tasks of E[R after the labels in
flight that will be in in time].
Guarantee: unbiased for each budget; budgets share their randomness.
Cost: as much room as ``affordable_limits`` allows for the tables, 100 bytes per task, and the rewards of the tasks
that moved between two budgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError, refuse
from nextlabel.kernels.inputs import TIED, Lattices
from nextlabel.kernels.ranked_tasks import BETA, COIN, OF_CLASS, RankedTasks, class_worth, first_answers, read_only
from nextlabel.kernels.rollout import ProblemArrays
from nextlabel.model.beta import beta_beliefs
from nextlabel.model.fact import coin_beliefs
from nextlabel.model.lattice import Lattice, level_of
from nextlabel.model.problem import Problem
from nextlabel.model.simplex import simplex
from nextlabel.model.tasks import TaskClass, stack_classes
from nextlabel.policies.auto import Auto
from nextlabel.policies.base import ClassView, Policy, StaticPolicy
from nextlabel.policies.index import Index
from nextlabel.policies.rollout_arrays import (
    AHEAD,
    FEW_CLASSES,
    Rollout,
    affordable_limits,
    make_timing,
    no_tables,
)
from nextlabel.solve.grouping import chord_shares, make_score_grid, rising, scores_of
from nextlabel.solve.progress import Progress
from nextlabel.solve.relaxed import on_all_cores

#: Classes whose lattices are made at once, and tasks whose rewards are.
CHUNK, AT_ONCE = 64, 1 << 16
#: Cells of the grid of priors by which scores are ranked.
GRID = 400


class ClassTables(ClassView):
    """The lattices of B classes as one, node i of class c being i B + c: a policy scores them in one go.

    Levels follow one another as in each of them, and no node has a child in another class's.
    """

    def __init__(self, classes: Sequence[TaskClass], stack: Lattices, depth: int, flight: int) -> None:
        super().__init__(classes[0], depth, flight)
        B, one = len(classes), self.lattice
        self.size = B
        self.level, self.counts = np.repeat(self.level, B), np.repeat(self.counts, B, axis=0)
        # A rule that asks for the threshold asks it of every node.
        self.threshold = np.tile([c.threshold for c in classes], one.nodes)  # type: ignore[assignment]
        self.lattice = Lattice(
            one.first * B,
            stack.reward.T.ravel(),
            stack.ceiling.T.ravel(),
            stack.prob.transpose(1, 0, 2).reshape(-1, one.answers),
            (one.child[:, None, :] * B + np.arange(B)[None, :, None]).reshape(-1, one.answers),
        )

    def by_class(self, scores: Floats) -> Floats:
        """(flight + 1, nodes of the forest) as (B, flight + 1, nodes of a class)."""
        return np.moveaxis(scores.reshape(len(scores), -1, self.size), -1, 0)


def ranked_tables(
    problem: Problem, policy: Policy, progress: Progress | None = None, most_labels: int | None = None
) -> RankedTasks:
    """Scores (classes, w, node) of one policy and facts (classes, node, J), as ``kernels.ranked_tasks`` has them.

    For the index the scores are (classes, 1, node) and all nan, to be worked out on the way.
    """
    if isinstance(policy, Auto):
        policy = Index()
    if not isinstance(policy, StaticPolicy | Index):
        raise InputError(
            f"policy {policy.name!r} cannot be used with more than {FEW_CLASSES} kinds of tasks.",
            "Use index, okg, uncertainty, uniform or another rule that looks at the task alone.",
        )
    refuse((
        isinstance(policy, Index) and (policy.table is not None or policy.cap is not None),
        f"with more than {FEW_CLASSES} kinds of tasks the index takes neither a table nor a cap.",
        "Use Index(), which works out what it needs.",
    ))  # fmt: skip
    policy.check_answers(problem.answers)
    static = isinstance(policy, StaticPolicy)
    classes, class_of, share, law, own = rank_by(problem)
    depth, flight = affordable_limits(len(classes), problem.answers, static)
    depth = min(depth if most_labels is None else most_labels, problem.budget)
    flight = min(flight, depth)
    lattice = classes[0].lattice(depth if static else depth + AHEAD)  # deeper for the index, which looks ahead
    first = lattice.first
    scores = np.full((len(classes), flight + 1 if static else 1, int(first[depth + 1])), np.nan)
    facts = np.empty((len(classes), int(first[-1]), problem.answers))

    def fill(start: int) -> None:
        some, here = classes[start : start + CHUNK], slice(start, start + CHUNK)
        stack = stack_classes(some, len(first) - 2, lumped=False)
        facts[here, :, 0] = stack.reward
        for j in range(problem.answers - 1):
            facts[here, :, 1 + j] = stack.prob[:, :, j] + (facts[here, :, j] if j > 0 else 0.0)
        if isinstance(policy, StaticPolicy):
            forest = ClassTables(some, stack, depth, flight)
            scores[here] = forest.by_class(policy.checked_score(forest))

    for _ in on_all_cores(fill, range(0, len(classes), CHUNK), progress):
        pass
    return RankedTasks(first, lattice.child, facts, scores, class_of, depth, flight, share, law, own)


def rank_by(problem: Problem) -> tuple[Sequence[TaskClass], Ints, Floats, int, Floats]:
    """Classes with tables, and for each task its class, its share and its own prior (``kernels.ranked_tasks``).

    They are the grid's, where there are more scores than it has points, otherwise the problem's own.
    """
    found = scores_of(problem.classes) if len(problem.classes) > GRID + 1 else None
    if found is None:
        counts = [c.count for c in problem.classes]
        class_of = np.repeat(np.arange(len(problem.classes)), counts).astype(np.int64)
        return problem.classes, class_of, np.zeros(0), OF_CLASS, np.zeros((0, 2))
    scores = rising(found)
    grid, p = make_score_grid(scores, GRID), scores.values
    cell = np.clip(np.searchsorted(grid, p, side="right") - 1, 0, len(grid) - 2)
    share = chord_shares(p, grid[cell], grid[cell + 1])
    if scores.strength is not None:
        law, own = BETA, scores.strength * np.column_stack([p, 1.0 - p])
    else:
        with np.errstate(divide="ignore"):  # certain answers
            sure = float(logit(np.float64(scores.accuracy or 0.5)))
            law, own = COIN, np.column_stack([logit(p), np.full(len(p), sure)])
    every, classes = np.repeat(np.arange(len(p)), scores.counts.astype(np.int64)), scores.of(grid, np.ones(len(grid)))
    return classes, cell[every].astype(np.int64), share[every], law, np.ascontiguousarray(own[every])


class RankedCampaigns(NamedTuple):
    """A problem and its tasks, ready to be played with the problem's budget or through several (rising)."""

    problem: Problem
    tasks: RankedTasks
    budgets: tuple[int, ...] = ()
    wait: bool = True

    @classmethod
    def over_budgets(cls, problem: Problem, policy: Policy, budgets: Sequence[int]) -> RankedCampaigns:
        """A curve of ``policy``."""
        largest = problem.with_budget(max(int(budgets[-1]), 1))
        return cls(largest, ranked_tables(largest, policy), tuple(map(int, budgets)))

    def rollout(self) -> Rollout:
        """The arrays of the event loop.

        Indices found on the way are kept in the scores, where other chunks may find them: each has one value only.
        """
        problem, tasks = self.problem, self.tasks
        index = tasks.score.shape[1] == 1  # only the index is in the unit of a price
        least = problem.label_cost - TIED if problem.label_cost > 0 and index else -np.inf
        level = level_of(tasks.first)
        arrays = ProblemArrays(
            level=level,
            reward=np.zeros(0),
            prob=np.zeros((0, tasks.child.shape[1])),
            child=read_only(tasks.child),
            limit=np.full(len(level), tasks.D),
            root=np.zeros(len(tasks.class_of), dtype=np.int64),
            flight=np.zeros(0, dtype=np.int64),
            budget=problem.budget,
            timing=make_timing(problem, self.wait),
        )
        tables = no_tables((tasks.W + 1, len(level)), np.full(problem.budget, least))
        tasks = tasks._replace(  # a cluster may send arrays either way
            first=read_only(tasks.first),
            child=read_only(tasks.child),
            score=np.require(tasks.score, requirements="W"),
        )
        return Rollout(arrays, tables, self.budgets, own=tasks, awaited=not self.budgets)

    def play(self, seed: int, first: int, count: int) -> tuple[Floats]:
        """Replications first .. first + count - 1: ``kernels.rollout.write_outcome`` (count, budgets, 5)."""
        rollout, K = self.rollout(), len(self.tasks.class_of)
        if rollout.awaited and self.tasks.law == OF_CLASS:
            return (rollout.play(seed, first, count)[0],)
        parts, nodes = [], int(self.tasks.first[-1])
        for k in range(count):
            out, ends = rollout.play(seed, first + k, 1, K)
            worth, before = np.zeros(K), np.full(K, -1)
            for b, here in enumerate(ends[0] % nodes if rollout.awaited else ends[0]):
                moved = np.flatnonzero(here != before)
                worth[moved] = self._worth(moved, here[moved] % nodes, here[moved] // nodes)
                before = here
                out[0, b, 0] = worth.sum()
            parts.append(out)
        return (np.concatenate(parts),)

    def _worth(self, which: Ints, node: Ints, due: Ints) -> Floats:
        """E[R after the labels that are due] of some tasks."""
        tasks, out = self.tasks, np.empty(len(which))
        if tasks.law == OF_CLASS:
            class_worth(tasks.first, tasks.child, tasks.facts, tasks.class_of[which], node, due, out)
            return out
        first, level = tasks.first, np.searchsorted(tasks.first, node, side="right") - 1
        for w in np.unique(due).tolist():
            some = np.flatnonzero(due == w)
            x, m = which[some], level[some]
            ones = node[some] - first[m]
            rows = [rewards_by_prior(self.problem.classes[0], tasks, x, first[m + w] + ones + j) for j in range(w + 1)]
            zero = np.empty(len(x))
            for more in range(w - 1, -1, -1):
                for j in range(more + 1):
                    first_answers(tasks.law, tasks.own[x], ones + j, m + more, zero)
                    rows[j] = zero * rows[j] + (1.0 - zero) * rows[j + 1]
            out[some] = rows[0]
        return out


def rewards_by_prior(pattern: TaskClass, tasks: RankedTasks, which: Ints, nodes: Ints) -> Floats:
    """The rewards of some tasks with priors of their own, in these nodes."""
    first, child, _ = simplex(2, pattern.reward.ahead)
    out = np.empty(len(which))
    for start in range(0, len(which), AT_ONCE):
        here = slice(start, start + AT_ONCE)
        own = tasks.own[which[here]]
        labels = np.searchsorted(tasks.first, nodes[here], side="right") - 1
        ones = nodes[here] - tasks.first[labels]
        if tasks.law == BETA:
            d = np.full(len(own), pattern.threshold)
            prob, truth = beta_beliefs(own[:, 0] + ones, own[:, 1] + labels - ones, d, pattern.reward.ahead)
        else:
            lead = 2 * ones - labels
            pull = np.where(lead == 0, 0.0, lead) * np.where(lead == 0, 0.0, own[:, 1])
            prob, truth = coin_beliefs(expit(own[:, 0] + pull), expit(own[:, 1]), pattern.reward.ahead)
        out[here] = pattern.reward.values(prob, truth, first, child)[0][:, 0]
    return out
