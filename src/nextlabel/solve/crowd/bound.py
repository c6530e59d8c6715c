"""The certified upper bound of a problem with workers who differ.

======== ========= ==================================================================
symbol   code      meaning
======== ========= ==================================================================
A        types     a whole crowd: the channels of all its workers, all revealed
p_x(A)   beliefs   what the labels given so far say about the tasks *under that crowd*
D        n         crowds drawn, independently, from what is known about them
s, t     --        P(says 1 | truth 1) and P(says 0 | truth 0) of a worker
h        step      s and t are rounded to multiples of it, away from s + t = 1
======== ========= ==================================================================

Channels that are known enter as they are. With more than two answers beliefs have a grid of the simplex or, if that is
better, a set of beliefs that can be reached. Where a type has a prior on its channel, whole crowds are drawn from it,
one channel for each worker, and the bounds of the crowds are averaged:

    E[ bound(A, p(A)) ]  <=  mean over D crowds  +  t_{D-1} sd / sqrt(D)      with the confidence given

Revealing the crowd can only help. The beliefs must be those of the crowd drawn, which must be from the true posterior;
before the first label that is the prior (docs/theory_workers.md, section 8).

Very many workers with two answers share types: coins are rounded away from the line s + t = 1, and the given worker is
the rounded one with some answers changed by lot (section 7). That holds for labels to come; beliefs from labels that
have been given must keep the channels as they are.

Guarantee: no policy that knows what is assumed in ``Bound.assumes`` is worth more in expectation; with drawn crowds
at about the confidence given there: Student's limit trusts that the draws met every kind of crowd.
Cost: one relaxation (``relaxation``), or one for each crowd drawn; rounding raises it by about what a worker better by
h is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
from scipy.special import stdtrit

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError
from nextlabel.model.fact import Fact
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy, Reward, Utility
from nextlabel.solve.bound import CERTIFIED, Bound
from nextlabel.solve.crowd.relaxation import Relaxation, Types, relax
from nextlabel.solve.crowd.single_task import LEAST_COST, Rewards
from nextlabel.solve.progress import Progress

#: The first step tried; it grows by half until the types are few enough.
FIRST_STEP = 0.002


#: With two answers and more types than this, near-equal ones are rounded to one that is better than they are.
MOST_TYPES = 300


def few_types(types: Types, most: int = MOST_TYPES) -> tuple[Types, Ints]:
    """At most about ``most`` types of two coins, and the type that each given one has become."""
    names = np.arange(len(types.supply))
    step = FIRST_STEP
    rounded = types
    while len(rounded.supply) > most and step < 0.5 and types.channel.shape[1] == 2:
        rounded, names = round_types(types, step)
        step *= 1.5
    return rounded, names


def round_types(types: Types, step: float) -> tuple[Types, Ints]:
    """Types whose coins are multiples of ``step``; equal ones of one cost are one, with the supply of all."""
    s, t = types.channel[:, 1, 1], types.channel[:, 0, 0]
    up = s + t >= 1.0
    coins = [np.where(up, np.ceil(x / step - 1e-9), np.floor(x / step + 1e-9)) * step for x in (s, t)]
    s, t = (np.where(up, np.clip(r, x, 1.0), np.clip(r, 0.0, x)) for r, x in zip(coins, (s, t), strict=True))
    rows, first, names = np.unique(np.column_stack([s, t, types.cost]), axis=0, return_index=True, return_inverse=True)
    names = names.ravel()
    supply = np.zeros(len(rows))
    np.add.at(supply, names, types.supply)
    channel = np.empty((len(rows), 2, 2))
    channel[:, 1, 1], channel[:, 1, 0] = s[first], 1.0 - s[first]
    channel[:, 0, 0], channel[:, 0, 1] = t[first], 1.0 - t[first]
    return Types(channel, supply, types.cost[first]), names


#: Confidence of the limit that is shown.
CONFIDENCE = 0.99
#: A gap per task that is small against the spread between crowds.
TOLERANCE = 1e-5
#: Grid points with two answers: what a finer grid takes off is small against the spread, too.
POINTS = 250


def limit_of_mean(each: Sequence[Relaxation]) -> Relaxation:
    """The mean of the bounds of crowds drawn independently; its value is the upper confidence limit of their mean.

    If all crowds have one and the same bound, that is the limit.
    """
    if len(each) < 2:
        raise ProblemError(f"{len(each)} crowds do not make a mean with a limit.", "Draw at least 2, better 30.")
    mean = Relaxation(*(np.mean([getattr(one, name) for one in each], axis=0) for name in Relaxation.__slots__))
    spread = float(np.std([one.value for one in each], ddof=1)) / float(np.sqrt(len(each)))
    return replace(mean, value=float(mean.value) + float(stdtrit(len(each) - 1, CONFIDENCE)) * spread)


#: Crowds drawn where channels are not known.
DRAWS = 32


def crowd_bound(
    problem: Problem, *, grid: int | None = None, draws: int = DRAWS, seed: int = 0, progress: Progress | None = None
) -> Bound:
    """Bound the value of every policy of a problem with workers.

    ``grid`` is the number of grid points, ``draws`` and ``seed`` are for types whose channels are not known.
    """
    begin = perf_counter()
    beliefs, members, rewards, unit = tasks_of(problem)
    known = all(worker.channel is not None for worker in problem.workers)
    if known:
        types, names = few_types(types_of(problem, unit))
        best = relax(beliefs, members, types, problem.budget, grid=grid, rewards=rewards)
        if problem.answers > 2 and len(rewards.utilities) == 1:
            other = relax(beliefs, members, types, problem.budget, grid=grid, rewards=rewards, reachable=True)
            best = min(best, other, key=lambda one: one.value)
        supply_prices = best.supply_prices[names]
    else:
        chance = np.random.default_rng(seed)
        points = POINTS if grid is None and problem.answers == 2 else grid
        crowds, each = [draw_types(problem, unit, chance) for _ in range(draws)], []
        for k, drawn in enumerate(crowds):
            each.append(
                relax(beliefs, members, drawn, problem.budget, grid=points, tolerance=TOLERANCE, rewards=rewards)
            )
            if progress is not None:
                progress((k + 1) / draws)
        best = limit_of_mean(each)
        supply_prices = _by_type(problem, best.supply_prices)
    value, off = unit * best.value, unit * best.error_budget
    scale = max(abs(value), unit * problem.tasks)
    sound = bool(np.isfinite([best.value, best.lower, best.price]).all() and np.all(best.supply_prices >= 0))
    return Bound(
        value=value,
        per_task=value / problem.tasks,
        price=0.0 if known and best.price <= 2.0 * LEAST_COST else unit * best.price,
        prices=None,
        expected_arrivals=_labels(problem),
        lower=unit * best.lower,
        gap=unit * best.gap,
        error_budget=off,
        certified=known and sound and off <= CERTIFIED * scale,
        cap=0,
        flight=0,
        method="crowd",
        charge="arrivals",
        seconds=perf_counter() - begin,
        supply_prices=unit * supply_prices,
        assumes=_assumes(problem, 0 if known else draws),
        confidence=None if known else CONFIDENCE,
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


def types_of(problem: Problem, unit: float) -> Types:
    """The types of workers with their supply up to the horizon; channels that are not known by their mean."""
    return Types(
        np.array([worker.mean_channel for worker in problem.workers]),
        np.array([worker.labels(problem.horizon) for worker in problem.workers]),
        np.array([(worker.cost + problem.label_cost) / unit for worker in problem.workers]),
    )


def draw_types(problem: Problem, unit: float, chance: np.random.Generator) -> Types:
    """A whole crowd: where a type has a prior, each of its workers has a channel and an even share of the supply."""
    several = [worker.count if worker.channel is None else 1 for worker in problem.workers]
    mean, channel = types_of(problem, unit), []
    for worker, n in zip(problem.workers, several, strict=True):
        for _ in range(n):
            drawn = worker.channel if worker.prior is None else [chance.dirichlet(row) for row in worker.prior]
            channel.append(np.array(drawn))
    return Types(np.array(channel), np.repeat(mean.supply / several, several), np.repeat(mean.cost, several))


def _by_type(problem: Problem, prices: Floats) -> Floats:
    """Mean of the prices of the workers of each type."""
    several = [worker.count if worker.channel is None else 1 for worker in problem.workers]
    ends = np.cumsum(several)
    return np.array([prices[end - n : end].mean() for end, n in zip(ends, several, strict=True)])


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
            f"estimated {CONFIDENCE:.0%} limit of the mean over {draws} crowds (Student's)."
        )
    parts.append("Labels come at once, and a worker may label a task again: both can only help a policy.")
    return " ".join(parts)


def _law(prior: object) -> tuple[float, ...]:
    assert isinstance(prior, Fact)
    return prior.probabilities
