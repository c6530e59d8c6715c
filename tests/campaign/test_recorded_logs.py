"""Recorded logs replay to the state that was recorded with them (``logs/record.py``)."""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from nextlabel.campaign.declaration import declared, names
from nextlabel.campaign.results import results_of
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from stores import KINDS, opened

sys.path.insert(0, str(Path(__file__).parent / "logs"))

from record import everything

LOGS = sorted((Path(__file__).parent / "logs").glob("*.json.gz"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.partition(".")[0])
def test_a_log_replays_to_the_same_state(path: Path, kind: str, tmp_path: Path) -> None:
    log = json.loads(gzip.decompress(path.read_bytes()))
    then = log["state"]
    config = CampaignSettings.from_log(log["events"][0]["data"]["config"])
    id = then["row"]["id"]
    with opened(kind, tmp_path) as store:
        with store.create(id, config, then["row"]["created_at"]) as state:
            for one in log["events"]:
                state.record(one["at"], one["kind"], one["data"])
            room = [state.pool.has_room(number) for number in range(state.row.tasks)]
        now = everything(store, id)
        found = results_of(store.row(id), store.classes(id), store.tasks(id, -1, 10**6))
        now["results"] = [asdict(result) for result in found]
        assert [asdict(event) for event in store.events(id, 0, 10**6)] == log["events"]
    now = json.loads(json.dumps(now))
    for result, before in zip(now.pop("results"), then.pop("results"), strict=True):
        chances = result.pop("probabilities")
        assert chances[result["label"]] == result["probability"] == max(chances.values())
        assert result.pop("probability") == pytest.approx(before.pop("probability"), rel=1e-9)
        assert result.pop("source") == "labels" and result.pop("interval") is None
        assert result.pop("intervals") == {}
        assert result == before
    then["row"] |= then["row"].pop("rules")
    had_score = [task.pop("score") is not None for task in then["tasks"]]  # of ranked tasks, those that had room
    assert had_score == (room if then["row"]["ranked"] else [False] * len(room))
    for task in then["tasks"]:
        del task["last_seq"]
    assert then["row"].pop("unranked_from") is None
    del then["row"]["segments"]  # what places were below
    del then["row"]["core"]  # there is one model of workers now
    assert then["row"].pop("limits") == [[0, config.most_labels, config.most_in_flight]]
    amended = json.loads(then["row"].pop("amended"))  # the settings had other places when they had changed
    amended |= {name: then["row"].pop(name) for name in ("budget", "deadline", "lease_seconds")}
    then["row"]["config"] |= amended
    row = json.loads(json.dumps(asdict(CampaignRow("", config, 0.0, 1.0)) | {"config": None}))
    usual = {name: declared(name).default for name in names()}
    for ours, theirs, new in (  # what campaigns could not have or do then
        (now["row"], then["row"], row),
        (now["row"]["config"], then["row"]["config"], usual),
    ):
        for name in ours.keys() - theirs.keys():
            assert ours.pop(name) == new[name], name
    assert now == then
