"""Problems with many kinds of tasks: one score table per class, small lattices, a heap of tasks.

The index is here that of the settled table without delay (Gittins for a task with nothing in flight, the least of it
over the outcomes of the labels in flight otherwise), which does not depend on the arrivals left. A campaign meets few
of the states that 100,000 priors have, so the index of a state is worked out when a task first gets there.
Cost: with two answers 5.9 kB per class for the index (DEPTH + AHEAD levels), 5.1 kB for other rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.lattice import Lattice
from nextlabel.errors import InputError
from nextlabel.kernels.own_priors import OwnPriors, rollout_own_priors
from nextlabel.kernels.ties import TIED
from nextlabel.policies.auto import Auto
from nextlabel.policies.base import ClassView, Policy, StaticPolicy
from nextlabel.policies.index import Index
from nextlabel.policies.own_priors import AHEAD, DEPTH, FEW_CLASSES, FLIGHT, class_arrays
from nextlabel.policies.rollout_arrays import make_timing
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.solve.progress import Progress, on_all_cores

#: Classes whose lattices are made at once.
CHUNK = 64


class ClassTables(ClassView):
    """The lattices of B classes as one, node i of class c being i B + c: a policy scores them in one go.

    Levels follow one another as in each of them, and no node has a child in another class's.
    """

    def __init__(
        self, classes: Sequence[TaskClass], reward: Floats, ceiling: Floats, prob: Floats, depth: int, flight: int
    ) -> None:
        super().__init__(classes[0], depth, flight)
        B, one = len(classes), self.lattice
        self.size = B
        self.level, self.counts = np.repeat(self.level, B), np.repeat(self.counts, B, axis=0)
        # A rule that asks for the threshold asks it of every node.
        self.threshold = np.tile([c.threshold for c in classes], one.nodes)  # type: ignore[assignment]
        self.lattice = Lattice(
            one.first * B,
            reward.T.ravel(),
            ceiling.T.ravel(),
            prob.transpose(1, 0, 2).reshape(-1, one.answers),
            (one.child[:, None, :] * B + np.arange(B)[None, :, None]).reshape(-1, one.answers),
        )

    def by_class(self, scores: Floats) -> Floats:
        """(flight + 1, nodes of the forest) as (B, flight + 1, nodes of a class)."""
        return np.moveaxis(scores.reshape(len(scores), -1, self.size), -1, 0)


def own_prior_tables(problem: Problem, policy: Policy, progress: Progress | None = None) -> tuple[Floats, Floats]:
    """Scores (classes, w, node) of one policy and facts (classes, node, J), as ``kernels.own_priors`` has them.

    For the index the scores are (classes, 1, node) and all nan, to be worked out on the way.
    """
    classes = problem.classes
    if isinstance(policy, Auto):
        policy = Index()
    if not isinstance(policy, StaticPolicy | Index):
        raise InputError(
            f"policy {policy.name!r} cannot be used with more than {FEW_CLASSES} kinds of tasks.",
            "Use index, okg, uncertainty, uniform or another rule that looks at the task alone.",
        )
    if isinstance(policy, Index) and (policy.table is not None or policy.cap is not None):
        raise InputError(
            f"with more than {FEW_CLASSES} kinds of tasks the index takes neither a table nor a cap.",
            "Use Index(), which works out what it needs.",
        )
    policy.check_answers(problem.answers)
    static = isinstance(policy, StaticPolicy)
    depth, flight = _limits(problem)
    first, _ = _shape(classes[0], depth, static)
    scores = np.full((len(classes), flight + 1 if static else 1, int(first[depth + 1])), np.nan)
    facts = np.empty((len(classes), int(first[-1]), problem.answers))

    def fill(start: int) -> None:
        some, here = classes[start : start + CHUNK], slice(start, start + CHUNK)
        reward, ceiling, prob = class_arrays(some, len(first) - 2)
        facts[here, :, 0] = reward
        for j in range(problem.answers - 1):
            facts[here, :, 1 + j] = prob[:, :, j] + (facts[here, :, j] if j > 0 else 0.0)
        if isinstance(policy, StaticPolicy):
            forest = ClassTables(some, reward, ceiling, prob, depth, flight)
            scores[here] = forest.by_class(policy.checked_score(forest))

    for _ in on_all_cores(fill, range(0, len(classes), CHUNK), progress):
        pass
    return scores, facts


def own_priors_chunk(
    problem: Problem, class_of: Ints, scores: Floats, facts: Floats, wait: bool, seed: int, first: int, count: int
) -> tuple[Floats, Ints]:
    """Replications first .. first + count - 1.

    Indices found on the way are kept in ``scores``, where other chunks may find them: each has one value only.
    """
    out = np.zeros((count, 5))
    depth, flight = _limits(problem)
    levels, child = _shape(problem.classes[0], depth, scores.shape[1] > 1)
    cost = problem.label_cost
    least = cost - TIED if cost > 0 and scores.shape[1] == 1 else -np.inf  # only the index is in the unit of a price
    scores = np.require(scores, requirements="W")  # what a cluster sends may be for reading only
    tasks = OwnPriors(levels, child, facts, scores, class_of, depth, flight)
    rollout_own_priors(tasks, make_timing(problem, wait), problem.budget, least, seed, first, out)
    return out, np.zeros((0, 0), dtype=np.int64)


def class_of_task(problem: Problem) -> Ints:
    """Class of each task."""
    return np.repeat(np.arange(len(problem.classes)), [c.count for c in problem.classes]).astype(np.int64)


def _limits(problem: Problem) -> tuple[int, int]:
    """Labels a task can be given, and of them in flight."""
    depth = min(DEPTH, problem.budget)
    return depth, min(FLIGHT, depth)


def _shape(entry: TaskClass, depth: int, static: bool) -> tuple[Ints, Ints]:
    """``first`` and ``child`` of the lattices: as deep as a task can get, deeper for the index."""
    lattice = entry.lattice(depth if static else depth + AHEAD)
    return lattice.first, lattice.child
