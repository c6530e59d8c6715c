"""What a task of a class is worth when the labels in flight will be in: E[R] over the lattice below its node."""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit
from nextlabel.kernels.limit_index import answer_chance
from nextlabel.kernels.own_priors import first_answer


@jit
def class_worth(first: Ints, child: Ints, facts: Floats, class_of: Ints, node: Ints, due: Ints, out: Floats) -> None:
    """out[x] = E[R after ``due`` labels] of each task; arrays of ``kernels.own_priors``."""
    most = 0
    for x in range(due.shape[0]):
        most = max(most, due[x])
    place = np.zeros(first[most + 1], dtype=np.int64)
    value = np.zeros(first[most + 1])
    for x in range(node.shape[0]):
        w, c = due[x], class_of[x]
        place[0] = node[x]
        for k in range(first[w]):
            for j in range(child.shape[1]):
                place[child[k, j]] = child[place[k], j]
        for k in range(first[w], first[w + 1]):
            value[k] = facts[c, place[k], 0]
        for k in range(first[w] - 1, -1, -1):
            value[k] = 0.0
            for j in range(child.shape[1]):
                value[k] += answer_chance(facts[c], place[k], j) * value[child[k, j]]
        out[x] = value[0]


@jit
def first_answers(law: int, own: Floats, ones: Ints, labels: Ints, out: Floats) -> None:
    """out[x] = ``first_answer`` of each task."""
    for x in range(ones.shape[0]):
        out[x] = first_answer(law, own[x], ones[x], labels[x])
