"""The unit of a problem's rewards: solvers' tolerances are for rewards of about 1, whatever money is counted in.

====== ======= =======================================================================
symbol code    meaning
====== ======= =======================================================================
s      size    what is at stake in one task, the largest of the classes
u      unit    1024^k, the power nearest to s
====== ======= =======================================================================

For accuracy and squared error s is the range of the reward. A utility may have a range that has nothing to do with what
a task is worth: a miss that costs 10^12 and happens once in 10^12 tasks. There s is the larger of abs(R) and
ceiling - R before the first label.

    V(u R, u c) = u V(R, c):  a problem whose rewards and label cost are divided by u has the same policies.

Guarantee: exact, for dividing by a power of two rounds nothing; u = 1 for s from 1/32 to 32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log2

import numpy as np

from nextlabel.beliefs.rewards import Reward, Scalable, Utility
from nextlabel.beliefs.stack import stack_lattices
from nextlabel.problem.problem import Problem
from nextlabel.problem.score_classes import ScoreClasses, different_rewards
from nextlabel.problem.task_class import TaskClass

LOG2_STEP = 10


def reward_unit(problem: Problem) -> float:
    """u; 1 where a reward cannot be scaled."""
    rewards = different_rewards(problem.classes)
    if not all(isinstance(r, Scalable) for r in rewards):
        return 1.0
    sizes = [r.size for r in rewards if isinstance(r, Scalable) and not isinstance(r, Utility)]
    utilities = any(isinstance(r, Utility) for r in rewards)
    uncertain = [c for c in problem.classes if isinstance(c.reward, Utility)] if utilities else []
    if uncertain:
        roots = stack_lattices(
            [c.prior for c in uncertain], [c.threshold for c in uncertain], [c.reward for c in uncertain], 0
        )
        sizes.append(float(np.maximum(np.abs(roots.reward), roots.ceiling - roots.reward).max()))
    size = max(sizes)
    return float(2.0 ** (LOG2_STEP * round(log2(size) / LOG2_STEP))) if size > 0 else 1.0


def in_units(problem: Problem) -> tuple[Problem, float]:
    """The problem with its rewards and its label cost in units of u, and u."""
    unit = reward_unit(problem)
    if unit == 1.0:
        return problem, unit
    different = different_rewards(problem.classes)
    scaled: dict[Reward, Reward] = {r: r.times(1.0 / unit) for r in different if isinstance(r, Scalable)}
    classes: Sequence[TaskClass]
    if isinstance(problem.classes, ScoreClasses):
        classes = problem.classes.with_reward(scaled[different[0]])
    else:
        classes = tuple(replace(c, reward=scaled[c.reward]) for c in problem.classes)
    return replace(problem, classes=classes, label_cost=problem.label_cost / unit), unit
