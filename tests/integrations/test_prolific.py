"""Prolific's formats, as its documentation has them: signed events, statuses, exports and bonuses."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest

from nextlabel.errors import FileFormatError, InputError, TokenError
from nextlabel.integrations import prolific
from nextlabel.integrations.platform import Bonus

SECRET = "cGNqFPb6y0RT3XO9XVSessBDYIbHQ"
AT = 1_731_760_000.0
#: docs.prolific.com, Webhooks, Receiving; the identifiers have the form of Prolific's.
BODY = (
    b'{"resource_id": "6735f0a1b2c3d4e5f6a7b8c9", "event_type": "submission.status.change", '
    b'"participant_id": "60ffe5c8371090c7041d43f8", "status": "RETURNED"}'
)
#: Made with openssl: timestamp and body, HMAC-SHA256, base64 (docs.prolific.com, Webhooks, Verifying).
SIGNATURE = "OMuz9KOEDCB+3rUZaKTXhHGNsHFTKpHOyV9tGAX4GsQ="
HEADERS = {prolific.SIGNATURE: SIGNATURE, prolific.SIGNED_AT: "1731760000"}
#: The first columns of an export, with demographic data left out.
EXPORT = """Submission id,Participant id,Status,Custom study tncs accepted at,Started at,Completed at,Total approvals
6735f0a1b2c3d4e5f6a7b8c9,60ffe5c8371090c7041d43f8,RETURNED,Not Applicable,2026-11-16T10:00:00Z,,12
6735f0a1b2c3d4e5f6a7b8d0,60ffe5c8371090c7041d43f9,AWAITING REVIEW,Not Applicable,2026-11-16T10:00:00Z,,3
"""


def test_a_signed_event_is_read() -> None:
    prolific.check_signature((SECRET,), HEADERS, BODY, AT + 5)
    prolific.check_signature(("another", SECRET), HEADERS, BODY, AT + 5)
    change = prolific.read_status_change(BODY)
    assert change == ("6735f0a1b2c3d4e5f6a7b8c9", "60ffe5c8371090c7041d43f8", "RETURNED")


@pytest.mark.parametrize(
    ("secret", "headers", "body", "now"),
    [
        ("another", HEADERS, BODY, AT),
        (SECRET, HEADERS, BODY.replace(b"RETURNED", b"APPROVED"), AT),
        (SECRET, {**HEADERS, prolific.SIGNED_AT: "1731760001"}, BODY, AT),
        (SECRET, {**HEADERS, prolific.SIGNATURE: ""}, BODY, AT),
        (SECRET, {**HEADERS, prolific.SIGNATURE: "ü"}, BODY, AT),
        (SECRET, {}, BODY, AT),
        (SECRET, HEADERS, BODY, AT + 2 * prolific.MAX_AGE_S),
    ],
)
def test_what_was_not_signed_so_is_refused(secret: str, headers: dict[str, str], body: bytes, now: float) -> None:
    with pytest.raises(TokenError):
        prolific.check_signature((secret,), headers, body, now)
    with pytest.raises(TokenError):
        prolific.check_signature((), HEADERS, BODY, AT)


def test_a_signature_over_something_that_is_no_time_is_refused() -> None:
    signed = {prolific.SIGNATURE: prolific.signature(SECRET, "now", BODY), prolific.SIGNED_AT: "now"}
    with pytest.raises(TokenError):
        prolific.check_signature((SECRET,), signed, BODY, AT)


def test_other_events_and_bad_bodies() -> None:
    assert prolific.read_status_change(b'{"event_type": "study.status.change", "resource_id": "x"}') is None
    for body in (b"", b"[]", b"\xff", b'{"event_type": "submission.status.change", "status": 3}'):
        with pytest.raises(InputError):
            prolific.read_status_change(body)


def test_events_are_in_the_order_in_which_they_were_signed() -> None:
    forged = {**HEADERS, "x-timestamp": "1831760000"}  # anybody who has seen an event can add this header to it
    assert prolific.check_signature((SECRET,), forged, BODY, AT) == 1731760000


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        ("RESERVED", "keeps"), ("ACTIVE", "keeps"), ("AWAITING REVIEW", "keeps"), ("AWAITING_REVIEW", "keeps"),
        ("APPROVED", "keeps"), ("PARTIALLY APPROVED", "keeps"), ("SCREENED OUT", "keeps"), ("of tomorrow", "keeps"),
        ("RETURNED", "ends"), ("TIMED-OUT", "ends"), ("Timed_Out", "ends"), ("REJECTED", "rejects"),
    ],
)  # fmt: skip
def test_what_a_status_means(status: str, meaning: str) -> None:
    assert prolific.Prolific().meaning_of(status) == meaning


def test_the_study_link_has_the_placeholders_of_prolific() -> None:
    assert prolific.Prolific.query == (
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )
    assert prolific.Prolific().completion_address("C1") == "https://app.prolific.com/submissions/complete?cc=C1"


def test_bonuses_are_a_participant_and_an_amount_to_a_line() -> None:
    assert prolific.Prolific().bonus_csv([Bonus("60ffe5c8", "", Decimal("4.25"))], "") == "60ffe5c8,4.25\n"


def test_an_export_is_read_and_another_table_refused() -> None:
    found = prolific.read_export(io.BytesIO(EXPORT.encode()), "export.csv")
    assert [(one.visit[-2:], one.status) for one in found] == [("c9", "RETURNED"), ("d0", "AWAITING REVIEW")]
    with pytest.raises(FileFormatError, match="no column 'Submission id'"):
        prolific.read_export(io.BytesIO(b"worker,label\nann,1\n"), "labels.csv")
