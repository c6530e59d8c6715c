"""What the labels leave open, and what is assumed instead.

================================================ ===============================================================
labels                                           assumed
================================================ ===============================================================
fewer than two tasks with two or more labels     they say nothing of how tasks differ: the weight J of a flat
                                                 prior, and the mean with one label of each answer added
no task with two different answers, or an        any weight down to 0, or a mean of 0 or 1, would be most likely:
answer that never occurs                         one task with one label of each answer is added to the others
tasks that differ less than chance alone makes   the likelihood rises with the weight for ever: MOST_WEIGHT
================================================ ===============================================================

The weight of a prior is alpha + beta (the sum over answers): how many labels it is worth. rho = 1 / (weight + 1) is the
correlation of two labels of one task.
"""

from __future__ import annotations

from dataclasses import dataclass

from nextlabel.arrays import Floats
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.dirichlet import LEAST_WEIGHT as LEAST_DIRICHLET
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.beliefs.prior import Prior
from nextlabel.learn.counts import LabelCounts

#: rho is kept inside these: nearly equal tasks, nearly sure labels.
LEAST_RHO, MOST_RHO = 1e-3, 0.99
LEAST_WEIGHT, MOST_WEIGHT = 1.0 / MOST_RHO - 1.0, 1.0 / LEAST_RHO - 1.0
#: No answer is less likely than this times another.
LEAST_SHARE = 1e-4

AT_MOST = (
    f"Tasks differ no more than chance alone makes them, so the weight is capped at {MOST_WEIGHT:g}: labels of a new "
    "task will hardly move its mean."
)
AT_LEAST = f"Labels of one task nearly always agree, so the weight is held at {LEAST_WEIGHT:.2g}."


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Labels to learn from; ``assumed`` is the whole prior where they do not determine one, ``note`` says why."""

    counts: LabelCounts
    assumed: Prior | None = None
    note: str = ""


def weigh(counts: LabelCounts) -> Evidence:
    """The first two lines of the table above."""
    J = counts.answers
    telling = int(counts.tasks[counts.labels >= 2].sum())
    if telling < 2:
        mean = (counts.totals + 1.0) / (counts.totals.sum() + J)
        has = "No task has" if telling == 0 else "Only one task has"
        note = f"{has} two labels or more, which says nothing of how tasks differ: the weight {J} of a flat prior is "
        return Evidence(counts, prior_of(J * mean), note + "assumed.")
    disagree = (counts.counts > 0).sum(axis=1) > 1
    if disagree.any() and counts.totals.min() > 0:
        return Evidence(counts)
    why = "All labels of every task agree" if not disagree.any() else "An answer never occurs"
    return Evidence(
        counts.with_task([1] * J),
        note=f"{why}, which no prior with all weights positive explains best: one made-up task with one label of each "
        "answer is counted with the others.",
    )


def prior_of(weights: Floats) -> Prior:
    """Beta or Dirichlet with these weights, that of answer 0 first."""
    if len(weights) == 2:
        return Beta(float(weights[1]), float(weights[0]))
    return Dirichlet(tuple(max(float(x), LEAST_DIRICHLET) for x in weights))
