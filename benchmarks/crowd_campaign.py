"""Rows of the policy ``crowd``: one large campaign whose workers are learnt as labels come in."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.rows import FLOP, Row
from benchmarks.timing import in_fresh_process, seconds
from nextlabel.model.fact import Fact
from nextlabel.model.problem import Problem, WorkerType
from nextlabel.model.tasks import TaskClass

TASKS, LABELS, PEOPLE = 100_000, 300_000, 1_002
#: Sweeps over the labels so far in about 60 refits, each of two flops per label.
SWEEPS, LABEL = 60 * 15, 2


def large_crowd() -> Problem:
    """100,000 tasks, 300,000 labels and 1,002 workers of three kinds."""
    kinds = ((0.9, TASKS), (0.75, 2 * TASKS), (0.6, 3 * TASKS))
    workers = tuple(WorkerType.of_accuracy(a, supply=n, count=PEOPLE // 3) for a, n in kinds)
    return Problem((TaskClass(TASKS, Fact(0.5)),), LABELS, workers=workers)


def campaign() -> Row:
    """The campaign from the first arrival to the last label, refits and solving included."""
    run = in_fresh_process("crowd_campaign")
    work = LABELS // 2 * SWEEPS * LABEL
    return Row(
        "one campaign of 100,000 tasks, 300,000 labels, 1,002 workers who are learnt, policy crowd, turning away",
        "< 60 s, < 2 GB",
        seconds(run["seconds"]),
        "once",
        f"{seconds(work * FLOP)}: {work:,} flops of the refits",
        f"{run['per_task']:.4f} per task, gap {run['gap_percent']:.2f}%, {run['gigabytes']:.2f} GB",
    )


CROWD_CAMPAIGN: tuple[Callable[[], Row], ...] = (campaign,)
