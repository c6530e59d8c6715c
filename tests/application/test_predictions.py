"""Models as workers: predictions are learnt like anybody's labels, in every store, and follow from the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live_crowds import read_anew
from nextlabel.application import predictions
from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.files.predictions import Prediction, read_predictions
from nextlabel.policies.allocation import Outlook
from stores import Clock, everything, opened, service_of_store

TASKS = 40


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[CampaignService]:
    with opened("memory", tmp_path) as store:
        found = service_of_store(store, Clock())
        yield found
        found.table_cache.close()


def campaign(service: CampaignService, id: str = "with_model", **values: Any) -> str:
    """Item k has the label yes if k is odd."""
    settings = {"budget": 60, "labels": ("no", "yes"), "policy": "crowd", "lease_seconds": 60.0, **values}
    tasks = [{"id": f"t{k}", "text": f"item {k}"} for k in range(TASKS)]
    return service.create(CampaignSettings.from_dict(settings), id, tasks).id


def said(first: int, end: int, wrong: tuple[int, ...] = ()) -> list[dict[str, str]]:
    return [{"task": f"t{k}", "label": ("no", "yes")[k % 2 ^ (k in wrong)]} for k in range(first, end)]


def label_some(service: CampaignService, id: str, many: int, seed: int = 0) -> list[str]:
    """People who are right nine times in ten; returns the tasks that they got."""
    rng, got = np.random.default_rng(seed), []
    clock: Any = service.clock
    for step in range(many):
        clock.forward(1.0)
        lease = service[id].ask(f"w{step % 4}")
        if not lease:
            break
        got.append(lease.task)
        right = int(lease.task[1:]) % 2
        service[lease.campaign].tell(lease.id, ("no", "yes")[right ^ int(rng.random() > 0.9)])
    return got


def models_of(service: CampaignService, id: str) -> tuple[CrowdModel, CrowdModel]:
    """What the process has streamed, and what the log alone says."""

    def look(commands: Commands) -> tuple[CrowdModel, CrowdModel]:
        return commands.crowd(), read_anew(commands.state)

    return service.run(id, look)


def test_predictions_are_learnt_and_follow_from_the_log(service: CampaignService) -> None:
    id = campaign(service)
    label_some(service, id, 6)
    added = service[id].add_predictions("old", said(0, 30, wrong=(3,)))
    assert (added.added, added.known, added.charged) == (30, 0, 0)
    label_some(service, id, 8, 1)
    service.add_tasks(id, [{"id": f"t{k}", "text": "more"} for k in range(TASKS, TASKS + 4)])
    service[id].add_predictions("old", said(25, TASKS + 4))  # tasks that nobody has learnt of yet, and known ones
    unsure = [{"task": f"t{k}", "probability": 0.55 if k % 2 else 0.02} for k in range(20)]
    assert service[id].add_predictions("soft", unsure).added == 20
    label_some(service, id, 12, 2)
    streamed, read = models_of(service, id)
    assert (streamed.seq, streamed.version, streamed.crowd.people) == (read.seq, read.version, read.crowd.people)
    for name in ("belief", "logp", "counts"):
        mine, theirs = (getattr(model.crowd.campaign.state, name) for model in (streamed, read))
        shorter = min(len(mine), len(theirs))
        assert np.array_equal(mine[:shorter], theirs[:shorter]), name
    for worker in range(-1, streamed.crowd.people):
        assert streamed.crowd.choose(worker, Outlook(0, 1)) == read.crowd.choose(worker, Outlook(0, 1))
    assert service[id].verify().right
    before = everything(service.store, id)
    service[id].rebuild()
    assert everything(service.store, id) == before
    row = service.store.row(id)
    assert row.predicted == 30 + 14 + 20
    assert row.spent == 26 and row.given == 26 + 64  # none of them was bought
    models = {one.worker: one.labels for one in service.store.workers(id) if one.worker.startswith("model:")}
    assert models == {"model:old": 44, "model:soft (unsure)": 10, "model:soft (sure)": 10}
    exported = [one for one in service[id].labels() if one.worker == "model:old"]
    assert len(exported) == 44
    assert {(one.state, one.counted, one.started) for one in exported} == {("labelled", False, None)}
    snapshot = service.crowd(row)
    assert snapshot is not None
    assert snapshot.told.sum() == 26  # places of tasks are people's


def test_a_repeated_upload_changes_nothing_and_another_label_is_a_conflict(service: CampaignService) -> None:
    id = campaign(service)
    service[id].add_predictions("m", said(0, 10))
    sure = {one.task for one in service[id].results() if one.probability > 0.55}
    assert sure == {f"t{k}" for k in range(10)}  # before anybody has asked for a task
    seq = service.store.row(id).seq
    again = service[id].add_predictions("model:m", said(0, 10))
    assert (again.added, again.known) == (0, 10)
    with pytest.raises(ConflictError, match="another prediction for task 't4'"):
        service[id].add_predictions("m", said(0, 20, wrong=(4,)))
    with pytest.raises(ConflictError, match="another prediction"):
        service[id].add_predictions("m", [{"task": "t0", "probability": 0.01}])
    with pytest.raises(NotFoundError, match="no task 'nine'"):
        service[id].add_predictions("m", [*said(11, 12), {"task": "nine", "label": "no"}])
    with pytest.raises(InputError, match="two predictions"):
        service[id].add_predictions("m", [*said(11, 12), *said(11, 12, wrong=(11,))])
    assert service.store.row(id).seq == seq
    lease = next(one for one in service.store.leases(id, [0]) if one.worker == "model:m")
    for attempt in (service[id].undo, service[id].release, service[id].renew):
        with pytest.raises(ConflictError):
            attempt(lease.id)


def test_a_models_labels_are_dropped_and_restored(service: CampaignService) -> None:
    id = campaign(service)
    label_some(service, id, 4)
    plain = [one.probability for one in service[id].results()]
    service[id].add_predictions("bad", said(0, 10))
    assert [one.probability for one in service[id].results()] != plain
    assert service[id].drop_labels("model:bad", "the wrong file").changed == 10
    assert service[id].drop_labels("model:bad").changed == 0
    assert all(one.worker != "model:bad" for one in service[id].labels())
    assert sum(one.worker == "model:bad" and one.dropped for one in service[id].labels(dropped=True)) == 10
    with pytest.raises(ConflictError, match="were dropped"):
        service[id].add_predictions("bad", said(10, 12))
    service.run(id, lambda commands: commands.refit())
    dropped = [one.probability for one in service[id].results()]
    assert dropped == pytest.approx(plain, abs=0.2) and dropped[9] < 0.75
    label_some(service, id, 4, 1)
    assert service[id].restore_labels("model:bad").changed == 10
    streamed, read = models_of(service, id)
    assert np.array_equal(streamed.crowd.came[:TASKS], read.crowd.came[:TASKS])
    label_some(service, id, 3, 2)
    streamed, read = models_of(service, id)
    beliefs = [model.crowd.beliefs[:TASKS] for model in (streamed, read)]
    assert np.array_equal(*beliefs)
    assert service[id].verify().right


def test_what_a_model_costs_is_taken_from_the_budget_once(in_memory: CampaignService) -> None:
    id = campaign(in_memory, budget=10)
    with pytest.raises(ConflictError, match="cost 12 labels, and 10 are left"):
        in_memory[id].add_predictions("dear", said(0, TASKS), cost=0.3)
    assert in_memory.store.row(id).predicted == 0
    assert in_memory[id].add_predictions("dear", said(0, 15), cost=0.3).charged == 5
    assert in_memory[id].add_predictions("dear", said(0, 15), cost=0.3).charged == 0
    assert in_memory.store.row(id).left == 5
    assert len(label_some(in_memory, id, 20)) == 5
    assert in_memory.store.row(id).closed_reason == "budget_spent"
    assert in_memory[id].verify().right


def test_many_predictions_are_written_in_steps_and_an_upload_that_was_broken_off_is_finished_by_another(
    in_memory: CampaignService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictions, "AT_ONCE", 8)
    monkeypatch.setattr(predictions, "CHUNK", 5)
    id = campaign(in_memory)
    calls, run = [], in_memory.run

    def broken(id: str, command: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:  # a look at what is known, and two steps of five are written
            raise KeyboardInterrupt
        return run(id, command)

    monkeypatch.setattr(in_memory, "run", broken)
    with pytest.raises(KeyboardInterrupt):
        in_memory[id].add_predictions("m", said(0, 23), cost=0.5)
    added = in_memory[id].add_predictions("m", said(0, 23), cost=0.5)
    assert (added.added, added.known) == (13, 10)
    assert in_memory.store.row(id).predicted == 23
    assert in_memory[id].verify().right


def test_people_go_where_the_model_is_not_enough(in_memory: CampaignService) -> None:
    """People's labels go to the items that the model was not asked about."""
    id = campaign(in_memory, budget=30)
    in_memory[id].add_predictions("good", said(0, 30))
    got = label_some(in_memory, id, 30)
    without = [int(task[1:]) >= 30 for task in got]
    assert sum(without) > 30 * 10 / TASKS  # more than their share
    results = {one.task: one.label for one in in_memory[id].results()}
    right = [results[f"t{k}"] == ("no", "yes")[k % 2] for k in range(30)]
    assert np.mean(right) >= 0.9


def test_policies_that_take_workers_to_be_alike_refuse_models(in_memory: CampaignService) -> None:
    id = campaign(in_memory, policy="index")
    with pytest.raises(ConflictError, match="would count like a person"):
        in_memory[id].add_predictions("m", said(0, 3))
    for name in ("", "x" * 200, "two\nlines"):
        with pytest.raises(InputError, match="name"):
            in_memory[id].add_predictions(name, said(0, 3))
    with pytest.raises(InputError, match="cost"):
        in_memory[id].add_predictions("m", said(0, 3), cost=-1.0)


@pytest.mark.parametrize(("row", "found"), [
    ({"task": "a", "label": "YES "}, Prediction("a", 1, None)),
    ({"id": 7.0, "answer": "no", "score": 0.9}, Prediction("7", 0, None)),
    ({"item_id": "a", "no": "0,8", "yes": "0,2"}, Prediction("a", 0, 0.8)),
    ({"task": "a", "p_yes": 0.75, "p_no": 0.25, "text": "x"}, Prediction("a", 1, 0.75)),
    ({"task": "a", "Probability": 0.5}, Prediction("a", 0, 0.5)),
])  # fmt: skip
def test_files_of_predictions(row: dict[str, Any], found: Prediction) -> None:
    assert list(read_predictions([row], ("no", "yes"))) == [found]


@pytest.mark.parametrize(("rows", "why"), [
    ([{"label": "no"}], "which task"), ([{"task": "a", "text": "x"}], "what the model predicts"),
    ([{"task": "a", "label": "maybe"}], "'maybe'"), ([{"task": "", "label": "no"}], "no task"),
    ([{"task": "a", "probability": 1.2}], "no probability"), ([{"task": "a", "no": 0.5, "yes": 0.6}], "add up to 1.1"),
    ([{"task": "a", "label": "no"}, {"task": "b"}], "prediction 2 has no 'label'"), (["a"], "no names"),
])  # fmt: skip
def test_files_that_are_refused(rows: list[Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        list(read_predictions(rows, ("no", "yes")))
