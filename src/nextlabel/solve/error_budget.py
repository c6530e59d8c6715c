"""How far the numbers of a bound can be off, added up: the bound is raised by it, so that rounding cannot break it.

========= ============ =====================================================================================
symbol    code         meaning
========= ============ =====================================================================================
A         magnitude    bound on E[sum_q abs(u[a][q]) P_q] for the best decision a, whatever labels come
delta     relative     relative error of beliefs (``Prior.belief_error``); ``absolute`` comes on top
n_ops     operations   rounded operations along the longest chain of a recursion
========= ============ =====================================================================================

The computed reward of a node is at least what its truly best decision a is computed to be worth, so that it falls short
by at most delta sum_q abs(u[a][q]) P_q. With x^+ the positive part, sum abs = 2 sum (.)^+ - sum: twice the expected
gain, which is a martingale, less R, a submartingale. Hence its mean over all that labels can bring is at most

    A = 2 sum_q P_q max_a u[a][q]^+ - R        before the first label.

Values are convex combinations of rewards, less prices, and no larger in size. Each rounded operation moves one by at
most eps A in the mean, and the recursions, monotone with weights that sum to 1, amplify nothing. Per task then

    exact - computed <= (delta + n_ops eps) A + absolute * J max abs(u).

The squared error is s/2 sum_j p_j (p_j(child_j) - p_j), a difference of chances whose relative error is delta_p
(``Prior.chance_error``): R is off by at most delta_p s sum_j E[theta_j^2] <= delta_p s, and no value exceeds abs(R) of
the task before its first label. There

    exact - computed <= delta_p s + n_ops eps abs(R).

Merging nodes (proved symmetries), caps, depth, the number of arrivals swept and time steps need no entry here: they err
upwards by construction.
Guarantee: first order in eps, operations counted generously. Cost: one belief per class.
"""

from __future__ import annotations

import numpy as np

from nextlabel.beliefs.prior import EPS, Prior
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.solve.relaxed import ENDLESS, stack_classes

#: Rounded operations per answer and per step of a recursion over labels, arrivals and time layers, with room to spare.
PER_ANSWER, PER_STEP, AT_ROOT = 2, 24, 16
#: A bound is certified if its error budget is at most this share of its scale: the value, or what labels can add.
CERTIFIED = 1e-9


def error_budget(problem: Problem, depth: int, steps: int) -> float:
    """The most that inexact beliefs and rounding can have taken off the sum of the single-task values.

    ``depth`` is that of the lattices, ``steps`` the arrivals and time layers that were swept.
    """
    operations = AT_ROOT + (PER_ANSWER * problem.answers + PER_STEP) * (depth + steps)
    together: dict[type[Prior], list[TaskClass]] = {}
    for c in problem.classes:
        together.setdefault(type(c.prior), []).append(c)
    total = 0.0
    for kind, classes in together.items():
        _, truth = kind.believe_all([c.prior for c in classes], np.array([c.threshold for c in classes]), 0)
        reward = stack_classes(classes, 0, ENDLESS).reward[:, 0]
        for c, P, R in zip(classes, truth[:, 0], reward, strict=True):
            magnitude = c.reward.magnitude(P, float(R))
            if c.reward.of_chances:
                off = c.prior.chance_error(depth + c.reward.ahead) * c.reward.largest
            else:
                relative, absolute = c.prior.belief_error(depth)
                off = relative * magnitude + absolute * problem.answers * c.reward.largest
            total += c.count * (off + operations * EPS * magnitude)
    return total
