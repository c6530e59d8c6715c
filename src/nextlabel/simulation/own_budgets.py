"""Campaigns of tasks with priors of their own that pass through every budget of a curve.

The value of budget b is read when worker b has been served: the sum over tasks of E[R after the labels in flight that
will be in in time]. The rule looks at the task alone, so that what it does does not depend on the budget.
Guarantee: unbiased for each budget, which share their randomness. Cost: one campaign of the largest budget per
replication, and the rewards of the tasks that moved between two budgets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import TIED
from nextlabel.kernels.own_priors import OF_CLASS, OwnPriors, rollout_own_priors
from nextlabel.kernels.own_worth import class_worth, first_answers
from nextlabel.policies.base import Policy
from nextlabel.policies.rollout_arrays import make_timing
from nextlabel.problem.problem import Problem
from nextlabel.simulation.own_priors import own_prior_tables, own_rewards, snapshots


class OwnBudgets(NamedTuple):
    """A problem, its tasks and the budgets (rising), ready to be run."""

    problem: Problem
    tasks: OwnPriors
    budgets: Ints

    @classmethod
    def of(cls, problem: Problem, policy: Policy, budgets: Ints) -> OwnBudgets:
        """The tables of ``policy``."""
        largest = problem.with_budget(max(int(budgets[-1]), 1))
        return cls(largest, own_prior_tables(largest, policy), budgets)

    def run(self, seed: int, first: int, count: int) -> Floats:
        """Reward, labels used and workers (replications, budgets, 3) of replications first .. first + count - 1."""
        out, one = np.zeros((count, len(self.budgets), 3)), np.zeros((1, 5))
        K, cost = len(self.tasks.class_of), self.problem.label_cost
        least = cost - TIED if cost > 0 and self.tasks.score.shape[1] == 1 else -np.inf
        tasks = self.tasks._replace(score=np.require(self.tasks.score, requirements="W"))
        timing, taken = make_timing(self.problem, True), snapshots(self.budgets, K)
        for k in range(count):
            rollout_own_priors(
                tasks, timing, self.problem.budget, least, seed, first + k, taken, np.zeros(0, dtype=np.int64), one
            )
            out[k, :, 1:] = taken.labels
            worth, node, due = np.zeros(K), np.full(K, -1), np.zeros(K, dtype=np.int64)
            for b in range(len(self.budgets)):
                moved = np.flatnonzero((taken.node[b] != node) | (taken.due[b] != due))
                node, due = taken.node[b], taken.due[b]
                worth[moved] = self._worth(moved, node[moved], due[moved])
                out[k, b, 0] = worth.sum()
        return out

    def _worth(self, which: Ints, node: Ints, due: Ints) -> Floats:
        """E[R after the labels that are due] of some tasks."""
        tasks, out = self.tasks, np.empty(len(which))
        if tasks.law == OF_CLASS:
            class_worth(tasks.first, tasks.child, tasks.facts, tasks.class_of[which], node, due, out)
            return out
        first, level = tasks.first, np.searchsorted(tasks.first, node, side="right") - 1
        for w in np.unique(due).tolist():
            some = np.flatnonzero(due == w)
            x, m = which[some], level[some]
            ones = node[some] - first[m]
            rows = [own_rewards(self.problem.classes[0], tasks, x, first[m + w] + ones + j) for j in range(w + 1)]
            zero = np.empty(len(x))
            for more in range(w - 1, -1, -1):
                for j in range(more + 1):
                    first_answers(tasks.law, tasks.own[x], ones + j, m + more, zero)
                    rows[j] = zero * rows[j] + (1.0 - zero) * rows[j + 1]
            out[some] = rows[0]
        return out
