"""Problems with many kinds of tasks: one score table a class, small lattices, a heap of tasks.

The index is here that of the settled table without delay (Gittins for a task with nothing in flight, the least of it
over the outcomes of the labels in flight otherwise), which does not depend on the arrivals left.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.lattice import triangle_counts
from nextlabel.errors import InputError
from nextlabel.kernels.index import gittins
from nextlabel.kernels.many import rollout_many
from nextlabel.policies.base import ClassView, Policy, StaticPolicy
from nextlabel.policies.index import Index
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.solve.progress import Progress

#: More classes than this are simulated task by task.
FEW_CLASSES = 64
#: Labels a task, in flight at once, and levels that the index looks ahead beyond them.
DEPTH = 12
FLIGHT = 4
AHEAD = 12


def many_tables(problem: Problem, policy: Policy, progress: Progress | None = None) -> tuple[Floats, Floats]:
    """Scores (classes, w, node) of one policy and rewards (classes, node)."""
    if not isinstance(policy, StaticPolicy | Index):
        raise InputError(
            f"policy {policy.name!r} cannot be used with more than {FEW_CLASSES} kinds of tasks.",
            "Use index, okg, uncertainty, uniform or another rule that looks at the task alone.",
        )
    depth = min(DEPTH, problem.budget)
    flight = min(FLIGHT, depth)
    nodes = (depth + 1) * (depth + 2) // 2
    scores = np.empty((len(problem.classes), flight + 1, nodes))
    rewards = np.empty((len(problem.classes), nodes))
    for c, entry in enumerate(problem.classes):
        view = ClassView(entry, depth, flight)
        rewards[c] = view.lattice.reward
        scores[c] = policy.score(view) if isinstance(policy, StaticPolicy) else _no_delay_index(entry, depth, flight)
        if progress is not None and c % 256 == 0:
            progress(c / len(problem.classes))
    return scores, rewards


def _no_delay_index(entry: TaskClass, depth: int, flight: int) -> Floats:
    """(flight + 1, nodes) Gittins indices, and their least over the outcomes of what is in flight."""
    lattice = entry.lattice(depth + AHEAD)
    index = np.zeros(lattice.nodes)
    work = np.empty((2, lattice.nodes))
    levels = depth + flight + 1
    gittins(lattice.first, lattice.reward, lattice.prob, lattice.child, levels, work[0], work[1], index)
    rows = [index]
    inner = int(lattice.first[lattice.depth])
    for _ in range(flight):
        row = np.zeros(lattice.nodes)
        row[:inner] = rows[-1][lattice.child[:inner]].min(axis=1)
        rows.append(row)
    nodes = (depth + 1) * (depth + 2) // 2
    return np.stack(rows)[:, :nodes]


def run_many_chunk(
    problem: Problem, kind: Ints, scores: Floats, rewards: Floats, wait: bool, seed: int, first: int, count: int
) -> tuple[Floats, Ints]:
    """Replications first .. first + count - 1."""
    out = np.zeros((count, 5))
    level, _ = triangle_counts(min(DEPTH, problem.budget))
    alpha = np.array([c.prior.alpha for c in problem.classes])
    beta = np.array([c.prior.beta for c in problem.classes])
    rollout_many(
        alpha, beta, kind, level, rewards, scores, problem.budget, problem.arrival_rate, problem.completion_rate,
        problem.horizon, wait, seed, first, out,
    )  # fmt: skip
    return out, np.zeros((0, 0), dtype=np.int64)


def kinds(problem: Problem) -> Ints:
    """Class of each task."""
    return np.repeat(np.arange(len(problem.classes)), [c.count for c in problem.classes]).astype(np.int64)
