"""Replay recorded labels with the workers who gave them: what ``crowd`` would have made of a crowd that did answer.

============= =========================================================================================
task first    the policy names a task; its next recorded label comes in, with its worker (random order)
worker first  the recorded labels' workers arrive; the policy picks a task of the worker's own record
timed         arrivals, durations and workers as they were, batch by batch (``simulation.crowd_timed``)
============= =========================================================================================

Draws are keyed by (seed, replication): every policy meets the same orders, and task first these are the orders of
``simulation.replay``, so that policies for equal workers can be compared on them. A policy sees labels and workers,
never gold. When the budget is spent, all labels given are read out together (``simulation.crowd_readout``).
Guarantee: accuracy against gold on this record; it is no estimate for another crowd. Cost: a refit after every
``REFIT_SHARE`` labels per task, each some nanoseconds per label and sweep, and the relaxations that ``crowd`` solves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError
from nextlabel.policies.crowd.allocator import RULES
from nextlabel.problem.estimate import Estimate
from nextlabel.problem.problem import whole
from nextlabel.simulation.crowd_orders import play_orders
from nextlabel.simulation.crowd_readout import READOUTS, ReadOut, read_out
from nextlabel.simulation.crowd_record import REPLAYS, CrowdRecord
from nextlabel.simulation.crowd_timed import Schedule, play_timed
from nextlabel.simulation.equal_workers import labels_by_equal_workers
from nextlabel.solve.progress import Progress

#: Rules that do the same whatever the budget is: one campaign serves all budgets.
BLIND_TO_BUDGET = ("crowd-uncertainty", "uniform")


@dataclass(frozen=True, slots=True, eq=False)
class CrowdReplayed:
    """One policy on a record with one budget; ``right[readout]`` is (replications, K), nan where gold is not known."""

    policy: str
    budget: int
    replay: str
    turn_away: bool
    right: dict[str, Floats]
    expected: Floats
    labels_used: Ints
    turned_away: Ints

    def accuracies(self, readout: str = "workers") -> Floats:
        """(replications,) share of the tasks with gold that are right."""
        return np.asarray(np.nanmean(self.right[readout], axis=1), dtype=np.float64)

    def accuracy(self, readout: str = "workers") -> Estimate:
        """The mean over the orders, with an interval for the orders alone."""
        return Estimate.of(self.accuracies(readout))


@dataclass(frozen=True, slots=True)
class CrowdReplaySetup:
    """What all campaigns on one record have in common."""

    record: CrowdRecord
    replay: str = "task-first"
    turn_away: bool = False
    seed: int = 0
    prior: CrowdPrior | None = None


def replay_crowd(
    record: CrowdRecord,
    policies: Sequence[str],
    budgets: Sequence[int],
    *,
    replay: str = "task-first",
    turn_away: bool = False,
    replications: int = 50,
    seed: int = 0,
    prior: CrowdPrior | None = None,
    progress: Progress | None = None,
) -> list[CrowdReplayed]:
    """Every policy with every budget (labels in all): the budgets of the first policy as given, then the next policy's.

    ``policies`` are ``crowd``, ``crowd-uncertainty`` (least certain first) and ``uniform`` (fewest labels first); task
    first and with two answers also those for equal workers (``index``, ``okg`` ...). ``turn_away`` lets a policy send
    an arriving worker away, which costs nothing. A timed replay leaves nothing to chance and is made once.
    """
    setup = CrowdReplaySetup(record, replay, turn_away, seed, prior)
    count = _checked(setup, budgets, replications)
    count = 1 if replay == "timed" else count  # nothing is left to chance
    rising = sorted(set(budgets))
    out = []
    for k, policy in enumerate(policies):
        found: dict[int, list[tuple[ReadOut, int]]] = {budget: [] for budget in rising}
        for replication in range(count):
            for budget, given, turned in labels_given(setup, policy, rising, replication):
                found[budget].append((read_out(given, record.gold, prior), turned))
            if progress is not None:
                progress((k + (replication + 1) / count) / len(policies))
        out += [_replayed(setup, policy, budget, found[budget]) for budget in budgets]
    return out


def labels_given(
    setup: CrowdReplaySetup, policy: str, budgets: Sequence[int], replication: int
) -> Iterator[tuple[int, CrowdLabels, int]]:
    """(budget, labels given, arrivals turned away) of one replication, for rising budgets."""
    if policy not in RULES:
        if setup.replay != "task-first":
            raise InputError(
                f"policy {policy!r} takes workers as equal and is replayed task-first only.",
                "Use crowd, crowd-uncertainty or uniform.",
            )
        yield from labels_by_equal_workers(setup.record, policy, budgets, setup.seed, replication)
    elif setup.replay == "timed":
        for budget in budgets:
            yield from play_timed(setup, policy, budget)
    elif policy in BLIND_TO_BUDGET and not (setup.turn_away and setup.replay == "worker-first"):
        yield from play_orders(setup, policy, budgets, replication)
    else:
        for budget in budgets:
            yield from play_orders(setup, policy, [budget], replication)


def _replayed(setup: CrowdReplaySetup, policy: str, budget: int, found: Sequence[tuple[ReadOut, int]]) -> CrowdReplayed:
    right = {name: np.array([one.right[name] for one, _ in found]) for name in READOUTS}
    return CrowdReplayed(
        policy, budget, setup.replay, setup.turn_away, right,
        np.array([one.expected for one, _ in found]),
        np.array([one.labels for one, _ in found], dtype=np.int64),
        np.array([turned for _, turned in found], dtype=np.int64),
    )  # fmt: skip


def _checked(setup: CrowdReplaySetup, budgets: Sequence[int], replications: int) -> int:
    record = setup.record
    if setup.replay not in REPLAYS:
        raise InputError(f"replay {setup.replay!r} is not known.", f"Use one of {', '.join(REPLAYS)}.")
    if setup.turn_away and setup.replay == "task-first":
        raise InputError(
            "task first, nobody can be turned away: the task is chosen before it is known who comes.",
            "Replay worker-first, or leave out --turn-away.",
        )
    if not budgets:
        raise InputError("no budget is given.", "Give at least one number of labels.")
    for budget in budgets:
        whole("budget", budget, 1, "Give the number of labels to buy, e.g. --budget 1200.")
        if budget > len(record):
            raise InputError(
                f"the budget is {budget:,} and {len(record):,} labels are recorded.", "Give a smaller one."
            )
    if setup.replay == "timed":
        Schedule.of(record, max(budgets))  # refuses a record without times
    whole("seed", setup.seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    return whole("replications", replications, 1, "Give at least one replication, e.g. --replications 50.")
