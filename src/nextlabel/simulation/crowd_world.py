"""A problem with workers as the simulator sees it: tasks, people, and who comes when.

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

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.fact import Fact
from nextlabel.beliefs.rewards import Accuracy
from nextlabel.errors import InputError
from nextlabel.kernels.arrivals import Timing
from nextlabel.kernels.crowd_rollout import draw_order, draw_types
from nextlabel.problem.problem import Problem

#: Arrivals per label of the budget at most where nothing else ends them.
MOST_ARRIVALS = 50
#: Marks the stream of channels that are drawn from a prior.
CHANNELS = 7


@dataclass(frozen=True, eq=False)
class CrowdSetting:
    """What is the same in every replication."""

    problem: Problem
    beliefs: Floats
    kind: Ints
    rates: Floats | None

    @classmethod
    def of(cls, problem: Problem) -> CrowdSetting:
        """The problem as arrays; refused where the reward is not accuracy."""
        if len({c.reward for c in problem.classes}) > 1 or not isinstance(problem.classes[0].reward, Accuracy):
            raise InputError(
                "policies for workers who differ know one reward: how many tasks come out right.",
                "Leave out utility, or give every class of tasks the same value.",
            )
        laws = [c.prior.probabilities for c in problem.classes if isinstance(c.prior, Fact)]
        beliefs = np.repeat(np.array(laws), [c.count for c in problem.classes], axis=0)
        kind = np.repeat(np.arange(len(problem.workers)), [w.count for w in problem.workers])
        given = [w.arrival_rate for w in problem.workers]
        rates = np.array(given, dtype=np.float64) if None not in given else None
        return cls(problem, beliefs, kind, rates)

    @property
    def value(self) -> float:
        """What a task that comes out right is worth."""
        reward = self.problem.classes[0].reward
        return reward.value if isinstance(reward, Accuracy) else 1.0

    @property
    def cost(self) -> Floats:
        """(W,) what a label of each person costs."""
        each = np.array([w.cost + self.problem.label_cost for w in self.problem.workers])
        return np.asarray(each[self.kind])

    @property
    def named(self) -> Ints:
        """(W,) 1 for a person who labels a task at most once though the channel is known."""
        counts = np.array([w.count for w in self.problem.workers])
        return np.asarray(counts > 1, dtype=np.int64)[self.kind]

    @property
    def supply(self) -> Floats:
        """(W,) arrivals of each person, or rates where people come at rates."""
        each = self.rates if self.rates is not None else self._labels()
        return np.asarray((each / [w.count for w in self.problem.workers])[self.kind])

    def arrivals_left(self, order: Ints, came: int, now: float) -> float:
        """Arrivals still to come, in expectation, after ``came`` of the replication's ``order``."""
        problem = self.problem
        rate = problem.peak_rate if self.rates is None else float(self.rates.sum())
        in_time = rate * max(problem.horizon - now, 0.0)
        return in_time if self.rates is not None else min(float(len(order) - came), in_time)

    def _labels(self) -> Floats:
        labels = np.array([w.labels(self.problem.horizon) for w in self.problem.workers])
        return np.where(np.isfinite(labels), np.ceil(labels), float(self.problem.budget))

    def channels(self, seed: int, replication: int) -> Floats:
        """(W, C, C) the true channels: known ones as they are, others drawn from their prior."""
        chance = np.random.default_rng([seed, replication, CHANNELS])
        rows = []
        for worker in self.problem.workers:
            for _ in range(worker.count):
                drawn = worker.channel if worker.prior is None else [chance.dirichlet(row) for row in worker.prior]
                rows.append(np.array(drawn))
        return np.array(rows)

    def order(self, seed: int, replication: int) -> Ints:
        """The person of each arrival."""
        first = np.concatenate([[0], np.cumsum([w.count for w in self.problem.workers])]).astype(np.int64)
        if self.rates is not None:
            mean = float(self.rates.sum()) * self.problem.horizon
            most = MOST_ARRIVALS * self.problem.budget
            n = most if not np.isfinite(mean) else min(most, int(mean + 10.0 * np.sqrt(mean)) + 20)
            return draw_types(np.cumsum(self.rates / self.rates.sum()), first, n, seed, replication)
        parts = []
        for m, labels in enumerate(self._labels()):
            parts.append(first[m] + np.arange(int(labels)) % self.problem.workers[m].count)
        return draw_order(np.concatenate(parts).astype(np.int64), seed, replication)

    def timing(self, wait: bool) -> Timing:
        """When people come and how long they take."""
        problem = self.problem
        if self.rates is not None:
            return Timing(
                np.zeros(1), np.array([float(self.rates.sum())]), problem.completion_rate, problem.horizon, wait
            )
        return Timing(*problem.rate_pieces, problem.completion_rate, problem.horizon, wait)
