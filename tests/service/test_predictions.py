"""A model's predictions by every door: HTTP, the client, the command line and the browser, on one campaign."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import nextlabel as nl
from browser import PHONE, at, check_accessible, chromium
from nextlabel.cli.app import run
from nextlabel.errors import ConflictError
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("predictions")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Service]:
    with on_sqlite(folder, pages=mount_pages) as running:
        yield running


def test_over_http_and_by_the_client(service: Service) -> None:
    service.campaign("http", tasks=5, policy="crowd", labels=["no", "yes"])
    path = "/campaigns/http/predictions"
    with service.http() as http:
        csv = {"content-type": "text/csv"}
        added = http.post(path, params={"model": "a"}, content="task;label\nt0;no\nt1;YES\n", headers=csv)
        assert added.status_code == 200, added.text
        assert {k: v for k, v in added.json().items() if k != "read"} == {
            "model": "a", "added": 2, "known": 0, "charged": 0,
        }  # fmt: skip
        refused = http.post(path, params={"model": "a"}, content="task;label\nt0;yes\n", headers=csv)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:nextlabel:conflict")
        assert http.post(path, content="task;label\nt0;yes\n", headers=csv).status_code == 422
        assert http.post(path, params={"model": "a"}, content="x", headers={"content-type": "x/y"}).status_code == 415
        assert http.post(path, params={"model": "a"}, content="", headers=csv).status_code == 422
        assert http.post(path, params={"model": "b"}, json=[{"task": "t9", "label": "no"}]).status_code == 404
        assert http.post("/campaigns/none/predictions", params={"model": "b"}, json=[]).status_code == 404
        service.campaign("alike", tasks=2, policy="index")
        alike = http.post("/campaigns/alike/predictions", params={"model": "b"}, json=[{"task": "t0", "label": "0"}])
        assert alike.status_code == 409 and "like a person" in alike.json()["detail"]
    with service.worker("ann", "http") as worker:
        assert worker.post(path, params={"model": "a"}, json=[]).status_code == 403
    with nl.Client(service.url, service.token) as client:
        rows = [{"task": f"t{k}", "no": 0.3, "yes": 0.7} for k in range(5)]
        assert client.add_predictions("http", "b", rows, cost=0.5) == nl.results.AddedPredictions("b", 5, 0, 3)
        with pytest.raises(ConflictError):
            client.add_predictions("http", "b", [{"task": "t0", "no": 0.8, "yes": 0.2}])
        assert {one.worker for one in client.labels("http")} == {"model:a", "model:b (fairly sure)"}

    async def again() -> nl.results.AddedPredictions:
        async with nl.AsyncClient(service.url, service.token) as client:
            return await client.add_predictions("http", "b", rows, cost=0.5)

    assert asyncio.run(again()) == nl.results.AddedPredictions("b", 0, 5, 0)


def test_by_the_command_line(service: Service, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service.campaign("shell", tasks=5, policy="crowd", labels=["no", "yes"])
    file = folder / "model.csv"
    file.write_text("name,prob\nt0,0.95\nt1,0.1\n", encoding="utf-8")
    db = f"sqlite:///{folder / 'labels.db'}"
    arguments = ["campaign", "add", "shell", "--predictions", str(file), "--model", "m", "--db", db, "--json"]
    assert run(arguments) == 2
    assert "which task" in capsys.readouterr().err
    assert run([*arguments, "--task-column", "name"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 2
    labels = {one.task: (one.worker, one.label) for one in service.campaign_service["shell"].labels()}
    assert labels == {"t0": ("model:m (sure)", "yes"), "t1": ("model:m (sure)", "no")}


def test_in_a_browser(service: Service, folder: Path, chromium: Browser) -> None:
    service.campaign("pages", tasks=5, policy="crowd", labels=["no", "yes"])
    file = folder / "said.csv"
    file.write_text("task,label\nt0,no\nt1,maybe\n", encoding="utf-8")
    with at(chromium, PHONE) as page:
        page.goto(f"{service.url}/sign-in")
        page.fill("[name=token]", service.token)
        page.click("button[type=submit]")
        page.goto(f"{service.url}/campaigns/pages")
        for text, expected in (("", "maybe"), ("task,label\nt0,no\nt1,yes\n", None)):
            if text:
                file.write_text(text, encoding="utf-8")
            page.locator("#predictions summary").click()
            page.fill("#predictions [name=model]", "tiny")
            page.set_input_files("#predictions [name=file]", file)
            if expected is None:
                check_accessible(page)
            page.locator("#predictions button").click()
            if expected:
                expect(page.get_by_role("alert")).to_contain_text(expected)
        expect(page.locator("[data-part=workers]")).to_contain_text("model:tiny")
        expect(page.locator("[data-part=log]")).to_contain_text("model:tiny predicted 2 labels.")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_features_over_http_from_clients_and_in_the_browsers_form(service: Service) -> None:
    service.campaign("seen", tasks=4, policy="crowd")
    ids = [one.task for one in service.campaign_service["seen"].results()]
    with service.http() as http:
        path = "/campaigns/seen/features"
        csv = {"Content-Type": "text/csv"}
        found = http.post(path, content=f"task,a,b\n{ids[0]},1,2\nlater,3,4\n", headers=csv).json()
        assert (found["items"], found["tasks"], found["numbers"]) == (2, 1, 2)
        assert http.post(path, json=[{"task": ids[1], "a": 1.5, "b": 3}]).json()["tasks"] == 1
        for body, sentence in [
            ("task,a\nx,1\n", "has 1 number for each item, and what is there 2 numbers"),
            ("task\nx\n", "has no column beside 'task'"),
            ("task,a,b\nx,1,2\nx,1,2\n", "has two rows for task 'x'"),
        ]:
            refused = http.post(path, content=body, headers=csv)
            assert refused.status_code == 422 and sentence in refused.json()["detail"]
        assert (
            http.post(path, content=b"PK\x03\x04no", headers={"Content-Type": "application/octet-stream"}).status_code
            == 422
        )
        assert http.post(path, content="x", headers={"Content-Type": "image/png"}).status_code == 415
        assert http.post("/campaigns/none/features", content="task,a\nx,1\n", headers=csv).status_code == 404
        service.campaign("seen_alike", tasks=1, policy="uncertainty")
        assert http.post("/campaigns/seen_alike/features", content="task,a\nx,1\n", headers=csv).status_code == 409
    with nl.Client(service.url, service.token) as client:
        added = client.add_features("seen", {ids[2]: [0.5, 1.0, 2.0]}, replace=True)
        assert (added.items, added.tasks, added.numbers, added.texts) == (1, 1, 3, 0)
        texts = client.add_features("seen", {ids[2]: "good film", ids[3]: "dull"}, replace=True)
        assert (texts.numbers, texts.texts) == (0, 1)
