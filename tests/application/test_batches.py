"""Batches of tasks: the same again changes nothing, others under the same key are a conflict. Tasks without an id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign import intake
from nextlabel.campaign.replies import Added
from nextlabel.cli.app import run
from nextlabel.errors import ConflictError
from service_fixtures import on_sqlite
from stores import DATABASES, Clock, opened, service_of_store, simple


@pytest.fixture(params=DATABASES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    with opened(request.param, tmp_path) as store:
        campaign_service = service_of_store(store, Clock())
        yield campaign_service
        campaign_service.table_cache.close()


def tasks(*ids: str, text: str = "x") -> list[dict[str, Any]]:
    return [{"id": id, "text": text} for id in ids]


class TestBatches:
    def test_the_same_again_is_known_and_another_is_refused(self, service: CampaignService) -> None:
        id = service.create(simple()).id
        assert service.add_tasks(id, tasks("a", "b"), "key").added == 2
        seq = service.store.row(id).seq
        again = service.add_tasks(id, tasks("a", "b"), "key")
        assert (again.added, again.known, again.tasks) == (0, 2, 2)
        for other in (tasks("a", "c"), tasks("a"), tasks("a", "b", "c"), tasks("b", "a"), tasks("a", "b", text="y")):
            with pytest.raises(ConflictError, match="'key' was added before with other tasks"):
                service.add_tasks(id, other, "key")
        assert service.store.row(id).seq == seq and service.store.row(id).tasks == 2
        service[id].rebuild()
        assert service.add_tasks(id, tasks("a", "b"), "key").known == 2
        with pytest.raises(ConflictError):
            service.add_tasks(id, tasks("c"), "key")

    def test_batches_of_many_chunks_and_of_known_tasks(
        self, service: CampaignService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(intake, "CHUNK", 2)
        id = service.create(simple(), tasks=tasks("a", "b", "c")).id
        assert service.add_tasks(id, tasks("d", "e", "a", "b", "c"), "mixed").added == 2  # the last chunk adds nothing
        assert service.add_tasks(id, tasks("a"), "known").added == 0
        assert [event.kind for event in service.store.events(id)].count("batch_ended") == 2
        for _ in range(2):
            assert service.add_tasks(id, tasks("d", "e", "a", "b", "c"), "mixed").added == 0
            assert service.add_tasks(id, tasks("a"), "known").added == 0
            with pytest.raises(ConflictError):
                service.add_tasks(id, tasks("d", "e", "a", "b"), "mixed")
            with pytest.raises(ConflictError):
                service.add_tasks(id, tasks("b"), "known")
            service[id].rebuild()

    def test_create_with_other_tasks_under_the_same_id(self, service: CampaignService) -> None:
        assert service.create(simple(), "demo", tasks("a", "b")).added == Added(2, 0, 2)
        first = service.store.row("demo")
        assert service.create(simple(), "demo", tasks("a", "b")).added == Added(0, 2, 2)
        assert service.create(simple(), "demo").id == "demo" and service.store.row("demo") == first
        with pytest.raises(ConflictError, match="other tasks"):
            service.create(simple(), "demo", tasks("a", "c"))
        assert service.store.row("demo").tasks == 2


class TestTasksWithoutAnId:
    def test_a_number_that_somebody_used_as_an_id(self, service: CampaignService) -> None:
        id = service.create(simple(), tasks=tasks("1")).id
        assert service.add_tasks(id, [{"text": "y"}, {"text": "z"}]).added == 2
        assert service.add_tasks(id, tasks("3.2", "3")).added == 2
        assert service.add_tasks(id, [{"text": "w"}, {"id": "6", "text": "v"}, {"text": "u"}]).added == 3
        assert [task.key for task in service.store.tasks(id)] == ["1", "1.2", "2", "3.2", "3", "5", "6", "7"]
        assert service.add_tasks(id, [{"text": "t"}]).added == 1
        keys = [task.key for task in service.store.tasks(id)]
        assert keys[-1] == "8" and len(set(keys)) == 9

    def test_in_one_batch(self, service: CampaignService) -> None:
        given = [{"text": "p"}, *tasks("0", "1.2", "1", "3"), {"text": "q"}, {"id": "6", "text": "r"}, {"text": "s"}]
        id = service.create(simple(), tasks=given).id
        assert [task.key for task in service.store.tasks(id)] == ["0.2", "0", "1.2", "1", "3", "5", "6", "7"]


def test_over_http(tmp_path: Path) -> None:
    with on_sqlite(tmp_path) as service, service.http() as http:
        service.campaign("demo", tasks=0)
        key = {"idempotency-key": "once"}
        assert http.post("/campaigns/demo/tasks", json=tasks("a"), headers=key).json()["added"] == 1
        assert http.post("/campaigns/demo/tasks", json=tasks("a"), headers=key).json()["added"] == 0
        refused = http.post("/campaigns/demo/tasks", json=tasks("b"), headers=key)
        assert refused.status_code == 409 and refused.json()["type"] == "urn:nextlabel:conflict"
        assert http.post("/campaigns/demo/tasks", json=tasks("1")).status_code == 200
        assert http.post("/campaigns/demo/tasks", json=[{"text": "without an id"}]).status_code == 200


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("id,text\na,x\n")
    (tmp_path / "two.csv").write_text("id,text\nb,y\n")
    create = ["campaign", "create", "--budget", "5", "--id", "demo"]
    assert run([*create, "one.csv"]) == run([*create, "one.csv"]) == run(create) == 0
    capsys.readouterr()
    assert run([*create, "two.csv"]) == 2
    said = capsys.readouterr().err
    assert "other tasks" in said and said.count("\n") == 1
