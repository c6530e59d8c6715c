"""Learn a prior by a method's name, and compare methods.

======== ================================================ ==========================================
method   prior                                            standard errors
======== ================================================ ==========================================
moments  Beta, or Dirichlet of more than two answers      delta method
ml       Beta, or Dirichlet of more than two answers      observed information
mixture  BetaMixture of 1 to 3 components                 observed information
======== ================================================ ==========================================

What the labels leave open is assumed:

================================================ ===============================================================
labels                                           assumed
================================================ ===============================================================
fewer than two tasks with two or more labels     they say nothing of how tasks differ: the weight J of a flat
                                                 prior, and the mean with one label of each answer added
no task with two different answers, or an        any weight down to 0, or a mean of 0 or 1, would be most likely:
answer that never occurs                         one task with one label of each answer is added to the others
tasks that differ less than chance alone makes   the likelihood rises with the weight for ever: MOST_WEIGHT
================================================ ===============================================================

How well it explains the labels: numbers of tasks as they are and as the prior expects them.

======== ========= ========= =====================================================================
symbol   code      shape     meaning
======== ========= ========= =====================================================================
m, a     labels    (C,)      every number of labels that occurs, with every number of ones 0 .. m
O        observed  (C,)      tasks with a ones among m labels
E        expected  (C,)      N_m f(a, m): as many as the prior expects of the N_m tasks with m labels
B        bins      (C,)      cells in order of a / m, pooled until at least LEAST_EXPECTED tasks are expected; of
                             very many cells about MOST_BINS equal bins are made
X2       statistic --        sum over bins of (O - E)^2 / E
psi      influence (C, P)    by how much, times the tasks, one task moves the parameters
======== ========= ========= =====================================================================

The p-value is the share of data sets drawn from the prior, with the same numbers of labels, whose X2 is as large or
larger. A prior learnt from a drawn set would fit it better than the prior that it was drawn from, and X2 must take
that into account: the refit is not run but taken to first order, O - E - (dE/dphi) sum psi (O - E) / tasks, with the
psi of the method; a weight on its cap stays there.
Guarantee: exact up to that first order and to the Monte Carlo error, sqrt(p (1 - p) / draws). It takes tasks to be
independent of each other: where the same workers label many tasks it errs to the small side.
Cost: draws times cells binomial draws; with many cells fewer sets are drawn, at least 99.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import LEAST_WEIGHT as LEAST_DIRICHLET
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.mixture import (
    MOST_COMPONENTS,
    Mixture,
    best_mixture,
    determined,
    influence,
    log_likelihood,
    log_pmf,
    scores,
    standard_errors,
)
from nextlabel.model.prior import Prior
from nextlabel.model.prior_weights import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    LabelCounts,
    capped,
    model_influence,
    moment_errors,
    moment_weights,
)

DRAWS, MOST_WORK, LEAST_EXPECTED, MOST_BINS = 999, 10_000_000, 5.0, 50


@dataclass(frozen=True, slots=True, eq=False)
class Cells(LabelCounts):
    """Every number of labels with every number of ones: how many tasks there are, and how many a prior expects."""

    expected: Floats


def cells_of(counts: LabelCounts, prior: Prior) -> Cells:
    """Observed and expected numbers of tasks."""
    kinds, place = np.unique(counts.labels, return_inverse=True)
    start = np.concatenate([[0], np.cumsum(kinds + 1)])
    ones = np.arange(start[-1]) - np.repeat(start[:-1], kinds + 1)
    rows = np.column_stack([np.repeat(kinds, kinds + 1) - ones, ones])
    observed = np.zeros(len(ones), dtype=np.int64)
    observed[start[place] + counts.ones] = counts.tasks
    many, chance = np.bincount(place, counts.tasks), np.exp(log_pmf(prior, rows))
    return Cells(rows, observed, np.repeat(many / np.add.reduceat(chance, start[:-1]), kinds + 1) * chance)


def goodness_of_fit(
    counts: LabelCounts, prior: Prior, by_moments: bool = False, seed: int = 0, draws: int = DRAWS
) -> float | None:
    """The p-value of X2 for a prior that was learnt by moments or by likelihood; None with too few bins to tell."""
    cells = cells_of(counts, prior)
    bins = _bins(cells)
    S = scores(prior, cells.counts)
    count = int(bins.max()) + 1
    if count - 1 <= S.shape[1]:
        return None
    draws = max(99, min(draws, MOST_WORK // len(bins)))
    to_bins = np.zeros((len(bins), count))
    to_bins[np.arange(len(bins)), bins] = 1.0
    expected = to_bins.T @ cells.expected
    statistic = float(((to_bins.T @ (cells.tasks - cells.expected)) ** 2 / expected).sum())
    slope = to_bins.T @ (cells.expected[:, None] * S)
    if by_moments and isinstance(prior, Beta):
        psi = model_influence(np.array([prior.beta, prior.alpha]), cells.shares, cells.expected, cells.labels)
    else:
        psi = influence(prior, cells.counts, cells.expected)
    drawn = _draw(cells, to_bins - psi @ slope.T / len(counts), np.random.default_rng(seed), draws)
    larger = int(((drawn**2 / expected).sum(axis=1) >= statistic * (1.0 - 1e-12)).sum())
    return (1 + larger) / (1 + draws)


def _draw(cells: Cells, to_residual: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """(draws, bins) residuals of drawn sets; one number of labels after the other, to save room."""
    out = np.zeros((draws, to_residual.shape[1]))
    for m in np.unique(cells.labels):
        here = np.flatnonzero(cells.labels == m)
        expected = cells.expected[here]
        tasks = int(cells.tasks[here].sum())
        out += (rng.multinomial(tasks, expected / expected.sum(), size=draws) - expected) @ to_residual[here]
    return out


def _bins(cells: Cells) -> Ints:
    """The bin of each cell: neighbours in the share of ones, together as large as they need be."""
    least = LEAST_EXPECTED
    if len(cells.tasks) > MOST_BINS:
        least = max(least, float(cells.expected.sum()) / MOST_BINS)
    order = np.lexsort((cells.labels, cells.ones / cells.labels))
    bins = np.zeros(len(order), dtype=np.int64)
    now, mass = 0, 0.0
    for cell in order:
        if mass >= least:
            now, mass = now + 1, 0.0
        bins[cell] = now
        mass += cells.expected[cell]
    if mass < least and now > 0:
        bins[bins == now] = now - 1
    return bins


METHODS = ("moments", "ml", "mixture")
#: A fit with a smaller p-value is called poor.
POOR = 0.01
UNDETERMINED = (
    "Tasks with at most {most} labels cannot tell {k} kinds apart: of many mixtures that fit as well this is one."
)
AT_MOST = (
    f"Tasks differ no more than chance alone makes them, so the weight is capped at {MOST_WEIGHT:g}: labels of a new "
    "task will hardly move its mean."
)
AT_LEAST = f"Labels of one task nearly always agree, so the weight is held at {LEAST_WEIGHT:.2g}."
OF_COMPONENT = (
    f"tasks of such a kind differ no more than chance alone makes them, so the weight is capped at {MOST_WEIGHT:g}.",
    f"labels of one such task nearly always agree, so the weight is held at {LEAST_WEIGHT:.2g}.",
)
FLAT = "The labels do not determine every parameter, so no standard errors are given."


@dataclass(frozen=True, slots=True)
class LearntPrior:
    """A prior learnt from ``labels`` labels of ``tasks`` tasks.

    ``log_likelihood`` is the log probability of the tasks' counts, the binomial coefficients included.
    ``standard_errors`` has one for each parameter by name, the weight held where it is on a cap; it is empty where the
    labels do not determine every parameter. ``p_value`` is that of ``fit``, None where too few different counts
    occur to tell. ``note`` says what was assumed, if anything was.
    """

    prior: Prior
    method: str
    log_likelihood: float
    parameters: int
    tasks: int
    labels: int
    standard_errors: dict[str, float] = field(default_factory=dict)
    p_value: float | None = None
    converged: bool = True
    iterations: int = 0
    note: str = ""

    @property
    def per_task(self) -> float:
        """Log likelihood per task."""
        return self.log_likelihood / self.tasks

    @property
    def bic(self) -> float:
        """Schwarz's criterion, -2 log L + parameters log tasks: of two models the smaller is the better bargain."""
        return -2.0 * self.log_likelihood + self.parameters * log(self.tasks)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What several methods learnt from the same labels, which of them to use, and why in one sentence."""

    learnt: tuple[LearntPrior, ...]
    use: LearntPrior
    why: str


def learn_prior(
    labels: Any, method: str = "ml", *, components: int | str = "auto", seed: int = 0, draws: int = DRAWS
) -> LearntPrior:
    """The prior of ``labels`` by one method: "moments", "ml" or "mixture".

    ``labels`` is the path of a file, a data frame, a ``LabelTable`` or ``LabelCounts``. Chance enters the test of the
    fit, which ``draws=0`` leaves out, and the mixture's starts.
    """
    given, errors = LabelCounts.of(labels), None
    _check(given, method, components)
    counts, assumed, note = _completed(given)
    if assumed is not None or method == "moments":
        found = Mixture(np.ones(1), (moment_weights(counts) if assumed is None else assumed)[None])
        errors = moment_errors(counts) if assumed is None else None
    else:
        found = best_mixture(counts, components if method == "mixture" else 1, seed)
        errors = standard_errors(found, counts)
    own = "" if assumed is not None else _cap_note(found.alpha)
    if not determined(counts, len(found.weights)):
        errors, own = None, UNDETERMINED.format(most=int(counts.labels.max()), k=len(found.weights))
    elif errors is None and method == "mixture" and assumed is None:
        own = f"{own} {FLAT}"
    prior = found.prior() if method == "mixture" else _single(found.alpha[0])
    test = assumed is None and given.answers == 2 and draws > 0
    return LearntPrior(
        prior=prior,
        method=method,
        log_likelihood=log_likelihood(prior, given),
        parameters=found.parameters,
        tasks=len(given),
        labels=int(given.totals.sum()),
        standard_errors={}
        if errors is None
        else dict(sorted(zip(found.parameter_names(), errors.tolist(), strict=True))),
        p_value=goodness_of_fit(given, prior, method == "moments", seed, draws) if test else None,
        converged=found.converged,
        iterations=found.steps,
        note=f"{note} {own}".strip(),
    )


def compare_priors(
    labels: Any,
    methods: Sequence[str] | None = None,
    *,
    components: int | str = "auto",
    seed: int = 0,
    draws: int = DRAWS,
) -> Comparison:
    """The priors of ``labels`` by every method that fits the number of answers, or by those given; which one to use."""
    counts = LabelCounts.of(labels)
    names = methods or [name for name in METHODS if counts.answers == 2 or name != "mixture"]
    learnt = tuple(learn_prior(counts, name, components=components, seed=seed, draws=draws) for name in names)
    use, why = recommend(learnt)
    return Comparison(learnt, use, why)


def recommend(learnt: Sequence[LearntPrior]) -> tuple[LearntPrior, str]:
    """The prior with the least BIC, the simpler one among equals, and why."""
    found = {one.method: one for one in learnt}
    simple = found.get("ml") or found.get("moments") or found["mixture"]
    mixed = found.get("mixture", simple)
    use = mixed if mixed.bic < simple.bic - 1e-6 else simple
    more, change = mixed.parameters - simple.parameters, f"from {simple.bic:,.1f} to {mixed.bic:,.1f}"
    if len(learnt) == 1:
        why = f"Use {use.method}: no other method was asked for."
    elif simple.note and simple.note == mixed.note:
        why = f"Use {use.method}, with care: the labels alone do not determine a prior."
    elif mixed is simple:
        gain = f"{found['ml'].log_likelihood:,.2f} against {found['moments'].log_likelihood:,.2f} of the moments"
        why = f"Use {use.method}: its log likelihood is the higher, {gain}."
    elif use is mixed:
        why = f"Use mixture: one Beta is too simple, {more} more parameters lower the BIC {change}."
    elif mixed.parameters == simple.parameters:
        why = f"Use {use.method}: one Beta does, since the BIC finds no second kind of task."
    else:
        why = f"Use {use.method}: one Beta does, since a mixture's {more} more parameters raise the BIC {change}."
    if use.p_value is not None and use.p_value < POOR:
        why = f"{why[:-1]}; even so the fit is poor (p = {use.p_value:.3f})."
    return use, why


def _completed(counts: LabelCounts) -> tuple[LabelCounts, Floats | None, str]:
    """Labels to learn from, the weights of a prior where they do not determine one, and what was assumed."""
    J = counts.answers
    telling = int(counts.tasks[counts.labels >= 2].sum())
    if telling < 2:
        mean = (counts.totals + 1.0) / (counts.totals.sum() + J)
        has = "No task has" if telling == 0 else "Only one task has"
        note = f"{has} two labels or more, which says nothing of how tasks differ: the weight {J} of a flat prior is "
        return counts, J * mean, note + "assumed."
    disagree = (counts.counts > 0).sum(axis=1) > 1
    if disagree.any() and counts.totals.min() > 0:
        return counts, None, ""
    why = "All labels of every task agree" if not disagree.any() else "An answer never occurs"
    note = (
        f"{why}, which no prior with all weights positive explains best: one made-up task with one label of each "
        "answer is counted with the others."
    )
    rows = np.repeat(counts.counts, counts.tasks, axis=0)
    return LabelCounts.of_counts(np.vstack([rows, np.ones(J, dtype=np.int64)])), None, note


def _single(weights: Floats) -> Prior:
    """Beta or Dirichlet with these weights, that of answer 0 first."""
    if len(weights) == 2:
        return Beta(float(weights[1]), float(weights[0]))
    return Dirichlet(tuple(max(float(x), LEAST_DIRICHLET) for x in weights))


def _cap_note(parts: Floats) -> str:
    """What is to be said if the weight of the prior, or of a mixture's component, is on its cap."""
    caps = [capped(float(alpha.sum())) for alpha in parts]
    if not any(caps):
        return ""
    if len(parts) == 1:
        return AT_MOST if caps[0] > 0 else AT_LEAST
    said = []
    for side, words in ((1, OF_COMPONENT[0]), (-1, OF_COMPONENT[1])):
        which = [str(i + 1) for i, cap in enumerate(caps) if cap == side]
        if which:
            said.append(f"Component{'s' * (len(which) > 1)} {' and '.join(which)}: {words}")
    return " ".join(said)


def _check(counts: LabelCounts, method: str, components: int | str) -> None:
    if method not in METHODS:
        raise InputError(f"method {method!r} is not known.", f"Use one of {', '.join(METHODS)}.")
    if components != "auto" and components not in range(1, MOST_COMPONENTS + 1):
        raise InputError(f"{components!r} components are not possible.", f"Give auto or 1 to {MOST_COMPONENTS}.")
    if method == "mixture" and counts.answers > 2:
        raise InputError(f"a mixture is for two answers, and these labels have {counts.answers}.", "Use moments or ml.")
