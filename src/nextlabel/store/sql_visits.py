"""Visits of platforms' workers (``campaign.visits``) in a database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict

from sqlalchemy import ColumnElement, Connection, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from nextlabel.campaign.visits import Visit
from nextlabel.store.tables import visits

Begin = Callable[[], AbstractContextManager[Connection]]


class SqlVisits:
    """The visits of a database; ``read`` and ``write`` begin transactions."""

    def __init__(self, read: Begin, write: Begin) -> None:
        self._read, self._write = read, write

    def add(self, visit: Visit) -> Visit:
        """A visit begins, unless it has before."""
        try:
            with self._write() as connection:
                connection.execute(insert(visits).values(asdict(visit)))
        except IntegrityError:
            known = [one for one in self.find(visit.platform, visit.id) if one.campaign == visit.campaign]
            return known[0]
        return visit

    def find(self, platform: str, id: str) -> list[Visit]:
        """The visits with that id."""
        return self._those((visits.c.platform == platform) & (visits.c.id == id))

    def of(self, campaign: str, platform: str | None = None, worker: str | None = None) -> list[Visit]:
        """The visits to a campaign."""
        which = visits.c.campaign == campaign
        if platform is not None:
            which &= visits.c.platform == platform
        if worker is not None:
            which &= visits.c.worker == worker
        return self._those(which)

    def set_status(self, visit: Visit, status: str, at: float) -> bool:
        """Keep what the platform said, unless it has said something later."""
        this = (visits.c.platform == visit.platform) & (visits.c.id == visit.id) & (visits.c.campaign == visit.campaign)
        in_order = or_(visits.c.status_at.is_(None), visits.c.status_at <= at)
        with self._write() as connection:
            done = connection.execute(update(visits).where(this & in_order).values(status=status, status_at=at))
            return done.rowcount > 0

    def _those(self, which: ColumnElement[bool]) -> list[Visit]:
        question = select(visits).where(which).order_by(visits.c.begun_at, visits.c.id)
        with self._read() as connection:
            return [Visit(**row) for row in connection.execute(question).mappings()]
