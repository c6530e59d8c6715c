"""The exact value of a policy on a small problem.

Guarantee: exact, for every policy whose score is a function of the task's own state and the arrivals left. A policy
that counts all labels (UCB), draws (Thompson) or plans (Lagrangian) is refused. Cost: see ``solve.exact``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import InputError
from nextlabel.model.problem import Problem
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import checked_scores
from nextlabel.solve.exact import MAX_STATES, ExactResult, index_value
from nextlabel.solve.progress import Progress

#: A step between states in rank that fixes the order of ties and changes no other choice.
STEP = 1e-8


def policy_value(
    problem: Problem,
    policy: Policy | str | Callable[[int, int, float], Floats],
    *,
    ties: str | None = None,
    pending: str = "wait",
    max_states: int = MAX_STATES,
    progress: Progress | None = None,
) -> ExactResult:
    """The value of ``policy``: an object, a name, ``module:Class``, or an index (``solve.exact.index_value``).

    ``ties`` between tasks: "random" (the default), "groups" or "first"; a policy that breaks them itself takes none.
    """
    index, how = (policy, ties) if callable(policy) else _index(problem, make_policy(policy), ties)
    return index_value(problem, index, ties=how or "random", pending=pending, max_states=max_states, progress=progress)


def _index(
    problem: Problem, policy: Policy, ties: str | None
) -> tuple[Callable[[int, int, float], Floats], str | None]:
    if not policy.by_table:
        raise InputError(
            f"policy {policy.name!r} counts, draws or plans, so that its exact value is not known.", "Simulate it."
        )
    if problem.label_cost > 0 and not policy.priced:
        raise InputError(
            f"policy {policy.name!r} does not say what a label is worth, so a label cost means nothing to it.",
            "Use index, or leave the label cost out.",
        )
    policy.check_answers(problem.answers)
    tables = checked_scores(Setting.of(problem, problem.budget, problem.budget), policy)
    if policy.random_ties:
        return partial(_dense, tables, 0.0), ties
    if ties is not None:
        raise InputError(f"policy {policy.name!r} breaks ties by itself.", "Leave ties out.")
    return partial(_dense, tables, STEP), None


def _dense(tables: list[ScoreTables], step: float, c: int, n: int, tau: float) -> Floats:
    """[w, node] scores of class c with n arrivals left; ties to the fewest in flight, then to the lowest node."""
    dense = tables[c].with_left(n)
    return dense - step * np.arange(dense.size).reshape(dense.shape) if step else dense
