"""Turning workers away by worth: who, when not, and that the log says all that the choice rested on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from live_crowds import LABELS, WORKERS, assert_same_as_fresh, say, settings, settled, tasks
from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import PATIENCE_S
from nextlabel.campaign.replies import NoTask
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.crowd.noise import answers_at_random
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError
from nextlabel.policies.crowd.allocator import TRIAL_LABELS, CrowdAllocator, CrowdSettings, GrowingCrowd
from nextlabel.store.sql import open_store
from stores import Clock

GUESSER = WORKERS[-1]


def label(service: CampaignService, id: str, worker: str, rng: np.random.Generator) -> str | None:
    """One ask of the worker, and an answer if there is a task; the reason if there is none."""
    service.clock.forward(1.0)  # type: ignore[attr-defined]
    lease = service[id].ask(worker)
    if isinstance(lease, NoTask):
        return lease.reason
    service[lease.campaign].tell(lease.id, say(lease.task, worker, rng))
    return None


def until_turned_away(service: CampaignService, id: str, rng: np.random.Generator) -> int:
    """Everybody labels until the guesser is turned away; how many labels they had given."""
    for given in range(60):
        for worker in WORKERS:
            reason = label(service, id, worker, rng)
            if worker == GUESSER and reason == "turned_away":
                return given
    raise AssertionError("the guesser was never turned away")


def last_version(service: CampaignService, id: str) -> int:
    return int([event for event in service.store.events(id, 0, 5000) if event.kind == "refitted"][-1].data["version"])


@pytest.mark.parametrize("background", [False, True], ids=["at once", "background"])
def test_who_guesses_is_turned_away_and_the_log_says_why(service: CampaignService, background: bool) -> None:
    if background:
        service.refit_in_background()
    rng = np.random.default_rng(5)
    known = [{**task, "gold": LABELS[k % 3]} if k < 4 else task for k, task in enumerate(tasks(0, 60))]
    id = service.create(settings(budget=250, turn_away=True), tasks=known).id
    given = until_turned_away(service, id, rng)
    assert given >= TRIAL_LABELS, "nobody is turned away before their first labels"
    settled(service, id)
    assert_same_as_fresh(service, id)
    events = service.store.events(id, 0, 5000)
    turned = [event for event in events if event.kind == "turned_away" and event.data["worker"] == GUESSER]
    versions = [event.data["model"] for event in turned]
    assert versions == sorted(set(versions))
    before = [event for event in events if event.seq < turned[0].seq]
    last = [event for event in before if event.kind == "refitted"][-1]
    assert turned[0].data["model"] == last.data["version"] and turned[0].data["arrivals"] > turned[0].data["left"]
    assert last.data["arrivals"] == 2.0 * last.data["left"]
    tested = [e for e in before if e.kind == "leased" and e.data["worker"] == GUESSER and e.data.get("control")]
    assert len(tested) >= 2
    # Asking again is not another event: one for each version of the model. A refit in the background may come between,
    # and give the guesser another chance.
    for _ in range(20):
        version = last_version(service, id)
        reason = label(service, id, GUESSER, rng)
        given += reason is None
        settled(service, id)
        if reason == "turned_away" and last_version(service, id) == version:
            break
    seq = service.store.row(id).seq
    refused = service[id].ask(GUESSER)
    assert isinstance(refused, NoTask) and (refused.reason, refused.retry_after) == ("turned_away", 30.0)
    assert service.store.row(id).seq == seq
    reports = {one.worker: one for one in service.worker_reports.of(id)}
    assert reports[GUESSER].turned_away >= len(turned) and reports[GUESSER].labels == given
    assert service.store.row(id).turned_away_workers == sum(one.turned_away > 0 for one in reports.values())
    assert service[id].verify().right
    service[id].rebuild()
    assert_same_as_fresh(service, id)


def test_it_can_be_changed_and_nobody_loses_what_they_hold() -> None:
    service = CampaignService(open_store("memory:"), Clock())
    rng = np.random.default_rng(5)
    id = service.create(settings(budget=250, turn_away=False), tasks=tasks(0, 60)).id
    for _ in range(14):
        assert [label(service, id, worker, rng) for worker in WORKERS] == [None] * len(WORKERS)
    held = service[id].ask(GUESSER)
    assert held
    service[id].change(turn_away=True)
    again = service[id].ask(GUESSER)
    assert again and again.id == held.id and service[held.campaign].tell(held.id, "a").counted
    refused = service[id].ask(GUESSER)
    assert isinstance(refused, NoTask) and refused.reason == "turned_away"
    service[id].change(turn_away=False)
    assert service[id].ask(GUESSER)
    with pytest.raises(InputError, match="turn away 'perhaps' should be true or false"):
        service[id].change(turn_away="perhaps")
    service.close()


def test_whoever_comes_is_served_where_others_were_waited_for_in_vain() -> None:
    clock = Clock()
    service = CampaignService(open_store("memory:"), clock)
    rng = np.random.default_rng(3)
    id = service.create(settings(budget=250, turn_away=True), tasks=tasks(0, 60)).id
    until_turned_away(service, id, rng)
    assert label(service, id, GUESSER, rng) == "turned_away"
    clock.forward(PATIENCE_S - 2)
    assert label(service, id, GUESSER, rng) == "turned_away"
    clock.forward(2)
    served = 0
    while label(service, id, GUESSER, rng) is None:  # until the next refit, not for one label
        served += 1
    assert served >= 4
    waited = [event for event in service.store.events(id, 0, 5000) if event.data.get("waited")]
    assert len(waited) == served and all(event.kind == "leased" for event in waited)
    assert_same_as_fresh(service, id)
    assert label(service, id, GUESSER, rng) == "turned_away"
    # Before a deadline with few to come everybody is needed.
    service[id].change(deadline=clock() + 30)
    assert label(service, id, GUESSER, rng) is None
    service.close()


def test_policies_that_take_workers_to_be_alike_turn_nobody_away() -> None:
    with pytest.raises(InputError, match="cannot tell whom to turn away"):
        CampaignSettings(budget=5, policy="index", turn_away=True)
    with pytest.raises(InputError, match="turn away 1 should be true or false"):
        CampaignSettings(budget=5, turn_away=1)  # type: ignore[arg-type]
    service = CampaignService(open_store("memory:"), Clock())
    id = service.create(settings(policy="index"), tasks=tasks(0, 3)).id
    with pytest.raises(InputError, match="cannot tell whom to turn away"):
        service[id].change(turn_away=True)
    service.close()


def test_the_rule_is_the_simulators() -> None:
    """The same labels in both: the same plan, the same task for everybody, the same people turned away."""
    K, W, C, budget, arrivals = 40, 6, 2, 300, 500.0
    rng = np.random.default_rng(1)
    truth, skill = rng.integers(0, C, K), np.array([0.95, 0.9, 0.8, 0.7, 0.5, 0.5])
    prior = CrowdPrior.default(C)
    simulated = CrowdAllocator(
        np.full((K, C), 0.5), budget, CrowdSettings(turn_away=True), workers=W, prior=prior, arrivals=arrivals
    )
    live = GrowingCrowd(np.full(C, 0.5), prior=prior)
    live.add_tasks(np.zeros((K, C)), 64, 64)
    numbers = [live.add_worker() for _ in range(W)]
    for entry, (task, worker) in enumerate((x, j) for x in range(20) for j in range(W)):
        said = int(truth[task] if rng.random() < skill[worker] else 1 - truth[task])
        simulated.assign(entry, task, worker)
        simulated.complete(entry, said)
        simulated.arrived(worker)
        live.assign(entry, task, numbers[worker])
        live.complete(entry, said)
    live.learn(1, simulated.given, budget - simulated.given, simulated.arrivals)
    simulated.refit()
    simulated._plans = None  # a live plan is solved as if for the first time
    simulated._start = live._start - 0.5
    simulated.resolve()
    got: dict[str, list[Any]] = {"simulated": [], "live": []}
    for worker in range(W):
        outlook = simulated.outlook()
        got["simulated"].append(simulated.choose(worker, outlook))
        got["live"].append(live.choose(numbers[worker], outlook))
    assert got["simulated"] == got["live"]
    assert not outlook.must_serve and got["live"][0] != "turned_away" and got["live"][4:] == ["turned_away"] * 2


def test_noise_is_not_paid_for_and_nobody_is_starved_by_default() -> None:
    """300 labels, five workers at .9, one at .75 and one who guesses: the guesser gets a trial, the others a share."""
    service = CampaignService(open_store("memory:"), Clock())
    id = service.create(CampaignSettings(budget=300, labels=("no", "yes")), tasks=tasks(0, 100)).id
    rng, right = np.random.default_rng(11), np.random.default_rng(3).integers(0, 2, 100)
    accuracy = {**{f"good {k}": 0.9 for k in range(5)}, "average": 0.75, "guesser": 0.5}
    given = dict.fromkeys(accuracy, 0)
    for _ in range(400):
        for worker in accuracy:
            service.clock.forward(1.0)  # type: ignore[attr-defined]
            lease = service[id].ask(worker)
            if isinstance(lease, NoTask):
                continue
            truth = int(right[int(lease.task[1:])])
            service[lease.campaign].tell(
                lease.id, ("no", "yes")[truth if rng.random() < accuracy[worker] else 1 - truth]
            )
            given[worker] += 1
    assert sum(given.values()) == 300, "the whole budget is spent"
    assert given["guesser"] <= 30 and min(given.values()) == given["guesser"]
    assert min(count for worker, count in given.items() if worker != "guesser") >= 0.2 * 300 / 7
    service.close()


def test_workers_who_are_alike_are_never_called_noise() -> None:
    """Everybody at .6 says little; nobody says less than is usual."""
    rng = np.random.default_rng(2)
    truth, worker = rng.integers(0, 2, 400), np.repeat(np.arange(8), 150)
    task = np.concatenate([rng.permutation(400)[:150] for _ in range(8)])
    answer = np.where(rng.random(1200) < 0.6, truth[task], 1 - truth[task])
    channels = np.tile(np.array([[0.6, 0.4], [0.4, 0.6]]), (8, 1, 1))
    logp = np.zeros((400, 2))
    np.add.at(logp, task, np.log(channels[worker, :, answer]))
    assert not answers_at_random(task, worker, answer, logp, channels).any()
    turned = np.where(worker == 0, 1 - truth[task], np.where(rng.random(1200) < 0.9, truth[task], 1 - truth[task]))
    assert not answers_at_random(task, worker, turned, np.log(np.eye(2)[truth] * 0.98 + 0.01), channels)[0], "inverted"
