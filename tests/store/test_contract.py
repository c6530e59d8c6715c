"""One suite for all stores: transactions, the rules of leases, rebuilding from events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.scoring import score
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import BusyError, ConflictError, InputError, NotFoundError, UnavailableError
from nextlabel.model.tasks import TaskState
from nextlabel.store import engine
from nextlabel.store.sql import SqlStore
from stores import KINDS, Clock, everything, opened, service_of_store, simple


@pytest.fixture(params=KINDS)
def campaign_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    with opened(request.param, tmp_path) as store:
        campaign_service = service_of_store(store, Clock())
        yield campaign_service
        campaign_service.table_cache.close()


def start(campaign_service: CampaignService, tasks: int = 3, **config: object) -> str:
    id = campaign_service.create(simple(**config)).id
    campaign_service.add_tasks(id, [{"id": f"t{k}", "text": f"item {k}"} for k in range(tasks)])
    return id


def forward(campaign_service: CampaignService, seconds: float) -> None:
    campaign_service.clock.forward(seconds)  # type: ignore[attr-defined]


def ask(campaign_service: CampaignService, id: str, worker: str):
    lease = campaign_service[id].ask(worker)
    assert lease, lease
    return lease


def reason(campaign_service: CampaignService, id: str, worker: str) -> str:
    answer = campaign_service[id].ask(worker)
    assert not answer
    return answer.reason


def test_a_label_from_ask_to_result(campaign_service: CampaignService) -> None:
    id = start(campaign_service)
    lease = ask(campaign_service, id, "ann")
    assert lease.status == "leased" and lease.payload == {"text": f"item {lease.task[1:]}"}
    assert lease.expires_at == campaign_service.clock() + 60
    row = campaign_service.store.row(id)
    assert (row.spent, row.reserved, row.left) == (0, 1, 5)
    told = campaign_service[lease.campaign].tell(lease.id, "yes")
    assert (told.status, told.label, told.counted) == ("labelled", "yes", True)
    row = campaign_service.store.row(id)
    assert (row.spent, row.reserved, row.left, row.kept) == (1, 0, 5, 1)
    result = {r.task: r for r in campaign_service[id].results()}[lease.task]
    assert (result.label, result.labels, result.counts) == ("yes", 1, {"no": 0, "yes": 1})
    assert result.probability == pytest.approx(0.75)  # Beta(2, 1): P(theta > 1/2) = 3/4
    assert not result.closed


def test_asking_again_gives_the_same_lease(campaign_service: CampaignService) -> None:
    id = start(campaign_service)
    assert ask(campaign_service, id, "ann") == ask(campaign_service, id, "ann")
    assert campaign_service.store.row(id).reserved == 1


def test_a_worker_never_gets_a_task_twice(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=3)
    seen = []
    for move in (campaign_service[id].release, lambda lease: campaign_service[id].tell(lease, "no"), None):
        lease = ask(campaign_service, id, "ann")
        seen.append(lease.task)
        if move is None:
            forward(campaign_service, 61)
        else:
            move(lease.id)
    assert sorted(seen) == ["t0", "t1", "t2"]
    assert reason(campaign_service, id, "ann") == "nothing_left_for_you"
    assert ask(campaign_service, id, "bob")


def test_same_answer_again_is_the_same_reply_another_a_conflict(campaign_service: CampaignService) -> None:
    id = start(campaign_service)
    lease = ask(campaign_service, id, "ann")
    first = campaign_service[lease.campaign].tell(lease.id, "yes")
    before = everything(campaign_service.store, id)
    assert campaign_service[lease.campaign].tell(lease.id, "yes") == first
    with pytest.raises(ConflictError, match="answered with 'yes' before"):
        campaign_service[lease.campaign].tell(lease.id, "no")
    assert everything(campaign_service.store, id) == before


def test_an_expired_lease_gives_its_reservation_back_and_a_late_answer_counts(
    campaign_service: CampaignService,
) -> None:
    id = start(campaign_service, tasks=1, budget=2)
    lease = ask(campaign_service, id, "ann")
    forward(campaign_service, 60)  # expires at that moment
    assert ask(campaign_service, id, "bob").task == lease.task
    row = campaign_service.store.row(id)
    assert (row.reserved, row.expired) == (1, 1)
    told = campaign_service[lease.campaign].tell(lease.id, "yes")
    assert (told.status, told.counted) == ("late", True)
    assert campaign_service[lease.campaign].tell(lease.id, "yes") == told
    row = campaign_service.store.row(id)
    assert (row.spent, row.reserved, row.late) == (1, 1, 1)


def test_a_late_answer_without_budget_is_kept_but_not_counted(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=1, budget=1)
    late = ask(campaign_service, id, "ann")
    forward(campaign_service, 100)
    campaign_service[id].tell(ask(campaign_service, id, "bob").id, "no")
    told = campaign_service[late.campaign].tell(late.id, "yes")
    assert (told.status, told.counted) == ("late", False)
    row = campaign_service.store.row(id)
    assert (row.spent, row.kept, row.late) == (1, 2, 1)
    assert next(campaign_service[id].results()).counts == {"no": 1, "yes": 0}


def test_budget_is_reserved_and_never_overspent(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=5, budget=3)
    leases = [ask(campaign_service, id, w) for w in ("a", "b", "c")]
    answer = campaign_service[id].ask("d")
    assert answer.reason == "all_leased" and answer.retry_after == 30
    for lease in leases:
        campaign_service[lease.campaign].tell(lease.id, "yes")
    assert reason(campaign_service, id, "d") == "budget_spent"
    row = campaign_service.store.row(id)
    assert (row.spent, row.closed_reason) == (3, "budget_spent")
    assert all(r.closed and r.closed_reason == "budget_spent" for r in campaign_service[id].results())
    closing = campaign_service.store.events(id, row.closed_seq - 1, 1)[0]
    assert (closing.kind, closing.data) == ("closed", {"reason": "budget_spent"})


def test_budget_can_be_raised_and_lowered_while_leases_are_out(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=5, budget=3)
    leases = [ask(campaign_service, id, w) for w in ("a", "b", "c")]
    campaign_service[leases[0].id].tell(leases[0].id, "yes")
    campaign_service[id].change(budget=1)
    told = campaign_service[leases[1].id].tell(leases[1].id, "yes")
    assert (told.status, told.counted) == ("labelled", False)
    assert campaign_service.store.row(id).spent == 1
    assert reason(campaign_service, id, "d") == "budget_spent"
    campaign_service[id].change(budget=9)
    assert campaign_service.store.row(id).closed_reason is None
    assert ask(campaign_service, id, "d")


def test_a_budget_below_what_was_spent_is_refused(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=5, budget=4)
    for w in ("a", "b"):
        campaign_service[id].tell(ask(campaign_service, id, w).id, "yes")
    with pytest.raises(ConflictError, match="2 labels have been bought already"):
        campaign_service[id].change(budget=1)
    assert campaign_service.store.row(id).budget == 4


def test_pause_and_resume(campaign_service: CampaignService) -> None:
    id = start(campaign_service)
    lease = ask(campaign_service, id, "ann")
    campaign_service[id].pause()
    campaign_service[id].pause()
    assert ask(campaign_service, id, "ann") == lease  # what is out goes on
    assert reason(campaign_service, id, "bob") == "paused"
    campaign_service[lease.campaign].tell(lease.id, "no")
    campaign_service[id].resume()
    campaign_service[id].resume()
    assert ask(campaign_service, id, "bob")
    kinds = [event.kind for event in campaign_service.store.events(id)]
    assert kinds.count("paused") == kinds.count("resumed") == 1


def test_deadline(campaign_service: CampaignService) -> None:
    id = start(campaign_service, deadline=Clock().now + 100)
    forward(campaign_service, 70)
    lease = ask(campaign_service, id, "ann")
    assert lease.expires_at == campaign_service.clock() + 30  # no lease outlives the deadline
    forward(campaign_service, 30)
    assert reason(campaign_service, id, "bob") == "deadline_passed"
    assert campaign_service[lease.campaign].tell(lease.id, "yes").status == "late"
    campaign_service[id].change(deadline=None)
    assert ask(campaign_service, id, "bob")


def test_a_deadline_moved_forward_ends_the_leases_that_are_out(campaign_service: CampaignService) -> None:
    id = start(campaign_service, lease_seconds=600.0)
    lease = ask(campaign_service, id, "ann")
    campaign_service[id].tell(ask(campaign_service, id, "bob").id, "yes")
    campaign_service[id].change(deadline=campaign_service.clock() + 10)
    forward(campaign_service, 20)
    told = campaign_service[lease.campaign].tell(lease.id, "yes")
    assert (told.status, told.counted) == ("late", True)
    row = campaign_service.store.row(id)
    assert (row.expired, row.reserved, row.closed_reason) == (1, 0, "deadline_passed")
    bobs = next(one for one in everything(campaign_service.store, id)["leases"] if one.worker == "bob")
    with pytest.raises(ConflictError, match="time is over"):
        campaign_service[id].undo(bobs.id)


def test_no_task_gets_more_labels_than_it_can_have(campaign_service: CampaignService) -> None:
    """An answer that did not count, taken back after its place was given to somebody else."""
    id = start(campaign_service, tasks=2, budget=2, most_labels=1)
    first, second = ask(campaign_service, id, "ann"), ask(campaign_service, id, "bob")
    campaign_service[second.campaign].tell(second.id, "yes")
    campaign_service[id].change(budget=1)
    assert campaign_service[first.campaign].tell(first.id, "yes").counted is False
    campaign_service[id].change(budget=3)
    third = ask(campaign_service, id, "cy")
    assert third.task == first.task
    campaign_service[first.campaign].undo(first.id)
    assert campaign_service[first.campaign].tell(first.id, "yes").counted is True
    assert campaign_service[third.campaign].tell(third.id, "no").counted is False
    result = {r.task: r for r in campaign_service[id].results()}[first.task]
    assert (result.labels, result.counts) == (1, {"no": 0, "yes": 1})
    assert campaign_service.store.row(id).full == 2


def test_a_campaign_without_tasks_asks_for_patience(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=0)
    answer = campaign_service[id].ask("ann")
    assert answer.reason == "preparing" and answer.retry_after == 30
    assert campaign_service.store.row(id).closed_reason is None
    campaign_service.add_tasks(id, ["a"])
    assert ask(campaign_service, id, "ann")


def test_a_label_that_is_worth_its_price_again_opens_the_campaign(campaign_service: CampaignService) -> None:
    """Closed because no label was worth its cost; then a late answer leaves a task undecided."""
    id = start(campaign_service, tasks=1, budget=50, policy="index", label_cost=0.02)
    late = ask(campaign_service, id, "late")
    forward(campaign_service, 61)
    for worker in "abcdefgh":
        answer = campaign_service[id].ask(worker)
        if not answer:
            break
        campaign_service[answer.campaign].tell(answer.id, "yes")
    assert campaign_service.store.row(id).closed_reason == "below_price"
    labels = campaign_service.store.row(id).spent
    campaign_service[late.campaign].tell(late.id, "no")
    answer = campaign_service[id].ask("z")
    assert labels == 2 and answer, "two yes and a no are worth another label"
    assert campaign_service.store.row(id).closed_reason is None
    assert not any(result.closed for result in campaign_service[id].results())


def test_release_and_renew(campaign_service: CampaignService) -> None:
    id = start(campaign_service)
    lease = ask(campaign_service, id, "ann")
    forward(campaign_service, 50)
    renewed = campaign_service[lease.campaign].renew(lease.id)
    assert renewed.expires_at == lease.expires_at + 50
    released = campaign_service[lease.campaign].release(lease.id)
    assert released.status == "released" and campaign_service[lease.campaign].release(lease.id) == released
    with pytest.raises(ConflictError, match="the lease is released: renew is not possible"):
        campaign_service[lease.campaign].renew(lease.id)
    assert campaign_service[lease.campaign].tell(lease.id, "yes").status == "late"
    with pytest.raises(ConflictError):
        campaign_service[lease.campaign].release(lease.id)


def test_undo_while_the_lease_would_still_be_out(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=2, budget=2)
    lease = ask(campaign_service, id, "ann")
    campaign_service[lease.campaign].tell(lease.id, "yes")
    second = ask(campaign_service, id, "ann")
    before = everything(campaign_service.store, id)["groups"]
    assert campaign_service[lease.campaign].undo(lease.id).status == "leased"
    assert campaign_service[lease.campaign].undo(lease.id).status == "leased"
    assert (campaign_service.store.row(id).spent, campaign_service.store.row(id).reserved) == (0, 2)
    assert ask(campaign_service, id, "ann").id == lease.id  # the older one first
    campaign_service[lease.campaign].tell(lease.id, "no")
    assert ask(campaign_service, id, "ann").id == second.id
    campaign_service[second.campaign].tell(second.id, "no")
    assert reason(campaign_service, id, "bob") == "budget_spent"
    campaign_service[second.campaign].undo(second.id)
    assert campaign_service.store.row(id).closed_reason is None
    assert before == {(0, 0, 1): 1, (0, 2, 0): 1}
    assert campaign_service.groups(id) == {
        (0, 0, 1): 1,
        (0, 1, 0): 1,
    }  # one 'no' instead of a 'yes', one out again
    forward(campaign_service, 120)
    with pytest.raises(ConflictError, match="time is over"):
        campaign_service[lease.campaign].undo(lease.id)


def test_finished_when_every_task_has_all_its_labels(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=2, budget=50, most_labels=2)
    for worker in ("a", "b"):
        for _ in range(2):
            campaign_service[id].tell(ask(campaign_service, id, worker).id, "yes")
    assert reason(campaign_service, id, "c") == "finished"
    result = next(campaign_service[id].results())
    assert result.closed_reason == "most_labels"
    event = campaign_service.store.events(id, result.closed_by - 1, 1)[0]
    assert event.kind == "labelled"  # the event that closed it
    campaign_service.add_tasks(id, [{"id": "new", "text": "one more"}])
    last = ask(campaign_service, id, "c")
    assert last.task == "new"
    for worker in ("c", "d"):
        last = ask(campaign_service, id, worker)
        campaign_service[last.campaign].tell(last.id, "no")
    assert all(r.closed for r in campaign_service[id].results())
    campaign_service[last.campaign].undo(last.id)
    assert [r.task for r in campaign_service[id].results() if not r.closed] == ["new"]


def test_all_leased_when_no_task_may_have_more_in_flight(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=1, budget=9, most_in_flight=2)
    ask(campaign_service, id, "a")
    ask(campaign_service, id, "b")
    answer = campaign_service[id].ask("c")
    assert answer.reason == "all_leased" and answer.retry_after == 30


def test_below_price(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=2, budget=50, policy="index", label_cost=0.3)
    assert reason(campaign_service, id, "a") == "below_price"
    assert campaign_service.store.row(id).closed_reason == "below_price"


def test_tasks_again_are_known_and_others_under_the_same_id_refused(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=3)
    again = campaign_service.add_tasks(id, [{"id": "t1", "text": "item 1"}, {"id": "t9", "text": "item 9"}])
    assert (again.added, again.known, again.tasks) == (1, 1, 4)
    before = everything(campaign_service.store, id)
    with pytest.raises(ConflictError, match="another payload"):
        campaign_service.add_tasks(id, [{"id": "t10"}, {"id": "t1", "text": "other"}])
    assert everything(campaign_service.store, id) == before


def test_a_batch_is_taken_in_once(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=0)
    assert campaign_service.add_tasks(id, ["a", "b"], batch="one").added == 2
    assert campaign_service.add_tasks(id, ["a", "b"], batch="one").known == 2
    assert campaign_service.add_tasks(id, ["a", "b"]).tasks == 4  # without a name they are other tasks


def test_bad_input_is_one_sentence_and_nothing_is_written(campaign_service: CampaignService) -> None:
    id = start(campaign_service)
    before = everything(campaign_service.store, id)
    for tasks, said in (
        ([{"id": ""}], "the id of task 1"),
        ([{"id": "x"}, {"id": "y", "score": 1.5}], "task 2: score '1.5' is not a probability"),
        ([{"id": "x", "prior": [1, 1, 1]}], "the prior of task 1 has 3 answers"),
        ([{"id": "x", "text": "y" * 70_000}], "the payload of task 1"),
        ([{"id": "x", "text": float("nan")}], "the payload of task 1 is not JSON"),
    ):
        with pytest.raises(InputError, match=said):
            campaign_service.add_tasks(id, tasks)
    with pytest.raises(InputError, match="label 'maybe' is not one"):
        campaign_service[id].tell(ask(campaign_service, id, "ann").id, "maybe")
    with pytest.raises(InputError, match="worker's name"):
        campaign_service[id].ask(" ")
    with pytest.raises(NotFoundError):
        campaign_service[id].tell(f"{id}-0-nothing", "yes")
    with pytest.raises(NotFoundError):
        campaign_service["nowhere"].ask("ann")
    with pytest.raises(InputError, match="cannot be changed"):
        campaign_service[id].change(labels=3)
    after = everything(campaign_service.store, id)
    assert after["tasks"][0].payload == before["tasks"][0].payload and after["row"].tasks == before["row"].tasks


def test_an_error_inside_a_transaction_leaves_nothing(campaign_service: CampaignService) -> None:
    id = start(campaign_service)
    before = everything(campaign_service.store, id)

    def fails(commands: Commands) -> None:
        commands.ask("ann")
        commands.pause()
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        campaign_service.run(id, fails)
    assert everything(campaign_service.store, id) == before
    assert ask(campaign_service, id, "bob")


def test_create_twice(campaign_service: CampaignService) -> None:
    config = simple(name="twice")
    assert campaign_service.create(config, "mine") == campaign_service.create(config, "mine")
    with pytest.raises(ConflictError, match="other settings"):
        campaign_service.create(simple(name="twice", budget=7), "mine")
    with pytest.raises(InputError, match="not allowed"):
        campaign_service.create(config, "Not an id")


def test_rebuild_is_what_was_there(campaign_service: CampaignService) -> None:
    id = start(campaign_service, tasks=6, budget=20)
    for step in range(40):
        worker = f"w{step % 4}"
        answer = campaign_service[id].ask(worker)
        if answer and step % 7 == 3:
            campaign_service[answer.campaign].release(answer.id)
        elif answer and step % 5 == 2:
            forward(campaign_service, 61)
        elif answer:
            campaign_service[answer.campaign].tell(answer.id, "yes" if step % 3 else "no")
            if step % 11 == 1:
                campaign_service[answer.campaign].undo(answer.id)
        forward(campaign_service, 1.5)
    before, log = everything(campaign_service.store, id), campaign_service.store.events(id, 0, 10_000)
    campaign_service[id].rebuild()
    assert everything(campaign_service.store, id) == before
    assert campaign_service.store.events(id, 0, 10_000) == log


def test_priors_of_their_own(campaign_service: CampaignService) -> None:
    id = campaign_service.create(simple(budget=300, policy="index", lease_seconds=None)).id
    campaign_service.add_tasks(id, [{"id": f"t{k}", "score": 0.5} for k in range(5)])
    campaign_service.add_tasks(id, [{"id": f"s{k}", "score": (k + 1) / 102} for k in range(100)])
    tasks = campaign_service.store.tasks(id, -1, 1000)
    config, classes = campaign_service.store.row(id).config, campaign_service.store.classes(id)
    fresh = TaskState(0, 0)
    best = max(tasks, key=lambda task: (score(config, classes[task.class_number], 0, fresh), task.place))
    assert ask(campaign_service, id, "ann").task == best.key
    for step in range(60):
        campaign_service[id].tell(ask(campaign_service, id, f"w{step % 5}").id, "yes" if step % 2 else "no")
    before = everything(campaign_service.store, id)
    campaign_service[id].rebuild()
    assert everything(campaign_service.store, id) == before


def test_threads_take_turns(campaign_service: CampaignService) -> None:
    """Eight threads at once: no double assignment, the budget exact."""
    id = start(campaign_service, tasks=40, budget=100, lease_seconds=1000.0)
    errors: list[BaseException] = []

    def work(worker: str) -> None:
        try:
            while True:
                lease = campaign_service[id].ask(worker)
                if not lease:
                    if lease.reason == "all_leased":
                        continue
                    return
                campaign_service[lease.campaign].tell(lease.id, "yes")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"w{k}",)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    state = everything(campaign_service.store, id)
    assert state["row"].spent == 100 and state["row"].reserved == 0
    pairs = [(lease.task, lease.worker) for lease in state["leases"]]
    assert len(pairs) == len(set(pairs)) == 100
    campaign_service[id].rebuild()
    assert everything(campaign_service.store, id) == state


def test_a_store_opened_again_goes_on(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as store:
        campaign_service = service_of_store(store, Clock())
        id = start(campaign_service)
        lease = ask(campaign_service, id, "ann")
        campaign_service.table_cache.close()
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqlStore)
        campaign_service = service_of_store(store, Clock())
        assert campaign_service[id].ask("ann") == lease
        assert campaign_service[lease.campaign].tell(lease.id, "yes").counted
        campaign_service.table_cache.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_thread_does_not_wait_for_another_for_ever(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        assert isinstance(store, SqlStore)
        id = start(service_of_store(store, Clock()))
        hasty = SqlStore(store.url, lock_wait_s=0.05)
        waiting = service_of_store(hasty, Clock())
        with store.transaction(id), pytest.raises(BusyError):
            waiting[id].ask("ann")  # another process
        caught: list[BaseException] = []

        def ask_busy() -> None:
            try:
                waiting[id].ask("bob")
            except BusyError as error:
                caught.append(error)

        with hasty.transaction(id):
            thread = threading.Thread(target=ask_busy)  # another thread of the same process
            thread.start()
            thread.join()
        assert len(caught) == 1
        assert patiently(lambda: waiting[id].ask("ann"))
        hasty.close()


@pytest.mark.parametrize("writes", [False, True])
def test_a_silent_transaction_is_ended_by_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: bool
) -> None:
    with opened("postgresql", tmp_path) as store:
        assert isinstance(store, SqlStore)
        id = start(service_of_store(store, Clock()))
        monkeypatch.setattr(engine, "IDLE_TRANSACTION_S", 1.0)
        silent = SqlStore(store.url)
        service = service_of_store(silent, Clock())
        before = everything(store, id)

        def sleep_inside(commands: Commands) -> None:
            commands.ask("ann")
            while silent_sessions(store.url):
                time.sleep(0.1)
            if writes:
                commands.pause()

        with pytest.raises(UnavailableError):
            service.run(id, sleep_inside)
        assert everything(store, id) == before
        assert patiently(lambda: service[id].ask("ann"))  # on another connection
        silent.close()


def silent_sessions(url: str) -> int:
    """How many sessions of this PostgreSQL database have begun a transaction and say nothing."""
    question = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = %s"
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute(question, ["idle in transaction"]).fetchone()
    assert row is not None
    return int(row[0])


def patiently(call: Callable[[], Any]) -> Any:
    """What a client gets that tries again while the store is busy or does not answer."""
    for _ in range(100):
        try:
            return call()
        except UnavailableError:
            time.sleep(0.1)
    return call()


def test_an_ask_does_not_hold_the_lock_while_tables_are_made(campaign_service: CampaignService) -> None:
    """A program that asks waits for its tables outside the transaction."""
    cache, door, opened_in_time = campaign_service.table_cache, threading.Event(), []
    make, looked_up = cache._make, threading.Event()
    prepare = cache.prepare

    def slow(*arguments: Any) -> Any:
        opened_in_time.append(door.wait(60))
        return make(*arguments)

    def noticed(*arguments: Any) -> Any:
        looked_up.set()
        return prepare(*arguments)

    cache._make, cache.prepare = slow, noticed  # type: ignore[method-assign]
    id = start(campaign_service)
    asking = threading.Thread(target=campaign_service[id].ask, args=("ann",))
    asking.start()
    looked_up.wait(60)
    campaign_service[id].change(budget=9)  # has the lock while the tables are not there
    door.set()
    asking.join(60)
    assert opened_in_time == [True] and campaign_service.store.row(id).reserved == 1


def test_config_round_trip() -> None:
    for config in (
        simple(),
        CampaignSettings.from_dict({"budget": 5, "labels": ["a", "b", "c"], "prior": [1, 2, 3], "deadline": 1.9e9}),
    ):
        assert CampaignSettings.from_dict(config.to_dict()) == config


def test_a_closed_store_keeps_and_finds_nothing(tmp_path: Path) -> None:
    """The thread that makes tables may outlive the store by seconds."""
    with opened("sqlite", tmp_path) as store:
        store.put("a table", b"numbers")
        assert store.get("a table") == b"numbers"
        store.close()
        store.put("another", b"numbers")
        assert store.get("a table") is None and store.get("another") is None
    with opened("sqlite", tmp_path) as store:
        assert store.get("a table") == b"numbers" and store.get("another") is None
