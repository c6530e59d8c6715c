"""Counter-based uniforms: the draw depends on its key alone, never on what was drawn before.

    u(seed, replication, stream, i, j) = mix(...mix(mix(seed) ^ replication)... ^ j) / 2^64

with the finaliser of SplitMix64 as mix. A label, a duration or a tie has the same draw under every policy, in every
chunk of replications and on every machine, which pairs policies and makes results independent of the engine.
"""

from __future__ import annotations

import numpy as np

from nextlabel.kernels.jit import jit

LABEL, ARRIVAL, DURATION, TIE, ORDER, DRAW = 1, 2, 3, 4, 5, 6

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@jit
def mix(x: np.uint64) -> np.uint64:
    """SplitMix64: add the golden ratio, then scramble."""
    z = x + _GOLDEN
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@jit
def stream_key(seed: int, replication: int, stream: int) -> np.uint64:
    """Key of one stream of one replication."""
    return mix(mix(mix(np.uint64(seed)) ^ np.uint64(replication)) ^ np.uint64(stream))


@jit
def uniform(key: np.uint64, i: int, j: int) -> float:
    """Uniform on (0, 1), never 0 or 1."""
    bits = mix(mix(key ^ np.uint64(i)) ^ np.uint64(j))
    return (float(bits >> _11) + 0.5) * (1.0 / 9007199254740992.0)
