"""Backward sweep of the single-task problem at several multiples of one path of prices, side by side.

========= ========= ============== ==================================================================
symbol    code      shape          meaning
========= ========= ============== ==================================================================
lam_l     path      (U,)           prices of the arrivals, the first one first
k_j       level     (J,)           multiples of them
p         sure      --             chance that a label in flight after the last arrival still comes in
V_j       out       (B, R, S, J)   values with rows[0], rows[1] .. arrivals left
========= ========= ============== ==================================================================

With q = rho + w, time counted in lifetimes of a label:

    V(i,w,n) = (rho max{ V(i,w,n-1), V(i,w+1,n-1) - k_j lam_n - c } + w sum_j p_j V(child_j,w-1,n)) / q
    V(i,w,0) = p sum_j p_j V(child_j,w-1,0) + (1 - p) V(i,w-1,0),      V(i,0,0) = R.

p = 1 is a campaign that waits for every label, p = 0 one that ends at a deadline, to which n arrivals are the time
left. States on the edge (level + w = C, or w = W) are offered no label.
Guarantee: exact for a task that gets no more labels than the edge allows. Cost: (4 + 2 A) flops for each state, arrival
and level with A answers; two rows of memory.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Grid, Lattices
from nextlabel.kernels.jit import jit


@jit
def sweep_levels(
    lattices: Lattices, grid: Grid, rho: float, cost: float, sure: float, path: Floats, level: Floats, rows: Ints,
    out: Floats,
) -> None:  # fmt: skip
    """Fill ``out``; ``rows`` rise from 0 to the number of arrivals."""
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    B, J, answers = out.shape[0], level.shape[0], prob.shape[2]
    U = path.shape[0]
    V = np.zeros((2, out.shape[2], J))
    E = np.zeros(J)
    for b in range(B):
        k = 0
        for n in range(U + 1):
            now, before = V[n % 2], V[(n + 1) % 2]
            for w in range(W + 1):
                o, up, down = off[w], off[w + 1], off[max(w - 1, 0)]
                inner = first[C - w] if w < W else 0
                q = rho + w
                for i in range(first[C - w + 1]):
                    E[:] = 0.0
                    for a in range(answers if w > 0 else 0):
                        c, p = down + child[i, a], prob[b, i, a]
                        for j in range(J):
                            E[j] += p * now[c, j]
                    if n == 0:
                        for j in range(J):
                            now[o + i, j] = reward[b, i] if w == 0 else sure * E[j] + (1.0 - sure) * now[down + i, j]
                    elif i < inner:
                        for j in range(J):
                            gain = before[up + i, j] - level[j] * path[U - n] - cost - before[o + i, j]
                            now[o + i, j] = (rho * (before[o + i, j] + max(gain, 0.0)) + w * E[j]) / q
                    else:
                        for j in range(J):
                            now[o + i, j] = (rho * before[o + i, j] + w * E[j]) / q
            if rows[k] == n:
                out[b, k] = now
                k += 1
