"""Problems with many kinds of tasks: one score table per class, small lattices, a heap of tasks.

The index is here that of the settled table without delay (Gittins for a task with nothing in flight, the least of it
over the outcomes of the labels in flight otherwise), which does not depend on the arrivals left. A campaign meets few
of the states that 100,000 priors have, so the index of a state is worked out when a task first gets there.

Priors that are one family with one parameter, a model's score, are ranked by the tables of GRID priors: a task's score
is interpolated between the two around its own. Its answers and its reward are those of its own prior.
Cost: as much room as ``policies.own_priors`` allows for the tables, and 100 bytes per task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.beta import beta_beliefs
from nextlabel.beliefs.fact import coin_beliefs
from nextlabel.beliefs.lattice import Lattice
from nextlabel.beliefs.simplex import simplex
from nextlabel.errors import InputError
from nextlabel.kernels.inputs import TIED
from nextlabel.kernels.own_priors import OF_CLASS, OWN_BETA, OwnPriors, Snapshots, rollout_own_priors
from nextlabel.policies.auto import Auto
from nextlabel.policies.base import ClassView, Policy, StaticPolicy
from nextlabel.policies.index import Index
from nextlabel.policies.own_priors import AHEAD, FEW_CLASSES, affordable_limits, class_arrays
from nextlabel.policies.rollout_arrays import make_timing
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.simulation.ranked_by import rank_by
from nextlabel.solve.progress import Progress, on_all_cores

#: Classes whose lattices are made at once, and tasks whose rewards are.
CHUNK, AT_ONCE = 64, 1 << 16


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


def own_prior_tables(
    problem: Problem, policy: Policy, progress: Progress | None = None, most_labels: int | None = None
) -> OwnPriors:
    """Scores (classes, w, node) of one policy and facts (classes, node, J), as ``kernels.own_priors`` has them.

    For the index the scores are (classes, 1, node) and all nan, to be worked out on the way.
    """
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
    ranked = rank_by(problem)
    classes = ranked.classes
    depth, flight = affordable_limits(len(classes), problem.answers, static)
    depth = min(depth if most_labels is None else most_labels, problem.budget)
    flight = min(flight, depth)
    lattice = classes[0].lattice(depth if static else depth + AHEAD)  # deeper for the index, which looks ahead
    first = lattice.first
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
    return OwnPriors(
        first, lattice.child, facts, scores, ranked.class_of, depth, flight, ranked.share, ranked.law, ranked.own
    )


def own_priors_chunk(
    problem: Problem, tasks: OwnPriors, wait: bool, seed: int, first: int, count: int
) -> tuple[Floats, Ints]:
    """Replications first .. first + count - 1.

    Indices found on the way are kept in the scores, where other chunks may find them: each has one value only.
    """
    out = np.zeros((count, 5))
    cost = problem.label_cost
    index = tasks.score.shape[1] == 1
    least = cost - TIED if cost > 0 and index else -np.inf  # only the index is in the unit of a price
    tasks = tasks._replace(score=np.require(tasks.score, requirements="W"))  # a cluster may send it for reading only
    timing, taken = make_timing(problem, wait), snapshots(np.zeros(0, dtype=np.int64), 0)
    if tasks.law == OF_CLASS:
        rollout_own_priors(tasks, timing, problem.budget, least, seed, first, taken, np.zeros(0, dtype=np.int64), out)
        return out, np.zeros((0, 0), dtype=np.int64)
    ends = np.zeros(len(tasks.class_of), dtype=np.int64)
    every = np.arange(len(ends))
    for k in range(count):
        rollout_own_priors(tasks, timing, problem.budget, least, seed, first + k, taken, ends, out[k : k + 1])
        out[k, 0] = own_rewards(problem.classes[0], tasks, every, ends).sum()
    return out, np.zeros((0, 0), dtype=np.int64)


def snapshots(budgets: Ints, tasks: int) -> Snapshots:
    """Room for where so many tasks stand at each of the budgets."""
    room = np.zeros((2, len(budgets), tasks), dtype=np.int64)
    return Snapshots(budgets, room[0], room[1], np.zeros((len(budgets), 2), dtype=np.int64))


def own_rewards(pattern: TaskClass, tasks: OwnPriors, which: Ints, nodes: Ints) -> Floats:
    """The rewards of some tasks with priors of their own, in these nodes."""
    first, child, _ = simplex(2, pattern.reward.ahead)
    out = np.empty(len(which))
    for start in range(0, len(which), AT_ONCE):
        here = slice(start, start + AT_ONCE)
        own = tasks.own[which[here]]
        labels = np.searchsorted(tasks.first, nodes[here], side="right") - 1
        ones = nodes[here] - tasks.first[labels]
        if tasks.law == OWN_BETA:
            d = np.full(len(own), pattern.threshold)
            prob, truth = beta_beliefs(own[:, 0] + ones, own[:, 1] + labels - ones, d, pattern.reward.ahead)
        else:
            lead = 2 * ones - labels
            pull = np.where(lead == 0, 0.0, lead) * np.where(lead == 0, 0.0, own[:, 1])
            prob, truth = coin_beliefs(expit(own[:, 0] + pull), expit(own[:, 1]), pattern.reward.ahead)
        out[here] = pattern.reward.values(prob, truth, first, child)[0][:, 0]
    return out
