"""Kinds of answers: what a label may be, how far apart two of them are, and what is read out of a belief.

======== =================================================== ========= ==============================================
answer   labels                                              level     read out
======== =================================================== ========= ==============================================
choice   names, one of which is true                         nominal   the likeliest
rating   whole numbers of a scale, in their order            ordinal   the step that minimises the expected loss
number   numbers of a range                                  interval  the mean, which minimises the squared error
======== =================================================== ========= ==============================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import ndtr

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.agreement import Level
from nextlabel.errors import InputError

Loss = Literal["squared", "absolute"]
AnswerName = Literal["choice", "rating", "number"]
#: Steps of a scale at most.
MOST_STEPS = 26


@dataclass(frozen=True, slots=True)
class Number:
    """A number from ``low`` to ``high``, None for no end; the loss is the squared error."""

    low: float | None = None
    high: float | None = None
    name: ClassVar[AnswerName] = "number"
    level: ClassVar[Level] = "interval"

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InputError(
                f"the range goes from {self.low:g} to {self.high:g}.", "Give the smaller end first: 0..100."
            )

    @classmethod
    def parse(cls, text: str | None, loss: Loss | None = None) -> Self:
        """``LOW..HIGH``, of which either end may be left out."""
        if loss not in (None, "squared"):
            raise InputError("numbers are read out by the squared error.", "Leave --loss out, or use --answer rating.")
        return cls() if text is None else cls(*_ends(text))

    def check(self, number: Floats) -> None:
        """Refuse labels outside the range."""
        for k in (int(number.argmin()), int(number.argmax())):
            if (self.low is not None and number[k] < self.low) or (self.high is not None and number[k] > self.high):
                raise InputError(f"the label {number[k]:g} is outside the {self}.", "Give the range that workers had.")

    def read_out(self, mean: Floats, sd: Floats) -> Floats:
        """The best number for each item of which the belief is normal."""
        return np.clip(mean, self.low, self.high) if (self.low, self.high) != (None, None) else mean

    def __str__(self) -> str:
        return f"range {'' if self.low is None else f'{self.low:g}'}..{'' if self.high is None else f'{self.high:g}'}"


@dataclass(frozen=True, slots=True)
class Rating(Number):
    """A step of the scale ``low`` .. ``high``; the loss is the squared or the absolute error."""

    low: float = 1.0
    high: float = 5.0
    loss: Loss = "squared"
    name: ClassVar[AnswerName] = "rating"
    level: ClassVar[Level] = "ordinal"

    def __post_init__(self) -> None:
        whole = float(self.low).is_integer() and float(self.high).is_integer()
        if not (whole and 1 <= self.high - self.low < MOST_STEPS):
            raise InputError(
                f"the {self} has not 2 to {MOST_STEPS} steps.", "Give two whole numbers, e.g. --scale 1..5."
            )

    @classmethod
    def parse(cls, text: str | None, loss: Loss | None = None) -> Self:
        """``LOW..HIGH``, both whole numbers; 1..5 if it is left out."""
        low, high = (1.0, 5.0) if text is None else _ends(text)
        if low is None or high is None:
            raise InputError(f"scale {text!r} has no end.", "Give e.g. --scale 1..5.")
        return cls(low, high, loss or "squared")

    @property
    def steps(self) -> Ints:
        """The steps of the scale."""
        return np.arange(int(self.low), int(self.high) + 1)

    @property
    def numbers(self) -> Floats:
        """The same as numbers."""
        return np.asarray(self.steps, dtype=np.float64)

    def check(self, number: Floats) -> None:
        """Refuse labels that are no step of the scale."""
        Number.check(self, number)
        odd = number[number != np.rint(number)]
        if len(odd):
            raise InputError(f"the label {odd[0]:g} is no step of the {self}.", "Give ratings that are whole numbers.")

    def beliefs(self, mean: Floats, sd: Floats) -> Floats:
        """(K, k) the probability of each step: the mass of a normal belief that is nearest to it."""
        ends = np.append(self.steps[:-1] + 0.5, np.inf)
        below = ndtr((ends - mean[:, None]) / np.maximum(sd, 1e-9)[:, None])
        return np.diff(below, axis=1, prepend=0.0)

    def read_out(self, mean: Floats, sd: Floats) -> Floats:
        """The step with the smallest expected loss."""
        return self.best(self.beliefs(mean, sd))

    def best(self, beliefs: Floats) -> Floats:
        """The step with the smallest expected loss under beliefs (K, k): nearest to the mean, or the median."""
        apart = np.abs(self.steps[:, None] - self.steps).astype(np.float64)
        loss = beliefs @ (apart if self.loss == "absolute" else apart**2)
        return np.asarray(self.steps[np.argmin(np.round(loss, 12), axis=1)], dtype=np.float64)

    def __str__(self) -> str:
        return f"scale {self.low:g}..{self.high:g}"


def answer_type(name: AnswerName, scale: str | None, range_: str | None, loss: Loss | None) -> Number | None:
    """The kind of answer that somebody named; None for a choice."""
    for flag, given, needs in (("--scale", scale, "rating"), ("--range", range_, "number"), ("--loss", loss, "rating")):
        if given is not None and name != needs:
            raise InputError(f"{flag} only has an effect with --answer {needs}.", "Add that, or leave it out.")
    if name == "choice":
        return None
    return Rating.parse(scale, loss) if name == "rating" else Number.parse(range_)


def _ends(text: str) -> tuple[float | None, float | None]:
    first, dots, last = text.partition("..")
    try:
        if not dots or "nan" in text.lower():
            raise ValueError
        return (float(first) if first.strip() else None), (float(last) if last.strip() else None)
    except ValueError:
        raise InputError(f"{text!r} is not a range.", "Give two numbers with two dots between them: 0..100.") from None
