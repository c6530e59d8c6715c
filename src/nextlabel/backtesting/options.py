"""How labels are replayed and judged, which rules and read-outs that takes by default, and which budgets are played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nextlabel.backtesting.readout import COUNTING, READOUTS
from nextlabel.errors import InputError
from nextlabel.simulation.crowd_replay import REPLAYS
from nextlabel.simulation.replay import ARRIVALS, AT_ONCE_RATE, ORDERS, TIES, ReplaySetup

#: Policies that learn workers as labels come in; counting policies that are compared with them, and without them.
CROWD = ("crowd", "crowd-uncertainty")
BESIDE_CROWD = ("index",)
WITHOUT_WORKERS = ("index", "okg", "okg-pending", "ucb1-tuned", "uncertainty", "uniform")
#: Tasks held out for a prior where one is needed and all labels together may not give it.
PILOT = 50
#: Replays of each policy where votes are counted; with workers as many as this many labels allow, in these limits.
COUNTING_REPLICATIONS, CROWD_LABELS, LEAST_REPLICATIONS, MOST_REPLICATIONS = 200, 100_000, 4, 10


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """How labels are replayed and judged.

    ``replay``: "task-first", "worker-first" or "timed", and ``turn_away``: whether workers may be; both are for
    policies that learn workers. ``pilot`` tasks are held out to learn the prior of counting policies by ``method``
    ("moments", "ml" or "mixture"), unless a prior is given; None: 50 where workers are not known, else none. With the
    usual rates labels come back at once; ``order`` of a task's labels: "random", "file" or "reversed"; ``ties`` count
    "half", or are decided "positive" or "negative"; ``readouts``: "workers", "posterior", "majority", "dawid-skene".
    """

    pilot: int | None = None
    method: str = "moments"
    arrival_rate: float = ARRIVALS
    completion_rate: float = AT_ONCE_RATE
    order: str = "random"
    ties: str = "half"
    readouts: Sequence[str] | None = None
    replay: str = "task-first"
    turn_away: bool = False

    def __post_init__(self) -> None:
        for what, given, known in (
            ("order", self.order, ORDERS),
            ("ties", self.ties, TIES),
            ("replay", self.replay, REPLAYS),
        ):
            if given not in known:
                raise InputError(f"{what} {given!r} is not known.", f"Use one of {', '.join(known)}.")
        for name in self.readouts or ():
            if name not in READOUTS:
                raise InputError(f"read-out {name!r} is not known.", f"Use one of {', '.join(READOUTS)}.")
        each_once("read-out", self.readouts or ())
        if self.turn_away and self.replay == "task-first":
            raise InputError(
                "nobody can be turned away when tasks are named first.",
                "Add --replay worker-first (or timed), or leave --turn-away out.",
            )

    @property
    def at_once(self) -> bool:
        """Whether labels come back at once."""
        return self.arrival_rate / self.completion_rate < 1e-3

    def default_policies(self, workers: bool, answers: int) -> tuple[str, ...]:
        """The policies of a set whose workers are known or not."""
        if not workers or not self._plain:
            return WITHOUT_WORKERS
        return (*CROWD, *(BESIDE_CROWD if answers == 2 and self.replay == "task-first" else ()))

    def default_readouts(self, crowd: bool) -> tuple[str, ...]:
        """The read-outs of policies that learn workers, or of those that count."""
        return ("workers", "majority") if crowd else COUNTING

    @property
    def _plain(self) -> bool:
        """Whether policies that learn workers can be played like this."""
        return self.at_once and self.order == "random" and self.ties == "half"

    def check_crowd(self, names: Sequence[str], learners: bool) -> None:
        """Refuse what policies that learn workers are not replayed with."""
        if not learners and self.replay != "task-first":
            raise InputError(
                f"--replay {self.replay} is for policies that learn workers: {', '.join(CROWD)}.",
                "Add one with --policy, or leave --replay out.",
            )
        for wrong, what in (
            (not self.at_once, "labels in flight at a given rate: real times are replayed with --replay timed"),
            (self.order != "random", f"the order {self.order!r}: their labels come in random order"),
            (self.ties != "half", f"ties decided as {self.ties!r}: theirs count half"),
        ):
            if wrong and names:
                raise InputError(f"{names[0]} is not replayed with {what}.", "Leave that out, or this policy.")


def default_replications(labels: int) -> int:
    """Replays of each policy that learns workers: fewer of large sets, whose tasks say more than their orders."""
    return max(LEAST_REPLICATIONS, min(MOST_REPLICATIONS, CROWD_LABELS // max(1, labels)))


def each_once(what: str, names: Sequence[str]) -> None:
    """Refuse a name that is given twice."""
    for name in names:
        if list(names).count(name) > 1:
            raise InputError(f"{what} {name!r} is given twice.", "Give each one once.")


LABELS_PER_TASK = (2.0, 3.0, 4.0, 5.0)
#: Budgets of the grid, and labels per task up to which it goes if there are so many.
POINTS, LARGEST_OVERLAP = 25, 7
#: Labels per task of the grid of policies whose every budget is a campaign of its own; finest where most is saved.
CROWD_GRID = (1.0, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)
#: An overlap is compared with if so many of the tasks have the labels for it.
ENOUGH_TASKS = 0.5


def choose_budgets(
    setting: ReplaySetup,
    labels_per_task: Sequence[float] | None,
    budgets: Sequence[int] | None,
    *,
    crowd: bool = False,
) -> tuple[list[int], list[int], tuple[int, ...]]:
    """Budgets asked for, the grid with them, and the overlaps to compare with; ``crowd``: a coarser grid."""
    K, most = len(setting.recorded), setting.most_labels
    if budgets is not None:
        asked = sorted(set(budgets))
    elif labels_per_task is not None:
        asked = sorted({round(x * K) for x in labels_per_task})
    else:
        asked = [round(x * K) for x in LABELS_PER_TASK if x * K <= most] or [most]
    for U in asked:
        if not 1 <= U <= most:
            raise InputError(
                f"a budget of {U:,} labels ({U / K:.3g} per task) is asked for, and the {K:,} replayed tasks have "
                f"{most:,} ({most / K:.3g} per task).",
                "Give fewer, e.g. --labels-per-task 3.",
            )
    top = max(asked[-1], min(LARGEST_OVERLAP * K, most))
    even = np.linspace(min(K, asked[0]), top, POINTS)
    if crowd:
        even = np.array([x * K for x in CROWD_GRID if x * K <= top])
    grid = np.unique(np.append(np.round(even), asked)).astype(np.int64)
    counts = setting.recorded.counts
    odd = range(1, min(setting.depth, -(-top // K)) + 1, 2)
    return asked, grid.tolist(), tuple(k for k in odd if k == 1 or (counts >= k).mean() >= ENOUGH_TASKS)
