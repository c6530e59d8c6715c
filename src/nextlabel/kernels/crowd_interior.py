"""The interior-point steps of the linear program of the relaxation: normal equations, Cholesky, slacks.

======= ======== ============ ==================================================================
symbol  code     shape        meaning
======= ======== ============ ==================================================================
z       z        (M+1+G,)     supply prices nu, price lam, values V
s       s        (rows,)      slacks, all above 0: stop (G), labels (M G), prices (M+1)
x       x        (rows,)      multipliers: tasks that stop, take a label of type m, or prices not charged
H       H        (n, n)       A' diag(x/s) A, upper triangle
======= ======== ============ ==================================================================

Rows of A z - c = s, in this order:

    V_i - R_i,        V_i - sum_e weight[m, i, e] V_to + lam + nu_m + cost_m,        nu_m, lam.

Supply prices come first: two of them never share a row, so that their corner of H is diagonal, and elimination skips
the zeros. Sums are added in a fixed order, so that every processor finds the same prices.
Guarantee: arithmetic only. Cost: (E + 3)^2 M G / 2 for H and about G^3 / 3 + M G^2 for its factor.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.crowd_bellman import Chain
from nextlabel.kernels.jit import jit

#: A pivot below this share of its diagonal is a direction that no row tells about: it is left alone.
LEAST_PIVOT = 1e-30
#: Rows that are eliminated together.
BLOCK = 32


@jit
def directions(chain: Chain, dz: Floats, ds: Floats) -> None:
    """ds = A dz."""
    to, weight, _ = chain
    M, G, E = to.shape
    for i in range(G):
        ds[i] = dz[M + 1 + i]
    for m in range(M):
        for i in range(G):
            step = dz[M + 1 + i] + dz[M] + dz[m]
            for e in range(E):
                step -= weight[m, i, e] * dz[M + 1 + to[m, i, e]]
            ds[G + m * G + i] = step
    for k in range(M + 1):
        ds[G + M * G + k] = dz[k]


@jit
def slacks(chain: Chain, cost: Floats, z: Floats, s: Floats) -> None:
    """s = A z - c."""
    M, G, _ = chain.to.shape
    directions(chain, z, s)
    for i in range(G):
        s[i] -= chain.stop[i]
    for m in range(M):
        for i in range(G):
            s[G + m * G + i] += cost[m]


@jit
def transposed(chain: Chain, x: Floats, out: Floats) -> None:
    """out = A' x."""
    to, weight, _ = chain
    M, G, E = to.shape
    out[:] = 0.0
    for i in range(G):
        out[M + 1 + i] += x[i]
    for m in range(M):
        for i in range(G):
            flow = x[G + m * G + i]
            out[M + 1 + i] += flow
            out[M] += flow
            out[m] += flow
            for e in range(E):
                out[M + 1 + to[m, i, e]] -= weight[m, i, e] * flow
    for k in range(M + 1):
        out[k] += x[G + M * G + k]


@jit
def normal_matrix(chain: Chain, d: Floats, H: Floats) -> None:
    """H = A' diag(d) A, upper triangle."""
    to, weight, _ = chain
    M, G, E = to.shape
    at = np.empty(E + 3, dtype=np.int64)
    a = np.empty(E + 3)
    H[:, :] = 0.0
    for i in range(G):
        H[M + 1 + i, M + 1 + i] += d[i]
    for m in range(M):
        for i in range(G):
            w = d[G + m * G + i]
            at[0], at[1], at[2] = m, M, M + 1 + i
            a[0], a[1], a[2] = 1.0, 1.0, 1.0
            n = 3
            for e in range(E):
                if weight[m, i, e] == 0.0:
                    continue
                k = M + 1 + to[m, i, e]
                known = -1
                for j in range(2, n):
                    if at[j] == k:
                        known = j
                        break
                if known < 0:
                    at[n], a[n] = k, -weight[m, i, e]
                    n += 1
                else:
                    a[known] -= weight[m, i, e]
            for u in range(n):
                f = w * a[u]
                for v in range(n):
                    if at[v] >= at[u]:
                        H[at[u], at[v]] += f * a[v]
    for k in range(M + 1):
        H[k, k] += d[G + M * G + k]


@jit
def factor(H: Floats) -> None:
    """H = F' F with F upper triangular, in place; ``BLOCK`` rows at a time, so that they stay in the cache."""
    n = H.shape[0]
    for first in range(0, n, BLOCK):
        end = min(first + BLOCK, n)
        for k in range(first, end):
            pivot = H[k, k]
            if not pivot > LEAST_PIVOT:
                H[k, k:] = 0.0
                H[k, k] = 1e60
                continue
            root = sqrt(pivot)
            for j in range(k, n):
                H[k, j] /= root
            for i in range(k + 1, end):
                f = H[k, i]
                if f != 0.0:
                    for j in range(i, n):
                        H[i, j] -= f * H[k, j]
        for i in range(end, n):
            for k in range(first, end - 3, 4):
                f, g, p, q = H[k, i], H[k + 1, i], H[k + 2, i], H[k + 3, i]
                if f == 0.0 and g == 0.0 and p == 0.0 and q == 0.0:
                    continue
                for j in range(i, n):
                    H[i, j] -= (f * H[k, j] + g * H[k + 1, j]) + (p * H[k + 2, j] + q * H[k + 3, j])
            for k in range(end - (end - first) % 4, end):
                f = H[k, i]
                if f != 0.0:
                    for j in range(i, n):
                        H[i, j] -= f * H[k, j]


@jit
def solve_factored(F: Floats, right: Floats) -> None:
    """Solve F' F y = right, in place."""
    n = F.shape[0]
    for k in range(n):
        right[k] /= F[k, k]
        r = right[k]
        for j in range(k + 1, n):
            right[j] -= F[k, j] * r
    for k in range(n - 1, -1, -1):
        total = right[k]
        for j in range(k + 1, n):
            total -= F[k, j] * right[j]
        right[k] = total / F[k, k]


@jit
def longest_step(v: Floats, dv: Floats) -> float:
    """The largest step up to 1 that keeps v + step dv at least 0."""
    step = 1.0
    for k in range(v.shape[0]):
        if dv[k] < 0.0:
            step = min(step, -v[k] / dv[k])
    return step
