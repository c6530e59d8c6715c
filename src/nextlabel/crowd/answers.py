"""Kinds of answers: what a label may be, what the log and a belief have for it, and what is read out of a belief.

======== =========================== ======== ========================== =============================================
answer   labels                      level    a belief (K, width)        read out
======== =========================== ======== ========================== =============================================
choice   names, one of which is true nominal  probability of each name   the likeliest; with utilities the one of
                                                                         the largest expected utility
rating   whole numbers of a scale,   ordinal  probability of each step   the step that minimises the expected loss
         in their order
number   numbers of a range          interval mean, standard deviation   the mean, which minimises the squared error
pair     first, second or tie: which nominal  probability of each        the likeliest; the order of all items is read
         of two items is better                                          out of all pairs together (``crowd.pairs``)
multi    any of some names, several  nominal  probability of each name   each that is likelier than not
         questions                            (``crowd.questions``)
======== =========================== ======== ========================== =============================================

The log has the *number* of an answer: the place of a name or of a step, or how many steps of ``Number.step`` a number
is above the range's low end. A result is right if it ``agrees`` with the truth: is the same name or step, or a number
within ``TOLERANCE`` of the range.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, isfinite, log10
from typing import ClassVar, Final, Literal, Self, get_args

import numpy as np
from scipy.special import erf, ndtr

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.agreement import Level
from nextlabel.errors import InputError

Loss = Literal["squared", "absolute"]
AnswerName = Literal["choice", "rating", "number", "multi", "pair"]
#: Steps of a scale at most, and of a number's range, which the log has as numbers of 16 bits.
MOST_STEPS, MOST_NUMBERS = 26, 30_000
#: Share of the range that a number may be off and is still right.
TOLERANCE = 0.05
#: Characters of a label that a message shows.
SHOWN = 200
Z95 = 1.959963984540054


class Answer(ABC):
    """A kind of answer: of those that have names, unless a class says otherwise."""

    name: ClassVar[AnswerName]
    level: ClassVar[Level] = "nominal"
    #: What is asked for and the settings that mean nothing then; empty where the policy may be any.
    noun: ClassVar[str] = ""
    refuses: ClassVar[tuple[str, ...]] = ()
    #: What answers [answer][truth] are worth, None if those that are right are; only a choice may have one.
    utility: tuple[tuple[float, ...], ...] | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the answers in the order of their numbers; none where answers are numbers."""
        return ()

    @property
    def width(self) -> int:
        """Columns of a belief."""
        return len(self.labels)

    @property
    def counted(self) -> int:
        """How many answers the lattice of a task's counts tells apart."""
        return max(len(self.labels), 1)

    @property
    def ranges(self) -> tuple[str, ...]:
        """The questions that ask for numbers, which have intervals."""
        return ()

    @property
    def values(self) -> Floats | None:
        """What each label counts as, None where they have no order."""
        return None

    def number_of(self, label: object) -> int:
        """The number of an answer as somebody wrote it."""
        name = str(label)
        if isinstance(label, bool) or name not in self.labels:
            raise InputError(
                f"label {name[:SHOWN]!r} is not one of the campaign's.", f"Give one of {', '.join(self.labels)}."
            )
        return self.labels.index(name)

    def sent(self, text: str) -> int:
        """The number of the answer that a form sends: buttons send their place."""
        if not text.isdecimal() or len(text) > 3 or int(text) >= len(self.labels):
            raise InputError("this answer does not exist.", "Use one of the buttons.")
        return int(text)

    def name_of(self, number: int) -> str:
        """How an answer is written."""
        return self.labels[number]

    def shown(self, number: int) -> str:
        """An answer as people read it."""
        return self.name_of(number)

    def keys(self) -> tuple[str, ...]:
        """The key of each answer on the workers' page, where it is no matter of its name."""
        return ()

    def known(self, number: int, before: Floats | None = None) -> Floats:
        """(width,) the belief of an answer that is known; what was counted ``before`` stays."""
        return np.asarray(np.eye(self.width)[number])

    def worth(self, beliefs: Floats) -> Floats:
        """(K, answers) what each answer is expected to be worth: as much as it is likely."""
        return beliefs

    def best(self, beliefs: Floats) -> Ints:
        """(K,) the number of the answer that is read out of each belief."""
        return np.asarray(self.worth(beliefs).argmax(axis=1))

    def certainty(self, beliefs: Floats) -> Floats:
        """(K,) the chance that what is read out is right."""
        return np.asarray(np.take_along_axis(beliefs, self.best(beliefs)[:, None], axis=1)[:, 0])

    def margin(self, beliefs: Floats) -> Floats:
        """(K,) how clear each belief is: least in the most doubtful one."""
        ordered = np.sort(self.worth(beliefs), axis=1)
        return np.asarray(ordered[:, -1] - ordered[:, -2])

    def agrees(self, first: Ints, second: Ints) -> Bools:
        """Which answers are right where the others are the truth."""
        return np.asarray(first == second)

    def shares_right(self, first: Ints, second: Ints) -> Floats:
        """How much of each answer is right."""
        return self.agrees(first, second).astype(np.float64)

    def judged(self, beliefs: Floats, truth: Ints) -> Iterator[tuple[str, Floats, Bools]]:
        """What is read out, question by question: its name, the chance that it is right, nan where it is not asked,
        and whether it is where ``truth`` is true.
        """
        yield "", self.certainty(beliefs), self.agrees(self.best(beliefs), truth)

    def chances(self, beliefs: Floats, question: str | None = None) -> Floats:
        """(K,) the chance that the answer to a question is right, that there is none included; without one, to all."""
        return self.certainty(beliefs)

    def said_of(self, question: str | None, number: int, frozen: int) -> str:
        """The answer to a question, to all without one; in the words of a frozen one where that is right as well."""
        return self.name_of(number)

    def words(self, question: str | None) -> tuple[str, ...]:
        """The answers to a question in their order; none if they are not counted one by one."""
        return self.labels

    def probabilities(self, belief: Floats) -> dict[str, float]:
        """The probability of each label; numbers have none."""
        return dict(zip(self.labels, belief.tolist(), strict=False))

    def counts(self, belief: Floats, counted: Sequence[int]) -> dict[str, int]:
        """How many labels said each answer, by the counts of the lattice."""
        return dict(zip(self.labels, counted, strict=False))

    def intervals(self, belief: Floats) -> dict[str, tuple[float, float]]:
        """The ends of the interval that holds a number with probability .95, as far as it is within the range.

        By the name of its question, which is empty if there are no others.
        """
        return {}


@dataclass(frozen=True, slots=True)
class Choice(Answer):
    """One of some names; ``utility`` [answer][truth] is what answers are worth, None if those that are right are."""

    names: tuple[str, ...]
    utility: tuple[tuple[float, ...], ...] | None = None
    name: ClassVar[AnswerName] = "choice"

    @property
    def labels(self) -> tuple[str, ...]:
        """The names."""
        return self.names

    def worth(self, beliefs: Floats) -> Floats:
        """(K, answers) the expected utility of each answer."""
        return beliefs if self.utility is None else np.asarray((beliefs @ np.array(self.utility).T).round(12))

    def lost(self, beliefs: Floats) -> Floats:
        """(K,) the expected value of knowing the truth, sum_q P_q max_a u[a][q] - max_a sum_q u[a][q] P_q.

        It is as many times as large where ``beliefs`` are times a number.
        """
        ceiling = np.ones(self.width) if self.utility is None else np.max(self.utility, axis=0)
        return np.asarray(np.maximum(beliefs @ ceiling - self.worth(beliefs).max(axis=1), 0.0))


@dataclass(frozen=True, slots=True)
class Pair(Answer):
    """Which of two items is better: the first, the second or, with ``ties``, neither."""

    ties: bool = True
    name: ClassVar[AnswerName] = "pair"
    noun: ClassVar[str] = "pairs"
    refuses: ClassVar[tuple[str, ...]] = ("prior", "accuracy", "features", "at_most_wrong")

    @property
    def labels(self) -> tuple[str, ...]:
        """The two places, and a tie."""
        return ("first", "second", "tie") if self.ties else ("first", "second")

    def keys(self) -> tuple[str, ...]:
        """As they stand: left, right, and below."""
        return ("1", "2", "0")[: self.width]


@dataclass(frozen=True, slots=True)
class Number(Answer):
    """A number from ``low`` to ``high``, None for no end; the loss is the squared error."""

    low: float | None = None
    high: float | None = None
    name: ClassVar[AnswerName] = "number"
    level: ClassVar[Level] = "interval"
    noun: ClassVar[str] = "numbers"
    refuses: ClassVar[tuple[str, ...]] = ("display_names", "prior", "accuracy", "features", "at_most_wrong")

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InputError(
                f"the range goes from {self.low:g} to {self.high:g}.", "Give the smaller end first: 0..100."
            )

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """``LOW..HIGH``, of which either end may be left out."""
        return cls(*_ends(text)) if text else cls()

    @property
    def width(self) -> int:
        """Mean and standard deviation."""
        return 2

    @property
    def ranges(self) -> tuple[str, ...]:
        """The only question, which has no name."""
        return ("",)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the range, which a campaign needs."""
        if self.low is None or self.high is None or not isfinite(self.high - self.low):
            raise InputError("a campaign for numbers needs both ends of their range.", "Give e.g. range 0..100.")
        return self.low, self.high

    @property
    def step(self) -> float:
        """What two neighbouring numbers of the log are apart: the least power of ten that they all fit with."""
        return float(10.0**self._exponent)

    @property
    def _exponent(self) -> int:
        low, high = self.ends
        return ceil(log10((high - low) / MOST_NUMBERS) - 1e-9)

    @property
    def tolerance(self) -> float:
        """How far off a number may be and is still right."""
        low, high = self.ends
        return TOLERANCE * (high - low)

    def number_of(self, label: object) -> int:
        """The number of the nearest step."""
        low, high = self.ends
        try:
            value = float("nan") if isinstance(label, bool) else float(str(label).strip())
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise InputError(
                f"{str(label)[:SHOWN]!r} is not a number from {low:g} to {high:g}.",
                f"Give one, e.g. {self.name_of(self.number_of((low + high) / 2))}.",
            )
        return round((value - low) / self.step)

    def sent(self, text: str) -> int:
        """A field sends the number."""
        return self.number_of(text)

    def name_of(self, number: int) -> str:
        """The number, with the digits that its step has."""
        value = round(float(self.value_of(np.array([number]))[0]), max(0, -self._exponent) + 6)
        return f"{value + 0.0:.12g}"

    def value_of(self, number: Ints) -> Floats:
        """(n,) the numbers that the log has."""
        low, high = self.ends
        return np.minimum(low + np.asarray(number, dtype=np.float64) * self.step, high)

    def known(self, number: int, before: Floats | None = None) -> Floats:
        """The number itself, for certain."""
        return np.array([float(self.value_of(np.array([number]))[0]), 0.0])

    def beliefs(self, mean: Floats, sd: Floats) -> Floats:
        """(K, 2) normal beliefs, no wider than that of the range alone."""
        low, high = self.ends
        return np.stack([self.read_out(mean, sd), np.minimum(sd, (high - low) / np.sqrt(12.0))], axis=1)

    def read_out(self, mean: Floats, sd: Floats) -> Floats:
        """The best number for each item of which the belief is normal."""
        return np.clip(mean, self.low, self.high) if (self.low, self.high) != (None, None) else mean

    def best(self, beliefs: Floats) -> Ints:
        """(K,) the step nearest to the mean."""
        return np.rint((beliefs[:, 0] - self.ends[0]) / self.step).astype(np.int64)

    def certainty(self, beliefs: Floats) -> Floats:
        """(K,) the chance that the mean is within the tolerance."""
        return np.asarray(erf(self.tolerance / (np.sqrt(2.0) * np.maximum(beliefs[:, 1], 1e-12))))

    def margin(self, beliefs: Floats) -> Floats:
        """(K,) less where the standard deviation is larger."""
        return -beliefs[:, 1]

    def agrees(self, first: Ints, second: Ints) -> Bools:
        """Which numbers are within the tolerance of the others."""
        return np.asarray(np.abs(first - second) * self.step <= self.tolerance * (1.0 + 1e-9))

    def intervals(self, belief: Floats) -> dict[str, tuple[float, float]]:
        """Of the normal belief."""
        low, high = np.clip(belief[0] + np.array([-Z95, Z95]) * belief[1], *self.ends)
        return {"": (float(low), float(high))}

    def __str__(self) -> str:
        return f"range {'' if self.low is None else f'{self.low:g}'}..{'' if self.high is None else f'{self.high:g}'}"


@dataclass(frozen=True, slots=True)
class Rating(Answer):
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
        if self.loss not in get_args(Loss):
            raise InputError(f"loss {str(self.loss)[:SHOWN]!r} is not known.", f"Give {' or '.join(get_args(Loss))}.")

    @classmethod
    def parse(cls, text: str | None, loss: Loss | None = None) -> Self:
        """``LOW..HIGH``, both whole numbers; 1..5 if it is left out."""
        low, high = _ends(str(text)) if text else (1.0, 5.0)
        if low is None or high is None:
            raise InputError(f"scale {text!r} has no end.", "Give e.g. --scale 1..5.")
        return cls(low, high, loss or "squared")

    @property
    def labels(self) -> tuple[str, ...]:
        """The steps."""
        return tuple(map(str, self.steps))

    @property
    def steps(self) -> Ints:
        """The steps of the scale."""
        return np.arange(int(self.low), int(self.high) + 1)

    @property
    def values(self) -> Floats:
        """The same as numbers."""
        return np.asarray(self.steps, dtype=np.float64)

    def value_of(self, number: Ints) -> Floats:
        """(n,) the steps that the log has, as numbers."""
        return np.asarray(self.values[number])

    def keys(self) -> tuple[str, ...]:
        """A step from 0 to 9 has its own digit."""
        return tuple(step if step in "0123456789" else "" for step in self.labels)

    @property
    def losses(self) -> Floats:
        """(k, k) what it costs to say one step (last axis) where another is true."""
        apart = np.abs(self.steps[:, None] - self.steps).astype(np.float64)
        return np.asarray(apart if self.loss == "absolute" else apart**2)

    def beliefs(self, mean: Floats, sd: Floats) -> Floats:
        """(K, k) the probability of each step: the mass of a normal belief that is nearest to it."""
        ends: Floats = np.append(self.steps[:-1] + 0.5, np.inf)
        below = ndtr((ends - mean[:, None]) / np.maximum(sd, 1e-9)[:, None])
        return np.diff(below, axis=1, prepend=0.0)

    def read_out(self, mean: Floats, sd: Floats) -> Floats:
        """The step with the smallest expected loss."""
        return np.asarray(self.values[self.best(self.beliefs(mean, sd))])

    def best(self, beliefs: Floats) -> Ints:
        """(K,) the number of the step with the smallest expected loss: nearest to the mean, or the median."""
        return np.asarray(np.argmin(np.round(beliefs @ self.losses, 12), axis=1))

    def __str__(self) -> str:
        return f"scale {self.low:g}..{self.high:g}"


#: Answers that say how much.
Scaled = Number | Rating


#: The answer that an option belongs to.
OPTIONS: Final[dict[str, AnswerName]] = {"scale": "rating", "loss": "rating", "range": "number", "top": "pair"}


@lru_cache(maxsize=256)
def answer_type(
    name: AnswerName,
    labels: tuple[str, ...] = (),
    scale: str | None = None,
    range_: str | None = None,
    loss: Loss | None = None,
    utility: tuple[tuple[float, ...], ...] | None = None,
) -> Answer:
    """The kind of answer to one question that somebody named, with its options."""
    if name == "choice":
        return Choice(labels, utility)
    if name == "pair":
        return Pair(labels != Pair(ties=False).labels)
    return Rating.parse(scale, loss) if name == "rating" else Number.parse(range_)


def check_options(name: AnswerName, **options: object) -> None:
    """Refuse options of other answers."""
    strange = next((option for option, given in options.items() if given and OPTIONS[option] != name), None)
    if strange is not None:
        raise InputError(f"{strange} only has an effect with answer {OPTIONS[strange]}.", "Add that, or leave it out.")


def check_numbers(answer: Scaled, number: Floats) -> None:
    """Refuse labels outside the range, or that are no step of the scale."""
    for one in (number.min(), number.max()):
        if (answer.low is not None and one < answer.low) or (answer.high is not None and one > answer.high):
            raise InputError(f"the label {one:g} is outside the {answer}.", "Give the range that workers had.")
    odd = number[number != np.rint(number)]
    if isinstance(answer, Rating) and len(odd):
        raise InputError(f"the label {odd[0]:g} is no step of the {answer}.", "Give ratings that are whole numbers.")


def _ends(text: str) -> tuple[float | None, float | None]:
    first, dots, last = text.partition("..")
    try:
        if not dots or "nan" in text.lower():
            raise ValueError
        return (float(first) if first.strip() else None), (float(last) if last.strip() else None)
    except ValueError:
        raise InputError(f"{text!r} is not a range.", "Give two numbers with two dots between them: 0..100.") from None
