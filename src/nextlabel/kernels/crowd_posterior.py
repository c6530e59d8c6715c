"""A whole crowd drawn from its posterior: truths, what the crowd is like, how much workers differ, in turn (Gibbs).

====== ============ ========= ==============================================================================
symbol code         shape     meaning
====== ============ ========= ==============================================================================
--     first, code  --        the labels by task, as in ``crowd_fit``
z      truth        (K,)      the truths, as drawn; gold stays
--     tilt         (K, C)    what is added to a task's log shares
n      counts       (W C, C)  labels y of worker j on tasks whose truth is c
m      mean         (C, C)    what the crowd is like on average
S      --           --        labels per truth that the mean is worth for one worker
m_0    idea         (C, C)    the first idea of the mean, worth ``hold`` labels per truth
====== ============ ========= ==============================================================================

    m_c ~ Dirichlet(hold m_0c),    S ~ uniform on ``STRENGTHS``,    A_j[c, :] ~ Dirichlet(S m_c),
    pi ~ Dirichlet(share),         z_x ~ pi exp(tilt_x),            labels ~ A_j[z_x, :]

Channels and shares are integrated out while truths are drawn. The mean is drawn with the numbers of tables of a Chinese
restaurant for each count, which makes its law given them a Dirichlet. With ``hold`` = inf the rows S m_c = ``pseudo``
are known. Guarantee: a Gibbs sampler of that posterior; deterministic under the generator. Cost: C divisions per label
and sweep, and one random number per label.
"""

from __future__ import annotations

import math

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_fit import Codes
from nextlabel.kernels.jit import jit

#: What S may be.
STRENGTHS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
#: The least share of an answer in the mean, and the least chance of one in a channel: none is impossible.
LEAST, SMALLEST = 1e-6, 1e-300


@jit
def draw_posterior(
    first: Ints,
    code: Codes,
    gold: Ints,
    tilt: Floats,
    pseudo: Floats,
    hold: float,
    share: Floats,
    truth: Ints,
    sweeps: int,
    chance: np.random.Generator,
    channels: Floats,
    drawn_share: Floats,
) -> None:
    """Move ``truth`` by so many sweeps, in place, and draw the crowd given it; ``pseudo`` becomes S m.

    ``channels`` (W + strangers, C, C): the last ones are of people without a label.
    """
    K, C = tilt.shape
    W = channels.shape[0]
    counts, whole, total = np.zeros((W * C, C)), np.zeros((W, C)), share.copy()
    for x in range(K):
        total[truth[x]] += 1.0
        for i in range(first[x], first[x + 1]):
            counts[code[i], truth[x]] += 1.0
            whole[code[i] // C, truth[x]] += 1.0
    idea, tilts, law, row = pseudo.copy(), np.exp(tilt), np.empty(C), np.empty(C)
    for c in range(C):
        idea[c] /= idea[c].sum()
    for sweep in range(sweeps + 1):
        if hold < math.inf:
            _draw_crowd(counts, whole, idea, hold, chance, pseudo)
        if sweep == sweeps:
            break
        for c in range(C):
            row[c] = pseudo[c].sum()
        for x in range(K):
            if gold[x] >= 0:
                continue
            z, everything = truth[x], 0.0
            total[z] -= 1.0
            for i in range(first[x], first[x + 1]):
                counts[code[i], z] -= 1.0
                whole[code[i] // C, z] -= 1.0
            for c in range(C):
                law[c] = total[c] * tilts[x, c]
                for i in range(first[x], first[x + 1]):
                    k = code[i]
                    law[c] *= C * (counts[k, c] + pseudo[c, k % C]) / (whole[k // C, c] + row[c])
                everything += law[c]
            u, z = chance.random() * everything, 0
            while z < C - 1 and u >= law[z]:
                u -= law[z]
                z += 1
            truth[x] = z
            total[z] += 1.0
            for i in range(first[x], first[x + 1]):
                counts[code[i], z] += 1.0
                whole[code[i] // C, z] += 1.0
    for j in range(W):
        for c in range(C):
            for y in range(C):
                weight = pseudo[c, y] + counts[j * C + y, c]
                # A power of a uniform number, so that weights far below 1 do not make a row of zeros.
                drawn = math.log(max(chance.standard_gamma(weight + 1.0), LEAST))
                channels[j, c, y] = drawn + math.log(max(chance.random(), SMALLEST)) / weight
            channels[j, c] = np.maximum(np.exp(channels[j, c] - channels[j, c].max()), SMALLEST)
            channels[j, c] /= channels[j, c].sum()
    for c in range(C):
        drawn_share[c] = max(chance.standard_gamma(total[c]), LEAST)
    drawn_share /= drawn_share.sum()


@jit
def _draw_crowd(
    counts: Floats, whole: Floats, idea: Floats, hold: float, chance: np.random.Generator, pseudo: Floats
) -> None:
    """S given the mean, then the mean given S."""
    C = idea.shape[0]
    W = whole.shape[0]
    mean, logs = pseudo.copy(), np.zeros(len(STRENGTHS))
    for c in range(C):
        mean[c] /= mean[c].sum()
    for k in range(len(STRENGTHS)):
        s = STRENGTHS[k]
        for j in range(W):
            for c in range(C):
                if whole[j, c] > 0.5:
                    logs[k] += math.lgamma(s) - math.lgamma(s + whole[j, c])
                    for y in range(C):
                        n = counts[j * C + y, c]
                        if n > 0.5:
                            logs[k] += math.lgamma(s * mean[c, y] + n) - math.lgamma(s * mean[c, y])
    chances = np.exp(logs - logs.max())
    u, at = chance.random() * chances.sum(), 0
    while at < len(STRENGTHS) - 1 and u >= chances[at]:
        u -= chances[at]
        at += 1
    strength = STRENGTHS[at]
    for c in range(C):
        for y in range(C):
            a, tables = strength * mean[c, y], 0.0
            for j in range(W):
                for i in range(int(counts[j * C + y, c] + 0.5)):
                    if chance.random() * (a + i) < a:
                        tables += 1.0
            pseudo[c, y] = max(chance.standard_gamma(hold * idea[c, y] + tables), LEAST)
        pseudo[c] /= pseudo[c].sum()
        for y in range(C):
            pseudo[c, y] = strength * max(pseudo[c, y], LEAST)
