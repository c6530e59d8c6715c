"""What is believed about tasks and workers while labels come in, moved by one label at a time.

====== ============ ========= ==============================================================================
symbol code         shape     meaning
====== ============ ========= ==============================================================================
--     logp         (K, C)    log belief of each truth, up to a constant; -inf where gold excludes it
p      belief       (K, C)    belief of each truth
n      counts       (W, C, C) expected number of times that worker j said y when the truth was c, and by how much the
                              worker's own prior is above or below a stranger's (that sums to 0 in each row)
N      total        (C,)      expected number of labelled or gold tasks with truth c, at the last refit
a      pseudo       (C, C)    Dirichlet pseudo-counts of a stranger's channel: what the crowd is like, as learnt so far
b      share_pseudo (C,)      pseudo-tasks of the truths
a0     base         (C, C)    what the crowd was thought to be like before any label
k      hold         --        labels that each row of ``base`` is worth while the crowd is learnt; inf: it is known
A      channel      (C, C)    P(worker says y | truth c), posterior mean
====== ============ ========= ==============================================================================

    A_j[c, y] = (a[c, y] + n_j[c, y]) / sum_y (a[c, y] + n_j[c, y])
    a label y of worker j on task x:   log p_x[c] += log A_j[c, y],   n_j[c, y] += p_x[c]

The channel that weighs a label was learnt from the worker's other labels, so the step is Bayes' rule for the
predictive probability of the label. Only the label's own task and worker move; ``crowd_fit.refit`` brings what the
label says about other labels of the same task. Guarantee: deterministic. Cost: O(C) logarithms and exponentials.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit

#: Labels that each row of the prior idea of the crowd is worth while the crowd is learnt.
HOLD = 60.0


class CrowdState(NamedTuple):
    """Beliefs of K tasks and expected counts of W workers over C answers."""

    logp: Floats
    belief: Floats
    counts: Floats
    total: Floats
    pseudo: Floats
    share_pseudo: Floats
    base: Floats
    hold: float


@jit
def new_state(tasks: int, workers: int, pseudo: Floats, share_pseudo: Floats, hold: float = -1.0) -> CrowdState:
    """Nothing seen yet: every task at the prior shares of the truths. ``hold`` below 0: the usual one."""
    C = share_pseudo.shape[0]
    logp, belief = np.empty((tasks, C)), np.empty((tasks, C))
    whole = share_pseudo.sum()
    for c in range(C):
        logp[:, c] = math.log(share_pseudo[c] / whole)
        belief[:, c] = share_pseudo[c] / whole
    counts, held = np.zeros((workers, C, C)), HOLD if hold < 0.0 else hold
    return CrowdState(logp, belief, counts, np.zeros(C), pseudo.copy(), share_pseudo.copy(), pseudo.copy(), held)


@jit
def normalise(logp: Floats, belief: Floats) -> None:
    """The belief that goes with log weights, one task's row of each."""
    top = logp[0]
    for c in range(1, logp.shape[0]):
        top = max(top, logp[c])
    whole = 0.0
    for c in range(logp.shape[0]):
        belief[c] = math.exp(logp[c] - top)
        whole += belief[c]
    for c in range(logp.shape[0]):
        belief[c] /= whole


@jit
def clamp(state: CrowdState, gold: Ints) -> None:
    """Settle the tasks whose truth is known (``gold`` (K,), -1 where it is not), before any label."""
    C = state.belief.shape[1]
    for x in range(gold.shape[0]):
        if gold[x] >= 0:
            for c in range(C):
                right = c == gold[x]
                state.logp[x, c] = 0.0 if right else -math.inf
                state.belief[x, c] = 1.0 if right else 0.0
            state.total[gold[x]] += 1.0


@jit
def channel_of(state: CrowdState, worker: int, out: Floats) -> None:
    """``out`` (C, C) gets the worker's posterior-mean channel: row = truth, column = answer."""
    C = out.shape[0]
    for c in range(C):
        whole = 0.0
        for y in range(C):
            out[c, y] = state.pseudo[c, y] + state.counts[worker, c, y]
            whole += out[c, y]
        for y in range(C):
            out[c, y] /= whole


@jit
def stream_label(state: CrowdState, task: int, worker: int, answer: int) -> None:
    """One label has come in: its task's belief and its worker's counts move at once."""
    logp, belief, counts, _, pseudo, _, _, _ = state
    C = pseudo.shape[0]
    for c in range(C):
        said = pseudo[c, answer] + counts[worker, c, answer]
        whole = 0.0
        for y in range(C):
            whole += pseudo[c, y] + counts[worker, c, y]
        logp[task, c] += math.log(said / whole)
    normalise(logp[task], belief[task])
    for c in range(C):
        counts[worker, c, answer] += belief[task, c]
