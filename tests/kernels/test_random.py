"""Counter-based uniforms: a draw is a function of its key, and draws of different keys look independent."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, norm

from nextlabel.kernels.events import ARRIVAL, DRAW, DURATION, LABEL, ORDER, TIE, mix, stream_key, uniform
from nextlabel.kernels.jit import jit

STREAMS = (LABEL, ARRIVAL, DURATION, TIE, ORDER, DRAW)
DRAWS = 100_000
#: Fixed seeds: a p-value below this is a defect, not bad luck.
UNLIKELY = 1e-4

wholes = st.integers(0, 10**9)


@jit
def fill(seed: int, first: int, stream: int, i: int, out: np.ndarray) -> None:
    """out[rep, j] = the draw of (seed, first + rep, stream, i, j)."""
    for rep in range(out.shape[0]):
        key = stream_key(seed, first + rep, stream)
        for j in range(out.shape[1]):
            out[rep, j] = uniform(key, i, j)


def draw(seed: int, replication: int, stream: int, i: int, j: int) -> float:
    # Compiled code hands its keys back as whole numbers of Python.
    return uniform(np.uint64(stream_key(seed, replication, stream)), i, j)


def draws(seed: int, reps: int, each: int, stream: int = LABEL, i: int = 0, first: int = 0) -> np.ndarray:
    out = np.empty((reps, each))
    fill(seed, first, stream, i, out)
    return out


def mix_in_words(x: int) -> int:
    """SplitMix64 in whole numbers of any size, reduced by hand."""
    top = 2**64 - 1
    z = (x + 0x9E3779B97F4A7C15) & top
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & top
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & top
    return z ^ (z >> 31)


def uniform_in_words(seed: int, replication: int, stream: int, i: int, j: int) -> float:
    x = mix_in_words(seed)
    for part in (replication, stream, i, j):
        x = mix_in_words(x ^ part)
    return ((x >> 11) + 0.5) / 2**53


def test_mix_is_splitmix64() -> None:
    # First outputs of the published generator (Steele, Lea and Flood 2014; Vigna's splitmix64.c) started at 0.
    assert int(mix(np.uint64(0))) == 0xE220A8397B1DCDAF
    assert int(mix(np.uint64(0x9E3779B97F4A7C15))) == 0x6E789E6AA1B965F4


@given(wholes, wholes, st.sampled_from(STREAMS), wholes, wholes)
def test_against_whole_numbers(seed: int, replication: int, stream: int, i: int, j: int) -> None:
    u = draw(seed, replication, stream, i, j)
    assert u == uniform_in_words(seed, replication, stream, i, j)
    assert u == draw(seed, replication, stream, i, j)
    assert 0.0 < u < 1.0


def test_compiled_equals_uncompiled() -> None:
    keys = [(0, 0, LABEL, 0, 0), (7, 3, TIE, 12, 5), (10**9, 10**6, DURATION, 10**7, 63)]
    code = (
        "from nextlabel.kernels.events import stream_key, uniform\n"
        f"for s, r, t, i, j in {keys}: print(repr(float(uniform(stream_key(s, r, t), i, j))))"
    )
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert [float(line) for line in done.stdout.split()] == [draw(*key) for key in keys]


def test_every_part_of_the_key_counts() -> None:
    base = (5, 5, LABEL, 5, 5)
    seen = {draw(*base)}
    for place in range(5):
        for value in (0, 1, 2, 3, 4, 6):
            key = [*base]
            if key[place] == value:
                continue
            key[place] = value
            seen.add(draw(*key))
    assert len(seen) == 1 + 5 * 6 - 1  # LABEL is 1, which is left out once


def test_no_draw_twice() -> None:
    many = np.concatenate([draws(1, 200, 500, stream).ravel() for stream in STREAMS])
    assert len(np.unique(many)) == len(many)


@pytest.mark.parametrize(
    ("reps", "each", "stream"), [(1, DRAWS, LABEL), (DRAWS, 1, ARRIVAL), (316, 317, DURATION), (DRAWS, 1, TIE)]
)
@pytest.mark.parametrize("seed", [0, 1, 2**29])
def test_uniform_law(seed: int, reps: int, each: int, stream: int) -> None:
    sample = draws(seed, reps, each, stream).ravel()
    assert kstest(sample, "uniform").pvalue > UNLIKELY
    bins = np.histogram(sample, 1024, (0.0, 1.0))[0]
    assert chisquare(bins).pvalue > UNLIKELY


def close_to_zero(correlation: float, size: int) -> bool:
    return bool(2 * norm.sf(abs(correlation) * np.sqrt(size)) > UNLIKELY)


@pytest.mark.parametrize("seed", [0, 3])
def test_neighbouring_keys_are_uncorrelated(seed: int) -> None:
    one = draws(seed, 1, DRAWS).ravel()
    by_task = np.array([draws(seed, 1000, 1, i=i).ravel() for i in range(100)])
    pairs = {
        "next draw": (one[:-1], one[1:]),
        "next task": (one, draws(seed, 1, DRAWS, i=1).ravel()),
        "next replication": (one, draws(seed, 1, DRAWS, first=1).ravel()),
        "next seed": (one, draws(seed + 1, 1, DRAWS).ravel()),
        "next stream": (one, draws(seed, 1, DRAWS, ARRIVAL).ravel()),
        "first draw of neighbouring tasks": (by_task[0::2].ravel(), by_task[1::2].ravel()),
    }
    for name, (x, y) in pairs.items():
        assert close_to_zero(float(np.corrcoef(x, y)[0, 1]), len(x)), name
        cells = np.histogram2d(x, y, 16, ((0, 1), (0, 1)))[0]
        assert chisquare(cells.ravel()).pvalue > UNLIKELY, name
