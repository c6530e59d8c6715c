"""Webhooks: addresses that are told what happens in a campaign, in the order of its log.

A webhook is a place in the log (``position``): what comes after it is still to be told. So nothing is lost when a
process ends, and nothing is told out of order. An event is told again until the receiver has acknowledged it; the id of
a message is made of the campaign, the event's number and the type, so that a receiver knows one that it has had.

================== =====================================================================================
type               is told when
================== =====================================================================================
label.created      a label was given, in time or late; ``counted`` says whether it was bought
label.undone       a worker has taken an answer back
task.closed        a task got the last label that it can have
campaign.closed    the campaign has ended, for ``reason``
campaign.reopened  more budget, time or tasks have opened it again
campaign.notice    there is something that the requester should do (``campaign.notices``)
================== =====================================================================================

People are told in words: by e-mail (``mailto:ann@example.org``), or in a chat that takes Slack's messages
(``chat+https://...``), usually only what a requester should know (``FOR_PEOPLE``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from nextlabel.campaign.events import Event
from nextlabel.campaign.states import REASONS
from nextlabel.errors import InputError, NotFoundError
from nextlabel.wording import listed

TYPES: Final[dict[str, str]] = {
    "label.created": "A label was given",
    "label.undone": "An answer was taken back",
    "task.closed": "A task can have no more labels",
    "campaign.closed": "The campaign has ended",
    "campaign.reopened": "The campaign is open again",
    "campaign.notice": "There is something to do: somebody answers at random, or nobody can label more",
}
#: The message of a trial.
TEST: Final = "webhook.test"
#: How addresses of people begin, and what they are told if nothing else is asked for.
MAIL, CHAT = "mailto:", "chat+"
FOR_PEOPLE: Final = ("campaign.closed", "campaign.reopened", "campaign.notice")
#: Webhooks of one campaign, and characters of an address.
MOST_WEBHOOKS, LONGEST_URL = 20, 2000


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address, what it is told, and how far that has got.

    ``position`` is the last event that was told or passed over. While it fails: ``failures`` in a row since
    ``first_failed_at``, the next try at ``next_at``; ``disabled`` says why it has been given up, None if it has not.
    ``last_at`` and ``last_reply`` are of the last try.
    """

    id: str
    campaign: str
    url: str
    types: tuple[str, ...]
    created_at: float
    position: int
    delivered: int = 0
    failures: int = 0
    first_failed_at: float | None = None
    next_at: float = 0.0
    disabled: str | None = None
    last_at: float | None = None
    last_reply: str = ""

    @property
    def told_in_words(self) -> bool:
        """Whether a person reads the messages; those to programs are signed."""
        return self.url.startswith((MAIL, CHAT))

    @property
    def state(self) -> str:
        """In one word."""
        return "disabled" if self.disabled is not None else "failing" if self.failures else "active"


class Message(NamedTuple):
    """What is told: ``id`` is the same whenever it is told again, ``at`` the time of the event."""

    id: str
    type: str
    at: float
    data: dict[str, Any]


class Reply(NamedTuple):
    """What came of telling: acknowledged or not, in words; ``gone``: never again, ``retry_after`` in seconds."""

    ok: bool
    said: str
    gone: bool = False
    retry_after: float | None = None


def types_told(event: Event) -> tuple[str, ...]:
    """The types of the messages that an event is told by."""
    if event.kind in ("labelled", "late"):
        return ("label.created", "task.closed") if event.data.get("last") else ("label.created",)
    if event.kind == "noticed":
        return ("campaign.notice",) if event.data["new"] else ()
    return {"undone": ("label.undone",), "closed": ("campaign.closed",), "reopened": ("campaign.reopened",)}.get(
        event.kind, ()
    )


def message_id(campaign: str, seq: int, type: str) -> str:
    """The id of a message: the same in every process and at every try."""
    return f"{campaign}.{seq}.{type}"


def in_words(message: Message) -> str:
    """A message for people."""
    data, name = message.data, f"Campaign {message.data['campaign']}"
    if message.type == TEST:
        return f"{name}: messages arrive here."
    if message.type == "campaign.notice":
        return f"{name}: {' '.join(one['text'] for one in data['notices'])}"
    if message.type == "campaign.closed":
        return f"{name} has ended. {REASONS[data['reason']]}"
    about = ", ".join(str(data[key]) for key in ("task", "worker", "label") if key in data)
    return f"{name}: {TYPES[message.type]}{about and f' ({about})'}."


def checked_types(types: Any, url: str = "") -> tuple[str, ...]:
    """Types in their usual order; if none is given, all of them, and for people what they should know."""
    given = list(types or (FOR_PEOPLE if url.startswith((MAIL, CHAT)) else TYPES))
    unknown = next((one for one in given if one not in TYPES), None)
    if unknown is not None:
        raise InputError(f"{str(unknown)[:60]!r} is not a type of event.", f"They are {listed(list(TYPES))}.")
    return tuple(one for one in TYPES if one in given)


def no_webhook(id: str) -> NotFoundError:
    """There is no such webhook."""
    return NotFoundError(f"there is no webhook {id[:60]!r}.", "List them with nextlabel campaign webhooks.")
