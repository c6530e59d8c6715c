"""What comes out when the rows of a campaign are held against its events."""

from __future__ import annotations

from dataclasses import dataclass

from nextlabel.campaign.events import Event
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.projection import apply_event
from nextlabel.campaign.task_moves import Rank, unranked
from nextlabel.errors import ConflictError


@dataclass(frozen=True, slots=True)
class Verification:
    """``differing``: how many rows of each table did not follow from the events; ``repaired``: they do now.

    A row that stands in another's place counts as a wrong one there and as a missing one here.
    """

    events: int
    differing: dict[str, int]
    repaired: bool = False

    @property
    def right(self) -> bool:
        """Whether every row followed from the events."""
        return not self.differing


def replay_event(ledger: Ledger, event: Event, rank: Rank = unranked) -> None:
    """Bring rows that follow from the events before to the state after this one, which is in the log."""
    if event.seq != ledger.row.seq + 1:
        raise ConflictError(
            f"event {ledger.row.seq + 1} of campaign {ledger.row.id!r} is missing from its log.",
            "Restore the database from a backup.",
        )
    ledger.row.seq, ledger.row.last_at = event.seq, event.at
    apply_event(ledger, event, rank)
