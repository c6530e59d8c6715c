"""One task in arithmetic of 50 digits, from Bayes' rule alone: every prior, every reward, any number of answers.

Nothing of the package is used but the numbers that a prior or a reward was given: no lattice, no lumping, no units.
``weight(c, q)`` is E[prod_j theta_j^c_j ; the truth is q]; everything else follows from it:

    P(next answer is j) = Z(c + e_j) / Z(c),   P(truth is q) = weight(c, q) / Z(c),   Z(c) = sum_q weight(c, q).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import mpmath
from mpmath import mp, mpf

import nextlabel as nl
from nextlabel.model.rewards import Reward

Counts = tuple[int, ...]
#: Digits that the oracle works with; quadratures are good for this many.
DIGITS = 50
#: The Gauss rule in one panel of the logit-normal's integral has 3 2^(degree - 1) points.
GAUSS_DEGREE = 4


@dataclass(frozen=True)
class ExactTask:
    """One task: prior, threshold of the truth, reward. Counts are the labels of answer 0, 1, ..., J - 1."""

    prior: nl.priors.Prior
    threshold: float
    reward: Reward

    @property
    def answers(self) -> int:
        return len(self.prior.weights) if isinstance(self.prior, nl.priors.Dirichlet) else 2

    @property
    def stake(self) -> float:
        """The worth of the task before its first label, in size."""
        with mpmath.workdps(20):
            return float(abs(self.beliefs(0).reward((0,) * self.answers)))

    def problem(self, arrivals: int, rho: float = 0.25, cost: float = 0.0) -> nl.Problem:
        """The same task for the library, alone."""
        one = nl.TaskClass(1, self.prior, self.threshold, self.reward)
        return nl.Problem((one,), arrivals, arrival_rate=0.4 * rho, completion_rate=0.4, label_cost=cost)

    def beliefs(self, labels: int) -> Beliefs:
        """What is known about the task after up to so many labels."""
        return Beliefs(self, labels)

    def value(self, arrivals: int, rho: float, cost: float) -> mpf:
        """The optimum with ``arrivals`` arrivals at ``cost`` per label, r / mu = rho, every label awaited."""
        known = self.beliefs(arrivals)

        @cache
        def V(c: Counts, w: int, n: int) -> mpf:
            if n == 0 and w == 0:
                return known.reward(c)
            comes = mpf(0)
            if w > 0:
                comes = mp.fsum(p * V(more(c, j), w - 1, n) for j, p in enumerate(known.chances(c)))
            if n == 0:
                return comes
            taken = max(V(c, w, n - 1), V(c, w + 1, n - 1) - mpf(cost))
            return (mpf(rho) * taken + w * comes) / (mpf(rho) + w)

        return V((0,) * self.answers, 0, arrivals)


class Beliefs:
    """Predictive chances and rewards of one task, each worked out once."""

    def __init__(self, task: ExactTask, labels: int) -> None:
        self.task = task
        self.weight: Callable[[Counts, int], mpf] = cache(weight_of(task, labels + 2))
        self.reward: Callable[[Counts], mpf] = cache(self._reward)
        self.chances: Callable[[Counts], tuple[mpf, ...]] = cache(self._chances)

    def total(self, c: Counts) -> mpf:
        return mp.fsum(self.weight(c, q) for q in range(self.task.answers))

    def _chances(self, c: Counts) -> tuple[mpf, ...]:
        if isinstance(self.task.prior, nl.priors.Dirichlet):
            at = [mpf(a) + k for a, k in zip(self.task.prior.weights, c, strict=True)]
            return tuple(a / mp.fsum(at) for a in at)
        here = self.total(c)
        return tuple(self.total(more(c, j)) / here for j in range(self.task.answers))

    def _reward(self, c: Counts) -> mpf:
        reward, answers = self.task.reward, range(self.task.answers)
        if isinstance(reward, nl.rewards.SquaredError):
            p = self.chances(c)
            return -mpf(reward.scale) / 2 * mp.fsum(p[j] * (self.chances(more(c, j))[j] - p[j]) for j in answers)
        here = self.total(c)
        truth = [self.weight(c, q) / here for q in answers]
        if isinstance(reward, nl.rewards.Accuracy):
            return mpf(reward.value) * max(truth)
        assert isinstance(reward, nl.rewards.Utility)
        decisions = [mp.fsum(mpf(u) * P for u, P in zip(row, truth, strict=True)) for row in reward.matrix]
        return max([*decisions, *([] if reward.abstain is None else [mpf(reward.abstain)])])


def more(c: Counts, j: int) -> Counts:
    """One more label of answer j."""
    return (*c[:j], c[j] + 1, *c[j + 1 :])


def weight_of(task: ExactTask, labels: int) -> Callable[[Counts, int], mpf]:
    """E[prod theta_j^c_j ; truth is q] as a function of c and q, up to one factor for all of them."""
    prior, d = task.prior, mpf(task.threshold)
    if isinstance(prior, nl.priors.Dirichlet):
        return dirichlet_weight(prior, labels)
    if isinstance(prior, nl.priors.LogitNormal):
        return logit_normal_weight(prior, d)
    if isinstance(prior, nl.priors.OneCoin):
        pi, right = mpf(prior.probability), mpf(prior.accuracy)

        def one_coin(c: Counts, q: int) -> mpf:
            share = pi if q == 1 else 1 - pi
            return share * right ** c[q] * (1 - right) ** c[1 - q]

        return one_coin

    def above_or_below(c: Counts, q: int) -> mpf:
        b, a = c
        low, high = (d, mpf(1)) if q == 1 else (mpf(0), d)
        if isinstance(prior, nl.Beta):
            return beta_moment(prior, a, b, low, high)
        if isinstance(prior, nl.priors.BetaMixture):
            parts = zip(prior.weights, prior.components, strict=True)
            return mp.fsum(mpf(v) * beta_moment(part, a, b, low, high) for v, part in parts)
        assert isinstance(prior, nl.priors.Histogram)
        bins = zip(pairwise(prior.edges), prior.weights, strict=True)
        return mp.fsum(
            mpf(v) / (mpf(hi) - mpf(lo)) * mp.betainc(a + 1, b + 1, max(mpf(lo), low), min(mpf(hi), high))
            for (lo, hi), v in bins
            if min(mpf(hi), high) > max(mpf(lo), low)
        )

    return above_or_below


def beta_moment(prior: nl.Beta, a: int, b: int, low: mpf, high: mpf) -> mpf:
    """Integral of theta^a (1-theta)^b over [low, high] under the prior."""
    alpha, beta = mpf(prior.alpha), mpf(prior.beta)
    return mp.betainc(alpha + a, beta + b, low, high) / mp.beta(alpha, beta)


def logit_normal_weight(prior: nl.priors.LogitNormal, d: mpf) -> Callable[[Counts, int], mpf]:
    """By a Gauss rule in panels of z = logit(theta), on either side of the threshold."""
    mean, sd = mpf(prior.mean), mpf(prior.sd)
    cut = mp.log(d / (1 - d))
    # exp(-z^2/2) is below 10^-DIGITS past 16 standard deviations, and labels can pull to 0 and past it.
    ends = min(mean, cut, mpf(0)) - 16 * sd - 40 * min(sd, 1), max(mean, cut, mpf(0)) + 16 * sd + 40 * min(sd, 1)
    points = mpmath.calculus.quadrature.GaussLegendre(mp).calc_nodes(GAUSS_DEGREE, mp.prec)
    sides = []
    for low, high in ((ends[0], cut), (cut, ends[1])):
        panels = int((high - low) / min(sd, mpf(1))) + 1
        half = (high - low) / panels / 2
        side = []
        for k in range(panels):
            for x, v in points:
                z = low + half * (2 * k + 1 + x)
                density = half * v * mp.exp(-(((z - mean) / sd) ** 2) / 2)
                side.append((density, 1 / (1 + mp.exp(z)), 1 / (1 + mp.exp(-z))))
        sides.append(side)

    def weight(c: Counts, q: int) -> mpf:
        return mp.fsum(v * zero ** c[0] * one ** c[1] for v, zero, one in sides[q])

    return weight


def dirichlet_weight(prior: nl.priors.Dirichlet, labels: int) -> Callable[[Counts, int], mpf]:
    """P(theta_q is the largest) after the labels, by the trapezoidal rule in t = log x over independent gammas.

    The integrand f_q(x) prod_j F_j(x) is analytic in the strip abs(Im t) < pi/2, narrower by the sharpness of its peak,
    so that the rule converges geometrically. Only as a share: the factor E[prod theta^c] is left out.
    """
    alpha = [mpf(a) for a in prior.weights]
    top = float(max(alpha)) + labels
    digits = (mp.dps + 5) * 2.3026
    high = mp.log(top + (2 * digits * top) ** 0.5 + digits)
    # To the left every factor is a power of x; the product of all falls like x^sum(alpha). Sharp peaks end sooner.
    left = -digits / float(mp.fsum(alpha)) - 1
    width = (2 * digits / max(min(float(max(alpha)), top), 1e-9)) ** 0.5
    low = mpf(left) if float(max(alpha)) < 50 else max(mpf(left), mp.log(max(alpha)) - 3 * width)
    step = mpf(min(9.8696 / digits, 2.0 * 3.1416 / (2 * digits * max(top, 1.0)) ** 0.5 * 0.5))
    nodes = [low + step * k for k in range(int((high - low) / step) + 1)]
    tables: list[list[list[tuple[mpf, mpf]]]] = []  # by answer, labels, node: density in t, distribution
    for a in alpha:
        own = []
        for t in nodes:
            x = mp.exp(t)
            below = lower_gamma(a, x)
            density = mp.exp(a * t - x - mp.loggamma(a))
            here = []
            for k in range(labels + 1):
                here.append((density, below))
                below -= density / (a + k)  # F(a + 1, x) = F(a, x) - x^a e^-x / Gamma(a + 1)
                density *= x / (a + k)
            own.append(here)
        tables.append([[own[i][k] for i in range(len(nodes))] for k in range(labels + 1)])

    @cache
    def largest(c: Counts) -> tuple[mpf, ...]:
        out = []
        for q in range(len(alpha)):
            total = mpf(0)
            for i in range(len(nodes)):
                term = tables[q][c[q]][i][0]
                for j in range(len(alpha)):
                    if j != q:
                        term *= tables[j][c[j]][i][1]
                total += term
            out.append(total * step)
        return tuple(out)

    return lambda c, q: largest(c)[q]


def lower_gamma(a: mpf, x: mpf) -> mpf:
    """P(Gamma(a, 1) < x) by its series, x^a e^-x / Gamma(a + 1) (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...)."""
    if x > a and a - x + a * mp.log(x / a) < -2.3026 * (mp.dps + 5):
        return mpf(1)  # Chernoff's bound on what is left out
    with mp.extraprec(40):
        one = 1 << (mp.prec + 20)
        ratio, base = int(x * one), int((a + 1) * one)
        term, total, k = one, one, 0
        while term > 0 and (k < 4 or term > 1):
            term = term * ratio // (base + k * one)
            total += term
            k += 1
        return mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * mpf(total) / one
