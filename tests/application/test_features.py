"""Live campaigns whose tasks have features: a learner beside the people, kept by its hash and read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from live_crowds import assert_same_as_fresh, settled
from nextlabel.application.service import CampaignService
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.crowd import learner
from nextlabel.errors import ConflictError, InputError

TASKS = 160


def campaign(
    service: CampaignService, labels: int, beside: Any = None, **more: Any
) -> tuple[str, np.ndarray, list[int]]:
    """Eight workers label tasks with a vector each; the truths, and the numbers of labels by task."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, TASKS)
    vectors = rng.normal(size=(TASKS, 6)) + 1.2 * truth[:, None]
    rows = [{"id": f"t{k}", "text": f"item {k}", "vector": vectors[k].tolist()} for k in range(TASKS)]
    settings = {"budget": 2 * TASKS, "labels": ["no", "yes"], "features": ["vector"], "show": ["text"], **more}
    id = service.create(CampaignSettings.from_dict(settings), tasks=rows[:120]).id
    if beside is not None:
        service[id].add_features({f"t{k}": beside(k, truth[k]) for k in range(TASKS // 2)})
        service[id].add_features({f"t{k}": beside(k, truth[k]) for k in range(TASKS // 3, TASKS)})
    counts, clock = [0] * TASKS, service.clock
    for step in range(labels):
        clock.forward(1.0)  # type: ignore[attr-defined]
        if step == 60:
            service.add_tasks(id, rows[120:])
        lease = service[id].ask(f"w{step % 8}")
        if lease:
            k = int(lease.task[1:])
            counts[k] += 1
            said = truth[k] if rng.random() < 0.75 else 1 - truth[k]
            service[lease.campaign].tell(lease.id, settings["labels"][said])
        if step % 20 == 19:
            settled(service, id)
    settled(service, id)
    return id, truth, counts


#: What learns is the same whatever the store; what is kept beside a campaign is kept in both.
ONE = pytest.mark.parametrize("service", ["sqlite"], indirect=True)


@pytest.mark.parametrize(
    ("service", "background"),
    [("sqlite", False), ("postgresql", True)],
    indirect=["service"],
    ids=["at once", "background"],
)
def test_a_learner_is_kept_by_its_hash_and_read_again(
    service: CampaignService, background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if background:
        service.refit_in_background()
    id, truth, counts = campaign(service, 170)
    refits = [event for event in service.store.events(id, 0, 5000) if event.kind == "refitted"]
    word = [event.data["learner"] for event in refits if event.data.get("learner")][-1]
    assert word["bits"] > 0.1 and 0.5 < word["agrees"] < 1.0 and len(word["hash"]) == 32
    results = list(service[id].results())
    right = np.mean([one.label == ("no", "yes")[truth[int(one.task[1:])]] for one in results])
    # 170 labels of .75 for 160 tasks: people alone have about .75; a background refit comes when it comes.
    assert background or right > 0.85
    assert 0 < counts.count(0) < TASKS

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a learner is taught while a log is replayed")

    monkeypatch.setattr(learner, "learn_jointly", never)
    monkeypatch.setattr("nextlabel.campaign.crowd_model.learn_jointly", never)
    assert_same_as_fresh(service, id)
    service.delete(id)
    assert service.store.get(f"learner-{word['hash']}:{id}") is None


def test_features_of_a_file_of_their_own_are_learnt_from_and_deleted(service: CampaignService) -> None:
    vectors = np.random.default_rng(2).normal(size=(TASKS, 6))
    id, truth, _ = campaign(service, 170, lambda k, answer: vectors[k] + 2.0 * answer, features=None)
    refits = [event for event in service.store.events(id, 0, 5000) if event.kind == "refitted"]
    assert refits[-1].data["learner"]["bits"] > 0.1
    assert np.mean([one.label == ("no", "yes")[truth[int(one.task[1:])]] for one in service[id].results()]) > 0.85
    assert_same_as_fresh(service, id)
    word = refits[-1].data["learner"]
    says = service[id].certificate().rests_on
    assert f"{word['bits']:.2f} bits per item: the labels' log loss is {word['with']:.3f} per item with it" in says
    assert f"and {word['without']:.3f} without. This assumes that people's mistakes do not follow the features." in says
    before = service.store.row(id).features
    with pytest.raises(InputError, match="has 2 numbers for each item, and what is there 6 numbers"):
        service[id].add_features({"t0": [1.0, 2.0]})
    last = service[id].add_features({"t1": [1.0], "later": [2.0]}, replace=True)
    assert (last.items, last.tasks, last.numbers) == (2, 1, 1)
    assert service[id].add_features(lambda task: [float(task[1:])]).items == TASKS
    assert service.store.get(f"features-{before}:{id}") is service.store.get(f"features-{last.hash}:{id}") is None
    now = service.store.row(id).features
    assert service.store.get(f"features-{now}:{id}")
    service.delete(id)
    assert service.store.get(f"features-{now}:{id}") is None


@ONE
def test_columns_and_a_file_are_learnt_from_together(service: CampaignService) -> None:
    id, _, _ = campaign(service, 130, lambda k, answer: {"side": 2.0 * answer, "word": f"w{answer}"})
    refits = [event for event in service.store.events(id, 0, 5000) if event.kind == "refitted"]
    assert refits[-1].data["learner"]["bits"] > 0.1


@ONE
def test_features_that_say_nothing_leave_a_campaign_as_it_is(service: CampaignService) -> None:
    id, _, with_them = campaign(service, 60, features=["text"])
    _, _, without = campaign(service, 60, features=None)
    assert with_them == without
    assert all(not event.data.get("learner") for event in service.store.events(id, 0, 5000) if event.kind == "refitted")


def test_only_crowd_learns_from_features(service: CampaignService) -> None:
    id = service.create(CampaignSettings.from_dict({"budget": 10, "policy": "index"}), tasks=["a", "b"]).id
    with pytest.raises(ConflictError, match="does not learn from features"):
        service[id].add_features({"a": [1.0]})
    with pytest.raises(InputError, match="does not learn from features"):
        CampaignSettings.from_dict({"budget": 10, "policy": "index", "features": ["text"]})
