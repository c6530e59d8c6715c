"""Amazon Mechanical Turk: the external question, the parameters of its frame, the way back, and bonuses.

Mechanical Turk (MTurk) shows a page of ours in a frame of its own page, and adds to the address

============== ==================================================================================================
parameter      holds
============== ==================================================================================================
assignmentId   the worker's assignment, or ``ASSIGNMENT_ID_NOT_AVAILABLE`` while they look at a preview
hitId          the HIT, that is the job on offer
workerId       the worker; not there in a preview
turkSubmitTo   the site to which the page hands the assignment back: the worker site or the sandbox
============== ==================================================================================================

The page hands an assignment back by a form that is sent to ``/mturk/externalSubmit`` of that site, with
``assignmentId`` and at least one more field.

Sources: docs.aws.amazon.com, *Amazon Mechanical Turk*: API reference, ExternalQuestion; Requester guide, How tasks are
rendered; SendBonus.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from nextlabel.errors import InputError
from nextlabel.files.write import csv_text
from nextlabel.integrations.platform import Bonus, Platform

ASSIGNMENT, HIT, WORKER, SUBMIT_TO = "assignmentId", "hitId", "workerId", "turkSubmitTo"
#: What MTurk sends instead of an assignment's id during a preview.
PREVIEW: Final = "ASSIGNMENT_ID_NOT_AVAILABLE"
SUBMIT_PATH: Final = "/mturk/externalSubmit"
SCHEMA: Final = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"
#: The highest frame, in pixels; 0 lets MTurk fit the frame to the worker's window.
MOST_HEIGHT: Final = 20_000
BONUS_COLUMNS: Final = ("WorkerId", "AssignmentId", "BonusAmount", "Reason")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class Assignment(NamedTuple):
    """An assignment that a worker has accepted; ``site`` is where it is handed back."""

    id: str
    hit: str
    worker: str
    site: str

    @property
    def submit_address(self) -> str:
        """Where the form is sent."""
        return self.site + SUBMIT_PATH


def is_preview(parameters: Mapping[str, str]) -> bool:
    """Whether a worker looks at the job before they accept it."""
    return parameters.get(ASSIGNMENT) == PREVIEW


def read_assignment(parameters: Mapping[str, str], sites: Collection[str]) -> Assignment:
    """The accepted assignment of an address; ``sites`` are those to which it may be handed back."""
    ids = [parameters.get(name, "") for name in (ASSIGNMENT, HIT, WORKER)]
    for name, value in zip((ASSIGNMENT, HIT, WORKER), ids, strict=True):
        if _ID.fullmatch(value) is None:
            raise InputError(
                f"{name} is missing or is not an id of Mechanical Turk.", "Open the page from Mechanical Turk."
            )
    address = parameters.get(SUBMIT_TO, "")
    try:
        parts = urlsplit(address)
        plain = parts.path in ("", "/") and not parts.query and not parts.fragment
    except ValueError:
        plain = False
    site = f"{parts.scheme}://{parts.netloc.lower()}" if plain else ""
    if site not in sites:  # anybody can write an address
        raise InputError(
            f"{SUBMIT_TO} {address[:100]!r} is not a site of Mechanical Turk that this service knows.",
            f"Whoever runs the service can allow more sites than {', '.join(sites) or 'none'} in "
            "NEXTLABEL_SUBMIT_HOSTS.",
        )
    return Assignment(ids[0], ids[1], ids[2], site)


def external_question(address: str, height: int = 0) -> str:
    """The XML that creates a HIT: the value of ``Question`` of CreateHIT."""
    if not 0 <= height <= MOST_HEIGHT:
        raise InputError(
            f"the frame's height {height} is not between 0 and {MOST_HEIGHT} pixels.",
            "Give e.g. 800, or 0 to fit the worker's window.",
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<ExternalQuestion xmlns="{SCHEMA}">\n'
        f"  <ExternalURL>{escape(address)}</ExternalURL>\n"
        f"  <FrameHeight>{height}</FrameHeight>\n"
        "</ExternalQuestion>\n"
    )


class MechanicalTurk(Platform):
    """Mechanical Turk, which shows the page in a frame and pays bonuses for assignments."""

    name, title, worker, visit, study = "mturk", "Mechanical Turk", WORKER, ASSIGNMENT, HIT
    framed = bonus_needs_visit = True
    currency = "in US dollars"

    def bonus_csv(self, bonuses: Iterable[Bonus], reason: str) -> str:
        """A table with the arguments of SendBonus: worker, assignment, amount in US dollars, and why."""
        return csv_text([BONUS_COLUMNS, *((one.worker, one.visit, one.amount, reason) for one in bonuses)])
