"""Chance in a campaign: uniforms by seed, purpose and number, so that every one of them can be drawn again."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nextlabel.kernels.random import DRAW, TIE, stream_key, uniform

#: What a uniform is for: which of tied groups a lease goes to, where a task stands in its group, and where in it a
#: lease begins to look, and whether a worker gets a control question.
TIES, PLACES, STARTS, CONTROLS = 0, 1, 2, 3


def chance(seed: int, what: int, number: int) -> float:
    """Uniform in (0, 1)."""
    return float(uniform(_key(seed, what, TIE), number, 0))


def starting_place(seed: int, lease: int, segments: int) -> float:
    """Where a lease begins to look for a task of its group; places are below ``segments`` (``campaign.rules``)."""
    return chance(seed, STARTS, lease) * segments


@lru_cache(maxsize=4096)
def _key(seed: int, what: int, stream: int) -> np.uint64:
    return np.uint64(stream_key(seed, what, stream))


def draw_key(seed: int) -> np.uint64:
    """Key of the draws that Thompson sampling makes, as simulations of that seed make them."""
    return _key(seed, 0, DRAW)
