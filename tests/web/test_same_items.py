"""Items that are given twice: one rule at the command line, in Python, over HTTP and in the browser, always said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import nextlabel as nl
from nextlabel.application import service as campaigns_service
from nextlabel.cli.app import run
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

TWICE = "id,text\na,one\na,one\nb,two\n"
DIFFERENT = "id,text\na,one\na,other\nb,two\n"
UNNAMED = "text\none\none\ntwo\n"
#: A file, the number of its tasks (None: it is refused), and what is said.
FILES = [
    (TWICE, 2, "1 task had an id that was there, with the same contents: counted once."),
    (DIFFERENT, None, "there with another payload or prior"),
    (UNNAMED, 3, "1 task without an id had the contents of another: each is labelled and paid for."),
]
EACH = pytest.mark.parametrize(("text", "tasks", "said"), FILES, ids=["twice", "different", "unnamed"])
BIG = pytest.mark.parametrize("at_once", [1000, 1], ids=["small", "big"])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("same"), pages=mount_pages) as service:
        yield service


@EACH
def test_at_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, tasks: int | None, said: str
) -> None:
    file, db = tmp_path / "items.csv", f"sqlite:///{tmp_path}/nextlabel.db"
    file.write_text(text)
    create = ["campaign", "create", str(file), "--id", "c", "--budget", "9", "--policy", "uncertainty", "--db", db]
    assert run(create) == (2 if tasks is None else 0)
    assert said in capsys.readouterr().err
    if tasks is None:
        with pytest.raises(nl.errors.NotFoundError):
            nl.Campaign.open(db, "c")
    else:
        with nl.Campaign.open(db, "c") as campaign:
            assert campaign.status().tasks == tasks


@BIG
@EACH
def test_in_python_and_over_http(
    service: Service, monkeypatch: pytest.MonkeyPatch, at_once: int, text: str, tasks: int | None, said: str
) -> None:
    monkeypatch.setattr(campaigns_service, "AT_ONCE", at_once)
    id = service.campaign(f"http{at_once}_{tasks or 0}", tasks=0)
    with service.http() as http:
        answer = http.post(f"/campaigns/{id}/tasks", content=text, headers={"content-type": "text/csv"})
    assert said in answer.text
    assert answer.status_code == (409 if tasks is None else 200)
    rows = [dict(zip(text.split()[0].split(","), line.split(","), strict=True)) for line in text.split()[1:]]
    other = service.campaign(f"client{at_once}_{tasks or 0}", tasks=0)
    with nl.Client(service.url, service.token) as client:
        if tasks is None:
            with pytest.raises(nl.errors.ConflictError, match=said):
                client.add_tasks(other, rows)
        else:
            added = client.add_tasks(other, rows)
            assert added.tasks == tasks and said in added.notes()[0]


@BIG
@EACH
def test_in_the_browser(
    service: Service, monkeypatch: pytest.MonkeyPatch, at_once: int, text: str, tasks: int | None, said: str
) -> None:
    monkeypatch.setattr(campaigns_service, "AT_ONCE", at_once)
    with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as client:
        client.post("/sign-in", data={"token": service.token})
        step = client.post("/new", files={"file": ("x.csv", text.encode(), "text/csv")}).headers["location"]
        id_column = "id" if text.startswith("id") else ""
        form = {"labels": "no\nyes", "budget": "9", "shown": "text", "id_column": id_column}
        answer = client.post(step, data=form, follow_redirects=True)
        while "Look again" in answer.text:
            answer = client.get(str(answer.url), follow_redirects=True)
    assert said in answer.text
    if tasks is not None:
        assert f"{tasks} tasks, a budget" in answer.text
