"""Weights of one Beta or Dirichlet prior from recorded labels: by moments, and by maximum likelihood.

======== ========= ========= ==================================================================================
symbol   code      shape     meaning
======== ========= ========= ==================================================================================
alpha_j  alpha     (J,)      prior weights, that of answer 0 first; with two answers (beta, alpha)
w        weight    --        sum_j alpha_j: labels that the prior is worth, inside [LEAST_WEIGHT, MOST_WEIGHT]
rho      rho       --        correlation of two labels of one task, 1 / (w + 1)
s_ij     shares    (C, J)    share of answer j among the labels of task i
m_j      m         (J,)      mean of the shares over tasks
v        v         --        their variance (ddof 1), summed over j
k        k         --        mean of 1 / (labels of a task)
T_jr     more      (J, R)    tasks with more than r labels of answer j
M_r      any_more  (R,)      tasks with more than r labels
======== ========= ========= ==================================================================================

Moments. With theta ~ Dirichlet(alpha) the shares have mean m_j = alpha_j / w and variance m_j (1 - m_j) (k + (1 - k)
rho), so

    rho = (v / sum_j m_j (1 - m_j) - k) / (1 - k),      alpha_j = m_j (1/rho - 1).

The term k is the labels' own noise. Every task counts the same, however many labels it has.
Guarantee: consistent, with standard errors by the delta method; nothing beyond the moments. Cost: one pass.

Likelihood. Up to the multinomial coefficients, the log likelihood of all tasks is [Min00]

    sum_j sum_r T_jr log(alpha_j + r)  -  sum_r M_r log(w + r),

R the most labels of a task: neither special functions nor the number of tasks matter. It is maximised from the moments
in x = (log w, log alpha_1 / alpha_0, ..., log alpha_{J-1} / alpha_0), where the caps are the bounds, by SciPy's
L-BFGS-B. The function need not be concave; other starts have led to the same maximum on all data tried (tests).
Cost: J R multiply-adds an evaluation, about ten of them.

A prior on a wall can move along it, not through it: standard errors and refits are taken in the directions that are
left (``free_weights``).

``LabelCounts`` are labels per task, equal tasks counted once: all that a prior can be learnt from.

====== ========= ========= ==================================================================
symbol code      shape     meaning
====== ========= ========= ==================================================================
n_ij   counts    (C, J)    labels with answer j of the tasks in row i; no two rows are equal
c_i    tasks     (C,)      how many tasks are like that
m_i    labels    (C,)      sum_j n_ij
a_i    ones      (C,)      n_i1, with two answers
====== ========= ========= ==================================================================

A million tasks with ten labels each have 11 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, minimize
from threadpoolctl import ThreadpoolController

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.files.labels import LabelTable, as_label_table


@dataclass(frozen=True, slots=True, eq=False)
class LabelCounts:
    """Different tasks, and how many there are of each; made by ``of_labels`` or ``of_counts``."""

    counts: Ints
    tasks: Ints

    @classmethod
    def of_counts(cls, counts: ArrayLike) -> LabelCounts:
        """From the (N, J) numbers of labels with each answer."""
        given = _whole("counts", counts)
        if given.ndim != 2 or given.shape[1] < 2:
            raise InputError(
                f"counts have the shape {given.shape}.",
                "Give one row per task and one column per answer, at least two.",
            )
        given = given[given.sum(axis=1) > 0]
        if len(given) == 0:
            raise InputError("no task has a label.", "Give at least one task with labels.")
        different, tasks = _different(given)
        return cls(different, tasks)

    @classmethod
    def of(cls, labels: Any) -> LabelCounts:
        """From labels in any form: a path, a data frame, a ``LabelTable``, or counts as they are."""
        return labels if isinstance(labels, LabelCounts) else cls.of_labels(as_label_table(labels))

    @classmethod
    def of_labels(cls, table: LabelTable) -> LabelCounts:
        """From a table with one row per label, as ``files.labels.read_labels`` makes it."""
        N, J = len(table.tasks), len(table.labels)
        return cls.of_counts(np.bincount(table.task * J + table.label, minlength=N * J).reshape(N, J))

    def __len__(self) -> int:
        return int(self.tasks.sum())

    @property
    def answers(self) -> int:
        """J."""
        return int(self.counts.shape[1])

    @property
    def labels(self) -> Ints:
        """Labels of a task of each row."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.int64)

    @property
    def ones(self) -> Ints:
        """Labels 1 of a task of each row."""
        return self.counts[:, 1]

    @property
    def totals(self) -> Ints:
        """(J,) labels with each answer over all tasks."""
        return np.asarray(self.tasks @ self.counts, dtype=np.int64)

    @property
    def shares(self) -> Floats:
        """(C, J) shares of the answers."""
        return np.asarray(self.counts / self.labels[:, None], dtype=np.float64)

    def with_task(self, counts: ArrayLike) -> LabelCounts:
        """One task more."""
        rows = np.concatenate([self.counts, _whole("counts", counts)[None]])
        different, back = np.unique(rows, axis=0, return_inverse=True)
        tasks = np.bincount(back.ravel(), weights=np.append(self.tasks, 1)).astype(np.int64)
        return LabelCounts(different, tasks)


def _whole(name: str, value: ArrayLike) -> Ints:
    given = np.asarray(value)
    if given.dtype.kind not in "iub" and not (given.dtype.kind == "f" and (given == np.rint(given)).all()):
        raise InputError(f"{name} are not whole numbers.", "Give numbers of labels.")
    if given.size and given.min() < 0:
        raise InputError(f"{name} of {given.min():g} are below 0.", "Give numbers of labels.")
    return given.astype(np.int64)


def _different(rows: Ints) -> tuple[Ints, Ints]:
    """Different rows in rising order, and how often each occurs; by one key per row where it fits in 63 bits."""
    sizes = [int(x) + 1 for x in rows.max(axis=0)]
    if prod(sizes) >= 2**62:
        different, tasks = np.unique(rows, axis=0, return_counts=True)
        return different, tasks.astype(np.int64)
    keys, tasks = np.unique(np.ravel_multi_index(tuple(rows.T), sizes), return_counts=True)
    return np.column_stack(np.unravel_index(keys, sizes)).astype(np.int64), tasks.astype(np.int64)


#: rho is kept inside these: nearly equal tasks, nearly sure labels.
LEAST_RHO, MOST_RHO = 1e-3, 0.99
LEAST_WEIGHT, MOST_WEIGHT = 1.0 / MOST_RHO - 1.0, 1.0 / LEAST_RHO - 1.0
#: No answer is less likely than this times another.
LEAST_SHARE = 1e-4
#: How near a wall is on it, relatively.
NEAR = 1e-6
#: Change of the value per label or task at which a search ends, and its most steps.
TOLERANCE, MOST_STEPS = 1e-16, 1000

_THREADS = ThreadpoolController()


class Found(NamedTuple):
    """Where a search ended."""

    x: Floats
    converged: bool
    steps: int


def maximise(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    low: Floats,
    high: Floats,
    scale: float,
    tolerance: float = TOLERANCE,
    most_steps: int = MOST_STEPS,
) -> Found:
    """The maximum of a smooth function in a box; ``evaluate`` gives value and gradient, ``scale`` times what they are
    per label or task.
    """

    def loss(x: Floats) -> tuple[float, Floats]:
        value, gradient = evaluate(x)
        return -value / scale, -gradient / scale

    options = {"maxiter": most_steps, "ftol": tolerance, "gtol": 1e-10, "maxcor": 20}
    # where all cores are busy, BLAS threads would wait for each other a hundred times as long as these few sums take
    with _THREADS.limit(limits=1, user_api="blas"):
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=Bounds(low, high), options=options)
    return Found(found.x, found.nit < most_steps, int(found.nit))


# --- the box --------------------------------------------------------------------------------------


def corners(J: int) -> tuple[Floats, Floats]:
    """Low and high end of each coordinate of x."""
    edge = -np.log(LEAST_SHARE)
    return np.array([np.log(LEAST_WEIGHT)] + [-edge] * (J - 1)), np.array([np.log(MOST_WEIGHT)] + [edge] * (J - 1))


def to_box(alpha: Floats) -> Floats:
    """x of the weights, moved to the nearest point of the box."""
    low, high = corners(len(alpha))
    x = np.concatenate([[np.log(alpha.sum())], np.log(alpha[1:]) - np.log(alpha[0])])
    return np.asarray(np.clip(x, low, high), dtype=np.float64)


def from_box(x: Floats) -> Floats:
    """The weights of x."""
    z = np.concatenate([[0.0], x[1:]])
    share = np.exp(z - z.max())
    return np.asarray(np.exp(x[0]) * share / share.sum(), dtype=np.float64)


def slope_in_box(alpha: Floats, gradient: Floats) -> Floats:
    """The gradient in x of a function with this gradient in the weights: d alpha_j is alpha_j in log w and
    alpha_j (1{j = k} - p_k) in the ratio k, p the shares."""
    pull = gradient * alpha
    return np.concatenate([[pull.sum()], pull[1:] - alpha[1:] / alpha.sum() * pull.sum()])


def capped(weight: float) -> int:
    """1 on the upper cap of a weight, -1 on the lower, else 0."""
    return int(weight >= MOST_WEIGHT * (1.0 - NEAR)) - int(weight <= LEAST_WEIGHT * (1.0 + NEAR))


def free_weights(alpha: Floats) -> Floats:
    """(J, n) directions in which the weights of one prior are free."""
    ratios = alpha[:, None] * (np.eye(len(alpha))[:, 1:] - (alpha / alpha.sum())[1:])
    if alpha.min() <= LEAST_SHARE * alpha.max() * (1.0 + NEAR):  # an answer's share is on its wall
        ratios = ratios[:, :0]
    return ratios if capped(float(alpha.sum())) else np.column_stack([alpha, ratios])


def covariance(information: Floats, free: Floats) -> Floats | None:
    """Inverse of the information in the free directions, as a covariance of all parameters; None where it is flat."""
    if free.shape[1] == 0:
        return np.zeros_like(information)
    inner = free.T @ information @ free
    size = np.sqrt(np.abs(np.diag(inner)))
    if not (np.isfinite(inner).all() and size.min() > 0):
        return None
    inner = inner / np.outer(size, size)
    if not np.linalg.eigvalsh(inner).min() > 1e-9:
        return None
    step = free / size
    return np.asarray(step @ np.linalg.inv(inner) @ step.T, dtype=np.float64)


# --- likelihood -----------------------------------------------------------------------------------


class Tails(NamedTuple):
    """Numbers of tasks, possibly in fractions, with more than r labels."""

    more: Floats
    any_more: Floats


def tails_of(counts: Ints, tasks: Floats | Ints) -> Tails:
    """The tails of tasks with these counts."""
    labels = counts.sum(axis=1)
    R = int(labels.max())

    def tail(n: Ints) -> Floats:
        return np.cumsum(np.bincount(n, tasks, R + 1)[::-1], dtype=np.float64)[-2::-1]

    return Tails(np.stack([tail(column) for column in counts.T]), tail(labels))


def likelihood(tails: Tails, alpha: Floats) -> tuple[float, Floats, Floats]:
    """Log likelihood less its constant, gradient (J,) and Hessian (J, J) in the weights."""
    r = np.arange(len(tails.any_more))
    at, weight = alpha[:, None] + r, alpha.sum() + r
    value = float((tails.more * np.log(at)).sum() - tails.any_more @ np.log(weight))
    gradient = (tails.more / at).sum(axis=1) - (tails.any_more / weight).sum()
    hessian = np.diag(-(tails.more / at**2).sum(axis=1)) + (tails.any_more / weight**2).sum()
    return value, gradient, hessian


def most_likely_weights(counts: LabelCounts, start: Floats | None = None) -> tuple[Floats, Found]:
    """The most likely weights of a Beta or Dirichlet prior, from the moments or from ``start``, and the search."""
    tails = tails_of(counts.counts, counts.tasks)

    def evaluate(x: Floats) -> tuple[float, Floats]:
        alpha = from_box(x)
        value, gradient, _ = likelihood(tails, alpha)
        return value, slope_in_box(alpha, gradient)

    x = to_box(moment_weights(counts) if start is None else start)
    found = maximise(evaluate, x, *corners(counts.answers), scale=float(tails.any_more.sum()))
    return from_box(found.x), found


# --- moments --------------------------------------------------------------------------------------


def moment_weights(counts: LabelCounts) -> Floats:
    """The (J,) weights of the prior, that of answer 0 first."""
    m, v, k = _moments(counts)
    return m * (1.0 / _rho(m, v, k) - 1.0)


def moment_errors(counts: LabelCounts) -> Floats:
    """(J,) standard errors of the weights, by the delta method on the tasks as they are."""
    pull = moment_influence(*_moments(counts), counts.shares, counts.labels)
    return np.asarray(np.sqrt(counts.tasks @ (pull - counts.tasks @ pull / len(counts)) ** 2) / len(counts))


def moment_influence(m: Floats, v: float, k: float, shares: Floats, labels: Ints) -> Floats:
    """(C, J) by how much, times the number of tasks, one task moves the weights; a sum of them on its cap stays."""
    spread, rho = float((m * (1.0 - m)).sum()), _rho(m, v, k)
    weight = 1.0 / rho - 1.0
    dm = shares - m
    dv = (dm**2).sum(axis=1) - v
    dspread = dm @ (1.0 - 2.0 * m)
    dk = 1.0 / labels - k
    drho = (dv / spread - v / spread**2 * dspread - (1.0 - rho) * dk) / (1.0 - k)
    dweight = -drho / rho**2 if capped(weight) == 0 else np.zeros(len(shares))
    return np.asarray(weight * dm + m * dweight[:, None], dtype=np.float64)


def model_influence(weights: Floats, shares: Floats, expected: Floats, labels: Ints) -> Floats:
    """``moment_influence`` at tasks as the prior expects them."""
    k = float(expected @ (1.0 / labels) / expected.sum())
    m = weights / weights.sum()
    v = float((m * (1.0 - m)).sum()) * (k + (1.0 - k) / (weights.sum() + 1.0))
    return moment_influence(m, v, k, shares, labels)


def _moments(counts: LabelCounts) -> tuple[Floats, float, float]:
    c, n, shares = counts.tasks, len(counts), counts.shares
    m = c @ shares / n
    v = float((c @ (shares - m) ** 2).sum() / (n - 1))
    return m, v, float(c @ (1.0 / counts.labels) / n)


def _rho(m: Floats, v: float, k: float) -> float:
    """rho inside its limits; one label a task cannot tell, and counts as sure."""
    rho = (v / float((m * (1.0 - m)).sum()) - k) / (1.0 - k) if k < 1.0 else MOST_RHO
    return min(max(rho, LEAST_RHO), MOST_RHO)
