"""A plan from a pilot: the prior learnt from its labels, and how much the plan may move because it is only learnt.

    log alpha ~ Normal(log of the estimate, se / estimate), likewise beta; each draw gives a bound and a least budget.

Guarantee: none beyond the normal approximation; alpha and beta are drawn independently, which makes the range wider
than their joint law would where they are positively correlated, as they are in practice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nextlabel.beliefs.beta import Beta
from nextlabel.files.labels import LabelSummary, read_labels
from nextlabel.files.tables import Frame
from nextlabel.learn.priors import POOR, LearntPrior, learn_prior
from nextlabel.learn.weights import LabelCounts
from nextlabel.planning.plan import check_target, with_ample_budget
from nextlabel.problem.problem import Problem
from nextlabel.solve.curve import bound_curve

DRAWS = 20


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a pilot taught."""

    learnt: LearntPrior
    report: LabelSummary

    def sentences(self) -> list[str]:
        """The prior with its standard errors; what was met while reading is in ``report``."""
        errors = ", ".join(f"{name} ± {error:.2g}" for name, error in self.learnt.standard_errors.items())
        out = [
            f"Prior learnt from {self.report.labels:,} labels of {self.report.tasks:,} tasks in "
            f"{self.report.table.name}: "
            f"{self.learnt.prior.describe()}" + (f" ({errors})." if errors else ".")
        ]
        if self.learnt.note:
            out.append(self.learnt.note)
        return out

    def warnings(self) -> list[str]:
        """What must be known before the first number is believed: that the prior fits the pilot poorly."""
        p = self.learnt.p_value
        if p is None or p >= POOR:
            return []
        chance = "at most 0.001" if p <= 0.001 else f"{p:.3f}"
        other = (
            "a mixture may do better: --method mixture, or the line that nextlabel prior prints."
            if self.learnt.method != "mixture"
            else "nextlabel prior shows where."
        )
        return [
            f"The prior {self.learnt.prior.describe()} fits the pilot poorly (p = {chance}), so every number below may "
            f"be off by more than its interval; {other}"
        ]


def read_pilot(labels: str | Path | Frame, method: str = "ml", positive: str | None = None, seed: int = 0) -> Pilot:
    """Read labels in any form that ``files`` knows, and learn the prior."""
    table = read_labels(labels, positive=positive)
    return Pilot(learn_prior(LabelCounts.of_labels(table), method, seed=seed), table.report)


def budget_range(problem: Problem, learnt: LearntPrior, target: float, seed: int = 0) -> tuple[int | None, int | None]:
    """95% range of the least budget of any policy as the prior varies within its errors; None: out of reach."""
    check_target(problem, target)
    prior, errors = learnt.prior, learnt.standard_errors
    if not isinstance(prior, Beta) or not {"alpha", "beta"} <= set(errors):
        return None, None
    enough = with_ample_budget(problem)
    rng = np.random.default_rng(seed)
    found: list[float] = []
    for _ in range(DRAWS):
        alpha, beta = (
            float(x * np.exp(rng.normal() * errors[name] / x))
            for name, x in (("alpha", prior.alpha), ("beta", prior.beta))
        )
        needed = bound_curve(enough.with_prior(Beta(alpha, beta))).budget_for(target)
        found.append(np.inf if needed is None else needed)
    low, high = np.quantile(found, [0.025, 0.975], method="nearest")
    return (None if np.isinf(low) else int(low)), (None if np.isinf(high) else int(high))
