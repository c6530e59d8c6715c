"""The unit of a problem's rewards: solvers' tolerances are for rewards of about 1, whatever money is counted in.

====== ======= =======================================================================
symbol code    meaning
====== ======= =======================================================================
s      size    the most that a reward can differ, the largest of the classes
u      unit    1024^k, the power nearest to s
====== ======= =======================================================================

    V(u R, u c) = u V(R, c):  a problem whose rewards and label cost are divided by u has the same policies.

Guarantee: exact, for dividing by a power of two rounds nothing; u = 1 for s from 1/32 to 32.
"""

from __future__ import annotations

from dataclasses import replace
from math import log2

from nextlabel.beliefs.rewards import Reward, Scalable
from nextlabel.problem.problem import Problem

LOG2_STEP = 10


def reward_unit(problem: Problem) -> float:
    """u; 1 where a reward cannot be scaled."""
    rewards = {c.reward for c in problem.classes}
    sizes = [r.size for r in rewards if isinstance(r, Scalable)]
    if len(sizes) < len(rewards) or max(sizes) == 0.0:
        return 1.0
    return float(2.0 ** (LOG2_STEP * round(log2(max(sizes)) / LOG2_STEP)))


def in_units(problem: Problem) -> tuple[Problem, float]:
    """The problem with its rewards and its label cost in units of u, and u."""
    unit = reward_unit(problem)
    if unit == 1.0:
        return problem, unit
    different = {c.reward for c in problem.classes}
    scaled: dict[Reward, Reward] = {r: r.times(1.0 / unit) for r in different if isinstance(r, Scalable)}
    classes = tuple(replace(c, reward=scaled[c.reward]) for c in problem.classes)
    return replace(problem, classes=classes, label_cost=problem.label_cost / unit), unit
