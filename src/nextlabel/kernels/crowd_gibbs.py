"""Truths of tasks drawn from their posterior, for how many answers are right and how sure that is.

====== ============ ========= ==============================================================================
symbol code         shape     meaning
====== ============ ========= ==============================================================================
--     first, code  --        the labels by task, as in ``crowd_fit``
z      truth        (K,)      the truths, as drawn; gold stays
n      counts       (W C, C)  labels y of worker j on tasks whose truth is c
--     fixed        (W C, C)  the same of tasks that are not drawn, by their beliefs
m      mean         (C, C)    what the crowd is like on average
S      strength     --        labels per truth that the mean is worth for one worker
h      hard         (K,)      1 where the task is hard
--     answer       (K,)      the answer whose chance is asked, -1 where none is
====== ============ ========= ==============================================================================

    A_j[c, :] ~ Dirichlet(S m_c),    integrated out
    S         ~ on ``STRENGTHS``, log S normal around log ``STRENGTH``
    m_c       ~ Dirichlet(hold (the crowd's mean accuracy) + the counts, each worker's worth S log(1 + N/S))
    z_x, h_x  | the rest, with labels on hard tasks as in ``crowd_fit``

A fit gives a task the belief that follows from the likeliest crowd, and is too sure where other crowds are nearly as
likely: workers who are all alike look different by chance, and the ones who look good are believed. Draws go through
such crowds. Guarantee: a Gibbs sampler but for m, whose counts are weighed; deterministic under the generator. Cost:
C divisions per label and sweep.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_fit import ANSWERS, CLEAR, Codes
from nextlabel.kernels.jit import jit

#: Labels that hold each row of the mean, and the mean accuracy, to the first idea.
HOLD_ROW, HOLD_MEAN = 120.0, 60.0
#: Strengths that are tried, the first idea of them, and its standard deviation in logarithms.
STRENGTHS, STRENGTH, SPREAD = (3.0, 6.0, 12.0, 24.0, 48.0), 6.0, 1.0
#: Hard tasks at first, and the tasks that this is worth.
HARD, HARD_TASKS = 0.005, 400.0
#: Strengths are drawn anew every so many sweeps.
EVERY = 3


class DrawnTasks(NamedTuple):
    """Tasks whose truths are drawn: their labels, gold, what is added to their log shares, the answers asked."""

    first: Ints
    code: Codes
    gold: Ints
    tilt: Floats
    answer: Ints


@jit
def draw_truths(
    tasks: DrawnTasks,
    idea: Floats,
    share_pseudo: Floats,
    fixed: Floats,
    fixed_total: Floats,
    truth: Ints,
    warm_up: int,
    chance: np.random.Generator,
    out: Floats,
) -> None:
    """``out`` (draws, 2 + C) gets, of each draw, the mean chance of the answers, the share of them that is right, and
    how many tasks have each truth.

    ``idea`` (C, C) is the first idea of a mean channel, ``tilt`` (K, C) what is added to a task's log share.
    """
    first, code, gold, tilt, answer = tasks
    K, C = tilt.shape
    W = fixed.shape[0] // C
    counts, whole, total = fixed.copy(), np.zeros((W, C)), share_pseudo + fixed_total
    said, labels = np.zeros(W * C), np.zeros(W)
    hard, clear, of_hard = np.zeros(K, dtype=np.int64), np.ones(code.shape[0], dtype=np.int64), np.zeros(2)
    asked = 0
    for x in range(K):
        total[truth[x]] += 1.0
        of_hard[0] += 1.0
        asked += answer[x] >= 0
        for i in range(first[x], first[x + 1]):
            counts[code[i], truth[x]] += 1.0
    for k in range(W * C):
        for c in range(C):
            whole[k // C, c] += counts[k, c]
            said[k] += counts[k, c]
        labels[k // C] += said[k]
    mean, strength = idea.copy(), STRENGTH
    often, usual = np.zeros(W * C), np.zeros(C)
    easy_of, hard_of, tilts = np.zeros(C), np.zeros(C), np.exp(tilt)
    for made in range(warm_up + out.shape[0]):
        _draw_mean(counts, whole, idea, strength, chance, mean)
        if made % EVERY == 0:
            strength = _draw_strength(counts, whole, mean, chance)
        for y in range(C):
            usual[y] = 0.0
            for c in range(C):
                usual[y] += total[c] / total.sum() * mean[c, y]
        for k in range(W * C):
            often[k] = (said[k] + ANSWERS * usual[k % C]) / (labels[k // C] + ANSWERS)
        chance_right, right = 0.0, 0.0
        for x in range(K):
            begin, end = first[x], first[x + 1]
            z = truth[x]
            for i in range(begin, end):
                if clear[i]:
                    counts[code[i], z] -= 1.0
                    whole[code[i] // C, z] -= 1.0
            total[z] -= 1.0
            of_hard[hard[x]] -= 1.0
            everything = 0.0
            difficult = (of_hard[1] + HARD_TASKS * HARD) / (of_hard[0] + of_hard[1] + HARD_TASKS)
            for c in range(C):
                easy_of[c] = total[c] * tilts[x, c] * (1.0 - difficult)
                hard_of[c] = total[c] * tilts[x, c] * difficult
                for i in range(begin, end):
                    k = code[i]
                    p = (counts[k, c] + strength * mean[c, k % C]) / (whole[k // C, c] + strength)
                    easy_of[c] *= C * p
                    hard_of[c] *= C * (CLEAR * p + (1.0 - CLEAR) * often[k])
                everything += easy_of[c] + hard_of[c]
            a = answer[x]
            if made >= warm_up and a >= 0:
                chance_right += (easy_of[a] + hard_of[a]) / everything
            if gold[x] >= 0:
                z = gold[x]
                is_hard = chance.random() * (easy_of[z] + hard_of[z]) < hard_of[z]
            else:
                u, z, is_hard = chance.random() * everything, C - 1, False
                for c in range(C):
                    u -= easy_of[c]
                    if u < 0.0:
                        z, is_hard = c, False
                        break
                    u -= hard_of[c]
                    if u < 0.0:
                        z, is_hard = c, True
                        break
            truth[x], hard[x] = z, 1 if is_hard else 0
            right += a == z
            total[z] += 1.0
            of_hard[hard[x]] += 1.0
            for i in range(begin, end):
                k = code[i]
                clear[i] = 1
                if is_hard:
                    p = CLEAR * (counts[k, z] + strength * mean[z, k % C]) / (whole[k // C, z] + strength)
                    clear[i] = 1 if chance.random() * (p + (1.0 - CLEAR) * often[k]) < p else 0
                if clear[i]:
                    counts[k, z] += 1.0
                    whole[k // C, z] += 1.0
        if made >= warm_up and asked > 0:
            out[made - warm_up, 0] = chance_right / asked
            out[made - warm_up, 1] = right / asked
            for c in range(C):
                out[made - warm_up, 2 + c] = total[c] - share_pseudo[c]


@jit
def _draw_mean(
    counts: Floats, whole: Floats, idea: Floats, strength: float, chance: np.random.Generator, mean: Floats
) -> None:
    """The crowd's mean, drawn given the counts; a worker with N labels of a truth is worth S log(1 + N / S) of them."""
    C = idea.shape[0]
    seen = np.zeros((C, C))
    for j in range(whole.shape[0]):
        for c in range(C):
            if whole[j, c] > 0.0:
                part = strength * math.log(1.0 + whole[j, c] / strength) / whole[j, c]
                for y in range(C):
                    seen[c, y] += part * max(counts[j * C + y, c], 0.0)
    right, thought = 0.0, 0.0
    for c in range(C):
        right += seen[c, c]
        thought += idea[c, c] / C
    accuracy = (HOLD_MEAN * thought + right) / (HOLD_MEAN + seen.sum())
    for c in range(C):
        moved, total = min(max(idea[c, c] + accuracy - thought, 0.02), 0.98), 0.0
        for y in range(C):
            start = moved if y == c else idea[c, y] * (1.0 - moved) / (1.0 - idea[c, c])
            mean[c, y] = max(chance.standard_gamma(HOLD_ROW * start + seen[c, y]), 1e-9)
            total += mean[c, y]
        for y in range(C):
            mean[c, y] = max(mean[c, y] / total, 1e-6)


@jit
def _draw_strength(counts: Floats, whole: Floats, mean: Floats, chance: np.random.Generator) -> float:
    """S, drawn given the counts."""
    C = mean.shape[0]
    logs = np.empty(len(STRENGTHS))
    for k in range(len(STRENGTHS)):
        s = STRENGTHS[k]
        logs[k] = -0.5 * (math.log(s / STRENGTH) / SPREAD) ** 2
        for j in range(whole.shape[0]):
            for c in range(C):
                if whole[j, c] > 1e-9:
                    logs[k] += math.lgamma(s) - math.lgamma(s + whole[j, c])
                    for y in range(C):
                        n = counts[j * C + y, c]
                        if n > 1e-9:
                            logs[k] += math.lgamma(s * mean[c, y] + n) - math.lgamma(s * mean[c, y])
    chances = np.exp(logs - logs.max())
    u = chance.random() * chances.sum()
    for k in range(len(STRENGTHS)):
        u -= chances[k]
        if u < 0.0:
            return STRENGTHS[k]
    return STRENGTHS[len(STRENGTHS) - 1]
