"""Which columns workers are shown, and that all of them are kept and come back with the results."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import nextlabel as nl
from browser import PHONE, at, check_accessible, chromium
from nextlabel.campaign.settings import columns_notes, looks_personal, shown_payload
from nextlabel.cli.app import run
from nextlabel.errors import InputError
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]
TABLE = "id,text,email,score,label\na,Good kettle,ann@x.org,0.9,3\nb,It broke,bob@x.org,0.2,4\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("columns"), pages=mount_pages) as running:
        yield running


@pytest.mark.parametrize("name", [
    "email", "E-Mail", "customer_email", "Name", "first name", "lastName", "user_name", "phone", "Phone number", "ip",
    "client_ip", "IP address", "street", "SSN", "date_of_birth", "birthDate", "dob",
])  # fmt: skip
def test_names_that_look_personal(name: str) -> None:
    assert looks_personal(name)


@pytest.mark.parametrize("name", [
    "text", "product_name", "filename", "file name", "description", "shipment", "recipe", "title", "zipper", "image",
    "category", "model name", "tip",
])  # fmt: skip
def test_names_that_do_not(name: str) -> None:
    assert not looks_personal(name)


def test_what_is_shown() -> None:
    row = {"text": "x", "email": "a@x.org", "score": 0.5}
    assert shown_payload(None, row) == {"text": "x"}
    assert shown_payload(("text", "email"), row) == {"text": "x", "email": "a@x.org"}
    assert shown_payload(("*",), row) == row
    assert shown_payload(None, "a text") == "a text"
    notes = columns_notes(None, row, None)
    assert notes[0].startswith(
        "Workers are shown text; kept but not shown: email, score (email: looks personal; score:"
    )
    assert "was not used" in notes[1]
    assert columns_notes(None, ["text"], None) == []
    with pytest.raises(InputError, match="nothing that workers would be shown"):
        nl.Campaign.create("memory:", [{"email": "a@x.org"}], budget=3)
    for wrong in ([], [""], "text", [3.5]):
        with pytest.raises(InputError):
            nl.Campaign.create("memory:", budget=3, show=wrong)  # type: ignore[arg-type]


def test_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.csv").write_text(TABLE, encoding="utf-8")
    create = ["campaign", "create", "tasks.csv", "--budget", "4", "--id"]
    assert run([*create, "plain"]) == 0
    said = capsys.readouterr().err
    assert "kept but not shown: email, score (email: looks personal" in said and "'score' was not used" in said
    assert run([*create, "scored", "--score-column", "score", "--show", "text,email"]) == 0
    assert "kept but not shown: score, label." in capsys.readouterr().err
    assert run([*create, "wrong", "--show", "text,mail"]) == 2
    assert "no column 'mail'" in capsys.readouterr().err
    for id, shown, sure in (("plain", {"text", "label"}, False), ("scored", {"text", "email"}, True)):
        with nl.Campaign.open("nextlabel.db", id) as campaign:
            lease = campaign.ask("ann")
            assert lease and set(lease.payload) == shown
            assert (next(iter(campaign.results())).probability > 0.6) == sure
            campaign.release(lease)
        assert run(["campaign", "export", id]) == 0
        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert [(r["task"], r["email"], r["score"], r["original_label"]) for r in rows] == [
            ("a", "ann@x.org", "0.9", "3"), ("b", "bob@x.org", "0.2", "4"),
        ]  # fmt: skip


def test_over_http(service: Service) -> None:
    service.campaign("api", tasks=0, labels=["no", "yes"], show=["text", "label"])
    with service.http() as http:
        added = http.post("/campaigns/api/tasks", content=TABLE, headers={"content-type": "text/csv"})
        assert added.status_code == 200, added.text
        assert "kept but not shown: email, score." in added.json()["read"][-2]
        lease = http.post("/campaigns/api/ask", json={"worker": "ann"}).json()["lease"]
        assert set(lease["payload"]) == {"text", "label"}
        file = http.get("/campaigns/api/results", params={"format": "csv"}).text
        assert file.splitlines()[0].endswith("count_no,count_yes,p_no,p_yes,text,email,score,original_label")
        assert "ann@x.org" in file
        assert http.get("/campaigns/api/results").json()["results"][0]["payload"]["email"] == "ann@x.org"


def test_in_a_browser(service: Service, chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    file.write_text(TABLE, encoding="utf-8")
    with at(chromium, PHONE) as page:
        page.goto(f"{service.url}/sign-in")
        page.fill("[name=token]", service.token)
        page.click("button[type=submit]")
        page.goto(f"{service.url}/new")
        page.set_input_files("#file", file)
        ticks = page.locator(".ticks label")
        expect(ticks).to_have_count(5)
        ticked = {
            name: page.locator(f".ticks input[value={name}]").is_checked() for name in TABLE.split("\n")[0].split(",")
        }
        assert ticked == {"id": False, "text": True, "email": False, "score": False, "label": True}
        expect(page.locator(".ticks")).to_contain_text("email looks personal")
        assert page.locator("[name=score_column]").input_value() == ""
        check_accessible(page)
        page.locator(".ticks input[value=label]").uncheck()
        page.fill("[name=budget]", "4")
        page.click("#submit")
        page.wait_for_url("**/links?made=1&**")
        id = page.url.split("/")[-2]
    with service.http() as http:
        lease = http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"]
        assert set(lease["payload"]) == {"text"}
        payload = http.get(f"/campaigns/{id}/results").json()["results"][0]["payload"]
        assert payload["email"] == "ann@x.org" and payload["score"] == "0.9"
