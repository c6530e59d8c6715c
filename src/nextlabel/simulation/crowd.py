"""Compare policies on a problem with workers who differ: the same people, truths, answers and times for each of them.

========== ============ ===================================================================================
symbol     code         meaning
========== ============ ===================================================================================
B          bound        upper bound on every policy's value (``solve.crowd``)
--         reward       probability under the true channels that the decisions are right, summed over tasks
--         gaps         B less the reward without its martingale (``kernels.crowd_rollout``)
========== ============ ===================================================================================

Where nobody is turned away, the first U arrivals are of type m in N_m U / N cases on average, whatever the policy does;
the bound is then that of this supply. Where channels are learnt, the bound is still that of known ones.
Guarantee: unbiased, 95% normal intervals. Cost: per replication about 50 times the solving of a relaxation.

The problem as the simulator sees it:

====== ========= ============ ===============================================================================
symbol code      shape        meaning
====== ========= ============ ===============================================================================
p      beliefs   (K, C)       priors of the tasks
m      kind      (W,)         type of each person
N_m    supply    (W,)         arrivals of each person, or their rate
r_m    rates     (M,)         arrival rates of the types, where all of them have one
====== ========= ============ ===============================================================================

Types with a supply come in random order, at the problem's arrival rate. If every type has an arrival rate, each arrival
is of type m with probability r_m / sum r, at the rate sum r. Otherwise a type without supply has as many arrivals as
the budget. The ``count`` workers of a type share its arrivals evenly; with known channels a type with ``count = 1``
stands for many people of whom each labels a task once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError
from nextlabel.kernels.crowd_rollout import (
    ARRIVED,
    GIVEN,
    NO_RECORD,
    CrowdWorld,
    draw_order,
    draw_truths,
    draw_types,
    new_crowd_run,
    play_crowd,
    score_crowd,
)
from nextlabel.kernels.events import Timing
from nextlabel.model.fact import Fact
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy
from nextlabel.policies.base import Policy, alike
from nextlabel.policies.crowd.allocator import CrowdAllocator, CrowdSettings
from nextlabel.policies.crowd.policies import Chain, belief_grid, group_workers, solve_relaxation
from nextlabel.simulation.engine import Engine, run_chunks
from nextlabel.solve.bound import Bound, upper_bound
from nextlabel.solve.progress import Progress, part

#: Arrivals per label of the budget at most where nothing else ends them.
MOST_ARRIVALS = 50
#: Marks the stream of channels that are drawn from a prior.
CHANNEL_STREAM = 7


@dataclass(frozen=True, eq=False)
class CrowdSetting:
    """What is the same in every replication, as above; ``value`` is what a task that comes out right is worth.

    By person, ``cost`` is that of a label, and ``named`` is 1 for who labels a task at most once though the channel is
    known.
    """

    problem: Problem
    value: float
    beliefs: Floats
    kind: Ints
    supply: Floats
    cost: Floats
    named: Ints
    rates: Floats | None

    @classmethod
    def of(cls, problem: Problem) -> CrowdSetting:
        """The problem as arrays; refused where the reward is not accuracy."""
        reward, workers = problem.classes[0].reward, problem.workers
        if len({c.reward for c in problem.classes}) > 1 or not isinstance(reward, Accuracy):
            raise InputError(
                "policies for workers who differ know one reward: how many tasks come out right.",
                "Leave out utility, or give every class of tasks the same value.",
            )
        laws = [c.prior.probabilities for c in problem.classes if isinstance(c.prior, Fact)]
        beliefs = np.repeat(np.array(laws), [c.count for c in problem.classes], axis=0)
        counts = np.array([w.count for w in workers])
        kind = np.repeat(np.arange(len(workers)), counts)
        given = [w.arrival_rate for w in workers]
        rates = np.array(given, dtype=np.float64) if None not in given else None
        supply = (rates if rates is not None else _labels(problem)) / counts
        cost = np.array([w.cost + problem.label_cost for w in workers])
        named = np.asarray(counts > 1, dtype=np.int64)
        return cls(problem, reward.value, beliefs, kind, supply[kind], cost[kind], named[kind], rates)

    def arrivals_left(self, order: Ints, came: int, now: float) -> float:
        """Arrivals still to come, in expectation, after ``came`` of the replication's ``order``."""
        problem = self.problem
        rate = problem.peak_rate if self.rates is None else float(self.rates.sum())
        in_time = rate * max(problem.horizon - now, 0.0)
        return in_time if self.rates is not None else min(float(len(order) - came), in_time)

    def channels(self, seed: int, replication: int) -> Floats:
        """(W, C, C) the true channels: known ones as they are, others drawn from their prior."""
        chance = np.random.default_rng([seed, replication, CHANNEL_STREAM])
        people = [worker for worker in self.problem.workers for _ in range(worker.count)]
        return np.array([w.channel if w.prior is None else [*map(chance.dirichlet, w.prior)] for w in people])

    def order(self, seed: int, replication: int) -> Ints:
        """Who comes, arrival by arrival."""
        problem, workers = self.problem, self.problem.workers
        first = np.concatenate([[0], np.cumsum([w.count for w in workers])]).astype(np.int64)
        if self.rates is not None:
            mean = float(self.rates.sum()) * problem.horizon
            n = int(min(MOST_ARRIVALS * problem.budget, mean + 10.0 * np.sqrt(mean) + 20.0))
            return draw_types(np.cumsum(self.rates / self.rates.sum()), first, n, seed, replication)
        parts = [first[m] + np.arange(int(many)) % workers[m].count for m, many in enumerate(_labels(problem))]
        return draw_order(np.concatenate(parts).astype(np.int64), seed, replication)

    @property
    def timing(self) -> Timing:
        """When people come and how long they take."""
        problem, rates = self.problem, self.problem.rate_pieces
        if self.rates is not None:
            rates = np.zeros(1), np.array([float(self.rates.sum())])
        return Timing(*rates, problem.completion_rate, problem.horizon, True)


def _labels(problem: Problem) -> Floats:
    """(M,) arrivals of each type; as many as the budget where there is no limit."""
    labels = np.array([w.labels(problem.horizon) for w in problem.workers])
    return np.where(np.isfinite(labels), np.ceil(labels), float(problem.budget))


def play_crowds(
    problem: Problem, policies: Sequence[Policy], count: int, seed: int, engine: Engine, bound: Bound, turn_away: bool,
    learnt: bool, progress: Progress | None,
) -> Iterator[tuple[str, Floats, Floats | None, Floats, Floats, bool, tuple[float, float]]]:  # fmt: skip
    """What ``simulation.study.PolicyResult`` is of, by policy, on the same people and answers."""
    setting = CrowdSetting.of(problem)
    for policy in policies:
        if not policy.knows_workers:
            raise alike(policy.name)
    values = reference_values(setting, turn_away)
    for k, policy in enumerate(policies):
        begin = perf_counter()
        campaigns = CrowdCampaigns(setting, policy, turn_away, learnt, values, seed)
        out = run_chunks(engine, campaigns.chunk, count, part(progress, k, len(policies)))[0]
        rewards, cost = setting.value * out[:, 0] - out[:, 6], out[:, 6]
        gaps = bound.value - (setting.value * out[:, 1] - cost)
        yield policy.name, rewards, gaps, out[:, 2], out[:, 3], False, (0.0, perf_counter() - begin)


def turned_bound(problem: Problem, turn_away: bool, learnt: bool = False) -> Bound:
    """The bound; where nobody is turned away, that of the types as they come before the budget is spent."""
    supply = [0 if worker.supply is None else worker.supply for worker in problem.workers]
    total, endless = sum(supply), any(worker.supply is None for worker in problem.workers)
    # A worker who has had every task would pass, and the arrivals that use up the budget would be more.
    passes = any(
        math.ceil(n / worker.count) > problem.tasks
        for n, worker in zip(supply, problem.workers, strict=True)
        if learnt or worker.count > 1
    )
    if turn_away or endless or total <= problem.budget or passes:
        return upper_bound(problem)
    workers = tuple(
        replace(worker, supply=max(1, math.ceil(n * problem.budget / total)))
        for worker, n in zip(problem.workers, supply, strict=True)
    )
    bound = upper_bound(replace(problem, workers=workers))
    return replace(bound, assumes=f"{bound.assumes} Nobody is turned away, so types label as they come.")


def reference_values(setting: CrowdSetting, turn_away: bool) -> Floats:
    """(G,) about what a task is worth at each belief: what the martingale is made of. Any values would be right."""
    supply = setting.supply
    people = np.array([w.mean_channel for w in setting.problem.workers])[setting.kind]
    types = group_workers(people, supply)
    chain = Chain(types.channels)
    budget = float(setting.problem.budget)
    to_come = float(supply.sum()) if setting.rates is None else budget
    by_type = types.share * (to_come if turn_away else min(to_come, budget))
    cost = np.bincount(types.kind, setting.cost, minlength=len(by_type)) / np.bincount(types.kind)
    members = np.zeros(len(chain.grid))
    at = setting.beliefs[:, 1] if setting.beliefs.shape[1] == 2 else setting.beliefs.max(axis=1)
    np.add.at(members, np.clip(np.searchsorted(chain.grid, at), 0, len(members) - 1), 1.0)
    return solve_relaxation(chain.tables, chain.reward, cost / setting.value, members, budget, by_type).values


@dataclass(frozen=True, slots=True, eq=False)
class CrowdCampaigns:
    """Campaigns of one rule; at module level, so that a cluster's workers can import it."""

    setting: CrowdSetting
    rule: str | Policy
    turn_away: bool
    learnt: bool
    values: Floats
    seed: int

    def chunk(self, first: int, count: int) -> tuple[Floats]:
        """Replications first .. first + count - 1."""
        out = np.zeros((count, 7))
        for k in range(count):
            self.play(first + k, out[k])
        return (out,)

    def play(self, replication: int, out: Floats) -> CrowdAllocator:
        """One campaign; ``out`` gets what ``score_crowd`` says and what the labels cost."""
        setting, seed, learnt = self.setting, self.seed, self.learnt
        problem, people = setting.problem, len(setting.kind)
        channels = setting.channels(seed, replication)
        settings = CrowdSettings(self.rule, self.turn_away, named=learnt, seed=seed)
        cost, order = setting.cost, setting.order(seed, replication)
        allocator = CrowdAllocator(
            setting.beliefs,
            problem.budget,
            settings,
            workers=people,
            channels=None if learnt else channels,
            prior=_prior(setting) if learnt else None,
            supply=None if learnt else setting.supply,
            arrivals=setting.arrivals_left(order, 0, 0.0),
            cost=cost / setting.value,
            replication=replication,
        )
        if not learnt:
            allocator.campaign.named[:] = setting.named
        world = CrowdWorld(
            draw_truths(setting.beliefs, seed, replication),
            order,
            channels,
            np.arange(people),
            belief_grid(setting.beliefs.shape[1]),
            self.values,
            problem.budget,
            setting.timing,
            NO_RECORD,
        )
        run = new_crowd_run(world, setting.beliefs, seed, replication)
        over, supply = False, setting.supply
        while not over:
            over = play_crowd(
                world, run, allocator.campaign, allocator.plan, self.turn_away, seed, replication, allocator.next_due
            )
            allocator.given = int(run.counters[GIVEN])
            allocator.arrivals = setting.arrivals_left(order, int(run.counters[ARRIVED]), float(run.clock[0]))
            if not learnt and setting.rates is None:
                allocator.supply = np.maximum(supply - allocator.campaign.arrived, 0.0)
            allocator.refit()
            if not over:
                allocator.resolve()
        score_crowd(world, run, allocator.campaign, out)
        n = int(allocator.campaign.history.size[0])
        out[6] = float(cost[allocator.campaign.history.worker[:n]].sum())
        return allocator


def _prior(setting: CrowdSetting) -> CrowdPrior | None:
    """The problem's own prior of channels, where it has one."""
    priors = [(np.array(w.prior), w.count) for w in setting.problem.workers if w.prior is not None]
    if not priors:
        return None
    weights, counts = zip(*priors, strict=True)
    return CrowdPrior(np.average(weights, axis=0, weights=counts), CrowdPrior.default(setting.beliefs.shape[1]).share)
