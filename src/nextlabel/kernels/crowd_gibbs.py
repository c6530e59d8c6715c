"""Truths, and whole crowds, drawn from their posterior by Gibbs sampling.

====== ============ ========= ==============================================================================
symbol code         shape     meaning
====== ============ ========= ==============================================================================
--     first, code  --        the labels by task, as in ``crowd_fit``
z      truth        (K,)      the truths, as drawn; gold stays
--     prior_offset         (K, C)    what is added to a task's log shares
n      counts       (W C, C)  labels y of worker j on tasks whose truth is c
--     fixed        (W C, C)  the same of tasks that are not drawn, by their beliefs
m      mean         (C, C)    what the crowd is like on average
S      --           --        labels per truth that the mean is worth for one worker
h      hard         (K,)      1 where the task is hard
--     answer       (K,)      the answer whose chance is asked, -1 where none is
m_0    idea         (C, C)    the first idea of the mean
====== ============ ========= ==============================================================================

    A_j[c, :] ~ Dirichlet(S m_c),    z_x ~ pi exp(tilt_x),    pi ~ Dirichlet(share),    labels ~ A_j[z_x, :],

channels and shares integrated out while truths are drawn (``_draw_tasks``).

``draw_truths``, for how many answers are right and how sure that is: log S is normal around log ``STRENGTH``, m_c ~
Dirichlet(``HOLD_ROW`` labels at the crowd's mean accuracy + the counts, each worker's worth S log(1 + N/S)), and tasks
may be hard, as in ``crowd_fit``. A fit gives a task the belief that follows from the likeliest crowd, and is too sure
where other crowds are nearly as likely: workers who are all alike look different by chance, and the ones who look good
are believed. Draws go through such crowds.

``draw_posterior``, for whole crowds: S is uniform on ``CROWD_STRENGTHS``, m_c ~ Dirichlet(hold m_0c), drawn with the
numbers of tables of a Chinese restaurant for each count, which makes its law given them a Dirichlet. With ``hold`` =
inf the rows S m_c = ``pseudo`` are known.
Guarantee: Gibbs samplers, but for the mean of ``draw_truths``, whose counts are weighed; deterministic under the
generator. Cost: C divisions per label and sweep, and a random number per label of ``draw_posterior``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_fit import ANSWERS, CLEAR, TaskLabels
from nextlabel.kernels.events import answer_of
from nextlabel.kernels.jit import jit

#: Labels that hold each row of the mean, and the mean accuracy, to the first idea.
HOLD_ROW, HOLD_MEAN = 120.0, 60.0
#: Strengths that are tried, with their logarithmic prior: widely around STRENGTH, because workers may all be alike; and
#: for whole crowds, evenly.
STRENGTH = 6.0
STRENGTHS = np.array([3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 192.0])
USUAL = np.array([-0.125 * math.log(s / STRENGTH) ** 2 for s in STRENGTHS])
CROWD_STRENGTHS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
#: Hard tasks at first, and the tasks that this is worth.
HARD, HARD_TASKS = 0.005, 400.0
#: Strengths are drawn anew every so many sweeps.
EVERY = 3
#: The least share of an answer in the mean, and the least chance of one in a channel: none is impossible.
LEAST, SMALLEST = 1e-6, 1e-300


class Counts(NamedTuple):
    """Labels by worker, answer and truth, the same over the answers, and tasks by truth."""

    counts: Floats
    whole: Floats
    total: Floats


class Hardness(NamedTuple):
    """Which tasks are hard, how many are (not, are), which labels are clear all the same, how often answers come."""

    hard: Ints
    tasks: Floats
    clear: Ints
    often: Floats


@jit
def _count_labels(tasks: TaskLabels, truth: Ints, fixed: Floats, total: Floats) -> Counts:
    """``fixed`` and ``total`` with the tasks as drawn on top."""
    C = tasks.prior_offset.shape[1]
    counts = fixed.copy()
    for x in range(truth.shape[0]):
        total[truth[x]] += 1.0
        for i in range(tasks.first[x], tasks.first[x + 1]):
            counts[tasks.code[i], truth[x]] += 1.0
    whole = np.zeros((counts.shape[0] // C, C))
    for k in range(counts.shape[0]):
        whole[k // C] += counts[k]
    return Counts(counts, whole, total)


@jit
def _draw_tasks(
    tasks: TaskLabels, answer: Ints, pseudo: Floats, row: Floats, prior_offsets: Floats, truth: Ints, of: Counts,
    hardness: Hardness, chance: np.random.Generator,
) -> tuple[float, float]:  # fmt: skip
    """One sweep over the truths, S m = ``pseudo`` with sums ``row``; sums of the chances and of the right answers.

    Without ``hardness`` (no tasks in it) no task is hard, and gold stays as it is.
    """
    first, code, gold, _ = tasks
    counts, whole, total = of
    hard, of_hard, clear, often = hardness
    K, C = prior_offsets.shape
    harden = hard.shape[0] > 0
    easy_of, hard_of, difficult = np.zeros(C), np.zeros(C), 0.0
    chance_right, right = 0.0, 0.0
    for x in range(K):
        if gold[x] >= 0 and not harden:
            continue
        begin, end = first[x], first[x + 1]
        z = truth[x]
        for i in range(begin, end):
            if not harden or clear[i]:
                counts[code[i], z] -= 1.0
                whole[code[i] // C, z] -= 1.0
        total[z] -= 1.0
        if harden:
            of_hard[hard[x]] -= 1.0
            difficult = (of_hard[1] + HARD_TASKS * HARD) / (of_hard[0] + of_hard[1] + HARD_TASKS)
        everything = 0.0
        for c in range(C):
            easy_of[c] = total[c] * prior_offsets[x, c] * (1.0 - difficult)
            hard_of[c] = total[c] * prior_offsets[x, c] * difficult
            for i in range(begin, end):
                k = code[i]
                p = (counts[k, c] + pseudo[c, k % C]) / (whole[k // C, c] + row[c])
                easy_of[c] *= C * p
                if harden:
                    hard_of[c] *= C * (CLEAR * p + (1.0 - CLEAR) * often[k])
            everything += easy_of[c] + hard_of[c]
        a = answer[x]
        if a >= 0:
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
        truth[x] = z
        right += a == z
        total[z] += 1.0
        if harden:
            hard[x] = 1 if is_hard else 0
            of_hard[hard[x]] += 1.0
        for i in range(begin, end):
            k = code[i]
            if harden:
                clear[i] = 1
                if is_hard:
                    p = CLEAR * (counts[k, z] + pseudo[z, k % C]) / (whole[k // C, z] + row[z])
                    clear[i] = 1 if chance.random() * (p + (1.0 - CLEAR) * often[k]) < p else 0
            if not harden or clear[i]:
                counts[k, z] += 1.0
                whole[k // C, z] += 1.0
    return chance_right, right


@jit
def draw_truths(
    tasks: TaskLabels, answer: Ints, idea: Floats, share_pseudo: Floats, fixed: Floats, fixed_total: Floats,
    truth: Ints, warm_up: int, chance: np.random.Generator, out: Floats,
) -> None:  # fmt: skip
    """``out`` (draws, 2 + C) gets, of each draw, the mean chance of the answers, the share of them that is right, and
    how many tasks have each truth.

    ``idea`` (C, C) is the first idea of a mean channel, ``prior_offset`` (K, C) what is added to a task's log share.
    """
    K, C = tasks.prior_offset.shape
    of = _count_labels(tasks, truth, fixed, share_pseudo + fixed_total)
    counts, whole, total = of
    said, labels = counts.sum(axis=1), whole.sum(axis=1)
    many, often = np.array([float(K), 0.0]), np.zeros(said.shape[0])
    clear = np.ones(tasks.code.shape[0], dtype=np.int64)
    hardness = Hardness(np.zeros(K, dtype=np.int64), many, clear, often)
    asked = (answer >= 0).sum()
    mean, strength = idea.copy(), STRENGTH
    usual, prior_offsets = np.zeros(C), np.exp(tasks.prior_offset)
    for made in range(warm_up + out.shape[0]):
        _draw_mean(counts, whole, idea, strength, chance, mean)
        if made % EVERY == 0:
            strength = _draw_strength(counts, whole, mean, STRENGTHS, USUAL, chance)
        for y in range(C):
            usual[y] = (total * mean[:, y]).sum() / total.sum()
        for k in range(said.shape[0]):
            often[k] = (said[k] + ANSWERS * usual[k % C]) / (labels[k // C] + ANSWERS)
        chance_right, right = _draw_tasks(
            tasks, answer, strength * mean, np.full(C, strength), prior_offsets, truth, of, hardness, chance
        )
        if made >= warm_up and asked > 0:
            out[made - warm_up, 0] = chance_right / asked
            out[made - warm_up, 1] = right / asked
            out[made - warm_up, 2:] = total - share_pseudo


@jit
def draw_posterior(
    tasks: TaskLabels, pseudo: Floats, hold: float, share: Floats, truth: Ints, sweeps: int,
    chance: np.random.Generator, channels: Floats, drawn_share: Floats,
) -> None:  # fmt: skip
    """Move ``truth`` by so many sweeps, in place, and draw the crowd given it; ``pseudo`` becomes S m.

    ``channels`` (W + strangers, C, C): the last ones are of people without a label.
    """
    W, C = channels.shape[0], share.shape[0]
    of = _count_labels(tasks, truth, np.zeros((W * C, C)), share.copy())
    counts, whole, total = of
    idea, row, prior_offsets = pseudo.copy(), np.empty(C), np.exp(tasks.prior_offset)
    none, unasked = np.zeros(0, dtype=np.int64), np.full(truth.shape[0], -1)
    nobody = Hardness(none, np.zeros(2), none, np.zeros(0))
    for c in range(C):
        idea[c] /= idea[c].sum()
    for sweep in range(sweeps + 1):
        if hold < math.inf:
            _draw_crowd(counts, whole, idea, hold, chance, pseudo)
        if sweep < sweeps:
            for c in range(C):
                row[c] = pseudo[c].sum()
            _draw_tasks(tasks, unasked, pseudo, row, prior_offsets, truth, of, nobody, chance)
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
def _draw_strength(
    counts: Floats, whole: Floats, mean: Floats, strengths: Floats, prior: Floats, chance: np.random.Generator
) -> float:
    """S, drawn given the counts; ``prior`` is the logarithm of its law on ``strengths``."""
    C, logs = mean.shape[0], prior.copy()
    for k in range(strengths.shape[0]):
        s = strengths[k]
        for j in range(whole.shape[0]):
            for c in range(C):
                if whole[j, c] > 1e-9:
                    logs[k] += math.lgamma(s) - math.lgamma(s + whole[j, c])
                    for y in range(C):
                        n = counts[j * C + y, c]
                        if n > 1e-9:
                            logs[k] += math.lgamma(s * mean[c, y] + n) - math.lgamma(s * mean[c, y])
    chances = np.exp(logs - logs.max())
    return float(strengths[answer_of(chances, chance.random() * chances.sum())])


@jit
def _draw_crowd(
    counts: Floats, whole: Floats, idea: Floats, hold: float, chance: np.random.Generator, pseudo: Floats
) -> None:
    """S given the mean, then the mean given S."""
    C, mean = idea.shape[0], pseudo.copy()
    for c in range(C):
        mean[c] /= mean[c].sum()
    strength = _draw_strength(counts, whole, mean, CROWD_STRENGTHS, np.zeros(CROWD_STRENGTHS.shape[0]), chance)
    for c in range(C):
        for y in range(C):
            a, tables = strength * mean[c, y], 0.0
            for j in range(whole.shape[0]):
                for i in range(int(counts[j * C + y, c] + 0.5)):
                    if chance.random() * (a + i) < a:
                        tables += 1.0
            pseudo[c, y] = max(chance.standard_gamma(hold * idea[c, y] + tables), LEAST)
        pseudo[c] /= pseudo[c].sum()
        for y in range(C):
            pseudo[c, y] = strength * max(pseudo[c, y], LEAST)
