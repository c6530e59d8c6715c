"""Live campaigns whose tasks have features: a learner beside the people, kept by its hash and read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from live_crowds import assert_same_as_fresh, settled
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService
from nextlabel.crowd import learner
from nextlabel.errors import InputError

TASKS = 160


def campaign(service: CampaignService, labels: int, **more: Any) -> tuple[str, np.ndarray, list[int]]:
    """Eight workers label tasks with a vector each; the truths, and the numbers of labels by task."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, TASKS)
    vectors = rng.normal(size=(TASKS, 6)) + 1.2 * truth[:, None]
    rows = [{"id": f"t{k}", "text": f"item {k}", "vector": vectors[k].tolist()} for k in range(TASKS)]
    settings = {"budget": 2 * TASKS, "labels": ["no", "yes"], "features": ["vector"], "show": ["text"], **more}
    id = service.create(CampaignSettings.from_dict(settings), tasks=rows[:120]).id
    counts, clock = [0] * TASKS, service.clock
    for step in range(labels):
        clock.forward(1.0)  # type: ignore[attr-defined]
        if step == 60:
            service.add_tasks(id, rows[120:])
        lease = service.ask(id, f"w{step % 8}")
        if lease:
            k = int(lease.task[1:])
            counts[k] += 1
            said = truth[k] if rng.random() < 0.75 else 1 - truth[k]
            service.tell(lease.id, settings["labels"][said])
        if step % 20 == 19:
            settled(service, id)
    settled(service, id)
    return id, truth, counts


@pytest.mark.parametrize("background", [False, True], ids=["at once", "background"])
def test_a_learner_is_kept_by_its_hash_and_read_again(
    service: CampaignService, background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if background:
        service.refit_in_background()
    id, truth, counts = campaign(service, 170)
    refits = [event for event in service.store.events(id, 0, 5000) if event.kind == "refitted"]
    word = [event.data["learner"] for event in refits if event.data.get("learner")][-1]
    assert word["bits"] > 0.1 and 0.5 < word["agrees"] < 1.0 and len(word["hash"]) == 32
    results = list(service.results(id))
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


def test_features_that_say_nothing_leave_a_campaign_as_it_is(service: CampaignService) -> None:
    id, _, with_them = campaign(service, 60, features=["text"])
    _, _, without = campaign(service, 60, features=None)
    assert with_them == without
    assert all(not event.data.get("learner") for event in service.store.events(id, 0, 5000) if event.kind == "refitted")


def test_only_crowd_learns_from_features() -> None:
    with pytest.raises(InputError, match="does not learn from features"):
        CampaignSettings.from_dict({"budget": 10, "policy": "index", "features": ["text"]})
