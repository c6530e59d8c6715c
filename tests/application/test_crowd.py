"""The policy ``crowd`` in live campaigns: what is learnt follows from the log, in every store and every process."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from live_crowds import LABELS, WORKERS, assert_same, assert_same_as_fresh, model_of, say, settings, settled, tasks
from nextlabel.application.refits import WAITING, BackgroundRefits
from nextlabel.application.service import CampaignService
from nextlabel.campaign import crowd_model
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.crowd_model import PATIENCE_S, CrowdModel
from nextlabel.crowd.audit import audited_accuracy
from nextlabel.errors import ConflictError, InputError, TablesPendingError
from nextlabel.store.sql import open_store
from stores import Clock, opened, service_of_store


@pytest.mark.parametrize("background", [False, True], ids=["at once", "background"])
def test_a_model_read_from_the_log_is_the_one_that_was_streamed(service: CampaignService, background: bool) -> None:
    """Labels, skips, late answers, answers taken back, tasks and budget that come later: after all of them."""
    if background:
        service.refit_in_background()
    rng = np.random.default_rng(3)
    id = service.create(settings(), tasks=tasks(0, 20)).id
    clock: Any = service.clock
    done: list[str] = []
    expired: list[tuple[str, str, str]] = []
    for step in range(130):
        worker = WORKERS[int(rng.integers(len(WORKERS)))]
        clock.forward(1.0)
        lease = service[id].ask(worker)
        what = rng.random()
        if lease and what < 0.70:
            service[lease.campaign].tell(lease.id, say(lease.task, worker, rng))
            done.append(lease.id)
        elif lease and what < 0.76:
            service[lease.campaign].release(lease.id)
        elif lease and what < 0.80:
            expired.append((lease.id, lease.task, worker))
            clock.forward(61.0)
        elif done and what < 0.84:
            try:
                service[done[-1]].undo(done[-1])
                done.pop()
            except ConflictError:
                pass
        elif expired and what < 0.90:
            late, task, who = expired.pop()
            service[id].ask(worker)
            service[late].tell(late, say(task, who, rng))
        if step == 50:
            service.add_tasks(id, tasks(20, 26))
        if step == 70:
            service[id].change(budget=70)
        if step in (20, 90):
            service[id].set_gold({f"t{step // 10}": "c", "t1": LABELS[step // 50]})
        if step in (60, 95):
            service[id].drop_labels(WORKERS[-1], "guesses")
            service[id].set_standing(WORKERS[-1], "blocked")
        if step == 80:
            service[id].set_standing(WORKERS[-1], "active")
            service[id].restore_labels(WORKERS[-1])
        if step % 26 == 25:
            settled(service, id)  # two threads may have changed places: then the model is behind for a moment
            assert_same_as_fresh(service, id)
    settled(service, id)
    events = service.store.events(id, 0, 1000)
    assert {"labels_dropped", "labels_restored", "worker_blocked", "gold_set"} <= {one.kind for one in events}
    assert {"labelled", "late", "expired", "released", "undone", "refitted", "changed"} <= {one.kind for one in events}
    refits = [event for event in events if event.kind == "refitted"]
    assert [event.data["version"] for event in refits] == list(range(1, len(refits) + 1))
    assert all(("upto" in event.data) == background for event in refits)
    assert service[id].verify().right
    service[id].rebuild()
    assert_same_as_fresh(service, id)


def finish(service: CampaignService, id: str, seed: int = 0) -> None:
    """Label until nobody gets anything."""
    rng = np.random.default_rng(seed)
    while True:
        given = 0
        for worker in rng.permutation(WORKERS).tolist():
            service.clock.forward(1.0)  # type: ignore[attr-defined]
            lease = service[id].ask(worker)
            if lease:
                given += 1
                service[lease.campaign].tell(lease.id, say(lease.task, worker, rng))
        if not given:
            return


def test_a_campaign_learns_who_guesses_and_results_follow(service: CampaignService) -> None:
    id = service.create(settings(budget=160), tasks=tasks(0, 45)).id
    finish(service, id)
    row = service.store.row(id)
    assert row.closed_reason == "budget_spent" and row.spent == 160
    results = list(service[id].results())
    right = np.array([result.label == LABELS[int(result.task[1:]) % 3] for result in results])
    assert right.mean() > 0.9
    crowd = service.crowd(row)
    assert crowd is not None
    assert [result.probability for result in results] == pytest.approx(crowd.beliefs.max(axis=1).tolist())
    accuracy = dict(zip(crowd.workers, np.einsum("c,wcc->w", crowd.shares, crowd.channels), strict=True))
    assert min(accuracy, key=lambda name: accuracy[name]) == WORKERS[-1]
    certificate = service[id].certificate()
    assert certificate.now == pytest.approx(crowd.expected_accuracy) and certificate.upper is None
    assert certificate.low is not None and certificate.high is not None
    assert certificate.low < certificate.now <= certificate.high and certificate.forecast == certificate.now
    assert "an audit of random items corrects it" in certificate.rests_on and certificate.audit is None
    spent = [labels for labels, *_ in certificate.history]
    assert spent == sorted(spent) and spent[-1] == 160 and len(spent) > 5
    # Closing learns everything once more, and leases say by which version they were chosen.
    events = service.store.events(id, 0, 2000)
    closed = next(k for k, event in enumerate(events) if event.kind == "closed")
    assert events[closed - 1].kind == "refitted" and events[closed - 1].data["labels"] == 160
    versions = [event.data["model"] for event in events if event.kind == "leased"]
    assert versions == sorted(versions) and versions[0] == 1


def test_the_forecast_is_near_to_what_comes_of_it_and_audits_correct() -> None:
    """Half of the budget is spent: the forecast holds the end, more labels are never worth less."""
    clock = Clock()
    service = CampaignService(open_store("memory:"), clock)
    id = service.create(settings(budget=140), tasks=tasks(0, 45)).id
    rng = np.random.default_rng(2)
    label_some(service, id, rng, 85)
    certificate = service[id].certificate()
    assert certificate.forecast is not None and certificate.price is not None and certificate.price > 0
    assert certificate.now < certificate.forecast < 1.0
    values = [value for _, value in certificate.curve]
    assert values == sorted(values) and values[0] == pytest.approx(certificate.now)
    crowd = service.crowd(service.store.row(id))
    assert crowd is not None
    truth = {k: k % 3 for k in range(0, 45, 4)}
    audit = audited_accuracy(crowd.beliefs, truth)
    right = sum(int(crowd.beliefs[k].argmax()) == answer for k, answer in truth.items())
    assert audit is not None and (audit.audited, audit.right) == (12, right)
    assert audit.low <= audit.accuracy <= audit.high and audited_accuracy(crowd.beliefs, {}) is None
    finish(service, id)
    after = service[id].certificate()
    assert certificate.forecast_low is not None and certificate.forecast_low - 0.03 < after.now
    service.close()


def test_what_is_expected_is_computed_after_the_campaign_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its many passes over the labels kept everybody who asked waiting, as often as somebody looked at a dashboard."""
    passes: list[int] = []
    compute = crowd_model.expected_accuracy

    def counted(*values: Any) -> Any:
        passes.append(1)
        return compute(*values)

    monkeypatch.setattr(crowd_model, "expected_accuracy", counted)
    service = service_of_store(open_store("memory:"), Clock())
    id = service.create(settings(), tasks=tasks(0, 12)).id
    rng = np.random.default_rng(2)
    for step in range(20):
        lease = service[id].ask(WORKERS[step % 5])
        assert lease
        service[lease.campaign].tell(lease.id, say(lease.task, lease.worker, rng))
    passes.clear()
    before = service.crowd(service.store.row(id))
    assert before is not None and passes == []
    while lease := service[id].ask(WORKERS[0]):  # the campaign goes on, the snapshot does not
        service[lease.campaign].tell(lease.id, LABELS[0])
    now = service.crowd(service.store.row(id))
    assert now is not None
    passes.clear()
    expected = before.expected
    assert (expected, passes) == (before.expected, [1])
    assert expected.mean == pytest.approx(before.beliefs.max(axis=1).mean(), abs=0.05)
    assert expected.low < expected.mean < expected.high
    assert now.expected != expected
    service.close()


def test_a_second_process_catches_up(tmp_path: Path) -> None:
    """Two services on one database take turns, and a third that comes later agrees with both."""
    with opened("sqlite", tmp_path) as store:
        clock = Clock()
        one = service_of_store(store, clock)
        id = one.create(settings(), tasks=tasks(0, 20)).id
        rng = np.random.default_rng(1)
        two = CampaignService(open_store(store.url), clock)
        try:
            for step in range(40):
                turn = (one, two)[step % 2]
                worker = WORKERS[int(rng.integers(len(WORKERS)))]
                clock.forward(1.0)
                lease = turn[id].ask(worker)
                if lease:
                    (two, one)[step % 2][id].tell(lease.id, say(lease.task, worker, rng))
            assert_same(model_of(one, id, fresh=False), model_of(two, id, fresh=False))
            assert_same(model_of(one, id, fresh=False), model_of(two, id, fresh=True))
        finally:
            two.close()
            one.table_cache.close()


def label_some(service: CampaignService, id: str, rng: np.random.Generator, many: int) -> None:
    """So many workers ask and tell; every fifth skips."""
    for k in range(many):
        worker = WORKERS[int(rng.integers(len(WORKERS)))]
        service.clock.forward(1.0)  # type: ignore[attr-defined]
        lease = service[id].ask(worker)
        if lease and k % 5 == 4:
            service[lease.campaign].release(lease.id)
        elif lease:
            service[lease.campaign].tell(lease.id, say(lease.task, worker, rng))


class HandWorked(BackgroundRefits):
    """Refits whose steps a test takes itself."""

    def later(self, id: str) -> Future[None]:
        return Future()


def by_hand(service: CampaignService) -> HandWorked:
    refits = HandWorked(service)
    service.table_cache.refits = refits
    return refits


def first_refit(refits: HandWorked, id: str) -> None:
    until = monotonic() + 300.0
    while True:
        try:
            begin = refits.begin(id)
            break
        except TablesPendingError:  # kernels are being compiled
            assert monotonic() < until
            sleep(0.1)
    assert begin is not None and refits.publish(id, refits.learn(id, begin), begin)


def test_labels_that_come_in_during_a_refit_are_streamed_on_top_of_it(service: CampaignService) -> None:
    refits, rng = by_hand(service), np.random.default_rng(5)
    id = service.create(settings(turn_away=False), tasks=tasks(0, 20)).id
    first_refit(refits, id)
    for _ in range(3):
        label_some(service, id, rng, 12)
        begin = refits.begin(id)
        assert begin is not None and begin.event is not None
        assert refits.begin(id) is WAITING, "one at a time"
        label_some(service, id, rng, 4)
        new = refits.learn(id, begin)
        label_some(service, id, rng, 3)
        assert_same_as_fresh(service, id)  # by the old version, until the new one is published
        assert refits.publish(id, new, begin)
        assert_same_as_fresh(service, id)
        label_some(service, id, rng, 2)
        assert_same_as_fresh(service, id)
    refitted = [event for event in service.store.events(id, 0, 1000) if event.kind == "refitted"]
    assert all(event.seq - event.data["upto"] > 10 for event in refitted[1:])
    assert service[id].verify().right


def test_processes_refit_in_turn_and_a_killed_one_is_not_waited_for_long(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as store:
        clock = Clock()
        one = service_of_store(store, clock)
        two = CampaignService(open_store(store.url), clock)
        mine, theirs, rng = by_hand(one), by_hand(two), np.random.default_rng(6)
        try:
            id = one.create(settings(), tasks=tasks(0, 20)).id
            first_refit(mine, id)
            label_some(two, id, rng, 4)
            label_some(one, id, rng, 8)
            begin = mine.begin(id)
            assert begin is not None and theirs.begin(id) is WAITING
            label_some(two, id, rng, 3)
            assert mine.publish(id, mine.learn(id, begin), begin)
            label_some(two, id, rng, 1)  # still by the version before
            adopt = theirs.begin(id)
            assert adopt is not None and adopt.event is None
            assert theirs.publish(id, theirs.learn(id, adopt), adopt)
            assert_same_as_fresh(two, id)
            assert_same(model_of(one, id, fresh=False), model_of(two, id, fresh=False))
            # One begins and is stopped for a long time; two does not wait for ever, and one finds that it is too late.
            label_some(one, id, rng, 14)
            begin = mine.begin(id)
            assert begin is not None and theirs.begin(id) is WAITING
            clock.forward(PATIENCE_S)
            instead = theirs.begin(id)
            assert instead is not None and instead.event is not None
            late = mine.learn(id, begin)
            assert theirs.publish(id, theirs.learn(id, instead), instead)
            assert not mine.publish(id, late, begin)
            adopt = mine.begin(id)
            assert adopt is not None and mine.publish(id, mine.learn(id, adopt), adopt)
            assert_same_as_fresh(one, id)
            assert_same(model_of(one, id, fresh=False), model_of(two, id, fresh=False))
        finally:
            two.close()
            one.table_cache.close()


def test_a_failed_transaction_leaves_no_trace(service: CampaignService) -> None:
    id = service.create(settings(), tasks=tasks(0, 10)).id
    for worker in WORKERS:
        lease = service[id].ask(worker)
        assert lease
        service[lease.campaign].tell(lease.id, "a")

    def fail(commands: Commands) -> None:
        assert commands.ask("somebody new")
        raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError):
        service.run(id, fail)
    assert_same(model_of(service, id, fresh=False), model_of(service, id, fresh=True))
    assert model_of(service, id, fresh=False).crowd.people == len(service.store.workers(id))


def test_what_the_requester_says_of_answers_and_workers_is_where_it_starts() -> None:
    """Shares of the answers from any kind of prior, how good workers are from an accuracy."""
    for prior in ([1, 3], {"kind": "fact", "probability": 0.25}):
        crowd = CrowdModel(settings(labels=("no", "yes"), prior=prior)).crowd
        assert crowd.start == pytest.approx([0.75, 0.25])
        assert crowd.channels[0] == pytest.approx(np.array([[4, 2], [2, 4]]) / 6)
    coin = {"kind": "one-coin", "probability": 0.25, "accuracy": 0.9}
    for told in ({"prior": coin}, {"accuracy": 0.9, "prior": [1, 3]}):
        crowd = CrowdModel(settings(labels=("no", "yes"), **told)).crowd
        assert crowd.start == pytest.approx([0.75, 0.25])
        assert crowd.channels[0] == pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9]]))


def test_a_prior_of_facts_serves_to_the_end(service: CampaignService) -> None:
    law = {"kind": "fact", "probabilities": [0.6, 0.3, 0.1]}
    own = [
        {"id": f"f{k}", "prior": {"kind": "fact", "probabilities": [0.1, 0.9 - k / 400, k / 400]}} for k in range(90)
    ]
    id = service.create(settings(prior=law, budget=4), tasks=[*tasks(0, 4), *own]).id
    finish(service, id)
    results = list(service[id].results())
    assert {r.label for r in results[4:] if r.labels == 0} == {"b"}
    assert [r.probability for r in results[4:] if r.labels == 0][-1] == pytest.approx(0.9 - 89 / 400, abs=0.05)
    with pytest.raises(InputError, match="does not say how good they are"):
        settings(prior=law, policy="index")


def test_scores_tilt_beliefs(service: CampaignService) -> None:
    """Tasks with scores of their own start from them, however many different ones there are."""
    scored = [{"id": f"s{k}", "text": "x", "score": (k + 1) / 102} for k in range(101)]
    id = service.create(settings(labels=("no", "yes"), budget=10, most_labels=3), tasks=scored).id
    lease = service[id].ask("ann")
    assert lease
    found = [result.probability for result in service[id].results()]
    expected = [max((k + 1) / 102, 1 - (k + 1) / 102) for k in range(101)]
    assert found == pytest.approx(expected, abs=1e-6)
    assert 25 <= int(lease.task[1:]) <= 75, "a task whose answer is open comes first"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"threshold": 0.7, "labels": ("no", "yes")}, "has no threshold"),
        ({"reward": {"kind": "squared-error"}}, "takes accuracy or, for a choice, a utility"),
        ({"label_cost": 0.01}, "takes no label cost"),
    ],
)
def test_settings_that_mean_nothing_to_it_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        settings(**values)


def test_closing_does_not_wait_for_kernels_that_are_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling: Future[None] = Future()
    monkeypatch.setattr("nextlabel.application.refits.crowd_compiled", lambda: compiling)
    service = CampaignService(open_store("memory:"))
    refits = BackgroundRefits(service)
    refit = refits.later(service.create(settings(), tasks=tasks(0, 3)).id)
    closing = Thread(target=refits.close, daemon=True)
    closing.start()
    closing.join(120)  # no kernel comes, however long it waits
    assert refit.done() and not closing.is_alive()
