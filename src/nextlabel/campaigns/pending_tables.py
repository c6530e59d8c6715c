"""Policy tables inside a transaction: while those of one campaign are computed, nobody else waits for its lock."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.policy_tables import Load, PolicyTables
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.crowd_kernels import crowd_compiled
from nextlabel.campaigns.table_cache import LONG_LOG, TableCache
from nextlabel.errors import TablesPendingError


class NonBlockingTableCache(TableCache):
    """Shares the tables of another cache; where that one waits, this one raises TablesPendingError."""

    def __init__(self, table_cache: TableCache) -> None:
        self.__dict__ = table_cache.__dict__  # one set of tables, one lock

    def crowd_ready(self) -> None:
        """Return if the policy ``crowd`` is compiled."""
        found = crowd_compiled()
        if not found.done():
            raise TablesPendingError(found)
        found.result()

    def crowd_loaded(self, row: CampaignRow) -> None:
        """Return if the log is short, or must be read here because nothing goes on in the background."""
        later = self.refit_later(row.id) if row.seq > LONG_LOG else None
        if later is not None:
            raise TablesPendingError(later)

    def wait(self, config: CampaignSettings, classes: Sequence[Prior], load: Load | float) -> PolicyTables:
        """The tables if they are ready."""
        found = self.pending(config, classes, load)
        if isinstance(found, Future):
            raise TablesPendingError(found)
        return found
