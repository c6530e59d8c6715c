"""Sample items with a hidden truth, the people who label them, and a crude model.

The reviews are short and either positive or negative. Six people are right about most of them, one answers fast and at
random, one has mixed the two answers up, and the model looks for a few words.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

LABELS = ("negative", "positive")
QUESTION = "Is this review positive or negative?"
#: A label: task, worker, answer.
Answer = tuple[str, str, str]
#: Share of positive reviews.
POSITIVE = 0.6

_THINGS = (
    "kettle", "desk lamp", "rucksack", "pair of headphones", "notebook", "rain jacket", "bicycle pump", "frying pan",
    "alarm clock", "office chair",
)  # fmt: skip
_SAYINGS = (
    (
        "The {} broke in the first week and nobody answered my mail.",
        "I would not buy this {} again, not even at half the price.",
        "What a disappointment: the {} looks nothing like its picture.",
        "Great, another {} for the bin.",
        "My old {} was better in every way.",
        "After the third repair I gave the {} away.",
    ),
    (
        "The {} does exactly what it should, and I use it every day.",
        "I bought a second {} for my sister: that says it all.",
        "Best {} I have had so far. It feels solid and arrived early.",
        "I expected a disappointment. The {} proved me wrong.",
        "My neighbours keep borrowing the {}.",
        "Great {}, fair price.",
    ),
)
#: The model says 'negative' where it finds one of these words.
_BAD_WORDS = ("broke", "disappointment", "not buy", "repair")


@dataclass(frozen=True, slots=True)
class Item:
    """One review; ``truth`` is hidden from the campaign."""

    id: str
    text: str
    truth: str


@dataclass(frozen=True, slots=True)
class Person:
    """A worker: what they are, the chance that they are right about a negative and about a positive review, and how
    many labels they give in the time that others take for one."""

    name: str
    kind: str
    right: tuple[float, float]
    speed: float = 1.0

    @property
    def accuracy(self) -> float:
        """The chance that they are right about a review."""
        return (1.0 - POSITIVE) * self.right[0] + POSITIVE * self.right[1]

    def says(self, truth: str, u: float) -> str:
        """Their answer for a uniform ``u``."""
        place = LABELS.index(truth)
        return LABELS[place] if u < self.right[place] else LABELS[1 - place]


GOOD, SPAMMER, CONTRARIAN, MODEL = "good", "spammer", "contrarian", "model"
PEOPLE = (
    Person("ada", GOOD, (0.94, 0.95)),
    Person("ben", GOOD, (0.85, 0.90)),
    Person("chloe", GOOD, (0.92, 0.86)),
    Person("dan", GOOD, (0.78, 0.88)),
    Person("eva", GOOD, (0.90, 0.93)),
    Person("finn", GOOD, (0.75, 0.82)),
    Person("jack", SPAMMER, (0.5, 0.5), speed=2.5),
    Person("kim", CONTRARIAN, (0.1, 0.08)),
)
MODEL_NAME = "keywords"


def items(number: int, seed: int) -> list[Item]:
    """``number`` reviews."""
    random = np.random.default_rng(seed)
    texts = [[say.format(thing) for thing, say in product(_THINGS, sayings)] for sayings in _SAYINGS]
    out = []
    for k in range(number):
        truth = int(random.random() < POSITIVE)
        text = texts[truth][int(random.integers(len(texts[truth])))]
        out.append(Item(f"review-{k + 1:03d}", text, LABELS[truth]))
    return out


def prediction(text: str) -> str:
    """The model's label of a review."""
    return LABELS[not any(word in text for word in _BAD_WORDS)]
