"""What was learnt: a prior, how well it explains the labels, and what to mind."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log

from nextlabel.beliefs.prior import Prior


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
