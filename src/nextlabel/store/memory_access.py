"""Tokens, sessions and versions of links (``campaign.access``) in memory."""

from __future__ import annotations

from threading import Lock

from nextlabel.campaign.access import AccessToken, Session


class MemoryAccess:
    """The records of a store that keeps nothing."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tokens: dict[str, AccessToken] = {}
        self._sessions: dict[str, Session] = {}
        self._versions: dict[tuple[str, str], int] = {}

    def tokens(self) -> list[AccessToken]:
        """All tokens, oldest first."""
        return sorted(self._tokens.values(), key=lambda token: (token.created_at, token.name))

    def save_token(self, token: AccessToken, replace: bool = False) -> bool:
        """Add or replace a token."""
        with self._lock:
            if token.name in self._tokens and not replace:
                return False
            self._tokens[token.name] = token
            return True

    def remove_token(self, name: str) -> bool:
        """Revoke a token."""
        return self._tokens.pop(name, None) is not None

    def add_session(self, session: Session) -> None:
        """A browser has signed in."""
        self._sessions[session.hash] = session

    def session(self, hash: str) -> Session | None:
        """The session with this hash."""
        return self._sessions.get(hash)

    def end_session(self, hash: str) -> None:
        """A browser has signed out."""
        self._sessions.pop(hash, None)

    def end_sessions(self, before: float) -> None:
        """End the sessions that began before a time."""
        with self._lock:
            self._sessions = {key: one for key, one in self._sessions.items() if one.created_at >= before}

    def link_versions(self) -> dict[tuple[str, str], int]:
        """Current versions of links."""
        return dict(self._versions)

    def revoke_link(self, campaign: str, worker: str) -> int:
        """The next version of a link."""
        with self._lock:
            self._versions[campaign, worker] = self._versions.get((campaign, worker), 0) + 1
            return self._versions[campaign, worker]

    def forget_links(self, campaign: str) -> None:
        """The versions of a deleted campaign's links mean nothing any more."""
        with self._lock:
            self._versions = {key: version for key, version in self._versions.items() if key[0] != campaign}
