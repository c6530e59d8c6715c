"""The certified upper bound of a problem with workers who differ.

Channels that are known enter as they are. With more than two answers beliefs have a grid of the simplex or, if that is
better, a set of beliefs that can be reached. Where a type has a prior on its channel, whole crowds are drawn from it,
one channel for each worker, and the bounds of the crowds are averaged (``averaged``).

Guarantee: no policy that knows what is assumed in ``Bound.assumes`` is worth more in expectation; with drawn crowds
with the confidence given there. Cost: one relaxation (``relaxation``), or one for each crowd drawn.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.fact import Fact
from nextlabel.beliefs.rewards import Accuracy, Reward, Utility
from nextlabel.errors import ProblemError
from nextlabel.problem.problem import Problem
from nextlabel.problem.workers import WorkerType
from nextlabel.solve.bound import Bound
from nextlabel.solve.crowd.averaged import CONFIDENCE, Crowd, average_bounds
from nextlabel.solve.crowd.relaxation import Relaxation, Types, relax
from nextlabel.solve.crowd.rounding import fewer_types
from nextlabel.solve.crowd.single_task import LEAST_COST, Rewards
from nextlabel.solve.error_budget import CERTIFIED
from nextlabel.solve.progress import Progress

#: Crowds drawn where channels are not known.
DRAWS = 32
#: With two answers and more types than this, near-equal ones are rounded to one that is better than they are.
MOST_TYPES = 300


def crowd_bound(
    problem: Problem, *, grid: int | None = None, draws: int = DRAWS, seed: int = 0, progress: Progress | None = None
) -> Bound:
    """Bound the value of every policy of a problem with workers.

    ``grid`` is the number of grid points, ``draws`` and ``seed`` are for types whose channels are not known.
    """
    begin = perf_counter()
    beliefs, members, rewards, unit = tasks_of(problem)
    if all(worker.channel is not None for worker in problem.workers):
        types, names = few_types(types_of(problem, unit))
        found = relax(beliefs, members, types, problem.budget, grid=grid, rewards=rewards)
        if problem.answers > 2 and len(rewards.utilities) == 1:
            other = relax(beliefs, members, types, problem.budget, grid=grid, rewards=rewards, reachable=True)
            found = min(found, other, key=lambda one: one.value)
        return _certified(problem, found, found.supply_prices[names], unit, perf_counter() - begin)
    chance = np.random.default_rng(seed)
    crowds = [Crowd(beliefs, members, draw_types(problem, unit, chance), rewards) for _ in range(draws)]
    mean = average_bounds(crowds, problem.budget, grid=grid, progress=progress)
    value = unit * mean.limit
    return Bound(
        value=value,
        per_task=value / problem.tasks,
        price=unit * mean.price,
        prices=None,
        expected_arrivals=_labels(problem),
        lower=unit * mean.lower,
        gap=unit * mean.gap,
        error_budget=unit * mean.error_budget,
        certified=False,
        cap=0,
        flight=0,
        method="crowd",
        charge="arrivals",
        seconds=perf_counter() - begin,
        supply_prices=unit * _by_type(problem, mean.supply_prices),
        assumes=_assumes(problem, draws),
        confidence=CONFIDENCE,
    )


def tasks_of(problem: Problem) -> tuple[Floats, Floats, Rewards, float]:
    """Beliefs, tasks at each, their rewards in units of what is at stake, and that unit (a power of two)."""
    different = list(dict.fromkeys(c.reward for c in problem.classes))
    utilities = [utility_of(reward, problem.answers) for reward in different]
    beliefs = np.array([_law(c.prior) for c in problem.classes])
    members = np.array([float(c.count) for c in problem.classes])
    of = np.array([different.index(c.reward) for c in problem.classes], dtype=np.int64)
    stakes = [_stake(utilities[k], law) for k, law in zip(of, beliefs, strict=True)]
    unit = float(2.0 ** round(np.log2(max(stakes)))) if max(stakes) > 0 else 1.0
    return beliefs, members, Rewards(tuple(u / unit for u in utilities), of), unit


def _stake(utility: Floats, law: Floats) -> float:
    """What knowing the truth would add, or what the task is worth already, whichever is more."""
    now = float((utility * law).sum(axis=1).max())
    return max(abs(now), float((law * utility.max(axis=0)).sum()) - now)


def utility_of(reward: Reward, answers: int) -> Floats:
    """(decisions, truths) values of a reward that depends on the truth alone."""
    match reward:
        case Accuracy():
            return reward.value * np.eye(answers)
        case Utility():
            return reward.rows()
        case _:
            raise ProblemError(
                f"the reward {reward.describe()} is not one of facts.", "Use accuracy or a utility with workers."
            )


def types_of(problem: Problem, unit: float = 1.0) -> Types:
    """The types of workers with their supply up to the horizon; channels that are not known by their mean."""
    return Types(
        np.array([worker.mean_channel for worker in problem.workers]),
        np.array([worker.labels(problem.horizon) for worker in problem.workers]),
        np.array([(worker.cost + problem.label_cost) / unit for worker in problem.workers]),
    )


def draw_types(problem: Problem, unit: float, chance: np.random.Generator) -> Types:
    """A whole crowd: where a type has a prior, each of its workers has a channel and an even share of the supply."""
    channel, supply, cost = [], [], []
    for worker in problem.workers:
        several = worker.count if worker.channel is None else 1
        for _ in range(several):
            channel.append(_draw_channel(worker, chance))
            supply.append(worker.labels(problem.horizon) / several)
            cost.append((worker.cost + problem.label_cost) / unit)
    return Types(np.array(channel), np.array(supply), np.array(cost))


def _draw_channel(worker: WorkerType, chance: np.random.Generator) -> Floats:
    if worker.prior is None:
        return np.array(worker.channel)
    return np.array([chance.dirichlet(row) for row in worker.prior])


def _by_type(problem: Problem, prices: Floats) -> Floats:
    """Mean of the prices of the workers of each type."""
    several = [worker.count if worker.channel is None else 1 for worker in problem.workers]
    ends = np.cumsum(several)
    return np.array([prices[end - n : end].mean() for end, n in zip(ends, several, strict=True)])


def few_types(types: Types) -> tuple[Types, Ints]:
    """The types as they are, or near-equal ones together where there are very many of two answers."""
    if len(types.supply) <= MOST_TYPES or types.channel.shape[1] != 2:
        return types, np.arange(len(types.supply))
    return fewer_types(types, MOST_TYPES)


def _certified(problem: Problem, found: Relaxation, supply_prices: Floats, unit: float, seconds: float) -> Bound:
    value, off = unit * found.value, unit * found.error_budget
    scale = max(abs(value), unit * problem.tasks)
    sound = bool(np.isfinite([found.value, found.lower, found.price]).all() and np.all(found.supply_prices >= 0))
    return Bound(
        value=value,
        per_task=value / problem.tasks,
        price=unit * found.price if found.price > 2.0 * LEAST_COST else 0.0,
        prices=None,
        expected_arrivals=_labels(problem),
        lower=unit * found.lower,
        gap=unit * found.gap,
        error_budget=off,
        certified=sound and off <= CERTIFIED * scale,
        cap=0,
        flight=0,
        method="crowd",
        charge="arrivals",
        seconds=seconds,
        supply_prices=unit * supply_prices,
        assumes=_assumes(problem, 0),
    )


def _labels(problem: Problem) -> float:
    """Labels that can be bought in all."""
    return min(float(problem.budget), sum(worker.labels(problem.horizon) for worker in problem.workers))


def _assumes(problem: Problem, draws: int) -> str:
    """Under which model the bound holds, in words."""
    parts = ["Workers differ: each answers by the channel of its type, independently given the truth."]
    if any(worker.supply is not None for worker in problem.workers):
        parts.append("No type gives more labels than its supply.")
    if any(worker.arrival_rate is not None for worker in problem.workers):
        if problem.finite:
            parts.append("Workers come at the rates given until the horizon, whatever the policy does.")
        else:
            parts.append("Types with an arrival rate and no horizon have as many labels as the budget takes.")
    if any(worker.supply is None and worker.arrival_rate is None for worker in problem.workers):
        parts.append("Types without a supply have as many labels as the budget takes.")
    if draws:
        parts.append(
            "Channels are drawn from their priors and revealed: the value is the "
            f"{CONFIDENCE:.0%} confidence limit of the mean over {draws} crowds."
        )
    parts.append("Labels come at once, and a worker may label a task again: both can only help a policy.")
    return " ".join(parts)


def _law(prior: object) -> tuple[float, ...]:
    assert isinstance(prior, Fact)
    return prior.probabilities
