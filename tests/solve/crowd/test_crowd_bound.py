"""Bounds and optima of problems with workers: what the results say, utilities, and channels that are not known."""

from __future__ import annotations

import numpy as np
import pytest

import nextlabel as nl
from crowds import coin
from nextlabel.solve.crowd.bound import crowd_bound, limit_of_mean
from nextlabel.solve.crowd.relaxation import Types, relax
from tolerances import EXACT


def coins(*pairs, tasks=2, budget=3, **rest):
    workers = tuple(nl.WorkerType.of_accuracy(accuracy, supply=n) for accuracy, n in pairs)
    return nl.Problem.identical(tasks, budget, nl.priors.Fact(0.5), workers=workers, **rest)


TWO_COINS = nl.Problem.identical(
    2,
    3,
    nl.priors.Fact(0.5),
    workers=(
        nl.WorkerType(((0.5, 0.5), (0.05, 0.95)), supply=2),
        nl.WorkerType(((0.9, 0.1), (0.4, 0.6)), supply=2),
    ),
)


@pytest.mark.parametrize(
    ("problem", "optimum"),
    [
        (coins((0.9, 2), (0.7, 2)), 1.8),
        (coins((0.9, 1), (0.7, 1), (0.55, 2)), 1.6),
        (coins((0.8, 2), (0.6, 3), tasks=3, budget=4), 2.2),
        (TWO_COINS, 1.5972604166666667),
    ],
)
def test_exact_optima(problem, optimum):
    assert nl.exact_value(problem).value == pytest.approx(optimum, abs=EXACT)


def test_the_bound_says_what_it_assumes():
    found = nl.upper_bound(coins((0.9, 1000), (0.75, 2000), tasks=1000, budget=3000))
    assert found.per_task == pytest.approx(0.954217, abs=1e-5)
    assert found.certified
    assert found.supply_prices == pytest.approx([0.05964, 0.0], abs=1e-5)
    assert "supply" in found.assumes
    alike = nl.upper_bound(nl.Problem.identical(2, 3))
    assert alike.supply_prices is None
    assert alike.assumes.startswith("Workers are alike")


def test_workers_who_are_alike_meet_the_bound_of_one_coin():
    """With all workers .75 and no limit but the budget: the bound for equal workers without delay is the same."""
    problem = nl.Problem.identical(1000, 3000, nl.priors.Fact(0.5), workers=(nl.WorkerType.of_accuracy(0.75),))
    alike = nl.Problem.identical(1000, 3000, nl.priors.OneCoin(0.5, 0.75), arrival_rate=1e-3, completion_rate=1e3)
    assert nl.upper_bound(problem).value == pytest.approx(nl.upper_bound(alike).value, rel=1e-5)


def test_another_unit_of_the_reward():
    """Ten times the reward and the cost is ten times the bound and its prices."""
    one = coins((0.9, 10), (0.6, 10), tasks=8, budget=16, label_cost=0.03)
    ten = coins((0.9, 10), (0.6, 10), tasks=8, budget=16, label_cost=0.3, reward=nl.rewards.Accuracy(10))
    small, large = nl.upper_bound(one), nl.upper_bound(ten)
    assert large.value == pytest.approx(10 * small.value, rel=1e-6)
    assert large.price == pytest.approx(10 * small.price, abs=1e-5)


def test_classes_with_different_rewards_share_the_prices():
    """Tasks that count more get the labels; the bound is above what any split of the budget reaches."""
    dear = nl.TaskClass(4, nl.priors.Fact(0.5), reward=nl.rewards.Accuracy(3))
    cheap = nl.TaskClass(4, nl.priors.Fact(0.5))
    abstaining = nl.TaskClass(2, nl.priors.Fact(0.5), reward=nl.rewards.Utility(((1, -5), (-5, 1)), abstain=0))
    workers = (nl.WorkerType.of_accuracy(0.8),)
    both = nl.upper_bound(nl.Problem((dear, cheap, abstaining), 12, workers=workers)).value
    parts = range(0, 13, 4)
    alone = [
        [nl.upper_bound(nl.Problem((c,), n, workers=workers)).lower for n in parts] for c in (dear, cheap, abstaining)
    ]
    splits = [alone[0][a] + alone[1][b] + alone[2][c] for a, b, c in np.ndindex(4, 4, 4) if a + b + c == len(parts) - 1]
    assert max(splits) - 1e-5 <= both <= max(splits) + 1.0


def test_a_budget_above_the_supply_has_no_price():
    found = nl.upper_bound(coins((0.9, 5), (0.7, 5), tasks=10, budget=50))
    assert found.price == 0.0
    assert found.supply_prices.min() > 0.01
    assert found.expected_arrivals == 10


def test_no_budget_and_no_use():
    assert nl.upper_bound(coins((0.9, 2), budget=0)).value == pytest.approx(1.0)
    assert nl.exact_value(coins((0.9, 2), budget=0)).value == pytest.approx(1.0)


class TestChannelsNotKnown:
    """Bounds averaged over crowds."""

    def test_a_prior_is_worth_less_than_its_best_channel_and_more_than_its_mean(self):
        """Revealing who is good helps; so does knowing that everybody is."""

        def bound(**worker):
            workers = (nl.WorkerType(supply=300, count=5, **worker),)
            return crowd_bound(nl.Problem.identical(100, 200, nl.priors.Fact(0.5), workers=workers), grid=100, draws=12)

        unknown = bound(prior=((8, 2), (2, 8)))
        assert unknown.confidence == 0.99
        assert not unknown.certified
        assert "12 crowds" in unknown.assumes
        assert bound(channel=((0.8, 0.2), (0.2, 0.8))).value < unknown.value < bound(channel=((1, 0), (0, 1))).value

    def test_the_same_seed_draws_the_same_crowds(self):
        workers = (nl.WorkerType(prior=((8, 2), (2, 8)), count=3),)
        problem = nl.Problem.identical(10, 20, nl.priors.Fact(0.5), workers=workers)
        first, again, other = (crowd_bound(problem, grid=60, draws=4, seed=seed) for seed in (1, 1, 2))
        assert first.value == again.value != other.value

    def test_beliefs_must_be_those_of_the_crowd_drawn(self):
        """One worker, perfect or perfectly inverted, has labelled ten tasks: a gold label settles all of them.

        Under either crowd all ten are settled, so that the bound is 10; at the marginal beliefs, all of them 1/2, one
        gold label settles one task, and 5.5 would be claimed as a bound though 10 can be reached.
        """
        said = np.array([0, 1, 1, 0, 1, 0, 0, 0, 1, 1])
        gold = np.eye(2)[None]
        types, each = Types(gold, np.array([1.0]), np.zeros(1)), []
        for channel in (np.eye(2), np.eye(2)[::-1]):
            each.append(relax(np.ascontiguousarray(channel[:, said].T), np.ones(10), types, 1))
        assert limit_of_mean(each).value == pytest.approx(10.0, abs=1e-6)
        marginal = np.full((10, 2), 0.5)
        claimed = relax(marginal, np.ones(10), Types(gold, np.array([1.0]), np.zeros(1)), 1)
        assert claimed.value == pytest.approx(5.5, abs=1e-6)

    def test_the_limit_is_above_the_mean(self):
        chance = np.random.default_rng(0)
        types = [Types(np.array([coin(q)]), np.array([20.0]), np.zeros(1)) for q in chance.uniform(0.5, 1, 8)]
        each = [relax(np.array([[0.5, 0.5]]), np.array([10.0]), one, 20, grid=60) for one in types]
        values = np.array([one.value for one in each])
        assert values.min() < values.mean() < limit_of_mean(each).value

    def test_one_crowd_is_not_a_sample(self):
        workers = (nl.WorkerType(prior=((8, 2), (2, 8)), count=3),)
        wholly_unknown = nl.Problem.identical(10, 20, nl.priors.Fact(0.5), workers=workers)
        with pytest.raises(nl.errors.ProblemError, match="1 crowds"):
            crowd_bound(wholly_unknown, draws=1)


@pytest.mark.parametrize(
    ("worker", "message"),
    [
        ({"prior": ((4, 2), (2, 4)), "supply": 3}, "channels are known"),
        ({"channel": ((0.9, 0.1), (0.1, 0.9))}, "has none"),
        ({"channel": ((0.9, 0.1), (0.1, 0.9)), "arrival_rate": 1.0}, "has none"),
    ],
)
def test_what_exact_refuses(worker, message):
    problem = nl.Problem.identical(2, 3, nl.priors.Fact(0.5), workers=(nl.WorkerType(**worker),))
    with pytest.raises(nl.errors.ProblemError, match=message):
        nl.exact_value(problem)


def test_exact_refuses_what_is_too_large():
    with pytest.raises(nl.errors.TooLargeError, match="too many"):
        nl.exact_value(coins((0.9, 1000), tasks=1000, budget=3000))
