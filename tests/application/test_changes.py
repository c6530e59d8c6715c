"""What workers see may change while a campaign runs, on every store: each change is an event, and labels stay."""

from __future__ import annotations

from typing import Any

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign.declaration import LONGEST_INSTRUCTIONS
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import InputError
from stores import everything, simple

NEW: dict[str, Any] = {
    "name": "Reviews", "question": "Is it good?", "display_names": ["Bad", "Good"], "instructions": "# Read\n\n*this*",
    "language": "ar", "show": ["text", "email"],
}  # fmt: skip


def start(service: CampaignService, **settings: Any) -> str:
    tasks = [{"id": f"t{k}", "text": "x", "city": "Bern", "email": "a@b.c"} for k in range(3)]
    return service.create(simple(**settings), tasks=tasks).id


def test_changes_are_events_and_follow_from_the_log(service: CampaignService) -> None:
    id = start(service, question="Old?")
    held = service[id].ask("ann")
    assert held and held.payload == {"text": "x", "city": "Bern"}  # an address looks personal
    service[id].change(**NEW)
    row = service.store.row(id)
    assert row.config.show == ("text", "email") and row.config.display_names == ("Bad", "Good")
    assert {name: row.config.to_dict()[name] for name in NEW} == NEW
    again = service[id].ask("ann")
    assert again and again.id == held.id and again.payload == {"text": "x", "email": "a@b.c"}
    service[id].change(**NEW)  # nothing new: no event
    changed = [event for event in service.store.events(id) if event.kind == "changed"]
    assert [event.data for event in changed] == [NEW]
    assert service[held.campaign].tell(held.id, "yes").label == "yes"  # the labels are what they were
    assert [one.label for one in service[id].labels()] == ["yes"]
    before = everything(service.store, id)
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == before
    service[id].change(display_names=None, language=None, show=None, instructions="", name="")
    back = service.store.row(id)
    assert back.config == simple(question="Is it good?")
    assert CampaignSettings.from_log(back.config.to_dict()) == back.config


def test_the_same_campaign_is_still_the_same_after_a_change(service: CampaignService) -> None:
    service.create(simple(), "mine", [{"text": "x"}])
    service["mine"].change(question="Other?")
    assert service.create(simple(), "mine", [{"text": "x"}]).id == "mine"
    assert service.store.row("mine").config.question == "Other?"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"display_names": ["one"]}, "1 display names were given for 2"),
        ({"display_names": ["a", "a"]}, "read alike"),
        ({"display_names": "ab"}, "should be a list of names"),
        ({"instructions": "x" * (LONGEST_INSTRUCTIONS + 1)}, "at most 20000"),
        ({"question": "nul\x00"}, "question"),
        ({"language": "tlh"}, "should be 'en', 'de', "),
        ({"deadline": 1000.0}, "the deadline 1970-01-01T00:16:40.000Z is in the past: it is"),
        ({"show": ["txet"]}, "no column 'txet'"),
        ({"show": []}, "no column is shown"),
        ({"labels": ["a", "b"]}, "'labels' cannot be changed"),
        ({"question": "fine", "language": "tlh"}, "should be 'en', 'de', "),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(values: dict[str, Any], says: str) -> None:
    from nextlabel.store.sql import open_store

    service = CampaignService(open_store("memory:"))
    id = start(service)
    before = service.store.row(id)
    with pytest.raises(InputError, match=says):
        service[id].change(**values)
    assert service.store.row(id) == before


def test_a_deadline_in_the_past_is_refused_at_creation(
    service: CampaignService,
) -> None:
    with pytest.raises(InputError, match="is in the past"):
        service.create(simple(deadline=service.clock() - 60.0), "late")
    assert [row.id for row in service.store.campaigns()] == []
    soon = simple(deadline=service.clock() + 60.0)
    service.create(soon, "soon")
    service.clock.forward(120)  # type: ignore[attr-defined]
    assert service.create(soon, "soon").id == "soon"  # the same again is the same campaign


def test_display_names_are_checked_at_creation() -> None:
    with pytest.raises(InputError, match="3 display names were given for 2 labels"):
        simple(display_names=["a", "b", "c"])
    assert simple(display_names=["a", "b"]).shown_labels == ("a", "b")
    assert simple(instructions=" a\r\nb ").instructions == "a\nb"
