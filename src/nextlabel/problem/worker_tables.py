"""Types of workers as plain tables, the way problem files have them, and back.

=========== ==================================================================
key         meaning
=========== ==================================================================
accuracy    P(right), every wrong answer alike; or
confusion   one row for each truth, one column for each answer; or
prior       Dirichlet weights of these rows, where the channel is not known
supply      labels of this type in all; or arrival_rate
count       workers who share them (1)
cost        what a label costs (0)
=========== ==================================================================

Keys are checked here, numbers by ``WorkerType``.
"""

from __future__ import annotations

import math
from typing import Any

from nextlabel.errors import ProblemError
from nextlabel.problem.workers import WorkerType, one_coin

WORKER_KEYS = ("accuracy", "confusion", "prior", "supply", "arrival_rate", "count", "cost")
WAYS = ("accuracy", "confusion", "prior")


def worker_type(entry: dict[str, Any], answers: int) -> WorkerType:
    """One [[workers]] table, for tasks with that many answers."""
    given = [key for key in WAYS if key in entry]
    if len(given) != 1:
        said = f"has {' and '.join(given)}" if given else "does not say how its workers answer"
        raise ProblemError(f"a [[workers]] table {said}.", "Give accuracy, confusion or prior, one of them.")
    rest = {key: value for key, value in entry.items() if key not in WAYS}
    if "accuracy" in entry:
        return WorkerType(one_coin(entry["accuracy"], answers), **rest)
    if "confusion" in entry:
        return WorkerType(entry["confusion"], **rest)
    return WorkerType(prior=entry["prior"], **rest)


def answers_text(worker: WorkerType) -> str:
    """How the workers of a type answer, in a few words."""
    about = "about " if worker.prior is not None else ""
    right = worker.mean_channel.diagonal()
    if all(math.isclose(p, right[0]) for p in right):
        return f"right with probability {about}{right[0]:.4g}"
    return f"right with probability {about}{', '.join(f'{p:.4g}' for p in right)} by truth"


def worker_table(worker: WorkerType) -> dict[str, Any]:
    """What ``worker_type`` reads as this type; the accuracy alone where that says it all."""
    table: dict[str, Any] = {}
    if worker.channel is None:
        table["prior"] = [list(row) for row in worker.prior or ()]
    elif one_coin(worker.channel[0][0], worker.answers) == worker.channel:
        table["accuracy"] = worker.channel[0][0]
    else:
        table["confusion"] = [list(row) for row in worker.channel]
    if worker.supply is not None:
        table["supply"] = worker.supply
    if worker.arrival_rate is not None:
        table["arrival_rate"] = worker.arrival_rate
    if worker.count != 1:
        table["count"] = worker.count
    if worker.cost > 0:
        table["cost"] = worker.cost
    return table
