"""Belief lattice: everything the solvers know about how labels teach.

A task's belief after m labels is a *node* of level m. The kernels see these arrays and nothing else, so that a new kind
of prior, label or reward is a new lattice and never a new solver; a task's state is (node, w labels in flight).

========== =========== ========= ======================================================================
symbol     code        shape     meaning
========== =========== ========= ======================================================================
m          level       --        labels seen; nodes of level m are ``first[m] .. first[m+1]-1``
R          reward      (N,)      expected reward of deciding now
R_inf      ceiling     (N,)      expected reward if the truth were told: R <= any continuation <= ceiling
p_j        prob        (N, J)    predictive probability of answer j
i -> i'    child       (N, J)    node after answer j (0 on the last level, where there is none)
--         alike       (N,)      nodes of one level with the same number have the same future in law, or None
========== =========== ========= ======================================================================

Guarantee: exact (the lattice is the model). Cost: N (2 + 2 J) numbers; ``simplex`` says how many nodes N there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Lattices
from nextlabel.model.prior import Prior
from nextlabel.model.rewards import Accuracy, Reward
from nextlabel.model.simplex import simplex

ACCURACY = Accuracy()


@dataclass(frozen=True, slots=True)
class Lattice:
    """Nodes by level, with rewards, predictive probabilities and children."""

    first: Ints
    reward: Floats
    ceiling: Floats
    prob: Floats
    child: Ints
    alike: Ints | None = None

    @property
    def depth(self) -> int:
        """The last level D."""
        return len(self.first) - 2

    @property
    def nodes(self) -> int:
        """Number of nodes N."""
        return int(self.first[-1])

    @property
    def answers(self) -> int:
        """Number of possible answers J."""
        return int(self.prob.shape[1])


def lump(lattice: Lattice) -> tuple[Lattice, Ints]:
    """Merge the nodes that are ``alike``; return the smaller lattice and the map old node -> new node.

    Only symmetries that follow from the parameters are used (``Prior.symmetry``): with a symmetric prior and threshold
    1/2, (a, b) and (b, a). Numbers that merely lie close together stay apart, however close: what is small beside the
    range of the rewards may be all that a problem is about. Merged nodes are equal but for rounding; the largest
    reward and ceiling of them are kept, so that no upper bound falls.
    """
    if lattice.alike is None:
        return lattice, np.arange(lattice.nodes, dtype=np.int64)
    level = level_of(lattice.first)
    number = level * (int(lattice.alike.max()) + 1) + lattice.alike
    _, kept, to_new = np.unique(number, return_index=True, return_inverse=True)
    to_new = np.asarray(to_new, dtype=np.int64).reshape(-1)
    first = np.searchsorted(level[kept], np.arange(lattice.depth + 2)).astype(np.int64)
    reward, ceiling = (np.full(len(kept), -np.inf) for _ in range(2))
    np.maximum.at(reward, to_new, lattice.reward)
    np.maximum.at(ceiling, to_new, lattice.ceiling)
    child = to_new[lattice.child[kept]]
    child[int(first[lattice.depth]) :] = 0
    first.setflags(write=False)  # as ``simplex`` has them: compiled kernels tell the two kinds of array apart
    child.setflags(write=False)
    return Lattice(first, reward, ceiling, lattice.prob[kept], child), to_new


def level_of(first: Ints) -> Ints:
    """Level of each node."""
    return np.repeat(np.arange(len(first) - 1, dtype=np.int64), np.diff(first))


def after_labels(lattice: Lattice | Lattices, values: Floats, most: int) -> Floats:
    """(most + 1, nodes) E[values after w more labels], w = 0, 1, ..; the last level keeps its value."""
    inner, child = int(lattice.first[-2]), lattice.child
    prob, rows = lattice.prob.reshape(child.shape), np.repeat(values[None], most + 1, axis=0)
    for w in range(1, most + 1):
        rows[w, :inner] = np.sum(prob[:inner] * rows[w - 1][child[:inner]], axis=1)
    return rows


def triangle_counts(depth: int) -> tuple[Ints, Ints]:
    """For each node of the binary lattice: labels seen, and ones among them."""
    _, _, counts = simplex(2, depth)
    return counts.sum(axis=1), counts[:, 1]


def stack_lattices(
    priors: Sequence[Prior], thresholds: Sequence[float], rewards: Sequence[Reward], depth: int, *, lumped: bool = True
) -> Lattices:
    """The lattices of several priors with as many answers; a single one is ``lumped``: half of a symmetric one."""
    if lumped and len(priors) == 1:
        lattice, node_of = lump(make_lattice(priors[0], thresholds[0], depth, rewards[0]))
        return Lattices(
            lattice.first, lattice.child, lattice.reward[None], lattice.ceiling[None], lattice.prob[None], node_of
        )
    arrays = _arrays(priors, np.asarray(thresholds, dtype=np.float64), rewards, depth)
    return stack_arrays(priors[0].answers, depth, *arrays)


def rewards_of(prob: Floats, truth: Floats, reward: Reward, depth: int) -> tuple[Floats, Floats, Floats]:
    """reward, ceiling (B, N) and prob (B, N, J) of beliefs that reach ``reward.ahead`` levels further."""
    first, child, _ = simplex(prob.shape[-1], depth + reward.ahead)
    worth, ceiling = reward.values(prob, truth, first, child)
    return worth, ceiling, prob[:, : worth.shape[1]]


def stack_arrays(answers: int, depth: int, reward: Floats, ceiling: Floats, prob: Floats) -> Lattices:
    """Lattices that are not lumped."""
    first, child, _ = simplex(answers, depth)
    return Lattices(first, child, reward, ceiling, np.ascontiguousarray(prob), np.arange(first[-1], dtype=np.int64))


def make_lattice(prior: Prior, threshold: float, depth: int, reward: Reward = ACCURACY) -> Lattice:
    """The belief lattice of one task, not lumped."""
    first, child, counts = simplex(prior.answers, depth)
    worth, ceiling, prob = _arrays([prior], np.array([threshold]), [reward], depth)
    key = prior.symmetry(threshold, counts) if reward.symmetric else None
    return Lattice(first, worth[0], ceiling[0], prob[0], child, None if key is None else _numbered(key))


def _numbered(key: Floats) -> Ints:
    """Equal numbers for equal rows within a level, where the sum of a row is known: of two columns one says it all."""
    rows, axis = (key[:, 0], None) if key.shape[1] == 2 else (key, 0)
    return np.asarray(np.unique(rows, axis=axis, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def _arrays(
    priors: Sequence[Prior], thresholds: Floats, rewards: Sequence[Reward], depth: int
) -> tuple[Floats, Floats, Floats]:
    """reward, ceiling (B, N) and prob (B, N, J); priors of one kind with one reward are made together."""
    together: dict[tuple[type[Prior], Reward], list[int]] = {}
    for k, (prior, reward) in enumerate(zip(priors, rewards, strict=True)):
        together.setdefault((type(prior), reward), []).append(k)
    done: list[tuple[Floats, Floats, Floats]] = []
    for (kind, reward), rows in together.items():
        believed = kind.believe_all([priors[k] for k in rows], thresholds[rows], depth + reward.ahead)
        done.append(rewards_of(*believed, reward, depth))
    if len(done) == 1:
        return done[0]
    back = np.argsort(np.concatenate([np.array(rows) for rows in together.values()]))
    reward_all, ceiling_all, prob_all = (np.concatenate(part)[back] for part in zip(*done, strict=True))
    return reward_all, ceiling_all, prob_all
