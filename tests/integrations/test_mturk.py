"""Mechanical Turk's formats, as its documentation has them: the external question, its frame, and bonuses."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from xml.etree import ElementTree

import pytest

from nextlabel.errors import InputError
from nextlabel.integrations import mturk
from nextlabel.integrations.platform import Bonus

SITES = ("https://www.mturk.com", "https://workersandbox.mturk.com")
#: The requester guide's example of what is added to the address.
ACCEPTED = {
    "hitId": "123RVWYBAZW00EXAMPLE", "assignmentId": "123RVWYBAZW00EXAMPLE456RVWYBAZW00EXAMPLE",
    "turkSubmitTo": "https://www.mturk.com/", "workerId": "AZ3456EXAMPLE",
}  # fmt: skip


def test_an_accepted_assignment() -> None:
    found = mturk.read_assignment(ACCEPTED, SITES)
    assert found == (ACCEPTED["assignmentId"], ACCEPTED["hitId"], "AZ3456EXAMPLE", "https://www.mturk.com")
    assert found.submit_address == "https://www.mturk.com/mturk/externalSubmit"
    assert not mturk.is_preview(ACCEPTED) and mturk.is_preview({"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"})
    sandbox = mturk.read_assignment({**ACCEPTED, "turkSubmitTo": "https://workersandbox.mturk.com"}, SITES)
    assert sandbox.submit_address == "https://workersandbox.mturk.com/mturk/externalSubmit"


@pytest.mark.parametrize(
    "address",
    [
        "", "https://evil.example", "http://www.mturk.com", "https://www.mturk.com.evil.example",
        "https://www.mturk.com@evil.example", "https://evil.example/https://www.mturk.com", "https://www.mturk.com:8443",
        "https://www.mturk.com/x", "https://www.mturk.com/?x=1", "https://www.mturk.com/#x", "//www.mturk.com",
        "javascript:alert(1)", "https://[", "https://requester.mturk.com",
    ],
)  # fmt: skip
def test_work_is_handed_back_to_known_sites_alone(address: str) -> None:
    with pytest.raises(InputError, match="turkSubmitTo"):
        mturk.read_assignment({**ACCEPTED, "turkSubmitTo": address}, SITES)


@pytest.mark.parametrize("name", ["assignmentId", "hitId", "workerId"])
@pytest.mark.parametrize("value", ["", "a b", "<script>", "x" * 129])
def test_ids_are_ids(name: str, value: str) -> None:
    with pytest.raises(InputError, match=name):
        mturk.read_assignment({**ACCEPTED, name: value}, SITES)


def test_the_external_question_is_the_schemas() -> None:
    address = "https://labels.example.org/f/j3.x?a=1&b=<2>"
    root = ElementTree.fromstring(mturk.external_question(address, 800))
    space = "{http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd}"
    assert root.tag == f"{space}ExternalQuestion"
    assert [(child.tag, child.text) for child in root] == [
        (f"{space}ExternalURL", address),
        (f"{space}FrameHeight", "800"),
    ]
    for height in (-1, 20_001):
        with pytest.raises(InputError, match="height"):
            mturk.external_question(address, height)


def test_bonuses_are_the_arguments_of_send_bonus() -> None:
    table = mturk.MechanicalTurk().bonus_csv([Bonus("A1", "3X", Decimal("0.40"))], 'Labels in "a, b"')
    assert list(csv.DictReader(io.StringIO(table))) == [
        {"WorkerId": "A1", "AssignmentId": "3X", "BonusAmount": "0.40", "Reason": 'Labels in "a, b"'}
    ]
