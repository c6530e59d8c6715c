"""Prolific: its study link, its signed webhooks, what the statuses of a submission mean, and its list of bonuses.

A *participant* takes part in a *study* by a *submission*, which Prolific's links call a session: the ``SESSION_ID`` of
a study link is the ``resource_id`` of a webhook. A webhook belongs to a workspace, and does not name the study.

=============================================== ===============================================================
status                                          what it means here
=============================================== ===============================================================
RESERVED, ACTIVE, AWAITING REVIEW, APPROVED,    ``keeps``: the participant goes on, or has done their work
PARTIALLY APPROVED, SCREENED OUT
RETURNED, TIMED-OUT                             ``ends``: they have left; what they hold goes to others
REJECTED                                        ``rejects``: likewise, and their work is not paid
=============================================== ===============================================================

Sources: docs.prolific.com, *API reference*: Webhooks (Receiving, Verifying, Idempotency, Event order), Submission
object, Set up bonuses.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import IO, ClassVar, Final

from nextlabel.errors import FileFormatError, InputError, TokenError
from nextlabel.files.columns import cell_text
from nextlabel.files.tables import read_table, uploaded_format
from nextlabel.integrations.platform import Meaning, Platform, StatusChange
from nextlabel.wording import listed

PARTICIPANT, STUDY, SUBMISSION = "PROLIFIC_PID", "STUDY_ID", "SESSION_ID"

SIGNATURE, SIGNED_AT = "x-prolific-request-signature", "x-prolific-request-timestamp"
#: The columns of an export of submissions that matter here.
EXPORT_COLUMNS: Final = ("submission id", "participant id", "status")
STATUS_CHANGE: Final = "submission.status.change"
#: A signed request that is older or newer than so many seconds is refused; what was not delivered is sent again.
MAX_AGE_S: Final = 86_400.0

_BAD_SIGNATURE = (
    "the request was not signed by Prolific with the secret of this service.",
    "Create a secret at Prolific (POST /api/v1/hooks/secrets/) and put it into NEXTLABEL_PROLIFIC_SECRET.",
)


class Prolific(Platform):
    """Prolific; its link has the names in braces that it puts ids in place of."""

    name, title, worker, visit, study = "prolific", "Prolific", PARTICIPANT, SUBMISSION, STUDY
    query = "?" + "&".join(f"{name}={{{{%{name}%}}}}" for name in (PARTICIPANT, STUDY, SUBMISSION))
    complete = "https://app.prolific.com/submissions/complete?cc="
    confirms, currency = True, "in the study’s currency"
    meanings: ClassVar[Mapping[str, Meaning]] = {
        "RESERVED": "keeps", "ACTIVE": "keeps", "AWAITING REVIEW": "keeps", "APPROVED": "keeps",
        "PARTIALLY APPROVED": "keeps", "SCREENED OUT": "keeps", "RETURNED": "ends", "TIMED OUT": "ends",
        "REJECTED": "rejects",
    }  # fmt: skip


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a request: HMAC-SHA256 of timestamp and body, in base64."""
    digest = hmac.digest(secret.encode(), timestamp.encode() + body, hashlib.sha256)
    return base64.b64encode(digest).decode()


def check_signature(secrets: Iterable[str], headers: Mapping[str, str], body: bytes, now: float) -> float:
    """When the request was signed, by which events are put in order; TokenError unless a secret has, not long ago."""
    timestamp, given = headers.get(SIGNED_AT, ""), headers.get(SIGNATURE, "")
    fits = [hmac.compare_digest(signature(secret, timestamp, body).encode(), given.encode()) for secret in secrets]
    if not any(fits):
        raise TokenError(*_BAD_SIGNATURE)
    signed_at = _seconds(timestamp)
    if signed_at is None or abs(now - signed_at) > MAX_AGE_S:
        raise TokenError("the signed request is not of today.", "Check the clock of this machine.")
    return signed_at


def read_status_change(body: bytes) -> StatusChange | None:
    """The change that a request tells of, None if it is about something else."""
    hint = "Subscribe this address to submission.status.change alone."
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON.", hint) from None
    if not isinstance(event, dict):
        raise InputError("the body is not an object of JSON.", hint)
    if event.get("event_type") != STATUS_CHANGE:
        return None
    found = [event.get(name) for name in ("resource_id", "participant_id", "status")]
    texts = [one for one in found if isinstance(one, str) and 0 < len(one) <= 128 and one.isprintable()]
    if len(texts) < 3:
        raise InputError("the event lacks resource_id, participant_id or status.", hint)
    return StatusChange(*texts)


def read_export(stream: IO[bytes], name: str) -> list[StatusChange]:
    """The submissions of the file that Prolific's page of a study has under 'Export'."""
    table = read_table(stream, name, uploaded_format(stream, name))
    header = [Prolific().normal_status(column).lower() for column in table.columns]
    missing = [column for column in EXPORT_COLUMNS if header.count(column) != 1]
    if missing:
        raise FileFormatError(
            f"{name} has no column {missing[0].capitalize()!r}; it has the columns {listed(table.columns)}.",
            "Give the file that Prolific exports, with demographic data or without.",
        )
    rows = table.rows([header.index(column) for column in EXPORT_COLUMNS])
    changes = (StatusChange(*map(cell_text, cells)) for _, *cells in rows)
    return [change for change in changes if all(change)]


def _seconds(text: str) -> float | None:
    """Seconds since 1970, also where they were given in milliseconds."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    if not 0 < seconds < 1e15:  # also not a number
        return None
    return seconds / 1000 if seconds > 1e11 else seconds
