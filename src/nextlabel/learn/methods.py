"""Learn a prior by a method's name, and compare methods.

======== ================================================ ==========================================
method   prior                                            standard errors
======== ================================================ ==========================================
moments  Beta, or Dirichlet of more than two answers      delta method
ml       Beta, or Dirichlet of more than two answers      observed information
mixture  BetaMixture of 1 to 3 components                 observed information
======== ================================================ ==========================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import gammaln

from nextlabel.arrays import Floats
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.mixture import BetaMixture
from nextlabel.beliefs.prior import Prior
from nextlabel.errors import InputError
from nextlabel.learn import moments
from nextlabel.learn.counts import LabelCounts
from nextlabel.learn.evidence import AT_LEAST, AT_MOST, LEAST_WEIGHT, MOST_WEIGHT, prior_of, weigh
from nextlabel.learn.fit import DRAWS, goodness_of_fit
from nextlabel.learn.information import log_pmf, parameter_names, standard_errors
from nextlabel.learn.learnt import LearntPrior
from nextlabel.learn.likelihood import likelihood, most_likely, tails_of
from nextlabel.learn.mixture import MOST_COMPONENTS, best_mixture, determined
from nextlabel.learn.walls import capped, covariance, free_weights

METHODS = ("moments", "ml", "mixture")
#: A fit with a smaller p-value is called poor.
POOR = 0.01
UNDETERMINED = (
    "Tasks with at most {most} labels cannot tell {k} kinds apart: of many mixtures that fit as well this is one."
)
OF_COMPONENT = (
    f"tasks of such a kind differ no more than chance alone makes them, so the weight is capped at {MOST_WEIGHT:g}.",
    f"labels of one such task nearly always agree, so the weight is held at {LEAST_WEIGHT:.2g}.",
)
FLAT = "The labels do not determine every parameter, so no standard errors are given."


class MethodResult(NamedTuple):
    """A prior before it is judged."""

    prior: Prior
    method: str
    errors: dict[str, float]
    note: str
    converged: bool = True
    iterations: int = 0


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
    counts = LabelCounts.of(labels)
    _check(counts, method, components)
    evidence = weigh(counts)
    if evidence.assumed is not None:
        return _judged(counts, _assumed(evidence.assumed, method), evidence.note)
    if method == "mixture":
        found = _as_mixture(evidence.counts, components, seed)
    else:
        found = _by_moments(evidence.counts) if method == "moments" else _by_likelihood(evidence.counts)
    learnt = _judged(counts, found, evidence.note)
    if counts.answers > 2 or draws == 0:
        return learnt
    refit: Literal["moments", "likelihood"] = "moments" if method == "moments" else "likelihood"
    return replace(learnt, p_value=goodness_of_fit(counts, learnt.prior, refit, seed, draws).p_value)


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
        why = f"Use {use.method}: its log likelihood is the higher, {_gain(found)}."
    elif use is mixed:
        why = f"Use mixture: one Beta is too simple, {more} more parameters lower the BIC {change}."
    elif mixed.parameters == simple.parameters:
        why = f"Use {use.method}: one Beta does, since the BIC finds no second kind of task."
    else:
        why = f"Use {use.method}: one Beta does, since a mixture's {more} more parameters raise the BIC {change}."
    if use.p_value is not None and use.p_value < POOR:
        why = f"{why[:-1]}; even so the fit is poor (p = {use.p_value:.3f})."
    return use, why


def _gain(found: dict[str, LearntPrior]) -> str:
    return f"{found['ml'].log_likelihood:,.2f} against {found['moments'].log_likelihood:,.2f} of the moments"


def _by_moments(counts: LabelCounts) -> MethodResult:
    alpha, _ = moments.moment_weights(counts)
    return MethodResult(prior_of(alpha), "moments", _named(alpha, moments.standard_errors(counts)), _cap_note([alpha]))


def _by_likelihood(counts: LabelCounts) -> MethodResult:
    found = most_likely(counts)
    information = -likelihood(tails_of(counts.counts, counts.tasks), found.alpha)[2]
    of_weights = covariance(information, free_weights(found.alpha))
    errors = {} if of_weights is None else _named(found.alpha, np.sqrt(np.diag(of_weights)))
    note = _cap_note([found.alpha])
    return MethodResult(prior_of(found.alpha), "ml", errors, note, found.converged, found.steps)


def _as_mixture(counts: LabelCounts, components: int | str, seed: int) -> MethodResult:
    mixed = best_mixture(counts, components, seed)
    k, names = len(mixed.prior.weights), parameter_names(mixed.prior)
    errors = standard_errors(mixed.prior, counts.ones, counts.labels, counts.tasks)
    note = _cap_note([np.array([c.beta, c.alpha]) for c in mixed.prior.components])
    if not determined(counts, k):
        errors, note = None, UNDETERMINED.format(most=int(counts.labels.max()), k=k)
    elif errors is None:
        note = f"{note} {FLAT}".strip()
    named = {} if errors is None else dict(zip(names, errors.tolist(), strict=True))
    return MethodResult(mixed.prior, "mixture", named, note, mixed.converged, mixed.steps)


def _assumed(prior: Prior, method: str) -> MethodResult:
    if method == "mixture" and isinstance(prior, Beta):
        prior = BetaMixture((1.0,), (prior,))
    return MethodResult(prior, method, {}, "")


def _cap_note(parts: Sequence[Floats]) -> str:
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


def _named(alpha: Floats, errors: Floats) -> dict[str, float]:
    """Standard errors of weights by name; weights are in the order of the answers, a Beta's parameters are not."""
    names = ["beta", "alpha"] if len(alpha) == 2 else [f"alpha{j}" for j in range(len(alpha))]
    return dict(sorted(zip(names, errors.tolist(), strict=True)))


def _judged(counts: LabelCounts, found: MethodResult, note: str) -> LearntPrior:
    """With the likelihood of the labels as they were given."""
    components = getattr(found.prior, "components", None)
    return LearntPrior(
        prior=found.prior,
        method=found.method,
        log_likelihood=log_likelihood(counts, found.prior),
        parameters=counts.answers if components is None else 3 * len(components) - 1,
        tasks=len(counts),
        labels=int(counts.totals.sum()),
        standard_errors=found.errors,
        converged=found.converged,
        iterations=found.iterations,
        note=f"{note} {found.note}".strip(),
    )


def log_likelihood(counts: LabelCounts, prior: Prior) -> float:
    """Log probability of the tasks' counts under any learnt prior, the multinomial coefficients included."""
    if counts.answers == 2:
        return float(counts.tasks @ log_pmf(prior, counts.ones, counts.labels))
    constant = counts.tasks @ (gammaln(counts.labels + 1.0) - gammaln(counts.counts + 1.0).sum(axis=1))
    weights = np.array(getattr(prior, "weights", ()))
    return float(constant) + likelihood(tails_of(counts.counts, counts.tasks), weights)[0]


def _check(counts: LabelCounts, method: str, components: int | str) -> None:
    if method not in METHODS:
        raise InputError(f"method {method!r} is not known.", f"Use one of {', '.join(METHODS)}.")
    if components != "auto" and components not in range(1, MOST_COMPONENTS + 1):
        raise InputError(f"{components!r} components are not possible.", f"Give auto or 1 to {MOST_COMPONENTS}.")
    if method == "mixture" and counts.answers > 2:
        raise InputError(f"a mixture is for two answers, and these labels have {counts.answers}.", "Use moments or ml.")
