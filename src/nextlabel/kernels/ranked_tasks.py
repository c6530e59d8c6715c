"""Tasks that have priors of their own: no groups to speak of, so an indexed heap holds the tasks by score.

========= ======== ==================== ==============================================================================
symbol    code     shape                meaning
========= ======== ==================== ==============================================================================
--        score    (classes, W+1, N)    score of [w, node] on the lattice of D labels
G         score    (classes, 1, N)      or: limit indices, nan until a task first gets there (``limit_index``)
R         facts    (classes, >= N, J)   facts[c, i, 0]: reward of deciding now
p_j       facts    (classes, >= N, J)   facts[c, i, 1 + j], j < J - 1: probability of an answer up to j
--        own      (K, 2)               a task's own prior, where its class is one that is near: see ``first_answer``
--        share    (K,)                 the score of a task is this share of its class's, and the rest of the next one's
========= ======== ==================== ==============================================================================

Scores must not depend on the arrivals left, so that an event changes the key of one task only.

Ties go by lot: the key is the score less JITTER (V + E), with E ~ Exp(1) new whenever a task's state changes and V
that of the last task that won a tie. Such a race is without memory: every tied task is as likely to be next, also the
one that has just been served.
Cost: O(log K) per event, and a limit index for each state met for the first time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import TIED
from nextlabel.kernels.jit import jit
from nextlabel.kernels.no_delay import Workspace, answer_chance, least_limit_index

#: What a lot takes off a score: far below TIED.
JITTER = 1e-12
#: Where a task's answers come from: the tables of its class, or a prior of its own with two answers.
OF_CLASS, BETA, COIN = 0, 1, 2


class RankedTasks(NamedTuple):
    """Tasks that have priors of their own, and their scores; no tasks at all where classes are few."""

    first: Ints
    child: Ints
    facts: Floats
    score: Floats
    class_of: Ints  # (K,) class of each task
    D: int  # labels that a task is given at most
    W: int  # and of them in flight
    share: Floats  # (K,), or (0,) if a task has the score of its class
    law: int  # OF_CLASS, BETA or COIN
    own: Floats  # (K, 2), or (0, 2) with OF_CLASS


def read_only(array: Ints) -> Ints:
    """The same numbers, which nobody can write to: compiled kernels tell the two kinds of array apart."""
    view = array.view()
    view.setflags(write=False)
    return view


#: Tasks of few classes, which form groups.
NO_RANKED_TASKS = RankedTasks(
    read_only(np.zeros(2, dtype=np.int64)), read_only(np.zeros((0, 2), dtype=np.int64)), np.zeros((0, 0, 0)),
    np.zeros((0, 0, 0)), np.zeros(0, dtype=np.int64), 0, 0, np.zeros(0), OF_CLASS, np.zeros((0, 2)),
)  # fmt: skip


@jit
def sift(x: int, key: Floats, heap: Ints, position: Ints) -> None:
    """Move task x to where its key belongs; the largest key is on top."""
    k = position[x]
    while k > 0:
        above = (k - 1) // 2
        if key[heap[above]] >= key[x]:
            break
        heap[k] = heap[above]
        position[heap[k]] = k
        k = above
    while True:
        below = 2 * k + 1
        if below >= heap.shape[0]:
            break
        if below + 1 < heap.shape[0] and key[heap[below + 1]] > key[heap[below]]:
            below += 1
        if key[heap[below]] <= key[x]:
            break
        heap[k] = heap[below]
        position[heap[k]] = k
        k = below
    heap[k] = x
    position[x] = k


@jit
def tied(key: Floats, heap: Ints) -> bool:
    """Whether the task on top has to draw lots with another one."""
    ahead: float = np.inf
    for k in range(1, min(3, heap.shape[0])):
        ahead = min(ahead, key[heap[0]] - key[heap[k]])
    return ahead < TIED


@jit
def first_answer(law: int, own: Floats, ones: int, labels: int) -> float:
    """Probability of answer 0 after ``ones`` among ``labels``.

    ``own`` is (alpha, beta) of a Beta prior, or the log-odds of truth 1 and of an answer that is right.
    """
    zero: float = (own[1] + labels - ones) / (own[0] + own[1] + labels)
    if law == BETA:
        return zero
    lead = 2 * ones - labels
    odds = own[0] + lead * own[1] if lead != 0 else own[0]
    truth, right = 1.0 / (1.0 + np.exp(-odds)), 1.0 / (1.0 + np.exp(-own[1]))
    zero = right + truth * (1.0 - 2.0 * right)
    return zero


@jit
def first_answers(law: int, own: Floats, ones: Ints, labels: Ints, out: Floats) -> None:
    """out[x] = ``first_answer`` of each task."""
    for x in range(ones.shape[0]):
        out[x] = first_answer(law, own[x], ones[x], labels[x])


@jit
def ranked_answer(tasks: RankedTasks, x: int, node: int, m: int, u: float) -> int:
    """The answer of the uniform u on task x in ``node`` of level m."""
    if tasks.law != OF_CLASS:
        return 1 if u >= first_answer(tasks.law, tasks.own[x], node - tasks.first[m], m) else 0
    answer = 0
    while answer < tasks.child.shape[1] - 1 and u >= tasks.facts[tasks.class_of[x], node, 1 + answer]:
        answer += 1
    return answer


@jit
def class_score(tasks: RankedTasks, c: int, m: int, node: int, w: int, room: Workspace, ahead: Ints) -> float:
    """Score of class c in [w, node], level m: looked up, or the limit index, which is then kept in ``score``."""
    if tasks.score.shape[1] > 1:
        found: float = tasks.score[c, w, node]
    else:
        found = least_limit_index(tasks.first, tasks.child, tasks.facts[c], m, node, w, room, ahead, tasks.score[c, 0])
    return found


@jit
def task_score(tasks: RankedTasks, x: int, m: int, node: int, w: int, room: Workspace, ahead: Ints) -> float:
    """Score of task x in [w, node], level m."""
    c = tasks.class_of[x]
    s = class_score(tasks, c, m, node, w, room, ahead)
    if tasks.share.shape[0] > 0 and tasks.share[x] < 1.0:
        t = tasks.share[x]
        s = t * s + (1.0 - t) * class_score(tasks, c + 1, m, node, w, room, ahead)
    return s


@jit
def class_worth(first: Ints, child: Ints, facts: Floats, class_of: Ints, node: Ints, due: Ints, out: Floats) -> None:
    """out[x] = E[R after ``due`` labels] of each task: over the lattice below its node."""
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
