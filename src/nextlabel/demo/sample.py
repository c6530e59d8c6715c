"""Sample items with a hidden truth: short reviews, most of them clear, one in five ambiguous.

theta, the probability that a worker answers 'positive', is drawn for each item from the campaign's prior;
the hidden truth is 1{theta > 1/2}.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.mixture import BetaMixture

LABELS = ("negative", "positive")
QUESTION = "Is this review positive or negative?"
#: Clearly positive, clearly negative, hard to tell.
WEIGHTS, BETAS = (0.45, 0.35, 0.2), (Beta(9, 2), Beta(2, 9), Beta(2, 2))

_THINGS = (
    "kettle", "desk lamp", "rucksack", "pair of headphones", "notebook", "rain jacket", "bicycle pump", "frying pan",
    "alarm clock", "office chair",
)  # fmt: skip
_SAYINGS = (
    (
        "The {} does exactly what it should, and I use it every day.",
        "I bought a second {} for my sister: that says it all.",
        "Best {} I have had so far. It feels solid and arrived early.",
    ),
    (
        "The {} broke in the first week and nobody answered my mail.",
        "I would not buy this {} again, not even at half the price.",
        "What a disappointment: the {} looks nothing like its picture.",
    ),
    (
        "Well, the {} is certainly something. My cat likes it.",
        "For that price the {} is what you would expect.",
        "I wanted to love this {}. Some days I do.",
    ),
)


@dataclass(frozen=True, slots=True)
class Item:
    """One review; ``theta`` is hidden from the campaign."""

    id: str
    text: str
    theta: float

    @property
    def truth(self) -> str:
        """The label that most workers would give."""
        return LABELS[int(self.theta > 0.5)]


def prior() -> BetaMixture:
    """The campaign's prior for an item."""
    return BetaMixture(WEIGHTS, BETAS)


def items(number: int, seed: int) -> list[Item]:
    """``number`` reviews."""
    random = np.random.default_rng(seed)
    texts = [[say.format(thing) for thing, say in product(_THINGS, sayings)] for sayings in _SAYINGS]
    out = []
    for k in range(number):
        kind = int(random.choice(len(WEIGHTS), p=WEIGHTS))
        theta = float(random.beta(BETAS[kind].alpha, BETAS[kind].beta))
        text = texts[kind][int(random.integers(len(texts[kind])))]
        out.append(Item(f"review-{k + 1:03d}", text, theta))
    return out
