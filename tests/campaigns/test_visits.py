"""Workers whom platforms send: visits, what statuses do to leases and labels, and bonuses, on every store."""

from __future__ import annotations

from decimal import Decimal

import pytest

from nextlabel.campaign.records import Visit
from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import InputError
from nextlabel.integrations.platform import StatusChange
from stores import everything, simple

WORKER = "prolific:p1"


def start(service: CampaignService, tasks: int = 4, **settings: object) -> str:
    given = [{"id": f"t{k}", "text": "x"} for k in range(tasks)]
    return service.create(simple(budget=20, **settings), tasks=given).id


def label(service: CampaignService, id: str, worker: str = WORKER) -> None:
    lease = service.ask(id, worker)
    assert lease, lease
    service.tell(lease.id, "yes")


def says(service: CampaignService, status: str, submission: str = "s1", at: float | None = None, **more: object) -> str:
    when = service.clock() if at is None else at
    return service.visits.status_changed("prolific", StatusChange(submission, "p1", status), when, **more)  # type: ignore[arg-type]


def standing(service: CampaignService, id: str, worker: str = WORKER) -> tuple[str, str]:
    row = {one.worker: one for one in service.store.workers(id)}[worker]
    return row.standing, row.reason


def counted(service: CampaignService, id: str) -> int:
    return sum(result.labels for result in service.results(id))


def test_records(service: CampaignService) -> None:
    id, other = start(service), start(service)
    visits = service.store.visits
    first = visits.add(Visit(id, "prolific", "s1", WORKER, "study", 10.0, 0))
    assert visits.add(Visit(id, "prolific", "s1", "prolific:p2", "other", 20.0, 3)) == first
    later = visits.add(Visit(other, "prolific", "s1", WORKER, "study", 5.0, 2))
    turk = visits.add(Visit(id, "mturk", "s1", "mturk:A", "hit", 15.0, 1))
    assert visits.find("prolific", "s1") == [later, first] and visits.find("prolific", "s2") == []
    assert visits.of(id) == [first, turk] and visits.of(id, "mturk") == [turk]
    assert visits.of(id, worker=WORKER) == [first] and visits.of(id, "mturk", WORKER) == []
    assert visits.set_status(first, "ACTIVE", 100.0) and not visits.set_status(first, "RESERVED", 99.0)
    assert visits.set_status(first, "RETURNED", 100.0)
    assert (visits.of(id)[0].status, visits.of(id)[0].status_at) == ("RETURNED", 100.0)
    assert visits.of(other)[0].status == ""
    service.delete(id)
    assert visits.of(id) == [] and visits.find("prolific", "s1") == [later]


@pytest.mark.parametrize("status", ["RETURNED", "TIMED-OUT"])
def test_what_somebody_held_who_left_goes_to_others(service: CampaignService, status: str) -> None:
    id = start(service, tasks=1, most_in_flight=1)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    held = service.ask(id, WORKER)
    assert held and not service.ask(id, "ann")
    for kept in ("RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED"):
        assert says(service, kept) == "kept"
        assert standing(service, id) == ("active", "") and not service.ask(id, "ann")
    assert says(service, status) == "ended" and says(service, status) == "ended"
    assert service.ask(id, "ann") and service.ask(id, WORKER).reason == "worker_blocked"  # type: ignore[union-attr]
    assert standing(service, id)[1].startswith("Prolific: submission s1 is ")
    assert not service.tell(held.id, "yes").counted  # the page was still open
    assert says(service, "AWAITING REVIEW") == "kept" and standing(service, id)[0] == "active"
    kinds = [event.kind for event in service.store.events(id)]
    assert kinds.count("worker_blocked") == kinds.count("worker_restored") == 1
    before = everything(service.store, id)
    service.rebuild(id)
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
    assert standing(service, id) == ("active", "") and service.store.visits.of(id)[0].status == "APPROVED"


def test_a_new_submission_is_welcome_and_an_old_one_has_no_say(service: CampaignService) -> None:
    id = start(service)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    label(service, id)
    says(service, "RETURNED")
    service.clock.forward(60)  # type: ignore[attr-defined]
    assert service.visits.begin(id, WORKER, "prolific", "s2", "study").labels_before == 1
    assert standing(service, id)[0] == "active"
    assert says(service, "REJECTED") == "rejected"  # the status is kept, and that is all
    assert standing(service, id)[0] == "active" and counted(service, id) == 1
    assert says(service, "REJECTED", submission="s2") == "rejected" and counted(service, id) == 0
    service.clock.forward(60)  # type: ignore[attr-defined]
    service.visits.begin(id, WORKER, "prolific", "s3", "study")
    assert standing(service, id)[0] == "blocked"  # whoever was rejected is not let in by coming again


def test_the_requesters_own_decision_stands(service: CampaignService) -> None:
    id = start(service)
    service.visits.begin(id, WORKER, "prolific", "s1", "study")
    label(service, id)
    service.set_standing(id, WORKER, "blocked", "guesses")
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
    assert [(one.worker, one.amount) for one in service.visits.bonuses(id, "prolific")] == [
        ("p0", Decimal("0.38")), ("p2", Decimal("0.25")), ("nobody_knows", Decimal("0.13")), ("p1", Decimal("0.13")),
    ]  # fmt: skip
    assert service.visits.bonus_csv(id, "prolific", 0.125) == "p0,0.25\np2,0.13\n"
    assert service.visits.bonus_csv(id, "mturk", 0.2) == (
        "WorkerId,AssignmentId,BonusAmount,Reason\nA0,3X0,0.18,Labels in Kettles\nA2,3X2,0.05,Labels in Kettles\n"
    )
    says(service, "REJECTED", submission="s1")  # of another participant: unknown
    service.visits.status_changed("prolific", StatusChange("s0", "p0", "REJECTED"), service.clock())
    assert service.visits.bonus_csv(id, "prolific", 0.125) == "p2,0.13\n"
    with pytest.raises(InputError, match="reward"):
        service.visits.bonuses(id, "mturk", -1.0)
    with pytest.raises(InputError, match="pay per label"):
        service.visits.bonuses(start(service), "mturk")
