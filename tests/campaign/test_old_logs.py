"""Logs recorded by an earlier version replay to the state that version had, for ever (``logs/record.py``)."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from nextlabel.campaign.events import KINDS
from nextlabel.campaign.legacy_log import LEGACY_SETTINGS
from nextlabel.campaign.projection import apply_event
from nextlabel.campaign.results import results_of
from nextlabel.campaign.scoring import rank_all
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService
from nextlabel.problem.tables import prior_table
from nextlabel.store.open import open_store
from stores import KINDS as STORES
from stores import Clock, everything, opened

LOGS = sorted((Path(__file__).parent / "logs").glob("*.json.gz"))

#: Fields that have another name since the recording.
OLD_NAMES = {"class_number": "klass", "place": "lot"}
#: Fields of a worker's row that are new since the recording.
NEW_IN_WORKERS = ("bought", "dropped", "standing", "reason", "tested", "free", "turned_away")


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return loaded


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    """The row without fields that are new since the recording."""
    return {name: value for name, value in row.items() if name not in names}


def replayed(store: Any, log: dict[str, Any]) -> dict[str, Any]:
    """The rows after all events, as the recording has them."""
    first, row = log["events"][0], log["state"]["row"]
    config = CampaignSettings.from_log(first["data"]["config"])
    with store.create(row["id"], config, row["created_at"]) as ledger:
        for one in log["events"]:
            event = ledger.append(one["at"], one["kind"], one["data"])
            apply_event(ledger, event)
        rank_all(ledger)
    rows = everything(store, row["id"])
    campaign = asdict(rows["row"])
    settings = rows["row"].config.to_dict()
    for name, value in LEGACY_SETTINGS.items():  # new since the recording, with the values that logs without them have
        assert settings.pop(name) == value
    return {
        "row": {**without(campaign, "rules", "amended", "controls"), "config": settings},
        "classes": [prior_table(prior) for prior in rows["classes"]],
        "tasks": [
            {OLD_NAMES.get(name, name): value for name, value in without(asdict(t), "gold").items()}
            for t in rows["tasks"]
        ],
        "groups": sorted([*group, count] for group, count in rows["groups"].items()),
        "leases": [without(asdict(lease), "dropped", "free", "comment") for lease in rows["leases"]],
        "workers": [without(asdict(worker), *NEW_IN_WORKERS) for worker in rows["workers"]],
        "results": [
            without(asdict(result), "control") for result in results_of(rows["row"], rows["classes"], rows["tasks"])
        ],
    }


def without_scores(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Scores order the candidates and may be worked out anew; that a task has none says that it has no room."""
    return [{**task, "score": task["score"] is not None} for task in tasks]


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.partition(".")[0])
def test_an_old_log_replays_to_the_same_state(path: Path, kind: str, tmp_path: Path) -> None:
    log = json.loads(json.dumps(load(path)))
    with opened(kind, tmp_path) as store:
        now = json.loads(json.dumps(replayed(store, log)))
    then = log["state"]
    for result, before in zip(now.pop("results"), then.pop("results"), strict=True):
        assert result.pop("probability") == pytest.approx(before.pop("probability"), rel=1e-9)
        assert result == before
    assert without_scores(now.pop("tasks")) == without_scores(then.pop("tasks"))
    assert now == then


#: Kinds of events that logs have had since the recording.
NEW_KINDS = {
    "unasked", "withdrawn",
    "clock_accepted", "batch_ended", "rebuilt", "tasks_published", "tasks_ranked", "refitted", "worker_paused",
    "worker_blocked", "worker_restored", "labels_dropped", "labels_restored", "predicted", "refitting",
    "predictions_dropped",
    "predictions_restored",
    "gold_set",
    "audit_drawn",
    "audit_answered",
    "turned_away",
}  # fmt: skip


def test_the_old_logs_have_every_kind_of_event() -> None:
    logs = [load(path) for path in LOGS]
    assert {event["kind"] for log in logs for event in log["events"]} == set(KINDS) - NEW_KINDS
    assert any(log["state"]["row"]["classes"] > 64 for log in logs)


def without_last_bits(state: dict[str, Any]) -> dict[str, Any]:
    """Scores only order the tasks; another version may compute them with other last bits."""
    tasks = [replace(t, score=None if t.score is None else round(t.score, 9)) for t in state["tasks"]]
    return {**state, "tasks": tasks}


def test_a_database_of_an_earlier_version_opens_and_goes_on(tmp_path: Path) -> None:
    packed = Path(__file__).parent / "logs" / "crossing.db.gz"
    (tmp_path / "labels.db").write_bytes(gzip.decompress(packed.read_bytes()))
    then = load(packed.with_name("crossing.json.gz"))["state"]
    clock = Clock()
    clock.now = then["row"]["last_at"] + 1.0
    service = CampaignService(open_store(f"sqlite:///{tmp_path / 'labels.db'}"), clock)
    before = everything(service.store, "crossing")
    assert {name: getattr(before["row"], name) for name in ("spent", "reserved", "seq", "tasks")} == {
        name: then["row"][name] for name in ("spent", "reserved", "seq", "tasks")
    }
    service.rebuild("crossing")
    assert without_last_bits(everything(service.store, "crossing")) == without_last_bits(before)
    service.change("crossing", {"deadline": None, "budget": 400})
    lease = service.ask("crossing", "somebody new")
    assert lease and service.tell(lease.id, "yes").counted
    after = everything(service.store, "crossing")
    service.rebuild("crossing")
    assert everything(service.store, "crossing") == after
    service.close()
