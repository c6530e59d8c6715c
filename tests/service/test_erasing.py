"""A person is erased: their name and words are nowhere in the database, the log and the exports, and replay = state."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from nextlabel.application.service import CampaignService
from nextlabel.campaign.crowd_model import new_model
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.cli.app import run
from nextlabel.client import Client
from nextlabel.errors import InputError, NotFoundError
from nextlabel.integrations.platform import StatusChange
from nextlabel.service import access
from nextlabel.service.background import erase_old
from nextlabel.service.logs import JsonFormatter
from nextlabel.store.sql import SqlStore
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite
from stores import KINDS, opened

#: Nothing else in a campaign looks like these.
NAME, WORDS, REASON, VISIT = "zoe-zebra", "I-am-from-Zanzibar", "Zoe-was-rude", "5f0000zz"
PLATFORM = f"prolific:{NAME}"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(access, "CACHE_S", 0.0)
    with on_sqlite(tmp_path, pages=mount_pages) as running:
        yield running


def traces(store: SqlStore) -> list[str]:
    """Where the name or the words still are: cells of all tables, and the bytes of all files of the database."""
    found = []
    with store.read() as connection:
        for table in sa.inspect(connection).get_table_names():
            for row in connection.execute(sa.text(f"SELECT * FROM {table}")):
                told = " ".join(cell.decode("latin-1") if isinstance(cell, bytes) else str(cell) for cell in row)
                found += [f"{table}: {told}" for word in (NAME, WORDS, REASON, VISIT) if word in told]
    sqlite = store.engine.dialect.name == "sqlite" and not store.in_memory
    for path in Path(str(store.engine.url.database)).parent.iterdir() if sqlite else ():
        data = path.read_bytes()
        found += [f"{path.name}: {word}" for word in (NAME, WORDS, REASON, VISIT) if word.encode() in data]
    return found


def work(service: Service, campaign: str, worker: str, labels: int) -> None:
    with service.http() as http:
        for k in range(labels):
            lease = http.post(f"/campaigns/{campaign}/ask", json={"worker": worker}).json()["lease"]["id"]
            said = {"label": "yes" if k % 2 else "no", "comment": f"{WORDS if NAME in worker else 'fine'} {k}"}
            assert http.post(f"/leases/{lease}/tell", json=said).status_code == 200


@pytest.mark.parametrize("policy", ["uncertainty", "crowd"])
def test_nothing_is_left_of_a_person(service: Service, policy: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nextlabel.service")
    id, store = service.campaign(tasks=12, policy=policy, budget=60, pay_per_label=0.05), service.campaign_service.store
    with service.http() as http:
        join = http.post(f"/campaigns/{id}/links", json={}).json()["join"]["url"]
        page = httpx.get(join, params={"PROLIFIC_PID": NAME, "STUDY_ID": "s", "SESSION_ID": VISIT})
        assert page.status_code == 303
        service.campaign_service.visits.status_changed("prolific", StatusChange(VISIT, NAME, "APPROVED"), 1.0)
        for worker in (PLATFORM, "bob", "ann"):
            work(service, id, worker, 6)
        http.post(f"/campaigns/{id}/ask", json={"worker": PLATFORM})
        http.post(
            f"/campaigns/{id}/workers/standing", json={"worker": PLATFORM, "standing": "paused", "reason": REASON}
        )
        record = http.post(f"/campaigns/{id}/workers/record", json={"worker": PLATFORM}).json()
        assert len(record["labels"]) == 7 and record["visits"][0]["id"] == VISIT
        assert record["labels"][0]["comment"] == f"{WORDS} 0"
        personal = http.post(f"/campaigns/{id}/links", json={"workers": [PLATFORM]}).json()["links"][0]
        work(service, id, "bob", 1)
    other = CampaignService(SqlStore(str(store.engine.url.database)))  # another process, with all of it in memory
    other[id].ask("cat")
    if policy == "crowd":
        with store.transaction(id) as state:
            state.crowd = state.crowd or new_model(state)
            state.crowd.catch_up(state)
            assert NAME.encode() not in state.crowd.dump()
    before = list(service.campaign_service[id].labels())
    assert traces(store)
    with Client(service.url, service.token) as client:
        erased = client.erase_worker(id, PLATFORM)
        assert erased.worker == "erased:0" and erased.labels == 6
        assert not traces(store)
        with pytest.raises(NotFoundError):
            client.erase_worker(id, PLATFORM)
        with pytest.raises(InputError, match="not the name of a person"):
            client.erase_worker(id, "erased:0")
        with pytest.raises(InputError, match="no worker may be called"):
            client.ask(id, "erased:0")
        assert client.revoke_links(id, ["bob"]) and client.ask(id, "bob")
    other.run(id, lambda commands: commands.pause())  # it goes on with what it knew before
    other.run(id, lambda commands: commands.resume())
    assert other[id].ask("bob") and other[id].verify().right
    assert service.campaign_service[id].verify().right
    assert not traces(store)
    after = list(service.campaign_service[id].labels())
    assert [(one.task, one.label) for one in after if one.worker == "erased:0"] == [
        (one.task, one.label) for one in before if one.worker == PLATFORM
    ]
    assert not [one for one in after if one.worker == "erased:0" and one.comment]
    with service.http() as http, service.http(personal["token"]) as link:
        exports = [
            f"/campaigns/{id}/{what}"
            for what in ("events?limit=1000", "labels?format=csv&dropped=true", "workers?format=csv")
        ]
        for address in (
            *exports,
            f"/campaigns/{id}",
            f"/campaigns/{id}/visits",
            f"/campaigns/{id}/results?format=jsonl",
        ):
            assert NAME not in http.get(address).text, address
        assert link.post(f"/campaigns/{id}/ask").status_code == 401
        assert httpx.get(f"{service.url}/work/{id}", cookies=dict(page.cookies)).status_code == 401
        again = http.post(f"/campaigns/{id}/ask", json={"worker": PLATFORM}).json()
        assert again["lease"] is not None and http.get(f"/campaigns/{id}/workers").json()["workers"][-1]["labels"] == 0
    lines = [JsonFormatter().format(record) for record in caplog.records if record.name == "nextlabel.service"]
    assert lines and not [line for line in lines if NAME in line]
    other.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_notice_names_nobody_who_was_erased(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        check_notices(store)


def check_notices(store: SqlStore) -> None:
    service = CampaignService(store)
    service.create(CampaignSettings(budget=9, policy="uncertainty"), "demo", ["a", "b", "c"])
    for worker in (NAME, "bob"):
        lease = service["demo"].ask(worker)
        assert lease
        service[lease.campaign].tell(lease.id, 1, comment=WORDS if worker == NAME else None)
    notices = [["answers_at_random", NAME, 3], ["nobody_can_label", None, 2]]
    service.run("demo", lambda commands: commands.record("noticed", {"notices": notices, "new": notices[:1]}))
    assert service.store.row("demo").noticed[0].worker == NAME
    service["demo"].erase_worker(NAME)
    assert not [one for one in service.store.row("demo").noticed if one.worker == NAME]
    (noticed,) = [one.data for one in store.events("demo") if one.kind == "noticed" and len(one.data["new"]) == 1]
    assert noticed["notices"] == [["answers_at_random", "erased:0", 3], ["nobody_can_label", None, 2]]
    assert service["demo"].verify().right and not traces(store)


def test_who_has_not_worked_for_long_is_erased_by_itself(service: Service) -> None:
    service.campaign()
    work(service, "demo", NAME, 1)
    service.clock.ahead = 40 * 86_400.0
    service.campaign_service["demo"].accept_clock()
    work(service, "demo", "bob", 1)
    erase_old(service.campaign_service, 30)
    assert {one.worker for one in service.campaign_service.store.workers("demo")} == {"erased:0", "bob"}


def test_the_command_line_and_the_page_erase(
    service: Service, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    service.campaign()
    for worker in (NAME, "yan"):
        work(service, "demo", worker, 1)
    words = ["campaign", "workers", "demo", "--db", str(tmp_path / "labels.db"), "--json"]
    assert run([*words[:3], "record", NAME, *words[3:]]) == 0
    assert json.loads(capsys.readouterr().out)["labels"][0]["comment"] == f"{WORDS} 0"
    assert run([*words[:3], "erase", NAME, *words[3:]]) == 0
    assert json.loads(capsys.readouterr().out) == {"worker": "erased:0", "labels": 1}
    with httpx.Client(base_url=service.url, headers={"origin": service.url}) as browser:
        browser.post("/sign-in", data={"token": service.token})
        assert browser.get("/campaigns/demo/worker.json?name=yan").json()["worker"] == "yan"
        assert browser.post("/campaigns/demo/worker", data={"name": "yan", "action": "erase"}).status_code == 303
        page = browser.get("/campaigns/demo").text
        assert "erased:1" in page and "yan" not in page and NAME not in page
