"""Items and known answers that are added in the browser, and tables of Excel, in and out."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pytest
from playwright.sync_api import Browser, expect

from browser import at, check_accessible, chromium
from nextlabel.cli.app import run
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("added"), pages=mount_pages) as service:
        yield service


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as client:
        client.post("/sign-in", data={"token": service.token})
        yield client


def workbook(*rows: list[Any]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def add(client: httpx.Client, id: str, name: str, content: bytes, **fields: str) -> httpx.Response:
    return client.post(f"/campaigns/{id}/items", files={"file": (name, content)}, data=fields, follow_redirects=True)


def test_items_known_answers_and_people_are_added_while_a_campaign_runs(service: Service, chromium: Browser) -> None:
    id = service.campaign("grows", tasks=0, show=["text"])
    with at(chromium, base_url=service.url) as page:
        page.goto("/sign-in")
        page.get_by_label("Token").fill(service.token)
        page.get_by_role("button", name="Sign in").click()
        for name, content, said in (
            ("more.csv", b"key,text,gold\na,One,\nb,Two,yes\n", "2 items added."),
            ("again.csv", b"key,text\na,One\nc,Three\n", "1 task had an id that was there, with the same contents"),
        ):
            page.goto(f"/campaigns/{id}")
            page.get_by_text("Add items or known answers").click()
            page.get_by_label("CSV or Excel file").set_input_files({"name": name, "mimeType": "", "buffer": content})
            page.get_by_label("Column with the ids").fill("key")
            page.get_by_role("button", name="Add items").click()
            expect(page.get_by_role("status").first).to_contain_text(said)
        check_accessible(page)
        page.goto(f"/campaigns/{id}")
        page.get_by_text("Add items or known answers").click()
        answers = {"name": "x.csv", "mimeType": "", "buffer": b"task,label\nc,no\n"}
        page.get_by_label("CSV or Excel file").set_input_files(answers)  # type: ignore[arg-type]
        page.get_by_role("button", name="Add known answers").click()
        expect(page.get_by_role("status").first).to_contain_text("1 known answer new or corrected.")
    row = service.campaign_service.store.row(id)
    assert (row.tasks, row.controls) == (3, 2)
    tasks = service.campaign_service.store.tasks_by_key(id, ["b", "c"])
    assert tasks["b"].gold == 1 and tasks["c"].gold == 0 and "gold" not in tasks["b"].payload


@pytest.mark.parametrize(
    ("name", "content", "fields", "said"),
    [
        ("", b"", {}, "No file was chosen"),
        ("x.csv", b"text\n", {}, "a header and no rows"),
        ("x.csv", b"text\nnew\n", {"id_column": "key"}, "has no column"),
        ("x.csv", b"key,text\nt0,other\n", {"id_column": "key"}, "there with another payload"),
        ("x.json", b'[{"text": "a"}]', {}, "is no table with a header"),
        ("x.xlsx", b"PK\x03\x04nothing", {}, "cannot be read as a workbook"),
        ("x.csv", b"task,label\nt0,no\nt0,yes\n", {"answers": "on"}, "two answers to"),
        ("x.csv", b"task,label\nnobody,no\n", {"answers": "on"}, "nobody"),
    ],
)
def test_a_file_that_is_wrong_adds_nothing(
    service: Service, client: httpx.Client, name: str, content: bytes, fields: dict[str, str], said: str
) -> None:
    id = service.campaign("firm", tasks=2)
    before = service.campaign_service.store.row(id)
    answer = add(client, id, name, content, **fields)
    assert answer.status_code in (404, 409, 422), answer.text
    assert any(one in answer.text for one in said.split("|")), answer.text
    after = service.campaign_service.store.row(id)
    assert (after.tasks, after.controls) == (before.tasks, before.controls)


def test_a_sheet_of_excel_makes_a_campaign_and_another_one_adds_to_it(service: Service, client: httpx.Client) -> None:
    sheet = workbook(["id", "text", "day"], [1, "Größe", None], [2.0, "=1+1", None])
    sent = client.post("/new", files={"file": ("Reviews.xlsx", sheet)})
    form = {"labels": "no\nyes", "budget": "9", "shown": "text", "id_column": "id"}
    made = client.post(sent.headers["location"], data=form)
    id = made.headers["location"].split("/")[2]
    more = workbook(["id", "text", "day"], [3, "Drei", None])
    assert "1 item added." in add(client, id, "more.xlsx", more, id_column="id").text
    tasks = service.campaign_service.store.tasks_by_key(id, ["1", "2", "3"])
    assert [tasks[key].payload["text"] for key in "123"][::2] == ["Größe", "Drei"]
    got = client.get(f"/campaigns/{id}/results.xlsx")
    rows = list(openpyxl.load_workbook(io.BytesIO(got.content)).worksheets[0].iter_rows(values_only=True))
    assert [row[0] for row in rows] == ["task", "1", "2", "3"] and len(rows[0]) == len(rows[1])
    for kind in ("labels", "workers"):
        assert client.get(f"/campaigns/{id}/{kind}.xlsx").content[:2] == b"PK"


def test_excel_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In, and out, where what somebody wrote is no formula."""
    (tmp_path / "items.xlsx").write_bytes(workbook(["id", "text"], ["a", "'=cmd()"], ["b", "plain \x0b"[:5]]))
    db = f"sqlite:///{tmp_path}/labels.db"
    out = tmp_path / "out.xlsx"
    create = ["campaign", "create", str(tmp_path / "items.xlsx"), "--id", "c", "--budget", "9"]
    assert run([*create, "--policy", "uncertainty", "--db", db]) == 0
    assert "2 rows read (Excel" in capsys.readouterr().err
    assert run(["campaign", "export", "c", "--format", "xlsx", "--save", str(out), "--db", db]) == 0
    sheet = openpyxl.load_workbook(out).worksheets[0]
    cells = [cell for row in sheet.iter_rows() for cell in row]
    assert all(cell.data_type != "f" for cell in cells) and "plain" in [cell.value for cell in cells]
    assert run(["campaign", "export", "c", "--format", "xlsx", "--db", db]) == 2
    labels = tmp_path / "labels.xlsx"
    rows = [[f"t{k}", f"w{j}", ["no", "yes"][(k + j) % 2]] for k in range(6) for j in range(3)]
    labels.write_bytes(workbook(["task", "worker", "label"], *rows))
    assert run(["prior", str(labels), "--json"]) == 0
