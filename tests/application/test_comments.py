"""A worker's comment on a task, on every store: in the log with the answer, exported, and safe in a spreadsheet."""

from __future__ import annotations

import csv
import io
from dataclasses import astuple

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign.declaration import LONGEST_COMMENT
from nextlabel.errors import ConflictError, InputError
from nextlabel.files.write import export_text
from nextlabel.store.sql import open_store
from stores import everything, simple


def start(service: CampaignService, tasks: int = 4) -> str:
    return service.create(simple(budget=9), tasks=[{"id": f"t{k}", "text": "x"} for k in range(tasks)]).id


def held(service: CampaignService, id: str, worker: str) -> str:
    lease = service[id].ask(worker)
    assert lease
    return lease.id


def test_a_comment_is_kept_with_the_answer_and_follows_from_the_log(service: CampaignService) -> None:
    id = start(service)
    first = held(service, id, "ann")
    service[first].tell(first, "yes", comment=" =1+1\r\ntwo ")
    service[first].tell(first, "yes", comment="again")  # the same answer changes nothing
    with pytest.raises(ConflictError):
        service[first].tell(first, "no", comment="other")
    skipped = held(service, id, "ann")
    service[skipped].release(skipped, comment="cannot read it")
    service[id].tell(held(service, id, "bob"), "no")
    said = [(event.kind, event.data["comment"]) for event in service.store.events(id) if "comment" in event.data]
    assert said == [("labelled", "=1+1\ntwo"), ("released", "cannot read it")]
    rows = {(one.worker, one.label): one.comment for one in service[id].labels(unanswered=True)}
    assert rows == {("ann", "yes"): "=1+1\ntwo", ("ann", None): "cannot read it", ("bob", "no"): None}
    written = export_text(astuple(one) for one in service[id].labels())
    cells = {row[1]: row[-1] for row in csv.reader(io.StringIO(written))}
    assert cells == {"ann": "'=1+1\ntwo", "bob": ""}  # not run by a spreadsheet
    before = everything(service.store, id)
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == before


def test_another_answer_replaces_it(service: CampaignService) -> None:
    id = start(service)
    lease = held(service, id, "ann")
    service[lease].tell(lease, "yes", comment="first")
    service[lease].undo(lease)
    assert service.store.leases(id, commented=True)[0].comment == "first"  # the page shows it again
    service[lease].tell(lease, "no")
    assert [one.comment for one in service[id].labels()] == [None]
    assert service.store.leases(id, commented=True) == []
    assert service[id].verify().right


def test_the_last_comments_are_read_alike_from_all_stores(service: CampaignService) -> None:
    id = start(service)
    for worker in ("ann", "bob"):
        for n in range(3):
            service[id].tell(held(service, id, worker), "yes", comment=f"{worker} {n}" if n else None)
    every = service.store.leases(id)[::-1]
    for worker, limit, said in (
        (None, 3, ["bob 2", "bob 1", "ann 2"]), ("ann", 9, ["ann 2", "ann 1"]), ("cat", 9, []),
    ):  # fmt: skip
        found = service.store.leases(id, commented=True, worker=worker, limit=limit)
        assert [lease.comment for lease in found] == said
        assert found == [one for one in every if one.comment and worker in (None, one.worker)][:limit]


@pytest.mark.parametrize("comment", ["x" * (LONGEST_COMMENT + 1), "a\x00b", "\ud800", 7])
def test_what_is_no_comment_is_refused_with_the_answer(comment: object) -> None:
    service = CampaignService(open_store("memory:"))
    lease = held(service, start(service), "ann")
    for attempt in (
        lambda: service[lease].tell(lease, "yes", comment=comment),
        lambda: service[lease].release(lease, comment=comment),
    ):  # type: ignore[arg-type]
        with pytest.raises(InputError, match="a comment is a text of at most 1000"):
            attempt()
    assert service[lease].tell(lease, "yes", comment=" \n ").status == "labelled"
    assert service[lease].tell(lease, "yes", comment="x" * LONGEST_COMMENT).counted
