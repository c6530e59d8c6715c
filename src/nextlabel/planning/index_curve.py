"""The curve of the index policy that a plan shows: patient where there is a deadline, of a sample where tasks are many.

With more than 64 kinds of tasks the index is the one of ``simulation.own_priors``, which looks at the task alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nextlabel.policies.budget_rollout import curve_budgets, patient_index
from nextlabel.policies.index import Index
from nextlabel.policies.own_priors import FEW_CLASSES
from nextlabel.problem.problem import Problem
from nextlabel.simulation.curve import ValueCurve, value_curve
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.sampled import sample_tasks
from nextlabel.solve.progress import Progress


def index_curve(
    problem: Problem,
    largest: int,
    count: int,
    seed: int,
    engine: Engine | None,
    progress: Progress | None = None,
    *,
    largest_alone: bool = False,
) -> ValueCurve:
    """The index policy's value at every budget of a curve that ends at ``largest``, or there alone."""
    small, step = sample_tasks(problem)
    top = max(largest // step, 1)
    budgets = np.array([top]) if largest_alone else curve_budgets(top)
    policy = Index() if len(problem.classes) > FEW_CLASSES else patient_index(small.with_budget(top))
    curve = value_curve(
        small, policy, budgets.tolist(), replications=count, seed=seed, engine=engine, progress=progress
    )
    return replace(curve, budgets=step * curve.budgets, labels_used=step * curve.labels_used)
