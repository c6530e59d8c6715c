"""What a finished task is worth, given what is believed about it.

================ ==================================== =========================================
reward           R of deciding now                    ceiling, if the truth were told
================ ==================================== =========================================
accuracy         v max_q P_q                          v
utility          max_a sum_q u[a][q] P_q              sum_q P_q max_a u[a][q]
squared error    -s (1/2) sum_j Var(theta_j)          0
================ ==================================== =========================================

``abstain`` adds a decision of the same value whatever the truth. Var(theta_j) = p_j (p_j(child_j) - p_j), because
labels are exchangeable and E[theta_j^2] = P(two labels are j); with two answers the sum is Var(theta) itself.
R is convex in the belief, so that no label hurts. Guarantee: exact functions of ``prob`` and ``truth``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError
from nextlabel.model.prior import number, positive, settle, shown


class Reward(ABC):
    """A reward array from beliefs; frozen and hashable. One of your own says ``values``, ``magnitude``, ``largest``."""

    kind: ClassVar[str]
    #: Levels that ``values`` needs past the last one asked for.
    ahead: ClassVar[int] = 0
    #: Whether it asks for the chances of the answers only, not for the truth.
    of_chances: ClassVar[bool] = False

    @abstractmethod
    def values(self, prob: Floats, truth: Floats, first: Ints, child: Ints) -> tuple[Floats, Floats]:
        """R and ceiling (..., N) from prob and truth (..., N + further levels, J); N ends ``ahead`` levels earlier."""

    @abstractmethod
    def magnitude(self, truth: Floats, reward: float) -> float:
        """Bound on E[sum_q abs(u[a][q]) P_q] for the best decision a, whatever labels come: see ``error_budget``.

        For a reward that asks for chances only: on E[abs(R)].

        ``truth`` (J,) and ``reward`` are those of the task before its first label.
        """

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest absolute value of a reward."""

    @property
    def symmetric(self) -> bool:
        """Whether the reward stays the same when truths change names."""
        return False

    @property
    def size(self) -> float:
        """The most that two rewards can differ, about; 0 if it cannot be counted in another unit by ``times``."""
        return 0.0

    def times(self, factor: float) -> Reward:
        """The same reward, every value ``factor`` times as large."""
        raise NotImplementedError

    def check(self, answers: int) -> None:  # noqa: B027 - most rewards fit all tasks
        """Raise a ProblemError if it does not fit tasks with that many answers."""

    def describe(self) -> str:
        """A few words."""
        return self.kind


def largest(values: Floats) -> Floats:
    """Maximum over the short last axis, column by column: fifty times as fast as ``max(axis=-1)``."""
    out = values[..., 0].copy()
    for j in range(1, values.shape[-1]):
        np.maximum(out, values[..., j], out=out)
    return out


def _expected(truth: Floats, utility: Floats) -> Floats:
    """sum_q u_q P_q, in one order on every machine: a matrix product's order depends on the processor."""
    out: Floats = utility[0] * truth[..., 0]
    for q in range(1, len(utility)):
        out += utility[q] * truth[..., q]
    return out


def _finite(name: str, value: object) -> float:
    x = number(value)
    if not isfinite(x):
        raise ProblemError(f"{name} is {shown(value)}, which is not a number.", f"Give {name} as a number, e.g. 1.")
    return x


@dataclass(frozen=True, slots=True)
class Accuracy(Reward):
    """``value`` for a task whose most likely truth is the truth."""

    value: float = 1.0
    kind: ClassVar[str] = "accuracy"
    symmetric = True

    def __post_init__(self) -> None:
        settle(self, value=positive("value of a correct task", self.value, "Give e.g. 1."))

    def values(self, prob: Floats, truth: Floats, first: Ints, child: Ints) -> tuple[Floats, Floats]:
        """v max_q P_q and v."""
        reward = self.value * largest(truth)
        return reward, np.full_like(reward, self.value)

    def magnitude(self, truth: Floats, reward: float) -> float:
        """v."""
        return self.value

    @property
    def largest(self) -> float:
        """v."""
        return self.value

    size = largest

    def times(self, factor: float) -> Accuracy:
        """``factor`` v for a correct task."""
        return Accuracy(factor * self.value)

    def describe(self) -> str:
        """A few words."""
        return "accuracy" if self.value == 1.0 else f"{self.value:g} for a correct task"


@dataclass(frozen=True, slots=True)
class Utility(Reward):
    """``matrix[a][q]`` for decision a when the truth is q, and ``abstain`` whatever the truth, if it is allowed."""

    matrix: tuple[tuple[float, ...], ...]
    abstain: float | None = None
    kind: ClassVar[str] = "utility"

    def __post_init__(self) -> None:
        try:
            rows = tuple(tuple(_finite("utility", x) for x in row) for row in self.matrix)
        except TypeError:
            rows = ()
        if not rows or any(len(row) != len(rows[0]) or not row for row in rows):
            raise ProblemError(
                f"utility {self.matrix!r} is not a matrix.",
                "Give one row a decision, one number a truth: [[1,0],[0,1]].",
            )
        settle(self, matrix=rows, abstain=None if self.abstain is None else _finite("abstain", self.abstain))

    def rows(self) -> Floats:
        """(decisions, truths), the abstention last."""
        rows = list(self.matrix)
        if self.abstain is not None:
            rows.append((self.abstain,) * len(rows[0]))
        return np.array(rows, dtype=np.float64)

    def values(self, prob: Floats, truth: Floats, first: Ints, child: Ints) -> tuple[Floats, Floats]:
        """``max_a sum_q u[a][q] P_q`` and ``sum_q P_q max_a u[a][q]``."""
        u = self.rows()
        reward = _expected(truth, u[0])
        for row in u[1:]:
            np.maximum(reward, _expected(truth, row), out=reward)
        return reward, np.maximum(_expected(truth, u.max(axis=0)), reward)

    def magnitude(self, truth: Floats, reward: float) -> float:
        """2 sum_q P_q max_a u[a][q]^+ - R: what the best decision can gain twice, less what it is worth."""
        gains = np.maximum(self.rows().max(axis=0), 0.0)
        return 2.0 * float(np.sum(truth * gains)) - reward

    @property
    def largest(self) -> float:
        """max abs(u)."""
        return float(np.abs(self.rows()).max())

    @property
    def size(self) -> float:
        """The best less the worst."""
        return float(np.ptp(self.rows()))

    def times(self, factor: float) -> Utility:
        """``factor`` times the matrix and the abstention."""
        rows = tuple(tuple(factor * x for x in row) for row in self.matrix)
        return Utility(rows, None if self.abstain is None else factor * self.abstain)

    @property
    def symmetric(self) -> bool:
        """Whether exchanging two neighbouring truths gives the same decisions in another order, for all of them."""
        rows = sorted(self.rows().tolist())
        swaps = ((j, j + 1) for j in range(len(rows[0]) - 1))
        return all(rows == sorted([*r[:i], r[j], r[i], *r[j + 1 :]] for r in rows) for i, j in swaps)

    def check(self, answers: int) -> None:
        """One column a truth."""
        if len(self.matrix[0]) != answers:
            raise ProblemError(
                f"the utility matrix has {len(self.matrix[0])} columns for tasks with {answers} possible truths.",
                "Give one number a truth in every row.",
            )

    def describe(self) -> str:
        """A few words."""
        rows = "; ".join(", ".join(f"{x:g}" for x in row) for row in self.matrix)
        return f"utility {rows}" + ("" if self.abstain is None else f", abstain {self.abstain:g}")


@dataclass(frozen=True, slots=True)
class SquaredError(Reward):
    """Minus ``scale`` times the expected squared error of the best estimate of theta."""

    scale: float = 1.0
    kind: ClassVar[str] = "squared-error"
    ahead: ClassVar[int] = 1
    of_chances: ClassVar[bool] = True
    symmetric = True

    def __post_init__(self) -> None:
        settle(self, scale=positive("scale", self.scale, "Give e.g. 1."))

    def values(self, prob: Floats, truth: Floats, first: Ints, child: Ints) -> tuple[Floats, Floats]:
        """-s (1/2) sum_j p_j (p_j(child_j) - p_j) and 0."""
        inner = int(first[-2])
        total = np.zeros((*prob.shape[:-2], inner))
        for j in range(prob.shape[-1]):
            p = prob[..., :inner, j]
            total += p * np.maximum(prob[..., child[:inner, j], j] - p, 0.0)
        return -0.5 * self.scale * total, np.zeros_like(total)

    def magnitude(self, truth: Floats, reward: float) -> float:
        """-R: the variance is a supermartingale."""
        return -reward

    @property
    def largest(self) -> float:
        """s."""
        return self.scale

    size = largest

    def times(self, factor: float) -> SquaredError:
        """``factor`` s."""
        return SquaredError(factor * self.scale)

    def describe(self) -> str:
        """A few words."""
        return "squared error of theta" if self.scale == 1.0 else f"squared error of theta times {self.scale:g}"
