"""What a process remembers of a campaign between transactions; it is true until another process writes an event."""

from __future__ import annotations

from dataclasses import dataclass, field

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.rows import CampaignRow, Group
from nextlabel.store.bulk import Values
from nextlabel.store.ledger_rows import LedgerRows
from nextlabel.store.long_searches import LongSearches


@dataclass(slots=True)
class CachedRows:
    """What a process remembers of a campaign as it was after event ``seq``."""

    seq: int = -1
    classes: list[Prior] | None = None
    groups: dict[Group, int] | None = None
    expiry: float | None = None  # no lease expires before; None: not known
    crowd: CrowdModel | None = None  # it knows itself after which event
    searches: LongSearches = field(default_factory=LongSearches)  # true after any event
    row: CampaignRow | None = None
    rows: LedgerRows | None = None
    stored: Values = ()  # the columns of ``row`` as they are stored
