"""Channels of workers and truths of tasks learnt together from all labels, by variational Bayes.

====== ============ ========= ==============================================================================
symbol code         shape     meaning
====== ============ ========= ==============================================================================
--     task ...     (n,)      the labels: on which task, by which worker, which answer
--     gold         (K,)      the truth where it is known, else -1
p      belief       (K, C)    q(truth of task x)
n      seen         (W C, C)  expected counts, a row for each worker and answer
a_j    prior        (W C, C)  pseudo-counts of each worker's channel, laid out like ``seen``
E log A weight      (W C, C)  expected log channel, laid out like ``seen``
--     first        (K + 1,)  where each task's labels begin in ``code``
--     code         (n,)      worker * C + answer of each label, grouped by task
--     many         (W C,)    number of labels with each code
t      prior_offset         (K, C)    what is added to a task's log shares, for a prior of its own; (0, C) without any
S m    pseudo       (C, C)    the crowd's mean channel m as pseudo-counts; S labels per truth
d      skill        (W,)      how much better than the mean worker j is, in log-odds of being right
m0     base         (C, C)    the prior idea of m, as pseudo-counts
k      hold         --        labels that each row of m0 is worth; inf: the crowd is known
====== ============ ========= ==============================================================================

    A_j[c, :] ~ Dirichlet(a_j[c, :]),     a_j[c, :] = S ( (1 - COIN) m_c + COIN t_c(d_j) ),   share ~ Dirichlet(b)
    t_c(d)    : m_c with the log-odds of the right answer raised by d, the wrong ones in proportion
    p_x[c]    ~ exp( E log share_c + sum over labels of E log A_j[c, y] )        (q of the truths: ``sweep``)
    evidence  = sum_x log sum_c exp(...) - sum_j,c KL(A_j[c, :]) - KL(share)  <=  log P(labels | a)

So a row of a worker's channel is shrunk towards the worker's own coin and towards the crowd's mean, by evidence: with
many answers a worker shows little of each row, but a spammer's coin is soon known. The coin d_j solves 'right answers
expected = right answers seen' with ``ABILITY`` labels at the mean; m follows [Min00]'s fixed point, held to ``base``
whose mean accuracy is moved first (``learn_crowd``). With a crowd that is known (hold = inf) there is no coin, and each
sweep sets one factor to its optimum, so that the evidence bound never falls; while the crowd is learnt it may dip
on the way.

The last ``SETTLING`` sweeps (``settle``) weigh each label by its worker's *other* labels (collapsed variational Bayes
of order zero), because a label that helps to judge itself makes beliefs too sure, and let tasks differ in difficulty:

    P(y | j, c, easy) = A_j[c, y],    P(y | j, c, hard) = CLEAR A_j[c, y] + (1 - CLEAR) u_j[y],

u_j being how often j gives each answer at all, P(hard | c) learnt. A label on a hard task counts ``CLEAR`` in its
worker's counts. Where the crowd is learnt, the shares are held more firmly while few tasks have two labels
(``stiffness``).

Gold counts for what it is. The fit is started from the votes and, where there is gold, from what gold says of the
workers: the start with the greater evidence wins, so that a majority that fails its controls is not believed for
being many. With ``TOLD`` gold tasks or more the worker model itself is judged: if 'nearly one coin per worker' or
'workers nearly alike' predicts the gold (each task from its labels and the workers' other labels) by ``BETTER`` nats
more, it is used.
Cost: about 5 ns per sweep and label for two answers, 50 ns per label to settle, and O(W C^2) digamma and log Gamma.

``CrowdState`` is what is believed while labels come in, moved by one label at a time (``stream_label``):

====== ============ ========= ==============================================================================
--     logp         (K, C)    log belief of each truth, up to a constant; -inf where gold excludes it
n      counts       (W, C, C) expected number of times that worker j said y when the truth was c, and by how much the
                              worker's own prior is above or below a stranger's (that sums to 0 in each row)
N      total        (C,)      expected number of labelled or gold tasks with truth c, at the last refit
b      share_pseudo (C,)      pseudo-tasks of the truths
A      channel      (C, C)    P(worker says y | truth c), posterior mean
====== ============ ========= ==============================================================================

    A_j[c, y] = (S m[c, y] + n_j[c, y]) / sum_y (S m[c, y] + n_j[c, y])
    a label y of worker j on task x:   log p_x[c] += log A_j[c, y],   n_j[c, y] += p_x[c]

The channel that weighs a label was learnt from the worker's other labels, so the step is Bayes' rule; ``refit`` brings
what the label says about other labels of the same task.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


#: Share of a worker's prior that is the worker's own coin, and labels at the crowd's mean that hold the coin.
COIN, ABILITY = 2.0 / 3.0, 10.0
#: What is left of a channel on a hard task; tasks that are hard at first, and the tasks that this idea is worth.
CLEAR, HARD, HARD_TASKS = 0.3, 0.05, 20.0
#: Labels that the crowd's way to answer is worth in how often a worker gives each answer.
ANSWERS = 6.0
#: Gold tasks with labels from which on they judge the worker model, and the nats by which another must be better.
TOLD, BETTER = 10, 3.0
#: Other worker models: factors of S and of ``ABILITY``.
OTHERS = ((50.0, 1.0), (50.0, 30.0))
#: The least and the most that the mean accuracy of a crowd is taken for, from chance (0) to perfect (1).
LEAST_SKILL, MOST_SKILL = 0.1, 0.97
#: Steps to the difficulty of the tasks in one settling sweep; the least chance that gold is scored with.
DIFFICULTY_STEPS, LEAST_CHANCE = 6, 1e-4


@jit
def digamma(x: float) -> float:
    """The derivative of log Gamma at x > 0."""
    down = 0.0
    while x < 10.0:
        down += 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    tail = f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f * (1.0 / 240.0 - f * (1.0 / 132.0)))))
    return math.log(x) - 0.5 / x - tail - down


@jit
def learn_crowd(
    seen: Floats, share: Floats, state: CrowdState, ability: float, anchored: bool, skill: Floats, prior: Floats
) -> None:
    """The crowd's mean (``state.pseudo``), the workers' coins and their priors, from the expected counts.

    ``share`` (C,) are the shares of the truths. Without gold (``anchored``) a crowd is never taken to be below chance.
    """
    pseudo, base, hold = state.pseudo, state.base, state.hold
    C = base.shape[0]
    add = np.zeros((C, C))
    for c in range(C):
        for y in range(C):
            level = digamma(pseudo[c, y])
            for k in range(y, seen.shape[0], C):
                if seen[k, c] > 0.0:
                    add[c, y] += pseudo[c, y] * (digamma(pseudo[c, y] + seen[k, c]) - level)
    right, thought = 0.0, 0.0
    for c in range(C):
        right += add[c, c]
        thought += base[c, c] / base[c].sum() / C
    accuracy = (hold * thought + right) / (hold + add.sum())
    low = 1.0 / C + (0.0 if anchored else LEAST_SKILL) * (1.0 - 1.0 / C)
    high = 1.0 / C + MOST_SKILL * (1.0 - 1.0 / C)
    accuracy = min(max(accuracy, 0.02 if anchored else low), high)
    for c in range(C):
        strength, whole = pseudo[c].sum(), base[c].sum()
        diagonal = base[c, c] / whole
        moved = min(max(diagonal + accuracy - thought, 0.02), 0.98)
        idea = base[c] / whole * (1.0 - moved) / (1.0 - diagonal)
        idea[c] = moved
        pseudo[c] = hold * idea + add[c]
        pseudo[c] *= strength / pseudo[c].sum()
    _learn_skill(seen, share, pseudo, ability, skill, prior)


@jit
def _learn_skill(seen: Floats, share: Floats, pseudo: Floats, ability: float, skill: Floats, prior: Floats) -> None:
    """Every worker's coin, by three Newton steps, and the prior of their rows."""
    C = pseudo.shape[0]
    mean, log_odds, rows = np.empty(C), np.empty(C), np.empty(C)
    expected = 0.0
    for c in range(C):
        mean[c] = min(max(pseudo[c, c] / pseudo[c].sum(), 1e-3), 1.0 - 1e-3)
        log_odds[c] = math.log(mean[c] / (1.0 - mean[c]))
        expected += ability * share[c] * mean[c]
    for j in range(skill.shape[0]):
        right, labels = 0.0, 0.0
        for c in range(C):
            rows[c] = 0.0
            for y in range(C):
                rows[c] += seen[j * C + y, c]
            labels += rows[c]
            right += seen[j * C + c, c]
        if labels <= 0.0:
            skill[j] = 0.0
        else:
            for _ in range(3):
                apart, slope = -(right + expected), 1e-6
                for c in range(C):
                    p = 1.0 / (1.0 + math.exp(-(log_odds[c] + skill[j])))
                    apart += (rows[c] + ability * share[c]) * p
                    slope += (rows[c] + ability * share[c]) * p * (1.0 - p)
                skill[j] = min(max(skill[j] - min(max(apart / slope, -1.0), 1.0), -6.0), 6.0)
        for c in range(C):
            p = mean[c] if labels <= 0.0 else 1.0 / (1.0 + math.exp(-(log_odds[c] + skill[j])))
            p = (1.0 - COIN) * mean[c] + COIN * p
            strength = pseudo[c].sum()
            wrong = (1.0 - p) * strength / (strength - pseudo[c, c])
            for y in range(C):
                prior[j * C + y, c] = strength * p if y == c else wrong * pseudo[c, y]


#: Without a sign, an index needs no check for counting from the end.
Codes = NDArray[np.uint32]


class TaskLabels(NamedTuple):
    """The labels by task, and what else is known of each task."""

    first: Ints
    code: Codes
    gold: Ints
    prior_offset: Floats


@jit
def sweep(
    labels: TaskLabels, many: Ints, weight: Floats, share: Floats, logp: Floats, belief: Floats, seen: Floats,
    total: Floats,
) -> float:  # fmt: skip
    """Beliefs of all tasks given the channels, and the counts that follow; returns the sum of log normalisers.

    A task with a prior of its own tells of the shares what its belief adds to that prior.
    """
    first, code, gold, prior_offset = labels
    K, C = belief.shape
    shifted = len(prior_offset) > 0
    if C == 2 and not shifted:
        return _sweep_two(labels, many, weight, share, belief, seen, total)
    usual, own = np.exp(share - share.max()), np.empty(C)
    usual /= usual.sum()
    seen[:] = 0.0
    total[:] = 0.0
    found = 0.0
    for x in range(K):
        begin, end = first[x], first[x + 1]
        p, q = belief[x], logp[x]
        for c in range(C):
            q[c] = share[c]
        if shifted:
            q += prior_offset[x]
            normalise(q, own)
            found += share[0] - math.log(usual[0]) - q[0] + math.log(own[0])
        for i in range(begin, end):
            row = weight[code[i]]
            for c in range(C):
                q[c] += row[c]
        if gold[x] >= 0:
            found += q[gold[x]]
            for c in range(C):
                p[c] = 1.0 if c == gold[x] else 0.0
        elif begin == end:
            continue
        else:
            top = q[0]
            for c in range(1, C):
                top = max(top, q[c])
            whole = 0.0
            for c in range(C):
                p[c] = math.exp(q[c] - top)
                whole += p[c]
            found += top + math.log(whole)
            for c in range(C):
                p[c] /= whole
        for c in range(C):
            total[c] += p[c] + usual[c] - own[c] if shifted else p[c]
        for i in range(begin, end):
            row = seen[code[i]]
            for c in range(C):
                row[c] += p[c]
    total[:] = np.maximum(total, 0.0)
    return found


@jit
def _sweep_two(
    labels: TaskLabels, many: Ints, weight: Floats, share: Floats, belief: Floats, seen: Floats, total: Floats
) -> float:
    """``sweep`` for two answers by log-odds alone: three times as fast."""
    first, code, gold, _ = labels
    K = belief.shape[0]
    odds, ones = weight[:, 1] - weight[:, 0], np.zeros(weight.shape[0])
    start = share[1] - share[0]
    found, first_class, tasks = 0.0, 0.0, 0.0
    product = 1.0  # of normalisers between 1 and 2, whose logarithm is taken once in a while
    for x in range(K):
        begin, end = first[x], first[x + 1]
        if begin == end and gold[x] < 0:
            continue
        tasks += 1.0
        s = start
        for i in range(begin, end):
            s += odds[code[i]]
        if gold[x] >= 0:
            p = 1.0 if gold[x] == 1 else 0.0
            found += s * p
        elif s > 0.0:
            e = math.exp(-s)
            p = 1.0 / (1.0 + e)
            found += s
            product *= 1.0 + e
        else:
            e = math.exp(s)
            p = e / (1.0 + e)
            product *= 1.0 + e
        belief[x, 0] = 1.0 - p
        belief[x, 1] = p
        first_class += p
        if product > 1e200:
            found += math.log(product)
            product = 1.0
        for i in range(begin, end):
            ones[code[i]] += p
    found += math.log(product)
    total[0], total[1] = tasks - first_class, first_class
    seen[:, 0], seen[:, 1] = many - ones, ones
    return float(found + tasks * share[0] + (many * weight[:, 0]).sum())


class Settling(NamedTuple):
    """Arrays of ``settle``: what each task counts for its workers, its likelihoods, how often answers are given."""

    own: Floats
    easy: Floats
    hard: Floats
    often: Floats
    difficulty: Floats


@jit
def settle(labels: TaskLabels, state: CrowdState, seen: Floats, prior: Floats, work: Settling) -> float:
    """Beliefs of all tasks, each label weighed by what its worker's other labels say, and the counts that follow.

    Returns the log probability of the gold, each gold task judged by its labels alone.
    """
    first, code, gold, prior_offset = labels
    K, C = state.belief.shape
    own, easy, hard, often = work.own, work.easy, work.hard, work.often
    learnt = state.hold < math.inf
    whole = np.zeros((seen.shape[0] // C, C))
    for k in range(seen.shape[0]):
        seen[k] += prior[k]
        whole[k // C] += seen[k]
    shares = state.share_pseudo + state.total
    clear = CLEAR if learnt else 1.0
    shifted = len(prior_offset) > 0
    for x in range(K):
        begin, end = first[x], first[x + 1]
        if begin == end:
            continue
        top = -math.inf
        for c in range(C):
            mine, low, low_hard, product, product_hard = own[x, c], 0.0, 0.0, 1.0, 1.0
            for i in range(begin, end):
                k = code[i]
                chance = (seen[k, c] - mine) / (whole[k // C, c] - mine)
                product *= chance
                product_hard *= clear * chance + (1.0 - clear) * often[k]
                if product < 1e-200:
                    low += math.log(product)
                    product = 1.0
                if product_hard < 1e-200:
                    low_hard += math.log(product_hard)
                    product_hard = 1.0
            share = math.log(shares[c]) + prior_offset[x, c] if shifted else math.log(shares[c] - state.belief[x, c])
            easy[x, c] = share + low + math.log(product)
            hard[x, c] = share + low_hard + math.log(product_hard) if learnt else -math.inf
            top = max(top, max(easy[x, c], hard[x, c]))
        for c in range(C):
            easy[x, c] = math.exp(easy[x, c] - top)
            hard[x, c] = math.exp(hard[x, c] - top)
    if learnt:
        for _ in range(DIFFICULTY_STEPS):
            _learn_difficulty(first, gold, easy, hard, work.difficulty)
    return _believe(labels, state, seen, work, clear)


@jit
def _learn_difficulty(first: Ints, gold: Ints, easy: Floats, hard: Floats, difficulty: Floats) -> None:
    """``difficulty`` (C,): the share of the tasks of each truth that is hard, one step of EM."""
    K, C = easy.shape
    of_hard, of_all = np.zeros(C), np.zeros(C)
    for x in range(K):
        if first[x] == first[x + 1]:
            continue
        whole = 0.0
        for c in range(C):
            if gold[x] < 0 or gold[x] == c:
                whole += easy[x, c] * (1.0 - difficulty[c]) + hard[x, c] * difficulty[c]
        for c in range(C):
            if (gold[x] < 0 or gold[x] == c) and whole > 0.0:
                of_hard[c] += hard[x, c] * difficulty[c] / whole
                of_all[c] += (easy[x, c] * (1.0 - difficulty[c]) + hard[x, c] * difficulty[c]) / whole
    mean = (HARD_TASKS * HARD + of_hard.sum()) / (HARD_TASKS + of_all.sum())
    for c in range(C):
        difficulty[c] = (HARD_TASKS * mean + of_hard[c]) / (HARD_TASKS + of_all[c])


@jit
def _believe(labels: TaskLabels, state: CrowdState, seen: Floats, work: Settling, clear: float) -> float:
    """Beliefs, totals and counts from the likelihoods of the tasks; returns the log probability of the gold."""
    first, code, gold, prior_offset = labels
    K, C = state.belief.shape
    own, easy, hard, difficulty = work.own, work.easy, work.hard, work.difficulty
    shares = state.share_pseudo + state.total
    shifted, spread = len(prior_offset) > 0, shares / shares.sum()
    usual, prior = np.log(spread), np.empty(C)
    seen[:] = 0.0
    state.total[:] = 0.0
    told = 0.0
    for x in range(K):
        begin, end, known = first[x], first[x + 1], gold[x]
        p, q = state.belief[x], state.logp[x]
        if shifted:
            q[:] = usual + prior_offset[x]
            normalise(q, prior)
        if begin == end:
            for c in range(C):
                q[c] = usual[c] if known < 0 else (0.0 if c == known else -math.inf)
                q[c] += prior_offset[x, c] if shifted else 0.0
            normalise(q, p)
            if known >= 0:
                state.total[:] += p + spread - prior if shifted else p
            continue
        whole = 0.0
        for c in range(C):
            p[c] = easy[x, c] * (1.0 - difficulty[c]) + hard[x, c] * difficulty[c]
            whole += p[c]
        if known >= 0:
            told += math.log(max(p[known] / whole, LEAST_CHANCE))
            whole = max(p[known], 1e-300)
        for c in range(C):
            if known < 0 or known == c:
                own[x, c] = (easy[x, c] * (1.0 - difficulty[c]) + clear * hard[x, c] * difficulty[c]) / whole
                p[c] = 1.0 if known == c else p[c] / whole
                q[c] = 0.0 if known == c else math.log(max(p[c], 1e-300))
            else:
                own[x, c], p[c], q[c] = 0.0, 0.0, -math.inf
            state.total[c] += p[c] + spread[c] - prior[c] if shifted else p[c]
        for i in range(begin, end):
            row = seen[code[i]]
            for c in range(C):
                row[c] += own[x, c]
    state.total[:] = np.maximum(state.total, 0.0)
    return told


#: Sweeps that weigh each label by its worker's other labels.
SETTLING = 2
#: What two labels on the same task tell about the shares of the truths, in tasks whose truth is known.
PAIR = 0.1


@jit
def refit(
    state: CrowdState, task: Ints, worker: Ints, answer: Ints, gold: Ints, prior_offset: Floats, sweeps: int,
    tolerance: float, bounds: Floats,
) -> tuple[int, bool]:  # fmt: skip
    """Fit the labels; ``state`` gets beliefs, counts and totals. Returns (sweeps made, converged).

    ``bounds`` (sweeps,) gets the evidence bound of each sweep; the fit has converged once a sweep changes it by at most
    ``tolerance`` per label.
    """
    first, code = by_task(task, worker, answer, *state.belief.shape)
    labels, told = TaskLabels(first, code, gold, prior_offset), ((gold >= 0) & (first[1:] > first[:-1])).sum()
    if state.hold < math.inf:
        logp, belief, counts, total, pseudo, share, base, hold = state
        state = CrowdState(logp, belief, counts, total, pseudo, share * stiffness(first, gold), base, hold)
    told_best = False  # whether what gold says of the workers is the better start
    made, converged, score = _fit(state, labels, 1.0, ABILITY, told_best, sweeps, tolerance, bounds)
    if told == 0 or state.hold == math.inf:
        return made, converged
    other, trace = _copy(state), np.zeros(bounds.shape[0])
    again = _fit(other, labels, 1.0, ABILITY, told > 0, sweeps, tolerance, trace)
    if trace[again[0] - 1] > bounds[made - 1]:
        told_best = True
        made, converged, score = again
        _overwrite(state, other, bounds, trace)
    best = score + BETTER
    if told >= TOLD:
        for factor, firmer in OTHERS:
            again = _fit(other, labels, factor, firmer * ABILITY, told_best, sweeps, tolerance, trace)
            if again[2] > best:
                made, converged, best = again
                _overwrite(state, other, bounds, trace)
    return made, converged


@jit
def _fit(
    state: CrowdState, labels: TaskLabels, factor: float, ability: float, gold_alone: bool, sweeps: int,
    tolerance: float, bounds: Floats,
) -> tuple[int, bool, float]:  # fmt: skip
    """One fit, S being ``factor`` times that of ``base``; returns sweeps made, converged, and the score of the gold.

    It starts from the votes, or from what ``gold_alone`` says of the workers.
    """
    logp, belief, counts, total, pseudo, share_pseudo, base, hold = state
    C, W = belief.shape[1], counts.shape[0]
    many = np.bincount(labels.code, minlength=W * C)
    seen, weight, prior = np.zeros((W * C, C)), np.zeros((W * C, C)), np.zeros((W * C, C))
    pseudo[:] = base * factor
    start_from_votes(labels, base, gold_alone, belief, seen, total)
    for k in range(W * C):
        prior[k] = pseudo[:, k % C]
    share, skill, usual = np.zeros(C), np.zeros(W), np.zeros(C)
    anchored = bool((labels.gold >= 0).any())
    made, converged = 0, False
    while made < sweeps and not converged:
        if hold < math.inf:
            usual[:] = share_pseudo + total
            learn_crowd(seen, usual / usual.sum(), state, ability, anchored, skill, prior)
        gap = _expected_logs(seen, total, prior, share_pseudo, weight, share)
        bounds[made] = sweep(labels, many, weight, share, logp, belief, seen, total) - gap
        made += 1
        converged = made > 1 and abs(bounds[made - 1] - bounds[made - 2]) <= tolerance * len(labels.code)
    score, work = 0.0, _settling(state, many)
    for _ in range(SETTLING):
        score = settle(labels, state, seen, prior, work)
    for k in range(W * C):
        counts[k // C, :, k % C] = seen[k] + prior[k] - pseudo[:, k % C]
    return made, converged, score


@jit
def _settling(state: CrowdState, many: Ints) -> Settling:
    """Room to settle in, with how often each worker gives each answer."""
    C = state.belief.shape[1]
    shares, usual = state.share_pseudo + state.total, np.zeros(C)
    for c in range(C):
        usual += shares[c] / shares.sum() * state.pseudo[c] / state.pseudo[c].sum()
    often = np.empty(len(many))
    for j in range(0, len(many), C):
        given = many[j : j + C]
        often[j : j + C] = (given + ANSWERS * usual) / (given.sum() + ANSWERS)
    difficulty = np.full(C, HARD if state.hold < math.inf else 0.0)
    easy, hard = np.zeros_like(state.belief), np.zeros_like(state.belief)
    return Settling(state.belief.copy(), easy, hard, often, difficulty)


@jit
def _copy(state: CrowdState) -> CrowdState:
    return CrowdState(
        state.logp.copy(), state.belief.copy(), state.counts.copy(), state.total.copy(), state.pseudo.copy(),
        state.share_pseudo, state.base, state.hold,
    )  # fmt: skip


@jit
def _overwrite(state: CrowdState, other: CrowdState, bounds: Floats, trace: Floats) -> None:
    bounds[:] = trace
    state.logp[:], state.belief[:], state.counts[:] = other.logp, other.belief, other.counts
    state.total[:], state.pseudo[:] = other.total, other.pseudo


@jit
def stiffness(first: Ints, gold: Ints) -> float:
    """By how much the prior of the shares of the truths is strengthened while tasks have few labels.

    A single label per task cannot tell a frequent truth from a crowd that favours an answer: only two labels on one
    task can. Counting every labelled task as evidence nevertheless lets a fit put all tasks in one class.
    """
    tasks, told = 0.0, 0.0
    for x in range(gold.shape[0]):
        n = first[x + 1] - first[x]
        if gold[x] >= 0:
            told += 1.0
        elif n > 0:
            told += PAIR * (n * (n - 1) // 2)
        if n > 0 or gold[x] >= 0:
            tasks += 1.0
    return max(1.0, tasks / max(told, PAIR))


@jit
def by_task(task: Ints, worker: Ints, answer: Ints, K: int, C: int) -> tuple[Ints, Codes]:
    """The labels grouped by task, in the order in which they came in (counting sort)."""
    first = np.zeros(K + 1, dtype=np.int64)
    first[1:] = np.cumsum(np.bincount(task, minlength=K))
    place = first[:K].copy()
    code = np.empty(len(task), dtype=np.uint32)
    for i in range(len(task)):
        code[place[task[i]]] = worker[i] * C + answer[i]
        place[task[i]] += 1
    return first, code


@jit
def start_from_votes(
    labels: TaskLabels, base: Floats, gold_alone: bool, belief: Floats, seen: Floats, total: Floats
) -> None:
    """Beliefs equal to the shares of the votes, gold where it is known, and the counts that follow (of gold alone).

    A vote on a task with a prior of its own counts as the label of a worker of whom nothing is known.
    """
    first, code, gold, prior_offset = labels
    K, C = belief.shape
    total[:] = 0.0
    for x in range(K):
        n = first[x + 1] - first[x]
        if n == 0 and gold[x] < 0:
            continue
        for c in range(C):
            belief[x, c] = 1.0 if c == gold[x] else 0.0
        if gold[x] < 0:
            if len(prior_offset) > 0:
                belief[x] = prior_offset[x]
                for i in range(first[x], first[x + 1]):
                    belief[x] += np.log(base[:, code[i] % C])
                normalise(belief[x].copy(), belief[x])
            else:
                for i in range(first[x], first[x + 1]):
                    belief[x, code[i] % C] += 1.0 / n
            if gold_alone:
                continue
        for c in range(C):
            total[c] += belief[x, c]
        for i in range(first[x], first[x + 1]):
            for c in range(C):
                seen[code[i], c] += belief[x, c]


@jit
def _expected_logs(
    seen: Floats, total: Floats, prior: Floats, share_pseudo: Floats, weight: Floats, share: Floats
) -> float:
    """``weight`` gets E log A, ``share`` E log share; returns the divergence of both from their priors."""
    C = seen.shape[1]
    gap = expected_row(total, share_pseudo, share)
    counts, before, row = np.empty(C), np.empty(C), np.empty(C)
    for j in range(seen.shape[0] // C):
        for c in range(C):
            for y in range(C):
                counts[y], before[y] = seen[j * C + y, c], prior[j * C + y, c]
            gap += expected_row(counts, before, row)
            for y in range(C):
                weight[j * C + y, c] = row[y]
    return gap


@jit
def expected_row(counts: Floats, prior: Floats, out: Floats) -> float:
    """``out`` gets E log of a Dirichlet(prior + counts); returns its divergence from Dirichlet(prior)."""
    C = prior.shape[0]
    whole, before = 0.0, 0.0
    for y in range(C):
        whole += prior[y] + counts[y]
        before += prior[y]
    level = digamma(whole)
    gap = math.lgamma(whole) - math.lgamma(before)
    for y in range(C):
        out[y] = digamma(prior[y] + counts[y]) - level
        gap += math.lgamma(prior[y]) - math.lgamma(prior[y] + counts[y]) + counts[y] * out[y]
    return gap
