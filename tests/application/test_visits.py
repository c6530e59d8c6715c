"""Workers whom platforms send: visits, what statuses do to leases and labels, and bonuses, on every store."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign.records import Visit
from nextlabel.errors import InputError
from nextlabel.integrations.platform import StatusChange
from stores import everything, simple

WORKER = "prolific:p1"


def start(service: CampaignService, tasks: int = 4, **settings: object) -> str:
    given = [{"id": f"t{k}", "text": "x"} for k in range(tasks)]
    return service.create(simple(budget=20, **settings), tasks=given).id


def label(service: CampaignService, id: str, worker: str = WORKER) -> None:
    lease = service[id].ask(worker)
    assert lease, lease
    service[lease.campaign].tell(lease.id, "yes")


def says(service: CampaignService, status: str, submission: str = "s1", at: float | None = None, **more: object) -> str:
    when = service.clock() if at is None else at
    return service.visits.status_changed("prolific", StatusChange(submission, "p1", status), when, **more)  # type: ignore[arg-type]


def standing(service: CampaignService, id: str, worker: str = WORKER) -> tuple[str, str]:
    row = {one.worker: one for one in service.store.workers(id)}[worker]
    return row.standing, row.reason


def counted(service: CampaignService, id: str) -> int:
    return sum(result.labels for result in service[id].results())


def test_records(service: CampaignService) -> None:
    id, other = start(service), start(service)
    records, find = service.store.records, partial(service.store.records.find, Visit)
    first, later, turk = (
        Visit(id, "prolific", "s1", WORKER, "study", 10.0, 0),
        Visit(other, "prolific", "s1", WORKER, "study", 5.0, 2),
        Visit(id, "mturk", "s1", "mturk:A", "hit", 15.0, 1),
    )
    assert all(records.add(visit) for visit in (first, later, turk))
    assert not records.add(Visit(id, "prolific", "s1", "prolific:p2", "other", 20.0, 3))
    assert find(platform="prolific", id="s1") == [later, first] and find(platform="prolific", id="s2") == []
    assert find(campaign=id, platform=None) == [first, turk] and find(campaign=id, platform="mturk") == [turk]
    assert find(campaign=id, worker=WORKER) == [first] and find(campaign=id, platform="mturk", worker=WORKER) == []
    assert records.hear(first, "ACTIVE", 100.0) and not records.hear(first, "RESERVED", 99.0)
    assert records.hear(first, "RETURNED", 100.0)
    assert (find(campaign=id)[0].status, find(campaign=id)[0].status_at) == ("RETURNED", 100.0)
    assert find(campaign=other)[0].status == ""
    service.delete(id)
    assert find(campaign=id) == [] and find(platform="prolific", id="s1") == [later]


@pytest.mark.parametrize("status", ["RETURNED", "TIMED-OUT"])
def test_what_somebody_held_who_left_goes_to_others(service: CampaignService, status: str) -> None:
    id = start(service, tasks=1, most_in_flight=1)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    held = service[id].ask(WORKER)
    assert held and not service[id].ask("ann")
    for kept in ("RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED"):
        assert says(service, kept) == "kept"
        assert standing(service, id) == ("active", "") and not service[id].ask("ann")
    assert says(service, status) == "ended" and says(service, status) == "ended"
    assert service[id].ask("ann") and service[id].ask(WORKER).reason == "worker_blocked"  # type: ignore[union-attr]
    assert standing(service, id)[1].startswith("Prolific: submission s1 is ")
    assert not service[held.campaign].tell(held.id, "yes").counted  # the page was still open
    assert says(service, "AWAITING REVIEW") == "kept" and standing(service, id)[0] == "active"
    kinds = [event.kind for event in service.store.events(id)]
    assert kinds.count("worker_blocked") == kinds.count("worker_restored") == 1
    before = everything(service.store, id)
    service[id].rebuild()
    assert everything(service.store, id) == before


def test_labels_of_a_rejected_submission_are_dropped_and_come_back(service: CampaignService) -> None:
    id = start(service)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    label(service, id)
    label(service, id)
    assert says(service, "AWAITING REVIEW") == "kept" and counted(service, id) == 2
    assert says(service, "REJECTED") == "rejected" and counted(service, id) == 0
    assert standing(service, id)[0] == "blocked" and service.store.row(id).spent == 2
    assert says(service, "APPROVED") == "kept" and counted(service, id) == 2
    assert standing(service, id)[0] == "active"


def test_labels_of_those_who_return_count_unless_the_service_says_otherwise(service: CampaignService) -> None:
    id = start(service)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    label(service, id)
    assert says(service, "RETURNED") == "ended" and counted(service, id) == 1
    assert says(service, "RETURNED", drops=("returned",)) == "ended" and counted(service, id) == 0


def test_events_that_come_late_or_are_about_others_do_nothing(service: CampaignService) -> None:
    id, now = start(service), service.clock()
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    label(service, id)
    assert says(service, "RETURNED", submission="elsewhere") == "unknown"
    stranger = StatusChange("s1", "p2", "RETURNED")
    assert service.visits.status_changed("prolific", stranger, now) == "unknown"
    assert says(service, "APPROVED", at=now) == "kept"
    assert says(service, "RETURNED", at=now - 60) == "outdated"
    assert (
        standing(service, id) == ("active", "")
        and service.store.records.find(Visit, campaign=id)[0].status == "APPROVED"
    )


def test_a_new_submission_is_welcome_when_prolific_knows_it(service: CampaignService) -> None:
    id = start(service)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    label(service, id)
    says(service, "RETURNED")
    service.clock.forward(60)  # type: ignore[attr-defined]
    assert service.visits.begin(id, WORKER, "prolific", "s2", "study").labels_before == 1
    assert standing(service, id)[0] == "blocked"  # anybody can write s2 into the address
    assert says(service, "ACTIVE", submission="s2") == "kept" and standing(service, id)[0] == "active"
    service.clock.forward(60)  # type: ignore[attr-defined]
    assert says(service, "ACTIVE", submission="s3") == "unknown"  # before the browser came
    says(service, "RETURNED", submission="s2")
    assert standing(service, id)[0] == "blocked"
    service.clock.forward(60)  # type: ignore[attr-defined]
    service.visits.begin(id, WORKER, "prolific", "s3", "study")
    assert standing(service, id)[0] == "active"


def test_a_rejection_on_any_visit_counts(service: CampaignService) -> None:
    id = start(service)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    label(service, id)
    says(service, "AWAITING REVIEW")
    service.clock.forward(60)  # type: ignore[attr-defined]
    service.visits.begin(id, WORKER, "prolific", "made_up", "study")
    assert says(service, "REJECTED") == "rejected" and counted(service, id) == 0
    assert standing(service, id)[0] == "blocked" and standing(service, id)[1].startswith("Prolific: submission s1 is")
    service.clock.forward(60)  # type: ignore[attr-defined]
    service.visits.begin(id, WORKER, "prolific", "s2", "study")
    assert says(service, "ACTIVE", submission="s2") == "rejected" and standing(service, id)[0] == "blocked"
    assert says(service, "APPROVED") == "kept" and counted(service, id) == 1 and standing(service, id)[0] == "active"


def test_another_submissions_id_does_not_evade_what_becomes_of_ones_own(service: CampaignService) -> None:
    id, study = start(service), start(service)
    service.visits.begin(id, WORKER, "prolific", "made_up", "study")
    label(service, id)
    label(service, id)
    assert says(service, "REJECTED", submission="real") == "rejected"
    assert standing(service, id)[0] == "blocked" and counted(service, id) == 0
    assert service.visits.bonuses(start(service, pay_per_label=1.0), "prolific") == []
    # An honest one, whose other submission belongs to another study of the workspace, is known by their own.
    service.visits.begin(study, "prolific:p2", "prolific", "own", "study")
    label(service, study, "prolific:p2")
    tell = service.visits.status_changed
    assert tell("prolific", StatusChange("other", "p2", "REJECTED"), service.clock()) == "rejected"
    assert tell("prolific", StatusChange("own", "p2", "ACTIVE"), service.clock()) == "kept"
    assert standing(service, study, "prolific:p2")[0] == "active" and counted(service, study) == 1
    assert tell("prolific", StatusChange("more", "p2", "REJECTED"), service.clock()) == "unknown"
    assert standing(service, study, "prolific:p2")[0] == "active" and counted(service, study) == 1


def test_an_export_names_submissions_that_never_began_here(service: CampaignService) -> None:
    id = start(service)
    service.visits.begin(id, WORKER, "prolific", "made_up", "study")
    service.visits.begin(id, "prolific:p2", "prolific", "s2", "study")
    label(service, id)
    export = [StatusChange("real", "p1", "REJECTED"), StatusChange("s2", "p2", "APPROVED"),
              StatusChange("s9", "p9", "APPROVED")]  # fmt: skip
    assert service.visits.statuses_changed(id, "prolific", export) == {"rejected": 1, "kept": 1}
    assert standing(service, id)[0] == "blocked" and counted(service, id) == 0
    assert service.visits.statuses_changed(id, "prolific", [StatusChange("s8", "p2", "REJECTED")]) == {}


def test_made_up_visits_take_nobodys_bonus(service: CampaignService) -> None:
    id = start(service, pay_per_label=1.0)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    label(service, id)
    label(service, id)
    says(service, "APPROVED")
    for forged in ("x1", "x2", "x3"):
        service.visits.begin(id, WORKER, "prolific", forged, "study")
    assert service.visits.bonus_csv(id, "prolific", 0.5) == "p1,1.50\n"
    service.visits.begin(id, "prolific:p7", "prolific", "x7", "study")
    label(service, id, "prolific:p7")
    assert service.visits.bonus_csv(id, "prolific", 0.5) == "p1,1.50\n"
    note = service.visits.unconfirmed(id, "prolific")
    assert note.startswith("1 worker with labels is not in the list: Prolific has said nothing") and ":p7" in note
    says(service, "RETURNED")  # for which Prolific pays no reward
    assert service.visits.bonus_csv(id, "prolific", 0.5) == "p1,2.00\n"


def test_the_requesters_own_decision_stands(service: CampaignService) -> None:
    id = start(service)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    label(service, id)
    service[id].set_standing(WORKER, "blocked", "guesses")
    assert says(service, "RETURNED") == "ended" and says(service, "ACTIVE") == "kept"
    assert standing(service, id) == ("blocked", "guesses")


def test_somebody_who_never_had_a_task(service: CampaignService) -> None:
    id = start(service)
    assert service.visits.begin(id, WORKER, "prolific", "s1", "study").labels_before == 0
    assert says(service, "REJECTED") == "rejected" and service.store.workers(id) == []


def test_bonuses(service: CampaignService) -> None:
    id = start(service, pay_per_label=0.125, name="Kettles")
    for k, labels in enumerate((3, 1, 2)):
        service.visits.begin(id, f"prolific:p{k}", "prolific", f"s{k}", "study")
        service.visits.begin(id, f"mturk:A{k}", "mturk", f"3X{k}", "hit")
        for _ in range(labels):
            label(service, id, f"prolific:p{k}")
            label(service, id, f"mturk:A{k}")
    label(service, id, "ann")
    label(service, id, "prolific:nobody_knows")
    assert service.visits.bonus_csv(id, "mturk", 0.2) == (
        "WorkerId,AssignmentId,BonusAmount,Reason\nA0,3X0,0.18,Labels in Kettles\nA2,3X2,0.05,Labels in Kettles\n"
    )
    assert service.visits.bonuses(id, "prolific") == []  # Prolific has said nothing yet
    for k in range(3):
        service.visits.status_changed("prolific", StatusChange(f"s{k}", f"p{k}", "APPROVED"), service.clock())
    assert [(one.worker, one.amount) for one in service.visits.bonuses(id, "prolific")] == [
        ("p0", Decimal("0.38")), ("p2", Decimal("0.25")), ("p1", Decimal("0.13")),
    ]  # fmt: skip
    assert service.visits.bonus_csv(id, "prolific", 0.125) == "p0,0.25\np2,0.13\n"
    says(service, "REJECTED", submission="s1")  # of another participant: unknown
    service.visits.status_changed("prolific", StatusChange("s0", "p0", "REJECTED"), service.clock())
    assert service.visits.bonus_csv(id, "prolific", 0.125) == "p2,0.13\n"
    with pytest.raises(InputError, match="reward"):
        service.visits.bonuses(id, "mturk", -1.0)
    with pytest.raises(InputError, match="pay per label"):
        service.visits.bonuses(start(service), "mturk")
