"""What a store keeps about who may use it: tokens, signed-in browsers, and versions of workers' links.

Secrets themselves are never stored. A token and a session are kept as hashes, and links are signed with a key that is
in a file of its own (``service.links``), so that a copy of the database opens nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Role = Literal["requester", "auditor", "viewer"]
#: The link of a campaign's platform has a version too, under this name; no worker can be called so.
JOIN_LINK = ""
#: So have the links of experts who answer an audit.
AUDIT_LINK = " "


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token by its name; ``hash`` is all that is kept of it."""

    name: str
    role: Role
    hash: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in browser: the hash of its cookie, and that of the token with which it signed in."""

    hash: str
    token_hash: str
    created_at: float


class AccessRecords(Protocol):
    """The records of one store."""

    def tokens(self) -> list[AccessToken]:
        """All tokens, oldest first."""
        ...

    def save_token(self, token: AccessToken, replace: bool = False) -> bool:
        """Add a token; False if there is one of that name, unless it is to be replaced."""
        ...

    def remove_token(self, name: str) -> bool:
        """Revoke a token; False if there is none of that name."""
        ...

    def add_session(self, session: Session) -> None:
        """A browser has signed in."""
        ...

    def session(self, hash: str) -> Session | None:
        """The session with this hash."""
        ...

    def end_session(self, hash: str) -> None:
        """A browser has signed out."""
        ...

    def end_sessions(self, before: float) -> None:
        """End the sessions that began before a time."""
        ...

    def link_versions(self) -> dict[tuple[str, str], int]:
        """Current versions of links by campaign and worker, where they are not 0."""
        ...

    def revoke_link(self, campaign: str, worker: str) -> int:
        """Make the links of a worker (or ``JOIN_LINK``) invalid by moving on to the next version, which is returned."""
        ...
