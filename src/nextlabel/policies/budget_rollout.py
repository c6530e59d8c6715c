"""Campaigns that pass through every budget of a curve: one campaign of the largest budget per replication.

Guarantee: the digits do not depend on how replications are divided into runs. Cost: the policy's tables once, then
O(largest budget) events per replication.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.kernels.budgets import rollout_budgets
from nextlabel.kernels.policy import BY_DEFICIT, BY_LEVELS, PolicyArrays
from nextlabel.kernels.rollout import ProblemArrays
from nextlabel.policies.base import Policy, Setting
from nextlabel.policies.index import Index
from nextlabel.policies.rollout_arrays import make_policy_arrays, make_problem_arrays, no_gap
from nextlabel.problem.problem import Problem
from nextlabel.solve.index import index_table
from nextlabel.solve.truncation import make_cut

#: Budgets of a curve.
POINTS = 33
#: Labels of one task that the patient index models in full, and its accuracy.
CAP, TOLERANCE = 8, 1e-5


class BudgetRollout(NamedTuple):
    """A problem, a policy's tables and the budgets (rising), ready to be run."""

    problem: ProblemArrays
    policy: PolicyArrays
    worth: Floats
    budgets: Ints

    @classmethod
    def of(cls, problem: Problem, policy: Policy, budgets: Ints) -> BudgetRollout:
        """The tables of ``policy`` for the largest budget."""
        setting = Setting.of(problem.with_budget(max(int(budgets[-1]), 1)))
        tables = make_policy_arrays(setting, policy)
        if tables.mode in (BY_DEFICIT, BY_LEVELS):
            raise InputError(
                f"policy {policy.name!r} plans for one budget and has no curve.",
                "Use index, okg-pending or another rule.",
            )
        return cls(make_problem_arrays(setting, True), tables, _worth(setting), budgets)

    def run(self, seed: int, first: int, count: int) -> Floats:
        """Reward, labels used and time (replications, budgets, 3) of replications first .. first + count - 1."""
        out = np.zeros((count, len(self.budgets), 3))
        no_replay = np.zeros((0, 0), dtype=np.int64)
        rollout_budgets(self.problem, self.policy, no_gap(), no_replay, self.worth, self.budgets, seed, first, out)
        return out


def curve_budgets(largest: int) -> Ints:
    """The budgets of a curve, from none to the largest."""
    return np.unique(np.round(np.linspace(0, largest, POINTS)).astype(np.int64))


def patient_index(problem: Problem) -> Index:
    """The index policy of the campaign without deadline, with a table small enough for any budget."""
    endless = replace(problem, horizon=inf, arrival_rate=problem.peak_rate)
    cap = min(CAP, make_cut(endless, None, None).cap)
    return Index(index_table(endless, cap=cap, tolerance=TOLERANCE))


def _worth(setting: Setting) -> Floats:
    """Of each state w * nodes + i: E[R after the labels in flight], or R if a horizon may cut them off."""
    rows = [
        view.whatever_in_flight(view.lattice.reward)
        if setting.problem.finite
        else view.after_flight(view.lattice.reward)
        for view in setting.views
    ]
    return np.ascontiguousarray(np.concatenate(rows, axis=1)).ravel()
