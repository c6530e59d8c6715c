"""Answers that another tool keeps, by the ids of tasks (``campaign.outside_answers``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.outside_answers import Skipped, follow_answer
from nextlabel.campaign.replies import Told
from nextlabel.errors import NotFoundError

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService


class _ChangedError(Exception):
    """Somebody was given a task between looking for a lease and following the answer."""


def set_answer(
    service: CampaignService, id: str, worker: str, task: str, answer: object | Skipped | None
) -> Told | None:
    """Make the worker's answer to a task what another tool says; None: the tool has none."""
    while True:
        given = service.store.row(id).given
        found = service.store.tasks_by_key(id, [task]).get(task)
        if found is None:
            raise NotFoundError(f"there is no task {task[:60]!r} in campaign {id!r}.", "Add the task first.")
        number = found.number
        leases = [lease.id for lease in service.store.leases(id, [number]) if lease.worker == worker]
        lease = leases[0] if leases else None

        def command(
            commands: Commands, number: int = number, lease: str | None = lease, given: int = given
        ) -> Told | None:
            if lease is None and commands.ledger.row.given != given:
                raise _ChangedError
            return follow_answer(commands, number, worker, lease, answer)

        try:
            return service.run(id, command)
        except _ChangedError:
            continue
