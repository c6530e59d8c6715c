"""A plan from a pilot: the prior learnt from its labels, and how much the plan may move because it is only learnt.

    log alpha ~ Normal(log of the estimate, se / estimate), likewise beta; each draw gives a bound and a least budget.

Guarantee: none beyond the normal approximation; alpha and beta are drawn independently, which makes the range wider
than their joint law would where they are positively correlated, as they are in practice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nextlabel.files.labels import Gold, LabelSummary, LabelTable, read_gold, read_labels
from nextlabel.files.tables import Frame
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet, largest
from nextlabel.model.prior import Prior, binary
from nextlabel.model.prior_learning import POOR, LearntPrior, learn_prior
from nextlabel.model.prior_weights import LabelCounts
from nextlabel.model.problem import Problem
from nextlabel.planning.plan import check_target, with_ample_budget
from nextlabel.solve.curve import bound_curve

DRAWS = 20
#: Shares among which the ceiling is looked for.
POINTS = 2001


class Ceiling(NamedTuple):
    """The share of tasks of which the crowd, asked without end, says the truth, with its 95% interval.

    ``counted``: the share of the ``judged`` tasks that the pilot's labels get right by counting them, and ``expected``
    the share of them that the prior takes for right.
    """

    share: float
    low: float
    high: float
    judged: int
    counted: float
    expected: float


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a pilot taught; with gold, ``ceiling`` is how far labels of its crowd can lead if they are counted."""

    learnt: LearntPrior
    report: LabelSummary
    ceiling: Ceiling | None = None
    gold: Gold | None = None

    def sentences(self) -> list[str]:
        """The prior with its standard errors; what was met while reading is in ``report``."""
        errors = ", ".join(f"{name} ± {error:.2g}" for name, error in self.learnt.standard_errors.items())
        prior = self.learnt.prior.describe() + (f" ({errors})" if errors else "")
        read = f"{self.report.labels:,} labels of {self.report.tasks:,} tasks in {self.report.table.name}"
        return [f"Prior learnt from {read}: {prior}.", *([self.learnt.note] if self.learnt.note else [])]

    def warnings(self, target: float | None = None) -> list[str]:
        """What must be known before the first number is believed: how far labels lead, and a prior that fits poorly."""
        p, one, fit = self.learnt.p_value, self.ceiling, list[str]()
        if p is not None and p < POOR:
            chance = "at most 0.001" if p <= 0.001 else f"{p:.3f}"
            other = (
                "a mixture may do better: --method mixture, or the line that nextlabel prior prints."
                if self.learnt.method != "mixture"
                else "nextlabel prior shows where."
            )
            fit = [
                f"The prior {self.learnt.prior.describe()} fits the pilot poorly (p = {chance}), so every number below "
                f"may be off by more than its interval; {other}"
            ]
        if one is None:
            return [
                *fit,
                "Below, a task is right if its answer is what this crowd would say if it were asked without end. The "
                "truth about 50 tasks of the pilot (--gold FILE) says how often that is true, and so how far labels "
                "lead.",
            ]
        reach = "" if target is None else (
            f" {target:g} is out of reach." if target >= one.high
            else f" For {target:g}, {self.goal(target):.1%} of the answers must be what the crowd would say."
            if target < one.share else f" Whether {target:g} can be reached is open."
        )  # fmt: skip
        return [
            f"However many labels are bought, counting them gets at most about {one.share:.1%} of the tasks right "
            f"({one.low:.1%} to {one.high:.1%}, by the gold of {one.judged:,}): that often, what the crowd would say "
            f"is the truth.{reach} The pilot's labels get {one.counted:.1%} right, where the prior expects "
            f"{one.expected:.1%}. Below, a task is right if its answer is what the crowd would say.",
            *fit,
        ]

    def goal(self, target: float) -> float:
        """The share of tasks that must be what the crowd says, for ``target`` of them to be right by the gold."""
        if self.ceiling is None:
            return target
        by_chance = (1 - self.ceiling.share) / (self.learnt.prior.answers - 1)
        return round((target - by_chance) / max(self.ceiling.share - by_chance, 1e-9), 4)


def read_pilot(
    labels: str | Path | Frame,
    method: str = "ml",
    positive: str | None = None,
    gold: str | Path | None = None,
    threshold: float = 0.5,
    seed: int = 0,
) -> Pilot:
    """Read labels in any form that ``files`` knows, and learn the prior."""
    table = read_labels(labels, positive=positive)
    learnt = learn_prior(LabelCounts.of_labels(table), method, seed=seed)
    if gold is None:
        return Pilot(learnt, table.report)
    truth = read_gold(gold, table)
    return Pilot(learnt, table.report, find_ceiling(learnt.prior, threshold, table, truth), truth)


def find_ceiling(prior: Prior, threshold: float, table: LabelTable, gold: Gold) -> Ceiling:
    """The most likely share c of tasks of which the crowd's last word is the truth, any other answer being as likely.

    P(gold) = c p + (1 - c) (1 - p) / (J - 1),   p = P(the last word is the gold | labels);   |log L - max| <= 1.92
    """
    judged, J = np.flatnonzero(gold.label >= 0), prior.answers
    counts = np.bincount(table.task * J + table.label, minlength=len(table.tasks) * J).reshape(-1, J)[judged]
    if isinstance(prior, Dirichlet):
        says = largest(np.array(prior.weights), counts)
    else:
        says = binary(prior.above(threshold, counts.sum(axis=1), counts[:, 1]))
    place = np.arange(len(judged))
    p = says[place, gold.label[judged]]
    c = np.linspace(1 / J, 1.0, POINTS)[:, None]
    likely = np.log(np.maximum(c * p + (1 - c) * (1 - p) / (J - 1), 1e-300)).sum(axis=1)
    inside = c[likely >= likely.max() - 1.92, 0]
    most = counts == counts.max(axis=1, keepdims=True)
    counted = float((most / most.sum(axis=1, keepdims=True))[place, gold.label[judged]].mean())
    share = float(c[int(np.argmax(likely)), 0])
    return Ceiling(share, float(inside[0]), float(inside[-1]), len(judged), counted, float(says.max(axis=1).mean()))


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
        drawn = [
            float(x * np.exp(rng.normal() * errors[name] / x))
            for name, x in (("alpha", prior.alpha), ("beta", prior.beta))
        ]
        needed = bound_curve(enough.with_prior(Beta(*drawn))).budget_for(target)
        found.append(np.inf if needed is None else needed)
    ends = np.quantile(found, [0.025, 0.975], method="nearest")
    low, high = (None if np.isinf(end) else int(end) for end in ends)
    return low, high
