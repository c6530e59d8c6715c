"""Tokens, sessions and versions of links (``campaign.access``) in a database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from nextlabel.campaign.access import AccessToken, Session
from nextlabel.store.tables import access_tokens, link_versions, sessions

Begin = Callable[[], AbstractContextManager[Connection]]


class SqlAccess:
    """The records of a database; ``read`` and ``write`` begin transactions."""

    def __init__(self, read: Begin, write: Begin) -> None:
        self._read, self._write = read, write

    def tokens(self) -> list[AccessToken]:
        """All tokens, oldest first."""
        question = select(access_tokens).order_by(access_tokens.c.created_at, access_tokens.c.name)
        with self._read() as connection:
            return [AccessToken(**row) for row in connection.execute(question).mappings()]

    def save_token(self, token: AccessToken, replace: bool = False) -> bool:
        """Add or replace a token."""
        values = {"name": token.name, "role": token.role, "hash": token.hash, "created_at": token.created_at}
        try:
            with self._write() as connection:
                if replace:
                    connection.execute(delete(access_tokens).where(access_tokens.c.name == token.name))
                connection.execute(insert(access_tokens).values(values))
        except IntegrityError:
            return False
        return True

    def remove_token(self, name: str) -> bool:
        """Revoke a token."""
        with self._write() as connection:
            return connection.execute(delete(access_tokens).where(access_tokens.c.name == name)).rowcount > 0

    def add_session(self, session: Session) -> None:
        """A browser has signed in."""
        values = {"hash": session.hash, "token_hash": session.token_hash, "created_at": session.created_at}
        with self._write() as connection:
            connection.execute(insert(sessions).values(values))

    def session(self, hash: str) -> Session | None:
        """The session with this hash."""
        with self._read() as connection:
            found = connection.execute(select(sessions).where(sessions.c.hash == hash)).mappings().first()
        return None if found is None else Session(**found)

    def end_session(self, hash: str) -> None:
        """A browser has signed out."""
        with self._write() as connection:
            connection.execute(delete(sessions).where(sessions.c.hash == hash))

    def end_sessions(self, before: float) -> None:
        """End the sessions that began before a time."""
        with self._write() as connection:
            connection.execute(delete(sessions).where(sessions.c.created_at < before))

    def link_versions(self) -> dict[tuple[str, str], int]:
        """Current versions of links."""
        with self._read() as connection:
            return {
                (campaign, worker): version for campaign, worker, version in connection.execute(select(link_versions))
            }

    def revoke_link(self, campaign: str, worker: str) -> int:
        """The next version of a link."""
        which = (link_versions.c.campaign == campaign) & (link_versions.c.worker == worker)
        with self._write() as connection:
            before = connection.execute(select(link_versions.c.version).where(which).with_for_update()).scalar() or 0
            connection.execute(delete(link_versions).where(which))
            connection.execute(insert(link_versions).values(campaign=campaign, worker=worker, version=before + 1))
        return int(before) + 1
