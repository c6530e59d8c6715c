"""Near-equal workers share a type: the given worker is the rounded one with some answers changed by lot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowds import two_coins
from nextlabel.solve.crowd.bound import few_types, round_types
from nextlabel.solve.crowd.relaxation import Types, relax

coins = st.floats(0, 1)


@given(coins, coins, st.sampled_from([0.01, 0.05, 0.1]))
def test_workers_lemma_6_the_given_worker_is_a_garbling_of_the_rounded_one(one_if_one, one_if_zero, step):
    given_channel = two_coins(one_if_one, one_if_zero)
    rounded, _ = round_types(Types(given_channel[None], np.ones(1), np.zeros(1)), step)
    better = rounded.channel[0]
    # Which answer is given instead of each: A = A' Gamma with a stochastic Gamma.
    if abs(np.linalg.det(better)) < 1e-9:
        assert np.allclose(given_channel[0], given_channel[1], atol=1e-8)
        return
    garbling = np.linalg.solve(better, given_channel)
    assert garbling.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert garbling.min() >= -1e-7


def test_raising_an_inverted_worker_would_throw_information_away():
    """.1/.1 rounded up to .4/.4 would be a lower value, not a higher one."""

    def value(channel):
        types = Types(channel[None], np.array([20.0]), np.zeros(1))
        return relax(np.array([[0.5, 0.5]]), np.array([10.0]), types, 20, grid=200).value

    inverted = two_coins(0.1, 0.9)
    rounded, _ = round_types(Types(inverted[None], np.array([20.0]), np.zeros(1)), 0.15)
    assert value(rounded.channel[0]) >= value(inverted) > value(two_coins(0.4, 0.6)) + 1


def test_fewer_types_are_a_looser_bound_of_the_same_supply():
    chance = np.random.default_rng(3)
    channel = np.array([two_coins(s, 1 - t) for s, t in zip(chance.beta(4, 2, 60), chance.beta(4, 2, 60), strict=True)])
    types = Types(channel, np.full(60, 8.0), np.zeros(60))
    few, names = few_types(types, 20)
    assert len(few.supply) <= 20
    assert few.supply.sum() == pytest.approx(480)
    assert (few.channel[names][:, [0, 1], [0, 1]] >= channel[:, [0, 1], [0, 1]])[
        (channel[:, 0, 0] + channel[:, 1, 1]) >= 1
    ].all()
    belief, tasks = np.array([[0.5, 0.5]]), np.array([100.0])
    assert relax(belief, tasks, few, 300, grid=80).value >= relax(belief, tasks, types, 300, grid=80).lower
