"""One suite for all stores: transactions, the rules of leases, rebuilding from events."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nextlabel.campaign.config import Config
from nextlabel.campaign.life import Life
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.store.office import Office
from nextlabel.store.sql import SqlStore
from stores import KINDS, Clock, everything, office_of, opened, simple


@pytest.fixture(params=KINDS)
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    with opened(request.param, tmp_path) as store:
        office = office_of(store, Clock())
        yield office
        office.desk.close()


def start(office: Office, tasks: int = 3, **config: object) -> str:
    id = office.create(simple(**config)).id
    office.add_tasks(id, [{"id": f"t{k}", "text": f"item {k}"} for k in range(tasks)])
    return id


def forward(office: Office, seconds: float) -> None:
    office.clock.forward(seconds)  # type: ignore[attr-defined]


def ask(office: Office, id: str, worker: str):
    lease = office.ask(id, worker)
    assert lease, lease
    return lease


def reason(office: Office, id: str, worker: str) -> str:
    answer = office.ask(id, worker)
    assert not answer
    return answer.reason


def test_a_label_from_ask_to_result(office: Office) -> None:
    id = start(office)
    lease = ask(office, id, "ann")
    assert lease.status == "leased" and lease.payload == {"text": f"item {lease.task[1:]}"}
    assert lease.expires_at == office.clock() + 60
    row = office.store.row(id)
    assert (row.spent, row.reserved, row.left) == (0, 1, 5)
    told = office.tell(lease.id, "yes")
    assert (told.status, told.label, told.counted) == ("labelled", "yes", True)
    row = office.store.row(id)
    assert (row.spent, row.reserved, row.left, row.kept) == (1, 0, 5, 1)
    result = {r.task: r for r in office.results(id)}[lease.task]
    assert (result.label, result.labels, result.counts) == ("yes", 1, {"no": 0, "yes": 1})
    assert result.probability == pytest.approx(0.75)  # Beta(2, 1): P(theta > 1/2) = 3/4
    assert not result.closed


def test_asking_again_gives_the_same_lease(office: Office) -> None:
    id = start(office)
    assert ask(office, id, "ann") == ask(office, id, "ann")
    assert office.store.row(id).reserved == 1


def test_a_worker_never_gets_a_task_twice(office: Office) -> None:
    id = start(office, tasks=3)
    seen = []
    for move in (office.release, lambda lease: office.tell(lease, "no"), None):
        lease = ask(office, id, "ann")
        seen.append(lease.task)
        if move is None:
            forward(office, 61)
        else:
            move(lease.id)
    assert sorted(seen) == ["t0", "t1", "t2"]
    assert reason(office, id, "ann") == "nothing_left_for_you"
    assert ask(office, id, "bob")


def test_same_answer_again_is_the_same_reply_another_a_conflict(office: Office) -> None:
    id = start(office)
    lease = ask(office, id, "ann")
    first = office.tell(lease.id, "yes")
    before = everything(office.store, id)
    assert office.tell(lease.id, "yes") == first
    with pytest.raises(ConflictError, match="answered with 'yes' before"):
        office.tell(lease.id, "no")
    assert everything(office.store, id) == before


def test_an_expired_lease_gives_its_reservation_back_and_a_late_answer_counts(office: Office) -> None:
    id = start(office, tasks=1, budget=2)
    lease = ask(office, id, "ann")
    forward(office, 60)  # expires at that moment
    assert ask(office, id, "bob").task == lease.task
    row = office.store.row(id)
    assert (row.reserved, row.expired) == (1, 1)
    told = office.tell(lease.id, "yes")
    assert (told.status, told.counted) == ("late", True)
    assert office.tell(lease.id, "yes") == told
    row = office.store.row(id)
    assert (row.spent, row.reserved, row.late) == (1, 1, 1)


def test_a_late_answer_without_budget_is_kept_but_not_counted(office: Office) -> None:
    id = start(office, tasks=1, budget=1)
    late = ask(office, id, "ann")
    forward(office, 100)
    office.tell(ask(office, id, "bob").id, "no")
    told = office.tell(late.id, "yes")
    assert (told.status, told.counted) == ("late", False)
    row = office.store.row(id)
    assert (row.spent, row.kept, row.late) == (1, 2, 1)
    assert next(office.results(id)).counts == {"no": 1, "yes": 0}


def test_budget_is_reserved_and_never_overspent(office: Office) -> None:
    id = start(office, tasks=5, budget=3)
    leases = [ask(office, id, w) for w in ("a", "b", "c")]
    answer = office.ask(id, "d")
    assert answer.reason == "all_leased" and answer.retry_after == 30
    for lease in leases:
        office.tell(lease.id, "yes")
    assert reason(office, id, "d") == "budget_spent"
    row = office.store.row(id)
    assert (row.spent, row.closed_reason) == (3, "budget_spent")
    assert all(r.closed and r.closed_reason == "budget_spent" for r in office.results(id))
    closing = office.store.events(id, row.closed_seq - 1, 1)[0]
    assert (closing.kind, closing.data) == ("closed", {"reason": "budget_spent"})


def test_budget_can_be_raised_and_lowered_while_leases_are_out(office: Office) -> None:
    id = start(office, tasks=5, budget=3)
    leases = [ask(office, id, w) for w in ("a", "b", "c")]
    office.tell(leases[0].id, "yes")
    office.change(id, {"budget": 1})
    told = office.tell(leases[1].id, "yes")
    assert (told.status, told.counted) == ("labelled", False)
    assert office.store.row(id).spent == 1
    assert reason(office, id, "d") == "budget_spent"
    office.change(id, {"budget": 9})
    assert office.store.row(id).closed_reason is None
    assert ask(office, id, "d")


def test_a_budget_below_what_was_spent_is_refused(office: Office) -> None:
    id = start(office, tasks=5, budget=4)
    for w in ("a", "b"):
        office.tell(ask(office, id, w).id, "yes")
    with pytest.raises(ConflictError, match="2 labels have been bought already"):
        office.change(id, {"budget": 1})
    assert office.store.row(id).budget == 4


def test_pause_and_resume(office: Office) -> None:
    id = start(office)
    lease = ask(office, id, "ann")
    office.pause(id)
    office.pause(id)
    assert ask(office, id, "ann") == lease  # what is out goes on
    assert reason(office, id, "bob") == "paused"
    office.tell(lease.id, "no")
    office.resume(id)
    office.resume(id)
    assert ask(office, id, "bob")
    kinds = [event.kind for event in office.store.events(id)]
    assert kinds.count("paused") == kinds.count("resumed") == 1


def test_deadline(office: Office) -> None:
    id = start(office, deadline=Clock().now + 100)
    forward(office, 70)
    lease = ask(office, id, "ann")
    assert lease.expires_at == office.clock() + 30  # no lease outlives the deadline
    forward(office, 30)
    assert reason(office, id, "bob") == "deadline_passed"
    assert office.tell(lease.id, "yes").status == "late"
    office.change(id, {"deadline": None})
    assert ask(office, id, "bob")


def test_a_deadline_moved_forward_ends_the_leases_that_are_out(office: Office) -> None:
    id = start(office, lease_seconds=600.0)
    lease = ask(office, id, "ann")
    office.tell(ask(office, id, "bob").id, "yes")
    office.change(id, {"deadline": office.clock() + 10})
    forward(office, 20)
    told = office.tell(lease.id, "yes")
    assert (told.status, told.counted) == ("late", True)
    row = office.store.row(id)
    assert (row.expired, row.reserved, row.closed_reason) == (1, 0, "deadline_passed")
    bobs = next(one for one in everything(office.store, id)["leases"] if one.worker == "bob")
    with pytest.raises(ConflictError, match="time is over"):
        office.undo(bobs.id)


def test_no_task_gets_more_labels_than_it_can_have(office: Office) -> None:
    """An answer that did not count, taken back after its place was given to somebody else."""
    id = start(office, tasks=2, budget=2, most_labels=1)
    first, second = ask(office, id, "ann"), ask(office, id, "bob")
    office.tell(second.id, "yes")
    office.change(id, {"budget": 1})
    assert office.tell(first.id, "yes").counted is False
    office.change(id, {"budget": 3})
    third = ask(office, id, "cy")
    assert third.task == first.task
    office.undo(first.id)
    assert office.tell(first.id, "yes").counted is True
    assert office.tell(third.id, "no").counted is False
    result = {r.task: r for r in office.results(id)}[first.task]
    assert (result.labels, result.counts) == (1, {"no": 0, "yes": 1})
    assert office.store.row(id).full == 2


def test_a_campaign_without_tasks_asks_for_patience(office: Office) -> None:
    id = start(office, tasks=0)
    answer = office.ask(id, "ann")
    assert answer.reason == "preparing" and answer.retry_after == 30
    assert office.store.row(id).closed_reason is None
    office.add_tasks(id, ["a"])
    assert ask(office, id, "ann")


def test_a_label_that_is_worth_its_price_again_opens_the_campaign(office: Office) -> None:
    """Closed because no label was worth its cost; then a late answer leaves a task undecided."""
    id = start(office, tasks=1, budget=50, policy="index", label_cost=0.02)
    late = ask(office, id, "late")
    forward(office, 61)
    for worker in "abcdefgh":
        answer = office.ask(id, worker)
        if not answer:
            break
        office.tell(answer.id, "yes")
    assert office.store.row(id).closed_reason == "below_price"
    labels = office.store.row(id).spent
    office.tell(late.id, "no")
    answer = office.ask(id, "z")
    assert labels == 2 and answer, "two yes and a no are worth another label"
    assert office.store.row(id).closed_reason is None
    assert not any(result.closed for result in office.results(id))


def test_release_and_renew(office: Office) -> None:
    id = start(office)
    lease = ask(office, id, "ann")
    forward(office, 50)
    renewed = office.renew(lease.id)
    assert renewed.expires_at == lease.expires_at + 50
    released = office.release(lease.id)
    assert released.status == "released" and office.release(lease.id) == released
    with pytest.raises(ConflictError, match="the lease is released: renew is not possible"):
        office.renew(lease.id)
    assert office.tell(lease.id, "yes").status == "late"
    with pytest.raises(ConflictError):
        office.release(lease.id)


def test_undo_while_the_lease_would_still_be_out(office: Office) -> None:
    id = start(office, tasks=2, budget=2)
    lease = ask(office, id, "ann")
    office.tell(lease.id, "yes")
    second = ask(office, id, "ann")
    before = everything(office.store, id)["groups"]
    assert office.undo(lease.id).status == "leased"
    assert office.undo(lease.id).status == "leased"
    assert (office.store.row(id).spent, office.store.row(id).reserved) == (0, 2)
    assert ask(office, id, "ann").id == lease.id  # the older one first
    office.tell(lease.id, "no")
    assert ask(office, id, "ann").id == second.id
    office.tell(second.id, "no")
    assert reason(office, id, "bob") == "budget_spent"
    office.undo(second.id)
    assert office.store.row(id).closed_reason is None
    assert before == {(0, 0, 1): 1, (0, 2, 0): 1}
    assert office.store.groups(id) == {(0, 0, 1): 1, (0, 1, 0): 1}  # one 'no' instead of a 'yes', one out again
    forward(office, 120)
    with pytest.raises(ConflictError, match="time is over"):
        office.undo(lease.id)


def test_finished_when_every_task_has_all_its_labels(office: Office) -> None:
    id = start(office, tasks=2, budget=50, most_labels=2)
    for worker in ("a", "b"):
        for _ in range(2):
            office.tell(ask(office, id, worker).id, "yes")
    assert reason(office, id, "c") == "finished"
    result = next(office.results(id))
    assert result.closed_reason == "most_labels"
    event = office.store.events(id, result.closed_by - 1, 1)[0]
    assert event.kind == "labelled"  # the event that closed it
    office.add_tasks(id, [{"id": "new", "text": "one more"}])
    last = ask(office, id, "c")
    assert last.task == "new"
    for worker in ("c", "d"):
        last = ask(office, id, worker)
        office.tell(last.id, "no")
    assert all(r.closed for r in office.results(id))
    office.undo(last.id)
    assert [r.task for r in office.results(id) if not r.closed] == ["new"]


def test_all_leased_when_no_task_may_have_more_in_flight(office: Office) -> None:
    id = start(office, tasks=1, budget=9, most_in_flight=2)
    ask(office, id, "a")
    ask(office, id, "b")
    answer = office.ask(id, "c")
    assert answer.reason == "all_leased" and answer.retry_after == 30


def test_below_price(office: Office) -> None:
    id = start(office, tasks=2, budget=50, policy="index", label_cost=0.3)
    assert reason(office, id, "a") == "below_price"
    assert office.store.row(id).closed_reason == "below_price"


def test_tasks_again_are_known_and_others_under_the_same_id_refused(office: Office) -> None:
    id = start(office, tasks=3)
    again = office.add_tasks(id, [{"id": "t1", "text": "item 1"}, {"id": "t9", "text": "item 9"}])
    assert (again.added, again.known, again.tasks) == (1, 1, 4)
    before = everything(office.store, id)
    with pytest.raises(ConflictError, match="another payload"):
        office.add_tasks(id, [{"id": "t10"}, {"id": "t1", "text": "other"}])
    assert everything(office.store, id) == before


def test_a_batch_is_taken_in_once(office: Office) -> None:
    id = start(office, tasks=0)
    assert office.add_tasks(id, ["a", "b"], batch="one").added == 2
    assert office.add_tasks(id, ["a", "b"], batch="one").known == 2
    assert office.add_tasks(id, ["a", "b"]).tasks == 4  # without a name they are other tasks


def test_bad_input_is_one_sentence_and_nothing_is_written(office: Office) -> None:
    id = start(office)
    before = everything(office.store, id)
    for tasks, said in (
        ([{"id": ""}], "the id of task 1"),
        ([{"id": "x"}, {"id": "y", "score": 1.5}], "task 2: score '1.5' is not a probability"),
        ([{"id": "x", "prior": [1, 1, 1]}], "the prior of task 1 has 3 answers"),
        ([{"id": "x", "text": "y" * 70_000}], "the payload of task 1"),
        ([{"id": "x", "text": float("nan")}], "the payload of task 1 is not JSON"),
    ):
        with pytest.raises(InputError, match=said):
            office.add_tasks(id, tasks)
    with pytest.raises(InputError, match="label 'maybe' is not one"):
        office.tell(ask(office, id, "ann").id, "maybe")
    with pytest.raises(InputError, match="worker's name"):
        office.ask(id, " ")
    with pytest.raises(NotFoundError):
        office.tell(f"{id}-0-nothing", "yes")
    with pytest.raises(NotFoundError):
        office.ask("nowhere", "ann")
    with pytest.raises(InputError, match="cannot be changed"):
        office.change(id, {"labels": 3})
    after = everything(office.store, id)
    assert after["tasks"][0].payload == before["tasks"][0].payload and after["row"].tasks == before["row"].tasks


def test_an_error_inside_a_transaction_leaves_nothing(office: Office) -> None:
    id = start(office)
    before = everything(office.store, id)

    def fails(life: Life) -> None:
        life.ask("ann")
        life.pause()
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        office.run(id, fails)
    assert everything(office.store, id) == before
    assert ask(office, id, "bob")


def test_create_twice(office: Office) -> None:
    config = simple(name="twice")
    assert office.create(config, "mine") == office.create(config, "mine")
    with pytest.raises(ConflictError, match="other settings"):
        office.create(replace(config, budget=7), "mine")
    with pytest.raises(InputError, match="not allowed"):
        office.create(config, "Not an id")


def test_rebuild_is_what_was_there(office: Office) -> None:
    id = start(office, tasks=6, budget=20)
    for step in range(40):
        worker = f"w{step % 4}"
        answer = office.ask(id, worker)
        if answer and step % 7 == 3:
            office.release(answer.id)
        elif answer and step % 5 == 2:
            forward(office, 61)
        elif answer:
            office.tell(answer.id, "yes" if step % 3 else "no")
            if step % 11 == 1:
                office.undo(answer.id)
        forward(office, 1.5)
    before, log = everything(office.store, id), office.store.events(id, 0, 10_000)
    assert office.rebuild(id) == before["row"]
    assert everything(office.store, id) == before
    assert office.store.events(id, 0, 10_000) == log


def test_priors_of_their_own(office: Office) -> None:
    id = office.create(simple(budget=300, policy="index", lease_seconds=None)).id
    office.add_tasks(id, [{"id": f"t{k}", "score": 0.5} for k in range(5)])
    assert office.store.tasks(id)[0].score is None  # one class: a group
    office.add_tasks(id, [{"id": f"s{k}", "score": (k + 1) / 102} for k in range(100)])
    tasks = office.store.tasks(id, -1, 1000)
    assert all(task.score is not None for task in tasks)
    best = max(tasks, key=lambda task: (task.score, task.lot))
    assert ask(office, id, "ann").task == best.key
    for step in range(60):
        office.tell(ask(office, id, f"w{step % 5}").id, "yes" if step % 2 else "no")
    before = everything(office.store, id)
    office.rebuild(id)
    assert everything(office.store, id) == before


def test_threads_take_turns(office: Office) -> None:
    """Eight threads at once: no double assignment, the budget exact."""
    id = start(office, tasks=40, budget=100, lease_seconds=1000.0)
    errors: list[BaseException] = []

    def work(worker: str) -> None:
        try:
            while True:
                lease = office.ask(id, worker)
                if not lease:
                    if lease.reason == "all_leased":
                        continue
                    return
                office.tell(lease.id, "yes")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"w{k}",)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    state = everything(office.store, id)
    assert state["row"].spent == 100 and state["row"].reserved == 0
    pairs = [(lease.task, lease.worker) for lease in state["leases"]]
    assert len(pairs) == len(set(pairs)) == 100
    office.rebuild(id)
    assert everything(office.store, id) == state


def test_a_store_opened_again_goes_on(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as store:
        office = office_of(store, Clock())
        id = start(office)
        lease = ask(office, id, "ann")
        office.desk.close()
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqlStore)
        office = office_of(store, Clock())
        assert office.ask(id, "ann") == lease
        assert office.tell(lease.id, "yes").counted
        office.desk.close()


def test_config_round_trip() -> None:
    for config in (
        simple(),
        Config.from_dict({"budget": 5, "labels": ["a", "b", "c"], "prior": [1, 2, 3], "deadline": 1.9e9}),
    ):
        assert Config.from_dict(config.to_dict()) == config


def test_a_closed_store_keeps_and_finds_nothing(tmp_path: Path) -> None:
    """The thread that makes tables may outlive the store by seconds."""
    with opened("sqlite", tmp_path) as store:
        store.keep("a table", b"numbers")
        assert store.kept("a table") == b"numbers"
        store.close()
        store.keep("another", b"numbers")
        assert store.kept("a table") is None and store.kept("another") is None
    with opened("sqlite", tmp_path) as store:
        assert store.kept("a table") == b"numbers" and store.kept("another") is None
