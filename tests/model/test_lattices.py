"""Belief lattices: rewards to the last digits, martingales, symmetry, lumping, stacks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextlabel.kernels.inputs import Lattices
from nextlabel.kernels.no_delay import no_delay
from nextlabel.model.beta import Beta
from nextlabel.model.lattice import Lattice, lump, make_lattice, stack_lattices
from nextlabel.model.rewards import Accuracy
from nextlabel.model.simplex import node_of_counts
from oracles import reward_in_digits
from tolerances import REWARD, ROUNDING

depths = st.integers(1, 40)
weights = st.floats(0.05, 60.0)
thresholds = st.floats(0.02, 0.98)


def levels(lattice: Lattice) -> np.ndarray:
    return np.repeat(np.arange(lattice.depth + 1), np.diff(lattice.first))


def no_delay_value(lattice: Lattice, lam: float) -> tuple[float, float]:
    """Value and labels of the no-delay problem at the root."""
    out, own = np.empty((1, 4)), np.arange(lattice.nodes)
    one = Lattices(lattice.first, lattice.child, lattice.reward[None], lattice.ceiling[None], lattice.prob[None], own)
    no_delay(one, lam, np.zeros(lattice.depth + 1), np.empty((3, lattice.nodes)), out)
    return float(out[0, 0]), float(out[0, 1])


@pytest.mark.parametrize(
    ("alpha", "beta", "d"),
    [(1, 1, 0.5), (4, 2, 0.5), (0.3, 7.7, 0.123), (0.05, 0.05, 0.9), (33.3, 1.01, 0.77), (250.5, 249.5, 0.503)],
)
def test_rewards_with_hundreds_of_labels(alpha: float, beta: float, d: float) -> None:
    depth = 400
    lattice = make_lattice(Beta(alpha, beta), d, depth)
    for m in (0, 1, 2, 7, 50, 200, 399, 400):
        for a in sorted({0, 1, m // 3, m // 2, round(d * m), m - 1, m} & set(range(m + 1))):
            assert lattice.reward[node_of_counts((a, m - a))] == pytest.approx(
                reward_in_digits(alpha + a, beta + m - a, d), abs=REWARD, rel=0
            )


@given(weights, weights, thresholds, st.integers(1, 250), st.floats(0, 1))
def test_rewards_of_odd_priors(alpha: float, beta: float, d: float, m: int, share: float) -> None:
    a = round(share * m)
    lattice = make_lattice(Beta(alpha, beta), d, m)
    assert lattice.reward[node_of_counts((a, m - a))] == pytest.approx(
        reward_in_digits(alpha + a, beta + m - a, d), abs=REWARD, rel=0
    )


@given(weights, weights, thresholds, depths)
def test_martingales(alpha: float, beta: float, d: float, depth: int) -> None:
    lattice = make_lattice(Beta(alpha, beta), d, depth)
    m = levels(lattice)
    a = np.arange(lattice.nodes) - lattice.first[m]
    mean = (alpha + a) / (alpha + beta + m)
    inner = m < depth
    assert np.abs(lattice.prob.sum(axis=1) - 1).max() <= ROUNDING
    # Answer 1 has the chance of the posterior mean, which is a martingale.
    assert np.abs(lattice.prob[:, 1] - mean).max() <= ROUNDING
    after = (lattice.prob * mean[lattice.child]).sum(axis=1)
    assert np.abs(after - mean)[inner].max() <= ROUNDING
    # R is a maximum of two martingales: a submartingale between 1/2 and 1, below its ceiling.
    gain = (lattice.prob * lattice.reward[lattice.child]).sum(axis=1) - lattice.reward
    assert gain[inner].min() >= -ROUNDING
    assert lattice.reward.min() >= 0.5
    assert (lattice.ceiling - lattice.reward).min() >= -ROUNDING
    assert lattice.ceiling.max() <= 1.0


@given(weights, weights, thresholds, depths)
def test_flip_symmetry(alpha: float, beta: float, d: float, depth: int) -> None:
    one, other = make_lattice(Beta(alpha, beta), d, depth), make_lattice(Beta(beta, alpha), 1 - d, depth)
    for m in range(depth + 1):
        ours = slice(one.first[m], one.first[m + 1])
        # 1 - (1 - d) is not d to the last bit, and the slope of the reward in d grows with the labels.
        assert np.abs(one.reward[ours] - other.reward[ours][::-1]).max() <= ROUNDING
        assert np.abs(one.prob[ours] - other.prob[ours][::-1, ::-1]).max() <= ROUNDING


@pytest.mark.parametrize("depth", [1, 2, 9, 30])
def test_lumping_halves_a_symmetric_lattice(depth: int) -> None:
    lattice = make_lattice(Beta(1, 1), 0.5, depth)
    lumped, to_new = lump(lattice)
    assert np.diff(lumped.first).tolist() == [m // 2 + 1 for m in range(depth + 1)]
    for m in range(depth + 1):
        for a in range(m + 1):
            assert to_new[node_of_counts((a, m - a))] == to_new[node_of_counts((m - a, a))]
            assert lumped.first[m] <= to_new[node_of_counts((a, m - a))] < lumped.first[m + 1]
    assert np.abs(lumped.reward[to_new] - lattice.reward).max() <= ROUNDING


@pytest.mark.parametrize(("alpha", "beta", "d"), [(4, 2.5, 0.5), (1, 1, 0.6), (0.7, 0.7, 0.4)])
def test_lumping_keeps_what_differs(alpha: float, beta: float, d: float) -> None:
    lattice = make_lattice(Beta(alpha, beta), d, 12)
    lumped, to_new = lump(lattice)
    assert lumped.nodes == lattice.nodes
    assert sorted(to_new) == list(range(lattice.nodes))


def test_an_uneven_prior_is_lumped_where_it_meets_its_mirror() -> None:
    # Beta(4 + a, 2 + b) is the mirror of Beta(4 + b - 2, 2 + a + 2): the last levels halve, the first two cannot.
    lumped, to_new = lump(make_lattice(Beta(4, 2), 0.5, 12))
    assert np.diff(lumped.first)[:4].tolist() == [1, 2, 3, 3]
    assert to_new[node_of_counts((1, 2))] == to_new[node_of_counts((0, 3))]
    assert len({int(to_new[node_of_counts((a, 2 - a))]) for a in range(3)}) == 3


@given(st.floats(0.2, 20), st.sampled_from([None, 1.7]), st.sampled_from([0.5, 0.37]), st.floats(0, 0.3), depths)
def test_lumping_keeps_values(alpha: float, beta: float | None, d: float, lam: float, depth: int) -> None:
    lattice = make_lattice(Beta(alpha, alpha if beta is None else beta), d, depth)
    lumped, _ = lump(lattice)
    whole, small = no_delay_value(lattice, lam), no_delay_value(lumped, lam)
    assert small[0] == pytest.approx(whole[0], abs=ROUNDING)
    assert lumped.nodes <= lattice.nodes


def test_a_stack_is_its_lattices() -> None:
    priors = [Beta(1, 1), Beta(4, 2), Beta(0.3, 0.9), Beta(12.5, 30)]
    d = [0.5, 0.5, 0.8, 0.25]
    stack = stack_lattices(priors, d, [Accuracy()] * len(priors), 25)
    for b, prior in enumerate(priors):
        one = make_lattice(prior, d[b], 25)
        assert np.array_equal(stack.first, one.first) and np.array_equal(stack.child, one.child)
        assert np.array_equal(stack.reward[b], one.reward) and np.array_equal(stack.prob[b], one.prob)
        assert np.array_equal(stack.ceiling[b], one.ceiling)
    assert stack.node_of.tolist() == list(range(stack.nodes))
    assert (
        np.abs(
            stack.spread - [1 - make_lattice(prior, x, 25).reward.min() for prior, x in zip(priors, d, strict=True)]
        ).max()
        == 0
    )
    ended = stack.ended()
    last = slice(stack.first[25], stack.first[26])
    assert np.array_equal(ended.ceiling[:, last], stack.reward[:, last])
    assert np.all(ended.ceiling[:, : stack.first[25]] == 1.0)


def test_a_stack_of_one_is_lumped() -> None:
    stack = stack_lattices([Beta(1, 1)], [0.5], [Accuracy()], 25)
    lattice = make_lattice(Beta(1, 1), 0.5, 25)
    assert stack.nodes < 0.6 * lattice.nodes
    assert np.abs(stack.reward[0, stack.node_of] - lattice.reward).max() <= ROUNDING
