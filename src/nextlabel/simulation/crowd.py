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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError
from nextlabel.kernels.crowd_rollout import (
    ARRIVED,
    GIVEN,
    CrowdWorld,
    draw_truths,
    new_crowd_run,
    play_crowd,
    score_crowd,
)
from nextlabel.policies.base import Policy
from nextlabel.policies.crowd.allocator import CrowdAllocator, CrowdSettings
from nextlabel.policies.crowd.chain import Chain
from nextlabel.policies.crowd.solver import RelaxationSolver
from nextlabel.policies.crowd.types import group_workers
from nextlabel.problem.estimate import Estimate
from nextlabel.problem.problem import Problem
from nextlabel.simulation.crowd_world import CrowdSetting
from nextlabel.simulation.engine import NOTHING, Engine, run_chunks
from nextlabel.simulation.study import PolicyResult, Study
from nextlabel.solve.bound import Bound, upper_bound
from nextlabel.solve.progress import Progress, part

CHANNELS = ("known", "learnt")


def simulate_crowd(
    problem: Problem,
    policies: Sequence[Policy],
    *,
    replications: int,
    seed: int,
    engine: Engine,
    turn_away: bool = False,
    channels: str = "known",
    bound: Bound | None = None,
    progress: Progress | None = None,
) -> Study:
    """Simulate every policy on the same people and answers."""
    if channels not in CHANNELS:
        raise InputError(f"channels {channels!r} are not known here.", "Use known or learnt.")
    for policy in policies:
        if not policy.knows_workers:
            raise InputError(
                f"policy {policy.name!r} takes workers to be alike, and the problem has workers who differ.",
                "Use crowd, crowd-uncertainty or uniform, or leave out the [[workers]].",
            )
    setting = CrowdSetting.of(problem)
    bound = bound or turned_bound(problem, turn_away, channels == "learnt")
    values = reference_values(setting, turn_away)
    results = []
    for k, policy in enumerate(policies):
        begin = perf_counter()
        campaigns = CrowdCampaigns(setting, policy.name, turn_away, channels == "learnt", values, seed)
        out, _ = run_chunks(engine, campaigns.chunk, replications, part(progress, k, len(policies)))
        results.append(_result(policy.name, setting, bound, out, perf_counter() - begin))
    if progress is not None:
        progress(1.0)
    return Study(problem, bound, tuple(results), replications, seed, "wait")


def turned_bound(problem: Problem, turn_away: bool, learnt: bool = False) -> Bound:
    """The bound; where nobody is turned away, that of the types as they come before the budget is spent."""
    supply = [worker.supply for worker in problem.workers]
    finite = [n for n in supply if n is not None]
    total = sum(finite)
    once = [n for n, w in zip(finite, problem.workers, strict=False) if learnt or w.count > 1]
    counts = [w.count for w in problem.workers if learnt or w.count > 1]
    # A worker who has had every task would pass, and the arrivals that use up the budget would be more.
    passes = any(math.ceil(n / c) > problem.tasks for n, c in zip(once, counts, strict=False))
    if turn_away or len(finite) < len(supply) or total <= problem.budget or passes:
        return upper_bound(problem)
    workers = tuple(
        replace(worker, supply=max(1, math.ceil(n * problem.budget / total)))
        for worker, n in zip(problem.workers, finite, strict=True)
    )
    found = upper_bound(replace(problem, workers=workers))
    return replace(found, assumes=f"{found.assumes} Nobody is turned away, so types label as they come.")


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
    solver = RelaxationSolver(chain.tables, chain.reward, cost / setting.value)
    return solver.solve(members, budget, by_type).values


@dataclass(frozen=True, slots=True, eq=False)
class CrowdCampaigns:
    """Campaigns of one rule; at module level, so that a cluster's workers can import it."""

    setting: CrowdSetting
    rule: str
    turn_away: bool
    learnt: bool
    values: Floats
    seed: int

    def chunk(self, first: int, count: int) -> tuple[Floats, Ints]:
        """Replications first .. first + count - 1."""
        out = np.zeros((count, 7))
        for k in range(count):
            self.play(first + k, out[k])
        return out, NOTHING

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
            allocator.grid if self.rule != "uniform" else Chain(channels[:1]).grid,
            self.values,
            problem.budget,
            setting.timing(True),
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
    priors = [(w.count, np.array(w.prior)) for w in setting.problem.workers if w.prior is not None]
    if not priors:
        return None
    answers = setting.beliefs.shape[1]
    weights = np.average([p for _, p in priors], axis=0, weights=[n for n, _ in priors])
    return CrowdPrior(weights, CrowdPrior.default(answers).share)


def _result(name: str, setting: CrowdSetting, bound: Bound, out: Floats, seconds: float) -> PolicyResult:
    K = setting.problem.tasks
    rewards = setting.value * out[:, 0] - out[:, 6]
    gaps = bound.value - (setting.value * out[:, 1] - out[:, 6])
    noise = float(gaps.var())
    return PolicyResult(
        name=name,
        per_task=Estimate.of(rewards, K),
        gap=Estimate.of(gaps, K),
        gap_percent=Estimate.of(gaps, abs(bound.value) / 100.0) if bound.value != 0.0 else None,
        variance_ratio=float(rewards.var()) / noise if noise > 0 else float("inf"),
        labels_used=float(out[:, 2].mean()),
        most_labels=int(out[:, 3].max()),
        cap_binds=False,
        rewards=rewards,
        gaps=gaps,
        table_seconds=0.0,
        seconds=seconds,
    )
