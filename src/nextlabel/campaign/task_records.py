"""New tasks in the log: at once, or those of an import hidden first and published when all of them are there."""

from __future__ import annotations

from typing import Any

from nextlabel.campaign import scoring
from nextlabel.campaign.chance import PLACES, chance
from nextlabel.campaign.gold import record_gold
from nextlabel.campaign.recording import Recording


def record_tasks(
    campaign: Recording, tasks: list[list[Any]], priors: list[Any], ranked: bool, batch: str | None, digest: str | None
) -> None:
    """Add tasks [key, payload, class, gold if known] that ``intake`` has checked, with the priors that are new."""
    row = campaign.ledger.row
    limits = scoring.limits_for(row.config, row.tasks)
    places = [chance(row.config.seed, PLACES, number) for number in range(row.tasks, row.tasks + len(tasks))]
    tasks, gold = _without_gold(tasks, row.tasks)
    campaign.record(
        "tasks_added",
        {
            "first": row.tasks, "tasks": tasks, "classes": priors, "batch": batch, "digest": digest,
            "places": places,
            "most_labels": limits.most_labels, "most_in_flight": limits.most_in_flight, "ranked": ranked,
        },
    )  # fmt: skip
    record_gold(campaign, gold)
    campaign.reopen()


def record_hidden_tasks(campaign: Recording, tasks: list[list[Any]], total: int) -> None:
    """Put tasks of an import of ``total`` new ones into the log, to be published when all of them are there.

    Their places follow one another in an interval of their own: the index of places grows at its end, and asks
    search it from a random place on.
    """
    row = campaign.ledger.row
    hidden, segment = row.rules.hidden, row.rules.segments
    first = row.tasks + hidden
    places = [segment + (hidden + k + 0.5) / total for k in range(len(tasks))]
    tasks, gold = _without_gold(tasks, first)
    campaign.record("tasks_added", {"first": first, "tasks": tasks, "places": places, "hidden": True})
    if gold:
        campaign.record("gold_set", {"answers": gold})


def _without_gold(tasks: list[list[Any]], first: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """The tasks as the log has them, and the answers that are known: [number, answer]."""
    gold = [[number, task[3]] for number, task in enumerate(tasks, first) if len(task) > 3]
    return [task[:3] for task in tasks], gold


def publish_tasks(
    campaign: Recording, priors: list[Any], counts: list[list[int]], ranked: bool, batch: str | None, digest: str | None
) -> None:
    """All tasks of an import are in the log: from now on they are there."""
    campaign.settle()
    row = campaign.ledger.row
    limits = scoring.limits_for(row.config, row.tasks)
    campaign.record(
        "tasks_published",
        {
            "first": row.tasks, "tasks": row.rules.hidden, "classes": priors, "counts": counts, "batch": batch,
            "digest": digest, "most_labels": limits.most_labels, "most_in_flight": limits.most_in_flight,
            "ranked": ranked,
        },
    )  # fmt: skip
    campaign.reopen()


def rank_tasks(campaign: Recording, many: int) -> bool:
    """Give some tasks of an import their scores; False if all have theirs."""
    row = campaign.ledger.row
    if row.rules.unranked_from is None:
        return False
    campaign.record("tasks_ranked", {"until": min(row.rules.unranked_from + many, row.tasks)})
    return row.rules.unranked_from is not None


def record_batch(campaign: Recording, batch: str, digest: str) -> None:
    """A batch has ended with tasks that were there already."""
    campaign.record("batch_ended", {"batch": batch, "digest": digest})
