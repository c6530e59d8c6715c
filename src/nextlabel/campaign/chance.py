"""Chance in a campaign: uniforms by seed, purpose and number, so that every one of them can be drawn again."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nextlabel.kernels.random import DRAW, TIE, stream_key

#: What a uniform is for: which of tied groups a lease goes to, where a task stands in its group, and where in it a
#: lease begins to look, and whether a worker gets a control question.
TIES, PLACES, STARTS, CONTROLS = 0, 1, 2, 3
_64_BITS = (1 << 64) - 1


def chance(seed: int, what: int, number: int) -> float:
    """Uniform in (0, 1): ``kernels.random.uniform``, in whole numbers of Python's, because a call of it costs more."""
    return ((_mix(_mix(_key(seed, what, TIE) ^ number)) >> 11) + 0.5) * (1.0 / 9007199254740992.0)


def _mix(x: int) -> int:
    """SplitMix64."""
    z = (x + 0x9E3779B97F4A7C15) & _64_BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64_BITS
    return z ^ (z >> 31)


def starting_place(seed: int, lease: int, segments: int) -> float:
    """Where a lease begins to look for a task of its group; places are below ``segments`` (``campaign.rules``)."""
    return chance(seed, STARTS, lease) * segments


@lru_cache(maxsize=4096)
def _key(seed: int, what: int, stream: int) -> int:
    return int(stream_key(seed, what, stream))


def draw_key(seed: int) -> np.uint64:
    """Key of the draws that Thompson sampling makes, as simulations of that seed make them."""
    return np.uint64(_key(seed, 0, DRAW))
