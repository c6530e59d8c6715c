"""Links by which workers come to a campaign."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerLink:
    """A worker's personal link."""

    worker: str
    token: str
    url: str


@dataclass(frozen=True, slots=True)
class JoinLink:
    """The link to which a platform adds the worker's id.

    ``prolific`` has Prolific's placeholders; ``frame`` may be framed by Mechanical Turk.
    """

    token: str
    url: str
    prolific: str
    frame: str = ""


@dataclass(frozen=True, slots=True)
class CampaignLinks:
    """The links to one campaign; ``warning`` says so if only the service's own machine reaches them."""

    campaign: str
    links: tuple[WorkerLink, ...]
    join: JoinLink
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class AuditLink:
    """The link for an expert, who answers ``items`` items of an audit."""

    token: str
    url: str
    items: int
    warning: str | None = None
