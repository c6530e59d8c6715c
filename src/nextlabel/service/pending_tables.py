"""A policy's tables in the service: nobody else waits while those of one campaign are worked out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.table_cache import PolicyTables, TableCache
from nextlabel.errors import NextlabelError


class TablesPendingError(NextlabelError):
    """The tables are being worked out; ``future`` ends when they are there."""

    def __init__(self, future: Future[PolicyTables]) -> None:
        super().__init__("the tables of the campaign's policy are being worked out.", "Ask again in a moment.")
        self.future = future


class NonBlockingTableCache(TableCache):
    """The tables of another desk; where that one waits, this one raises TablesPendingError."""

    def __init__(self, table_cache: TableCache) -> None:
        self.__dict__ = table_cache.__dict__  # one set of tables, one lock

    def wait(self, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> PolicyTables:
        """The seat if it is there."""
        found = self.pending(config, classes, rho)
        if isinstance(found, Future):
            raise TablesPendingError(found)
        return found
