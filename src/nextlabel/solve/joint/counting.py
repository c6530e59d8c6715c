"""How many joint states a problem has, before any of them is listed.

====== ======= ================ =================================================================
symbol code    shape            meaning
====== ======= ================ =================================================================
a_m    width   (U+1,)           nodes of level m of a task's lattice (lumped)
N(g,c) layers  (U+1, U+1)       multisets with g labels given out and c of them come in
====== ======= ================ =================================================================

    sum_{z,g,c} N(z; g,c) Z^z Y^g X^c = product over 1 <= s <= U, 0 <= m <= s of (1 - Z Y^s X^m)^(-a_m)

for one class, z <= count being the touched tasks; classes are convolved.
Guarantee: exact below 2^53. Cost: O(min(K,U) U^4) multiply-adds per class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.signal import convolve2d
from scipy.special import binom

from nextlabel.arrays import Floats
from nextlabel.errors import TooLargeError
from nextlabel.problem.problem import Problem
from nextlabel.solve.joint.states import TaskGroup, groups_of

#: Up to this budget a refusal names the exact number; above it the first lower bound that is too large.
EXACT_COUNT_UP_TO = 30


def class_layers(count: int, width: Floats, U: int) -> Floats:
    """N(g, c) of one class."""
    P = min(count, U)
    if P <= 1:
        alone = np.tril(np.broadcast_to(width, (U + 1, U + 1))).astype(np.float64)
        alone[0, 0] = 1.0
        return alone
    n = np.zeros((P + 1, U + 1, U + 1))
    n[0, 0, 0] = 1.0
    for s in range(1, U + 1):
        for m in range(s + 1):
            grown = n.copy()
            for z in range(1, min(P, U // s) + 1):
                ways = binom(width[m] + z - 1, z)
                grown[z:, z * s :, z * m :] += ways * n[: P + 1 - z, : U + 1 - z * s, : U + 1 - z * m]
            n = grown
    return np.asarray(np.round(n).sum(axis=0))


def states_in(layers: Floats, *, finite: bool, decline: bool) -> float:
    """Joint states with their n: one n a multiset, or every n <= U - g when arrivals may be declined.

    With T infinite the states with nothing in flight and no arrival left are over and not counted.
    """
    U = len(layers) - 1
    horizons = U + 1.0 - np.arange(U + 1) if decline else np.ones(U + 1)
    total = float(horizons @ layers.sum(axis=1))
    if finite:
        return total
    return total - float(np.trace(layers) if decline else layers[U, U])


def count_layers(
    groups: Sequence[TaskGroup], U: int, limit: float = np.inf, *, finite: bool = True, decline: bool = False
) -> tuple[Floats, bool]:
    """N(g, c) of the whole problem, and whether it is complete: it stops at the first class that passes ``limit``."""
    known: dict[tuple[int, bytes], Floats] = {}
    total = np.zeros((U + 1, U + 1))
    for k, group in enumerate(groups):
        width = np.diff(group.lattice.first[: U + 2]).astype(np.float64)
        name = (min(group.count, U), width.tobytes())
        if name not in known:
            known[name] = class_layers(group.count, width, U)
        total = convolve2d(total, known[name])[: U + 1, : U + 1] if k else known[name]
        if states_in(total, finite=finite, decline=decline) > limit and k + 1 < len(groups):
            return total, False
    return total, True


def count_groups(
    problem: Problem, limit: float, *, lumped: bool = True, merged: bool = True, decline: bool = False
) -> tuple[list[TaskGroup], Floats, int]:
    """The groups, N(g, c) and the number of joint states; TooLargeError when they are more than ``limit``.

    A smaller budget has fewer states, so a large problem is refused at the first small budget that is too large.
    """
    U = problem.budget
    small = U <= EXACT_COUNT_UP_TO and len(problem.classes) <= EXACT_COUNT_UP_TO
    trial = U if small else min(U, 3)
    while True:
        groups = groups_of(problem, trial, lumped=lumped, merged=merged)
        layers, complete = count_layers(
            groups, trial, np.inf if small else limit, finite=problem.finite, decline=decline
        )
        states = states_in(layers, finite=problem.finite, decline=decline)
        complete = complete and trial == U
        if states > limit:
            number = f"{states:,.0f}" if states < 2**53 else f"{states:.3g}"
            raise TooLargeError(
                f"the exact solution of {problem.tasks} tasks with a budget of {U} needs "
                f"{'' if complete else 'more than '}{number} joint states; at most {limit:,.0f} are allowed.",
                "Take fewer tasks or a smaller budget, or use `nextlabel bound` for an upper bound.",
                states=int(states),
            )
        if complete:
            return groups, layers, int(states)
        trial = min(U, trial * 2)


def count_states(problem: Problem, limit: int = 20_000_000, *, decline: bool = False) -> int:
    """Number of joint states ``exact_value`` would report; TooLargeError when more than ``limit``.

    Counted are the states (multiset, n) of the model, n = 0 included, except, when T is infinite, those in which
    nothing can happen any more: 50,641 at K = 10, U = 12 with a symmetric prior.
    """
    return count_groups(problem, limit, decline=decline)[2]
