"""What events about workers change: standing, labels that are left out of the results, control questions.

A dropped label was bought and stays so: ``spent`` does not move. Its task loses it, and may get another one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nextlabel.campaign.events import Event
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.rates import observe_turned_away
from nextlabel.campaign.task_moves import (
    Projection,
    Rank,
    add_label,
    end_without_label,
    get_lease,
    take_label,
)
from nextlabel.campaign.transitions import RELEASED


def _paused(ledger: Ledger, event: Event, rank: Rank) -> None:
    tally = ledger.worker(event.data["worker"])
    tally.standing, tally.reason = "paused", event.data["reason"]


def _blocked(ledger: Ledger, event: Event, rank: Rank) -> None:
    """The leases that the worker held end; nobody has skipped them, so no tally says so."""
    for id in event.data["leases"]:
        end_without_label(ledger, event, id, RELEASED, rank)
    tally = ledger.worker(event.data["worker"])
    tally.standing, tally.reason = "blocked", event.data["reason"]


def _restored(ledger: Ledger, event: Event, rank: Rank) -> None:
    tally = ledger.worker(event.data["worker"])
    tally.standing, tally.reason = "active", ""


def _turned_away(ledger: Ledger, event: Event, rank: Rank) -> None:
    row, tally = ledger.row, ledger.worker(event.data["worker"])
    workers = row.rules.turned_away_workers + (tally.turned_away == 0)
    row.rules = replace(row.rules, turned_away=row.rules.turned_away + 1, turned_away_workers=workers)
    tally.turned_away += 1
    observe_turned_away(row, event.at)


def _labels_dropped(ledger: Ledger, event: Event, rank: Rank) -> None:
    for id, label in event.data["leases"]:
        lease = get_lease(ledger, id)
        take_label(ledger, event, lease, label, False, rank)
        lease.dropped = True
        ledger.save_lease(lease)
    ledger.worker(event.data["worker"]).dropped += len(event.data["leases"])


def _labels_restored(ledger: Ledger, event: Event, rank: Rank) -> None:
    for id, label in event.data["leases"]:
        lease = get_lease(ledger, id)
        task = ledger.task(lease.task)
        last = task.labels + 1 >= ledger.row.rules.limits_of(task.number).most_labels
        add_label(ledger, event, lease, label, last, rank)
        lease.dropped = False
        ledger.save_lease(lease)
    ledger.worker(event.data["worker"]).dropped -= len(event.data["leases"])


def _gold_set(ledger: Ledger, event: Event, rank: Rank) -> None:
    """Tasks become control questions: they are out of the policy's sight, whatever labels they have."""
    answers = event.data["answers"]
    for number, _ in answers:
        task = ledger.task(number)
        if task.gold is None:
            ledger.row.controls += 1
            ledger.row.full -= task.closed_seq is not None
    ledger.set_gold([(number, gold) for number, gold in answers])


def _predictions_dropped(ledger: Ledger, event: Event, rank: Rank) -> None:
    row, worker = ledger.row, event.data["worker"]
    row.rules = replace(row.rules, dropped_models=(*row.rules.dropped_models, worker))
    ledger.worker(worker).dropped += event.data["labels"]


def _predictions_restored(ledger: Ledger, event: Event, rank: Rank) -> None:
    row, worker = ledger.row, event.data["worker"]
    row.rules = replace(row.rules, dropped_models=tuple(n for n in row.rules.dropped_models if n != worker))
    ledger.worker(worker).dropped -= event.data["labels"]


WORKER_PROJECTIONS: Final[dict[str, Projection]] = {
    "worker_paused": _paused,
    "worker_blocked": _blocked,
    "worker_restored": _restored,
    "turned_away": _turned_away,
    "labels_dropped": _labels_dropped,
    "labels_restored": _labels_restored,
    "gold_set": _gold_set,
    "predictions_dropped": _predictions_dropped,
    "predictions_restored": _predictions_restored,
}
