"""Labels one at a time: Bayes' rule, a martingale under known channels, gold that stays, refits that agree."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from labelled_crowds import drawn
from nextlabel.crowd.fit import fit_crowd
from nextlabel.kernels.crowd_fit import channel_of, digamma, new_state, refit, stream_label


@pytest.mark.parametrize("x", [1e-3, 0.3, 1.0, 2.5, 9.99, 10.0, 123.4, 1e6])
def test_digamma(x: float) -> None:
    scipy = pytest.importorskip("scipy.special")
    assert digamma(x) == pytest.approx(float(scipy.digamma(x)), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("answers", [2, 3])
def test_beliefs_are_a_martingale_under_known_channels(answers: int) -> None:
    """All answers of a few workers with known channels: the mean of the belief afterwards is the belief before."""
    rng = np.random.default_rng(answers)
    channels = np.array([rng.dirichlet(np.ones(answers), size=answers) for _ in range(3)])
    prior = rng.dirichlet(np.ones(answers))
    mean = np.zeros(answers)
    for said in np.ndindex(*[answers] * 3):
        state = new_state(1, 3, np.full((answers, answers), 1e-9), prior, math.inf)
        state.counts[:] = channels * 1e9  # certain to nine digits
        chance = prior.copy()
        for j, y in enumerate(said):
            chance *= channels[j, :, y]
            stream_label(state, 0, j, y)
        np.testing.assert_allclose(state.belief[0], chance / chance.sum(), atol=1e-7)
        mean += chance.sum() * state.belief[0]
    np.testing.assert_allclose(mean, prior, atol=1e-7)


def test_a_label_moves_its_task_and_its_worker_alone() -> None:
    state = new_state(3, 2, np.array([[4.0, 2.0], [2.0, 4.0]]), np.array([5.0, 5.0]))
    stream_label(state, 1, 0, 1)
    np.testing.assert_allclose(state.belief, [[0.5, 0.5], [1 / 3, 2 / 3], [0.5, 0.5]])
    np.testing.assert_allclose(state.counts[0], [[0, 1 / 3], [0, 2 / 3]])
    assert not state.counts[1].any()
    out = np.zeros((2, 2))
    channel_of(state, 0, out)
    np.testing.assert_allclose(
        out, [[4 / (6 + 1 / 3), (2 + 1 / 3) / (6 + 1 / 3)], [2 / (6 + 2 / 3), (4 + 2 / 3) / (6 + 2 / 3)]]
    )


def test_gold_stays_whatever_is_said() -> None:
    state = new_state(2, 1, np.array([[4.0, 2.0], [2.0, 4.0]]), np.array([5.0, 5.0]))
    state.logp[0], state.belief[0] = (0.0, -np.inf), (1.0, 0.0)
    for _ in range(5):
        stream_label(state, 0, 0, 1)
    np.testing.assert_array_equal(state.belief[0], [1.0, 0.0])
    assert state.counts[0, 0, 1] == 5.0
    stream_label(state, 1, 0, 1)
    assert state.belief[1, 0] > 0.5 - 0.05  # a worker who said 1 where 0 was true is not believed


@pytest.mark.parametrize("answers", [2, 3])
@pytest.mark.slow
def test_streamed_beliefs_are_near_those_of_a_refit(answers: int) -> None:
    """The same labels streamed and fitted: the two agree on nearly every task."""
    agree = []
    for seed in range(5):
        labels, _ = drawn(seed, tasks=200, workers=10, answers=answers, each=5)
        prior = 1.0 + 3.0 * np.eye(answers)
        state, fitted = (new_state(200, 10, prior, np.full(answers, 10 / answers)) for _ in range(2))
        for x, j, y in zip(*labels[:3], strict=True):
            stream_label(state, x, j, y)
        gold = np.full(200, -1)
        refit(fitted, *labels[:3], gold, np.zeros((0, answers)), 100, 1e-8, np.zeros(100))
        agree.append((state.belief.argmax(axis=1) == fitted.belief.argmax(axis=1)).mean())
    assert np.mean(agree) > 0.91  # a refit learns workers' coins, a streamed label does not


def test_tasks_without_labels_stay_at_the_shares_of_a_refit() -> None:
    labels, _ = drawn(0)
    prior, share, gold = np.array([[4.0, 2.0], [2.0, 4.0]]), np.array([5.0, 5.0]), np.full(60, -1)
    task, worker, answer = labels[:3]
    one = new_state(60, 8, prior, share)
    refit(one, task[:100], worker[:100], answer[:100], gold, np.zeros((0, 3)), 50, 1e-8, np.zeros(50))
    untouched = np.setdiff1d(np.arange(60), task[:100])
    assert len(untouched)
    shares = (share + one.total) / (10 + one.total.sum())
    np.testing.assert_allclose(one.belief[untouched], np.tile(shares, (len(untouched), 1)), atol=0.01)


def some_digits() -> list[list[float]]:
    """Beliefs and channels of two tiny crowds."""
    fits = [
        fit_crowd(drawn(seed, tasks=12, workers=4, answers=answers, each=3)[0]) for seed, answers in ((0, 2), (1, 3))
    ]
    return [[*fit.beliefs.ravel().tolist(), *fit.channels.ravel().tolist(), fit.evidence] for fit in fits]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled to compare with")
def test_the_same_without_compilation() -> None:
    folder = os.path.dirname(os.path.dirname(__file__))
    code = "import json, sys; sys.path[:0] = sys.argv[1:]; import test_stream as t; print(json.dumps(t.some_digits()))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, folder, os.path.dirname(__file__)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    for one, other in zip(json.loads(done.stdout), some_digits(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
