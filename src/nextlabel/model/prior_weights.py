"""Labels per task, and the weights of one Beta or Dirichlet prior by their moments.

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
======== ========= ========= ==================================================================================

With theta ~ Dirichlet(alpha) the shares have mean m_j = alpha_j / w and variance m_j (1 - m_j) (k + (1 - k) rho), so

    rho = (v / sum_j m_j (1 - m_j) - k) / (1 - k),      alpha_j = m_j (1/rho - 1).

The term k is the labels' own noise. Every task counts the same, however many labels it has.
Guarantee: consistent, with standard errors by the delta method; nothing beyond the moments. Cost: one pass.

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

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.files.labels import LabelTable, as_label_table

#: rho is kept inside these: nearly equal tasks, nearly sure labels.
LEAST_RHO, MOST_RHO = 1e-3, 0.99
LEAST_WEIGHT, MOST_WEIGHT = 1.0 / MOST_RHO - 1.0, 1.0 / LEAST_RHO - 1.0
#: How near a wall is on it, relatively.
NEAR = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class LabelCounts:
    """Different tasks, and how many there are of each; made by ``of``, ``of_labels`` or ``of_counts``."""

    counts: Ints
    tasks: Ints

    @classmethod
    def of_counts(cls, counts: ArrayLike) -> LabelCounts:
        """From the (N, J) numbers of labels with each answer."""
        given = np.asarray(counts)
        if given.dtype.kind not in "iub" and not (given.dtype.kind == "f" and (given == np.rint(given)).all()):
            raise InputError("counts are not whole numbers.", "Give numbers of labels.")
        if given.size and given.min() < 0:
            raise InputError(f"counts of {given.min():g} are below 0.", "Give numbers of labels.")
        if given.ndim != 2 or given.shape[1] < 2:
            raise InputError(
                f"counts have the shape {given.shape}.",
                "Give one row per task and one column per answer, at least two.",
            )
        rows = given[given.sum(axis=1) > 0].astype(np.int64)
        if len(rows) == 0:
            raise InputError("no task has a label.", "Give at least one task with labels.")
        sizes = [int(x) + 1 for x in rows.max(axis=0)]
        if prod(sizes) >= 2**62:
            return cls(*np.unique(rows, axis=0, return_counts=True))
        keys, tasks = np.unique(np.ravel_multi_index(tuple(rows.T), sizes), return_counts=True)  # ten times as fast
        return cls(np.column_stack(np.unravel_index(keys, sizes)), tasks)

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


def capped(weight: float) -> int:
    """1 on the upper cap of a weight, -1 on the lower, else 0."""
    return int(weight >= MOST_WEIGHT * (1.0 - NEAR)) - int(weight <= LEAST_WEIGHT * (1.0 + NEAR))


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
