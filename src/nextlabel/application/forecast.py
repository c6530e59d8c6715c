"""What a policy will make of a running campaign: replications from where its tasks stand now.

=========== ============= ==================================================================================
symbol      code          meaning
=========== ============= ==================================================================================
(i_x, w_x)  groups        belief node and labels in flight of each task, in groups
n           labels_left   labels that may still be given out
r, mu, T    ..._rate,     as ``Problem`` has them, time counted from now
            horizon
c           label_cost    what a label costs, paid for those to be given out and those in flight
=========== ============= ==================================================================================

The policy's scores are those of the whole campaign, with n and all labels given so far as its budget: they depend on
the arrivals left and not on how many there were (UCB1-tuned counts arrivals from now on). Labels in flight start in
flight and come in Exp(mu) after now, so that nothing is approximated.
Guarantee: unbiased, 95% normal interval; from fresh tasks it is ``simulate`` digit for digit. Cost: the policy's tables
(give an ``Index`` its table to save them), and O(n) events per replication.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import InputError
from nextlabel.model.estimate import Estimate
from nextlabel.model.problem import PiecewiseRate, Problem
from nextlabel.model.simplex import deepest
from nextlabel.model.tasks import TaskClass, check_groups, whole
from nextlabel.policies.base import MOST_IN_FLIGHT, MOST_LABELS, MOST_NODES, ClassView, Policy, Setting
from nextlabel.policies.lagrangian import Lagrangian
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import FEW_CLASSES, Rollout, make_policy_arrays, make_problem_arrays
from nextlabel.policies.uniform import Uniform

#: Shares of the replications that end below each of ``Forecast.quantiles``.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
#: Events, tasks set up included, that a forecast is given; replications at least and at most.
EVENTS, FEWEST, MOST = 3_000_000, 4, 100


@dataclass(frozen=True, slots=True)
class Forecast:
    """Values per task at the end, net of what labels cost from now on: ``mean`` within ``half_width`` (95%).

    ``quantiles`` at ``LEVELS`` and ``sample`` show how much campaigns differ; ``now`` is the value of deciding now.
    """

    now: float
    mean: float
    half_width: float
    quantiles: Floats
    labels_used: float
    sample: Floats = field(repr=False)


def replications_for(tasks: int, labels: int | None = None) -> int:
    """Replications that take a second: many for few tasks, some for a million, whose mean varies little."""
    events = max(1, tasks + 2 * (tasks if labels is None else labels))
    return int(min(max(EVENTS // events, FEWEST), MOST))


def forecast(
    classes: Sequence[TaskClass],
    groups: Sequence[Any],
    labels_left: int,
    policy: Policy | str,
    *,
    arrival_rate: float | PiecewiseRate,
    completion_rate: float,
    horizon: float = inf,
    label_cost: float = 0.0,
    replications: int | None = None,
    seed: int = 0,
) -> Forecast:
    """The value of going on with ``policy`` from tasks that stand in ``groups`` (classes, nodes, in flight, counts)."""
    stand = check_groups(groups, classes)
    left = whole("labels left", labels_left, 0, "Give the number of labels that may still be given out.")
    count = replications_for(stand.tasks, left) if replications is None else replications
    rule = make_policy(policy) if isinstance(policy, str) else policy
    if isinstance(rule, Lagrangian):
        raise InputError(f"policy {rule.name!r} plans from fresh tasks.", "Use index or another rule for a forecast.")
    if len(classes) > FEW_CLASSES:
        raise InputError(
            f"a forecast takes at most {FEW_CLASSES} classes of tasks, and there are {len(classes)}.",
            "Put tasks with like priors into one class, or ask for the bound alone.",
        )
    if rule.follows_load:
        there = np.bincount(stand.entry, stand.members, minlength=len(classes))
        classes = [replace(c, count=max(int(n), 1)) for c, n in zip(classes, there, strict=True)]
    # The whole campaign as a problem, on lattices that reach below the furthest task.
    answers = classes[0].answers
    labels = stand.levels(answers) + stand.w
    budget, reach = max(left + int(labels @ stand.members), 1), int(labels.max())
    problem = Problem(tuple(classes), budget, arrival_rate, completion_rate, horizon, label_cost)
    depth = max(reach, min(reach + min(left, MOST_LABELS), deepest(answers, MOST_NODES)), 1)
    flight = min(depth, max(MOST_IN_FLIGHT, int(stand.w.max()) + 1))
    setting = Setting(problem, depth, flight, tuple(ClassView(c, depth, flight) for c in problem.classes))
    # Every task where it stands, with its labels in flight; tasks come class by class.
    entry, node, w, members = (column[np.argsort(stand.entry, kind="stable")] for column in stand)
    start = np.concatenate([[0], np.cumsum([view.nodes for view in setting.views])[:-1]]).astype(np.int64)
    arrays = make_problem_arrays(setting, True)._replace(
        root=np.repeat(start[entry] + node, members).astype(np.int64),
        flight=np.repeat(w, members).astype(np.int64),
        budget=left,
    )
    tables = make_policy_arrays(setting, rule if left > 0 else Uniform())  # with nothing to give out no rule matters
    out = Rollout(arrays, tables).play(seed, 0, count)[0][:, 0]
    sample = (out[:, 0] - label_cost * (out[:, 1] + stand.in_flight)) / stand.tasks
    estimate, now = Estimate.of(sample), float(arrays.reward[arrays.root].mean())
    quantiles = np.quantile(sample, LEVELS)
    return Forecast(now, estimate.mean, estimate.half_width, quantiles, float(out[:, 1].mean()), sample)
