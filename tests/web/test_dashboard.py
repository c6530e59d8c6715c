"""The requester's dashboard in a real browser against the real service, and its reads on every store."""

from __future__ import annotations

import csv
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from browser import DESKTOP, TIMEOUT_MS, at, check_accessible, chromium
from nextlabel.application import imports
from nextlabel.application import service as campaigns_service
from nextlabel.campaign.results import truths
from nextlabel.cli.app import run
from nextlabel.errors import InputError, NotFoundError
from nextlabel.model.fact import OneCoin
from nextlabel.model.problem import Problem
from nextlabel.planning.plan import plan as make_plan
from nextlabel.service.access import create_token
from nextlabel.web.dashboard import access
from nextlabel.web.dashboard import state as dashboard_state
from nextlabel.web.dashboard.access import local_path
from nextlabel.web.dashboard.forecasts import kinds_of, make_curve
from nextlabel.web.dashboard.formatting import duration, percent, points, rate
from nextlabel.web.dashboard.routes import campaign as campaign_routes
from nextlabel.web.dashboard.routes import create
from nextlabel.web.dashboard.setting_form import read_time, read_whole
from nextlabel.web.dashboard.state import summarise
from nextlabel.web.dashboard.view import campaign_view, log_page, payload_summary
from nextlabel.web.pages import mount_pages
from service_fixtures import PATIENCE_S, Service, on_sqlite, running
from stores import KINDS, Clock, opened, service_of_store, simple

__all__ = ["chromium"]

SCRIPT = "<script>window.ran = true</script><img src=x onerror='window.ran = true'>"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        folder = str(tmp_path_factory.mktemp("uploads"))
        patch.setattr(dashboard_state, "tempfile", SimpleNamespace(gettempdir=lambda: folder))
        with on_sqlite(tmp_path_factory.mktemp("dashboard"), pages=mount_pages, max_upload_bytes=2 << 20) as service:
            yield service


@pytest.fixture
def page(service: Service, chromium: Browser) -> Iterator[Page]:
    """A window that is signed in; a script that runs against the policy, or fails, fails the test."""
    with at(chromium, DESKTOP, base_url=service.url, accept_downloads=True) as window:
        wrong: list[str] = []
        window.on("pageerror", lambda error: wrong.append(str(error)))
        window.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        sign_in(window, service)
        yield window
        assert wrong == []


def sign_in(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/sign-in")
    page.get_by_label("Token").fill(service.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Campaigns", exact=True)).to_be_visible()


def asked(service: Service, campaign: str, worker: str) -> str:
    with service.http() as http:
        got = http.post(f"/campaigns/{campaign}/ask", json={"worker": worker}).json()
    return str(got["lease"]["id"])


def labelled(service: Service, campaign: str, worker: str, label: str = "yes") -> None:
    lease = asked(service, campaign, worker)
    with service.http() as http:
        assert http.post(f"/leases/{lease}/tell", json={"label": label}).status_code == 200


@contextmanager
def signed_in(service: Service, token: str = "") -> Iterator[httpx.Client]:
    """A browser without scripts."""
    with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as client:
        assert client.post("/sign-in", data={"token": token or service.token}).status_code == 303
        yield client


class TestSession:
    def test_wrong_token_is_told_in_a_sentence(self, service: Service, chromium: Browser) -> None:
        with at(chromium, base_url=service.url) as page:
            page.goto("/campaigns/any")
            assert page.url.endswith("/sign-in?next=/campaigns/any")
            page.get_by_label("Token").fill("nl_wrong")
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_role("alert")).to_contain_text("This token is unknown")
            assert page.context.cookies() == []

    def test_sign_in_and_out(self, page: Page) -> None:
        (cookie,) = page.context.cookies()
        assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Token")).to_be_visible()
        page.goto("/")
        assert page.url.endswith("/sign-in")

    def test_cookies_that_are_not_ours(self, service: Service) -> None:
        with signed_in(service) as client:
            value = client.cookies["nl_requester"]
            assert client.get("/").status_code == 200
        for forged in ("", "x", value[:-2] + "aa", value[1:], value.upper()):
            answer = httpx.get(f"{service.url}/", headers={"cookie": f"nl_requester={forged}"})
            assert answer.status_code == 303, forged

    def test_a_session_ends_by_itself(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        with signed_in(service) as client:
            monkeypatch.setattr(access, "MAX_AGE_S", 0)
            assert client.get("/").status_code == 303

    def test_signing_out_ends_the_session_wherever_its_cookie_is(self, service: Service) -> None:
        with signed_in(service) as client:
            copied = {"cookie": f"nl_requester={client.cookies['nl_requester']}"}
            assert httpx.get(f"{service.url}/", headers=copied).status_code == 200
            assert client.post("/sign-out").status_code == 303
            assert httpx.get(f"{service.url}/", headers=copied).status_code == 303

    def test_auditors_and_viewers_read(self, service: Service) -> None:
        service.campaign("roles", labels=["no", "yes"])
        labelled(service, "roles", "worker-of-the-roles")
        store = service.campaign_service.store
        seen = {}
        for role in ("auditor", "viewer"):
            token = create_token(store, f"the-{role}", role)
            with signed_in(service, token) as client:
                page, live = client.get("/campaigns/roles"), client.get("/campaigns/roles/live")
                assert page.status_code == live.status_code == client.get("/").status_code == 200
                assert "<form" not in page.text.replace('action="/sign-out"', "").split("<main")[1]
                assert client.get("/campaigns/roles/results.csv").status_code == 200
                for path in ("/new", "/campaigns/roles/links"):
                    assert client.get(path).status_code == 403
                for path in ("/campaigns/roles/pause", "/campaigns/roles/settings", "/campaigns/roles/worker", "/new"):
                    assert client.post(path, data={"budget": "7"}).status_code == 403
                seen[role] = [name in page.text + live.text for name in ("worker-of-the-roles", "Event log")]
                for path in (
                    "/campaigns/roles/tasks/0",
                    "/campaigns/roles/labels.csv",
                    "/campaigns/roles/workers.csv",
                    "/campaigns/roles/worker?name=worker-of-the-roles",
                ):
                    seen[role].append(client.get(path).status_code == 200)
                seen[role].append("labels.csv" in page.text)
        assert seen == {"auditor": [True] * 7, "viewer": [False] * 7}
        assert store.row("roles").budget == 20 and not store.row("roles").paused

    def test_access_is_given_and_taken_on_a_page(self, service: Service, page: Page) -> None:
        service.campaign("given")
        page.get_by_role("link", name="Access").click()
        check_accessible(page)
        form = page.locator("form").filter(has=page.get_by_label("Name"))
        form.get_by_label("Name").fill("ada")
        form.get_by_label("Only these campaigns").fill("given")
        form.get_by_role("button", name="Make it").click()
        token = page.get_by_label("Token", exact=True).input_value()
        page.get_by_label("Campaign’s id").fill("given")
        page.get_by_label("New owner").fill("ada")
        page.get_by_role("button", name="Hand over").click()
        expect(page.get_by_role("row", name=re.compile("ada requester campaigns of ada"))).to_contain_text("only given")
        with signed_in(service, token) as ada:
            assert "given" in ada.get("/").text and ada.get("/campaigns/given").status_code == 200
        page.get_by_role("button", name="Revoke ada").click()
        expect(page.get_by_role("row", name=re.compile("ada requester"))).to_have_count(0)

    def test_a_new_token_ends_sessions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nextlabel.service.access.CACHE_S", 0.0)
        with on_sqlite(tmp_path, pages=mount_pages) as service, signed_in(service) as client:
            assert client.get("/").status_code == 200
            create_token(service.campaign_service.store, replace=True)
            assert client.get("/").status_code == 303
            assert client.post("/sign-in", data={"token": service.token}).status_code == 403

    @pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/new", "/campaigns/demo/pause"])
    def test_forms_of_other_sites_are_refused(self, service: Service, path: str) -> None:
        with signed_in(service) as client:
            for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
                answer = client.post(path, headers=headers, data={"token": service.token})
                assert answer.status_code == 403, headers
                assert "set-cookie" not in answer.headers

    def test_next_stays_here(self) -> None:
        assert local_path("/campaigns/a?before=3") == "/campaigns/a?before=3"
        for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:1", "", "/a\nb"):
            assert local_path(elsewhere) == "/"

    def test_policy_of_every_page(self, service: Service) -> None:
        service.campaign("policy")
        with signed_in(service) as client:
            for path in ("/", "/new", "/campaigns/policy", "/campaigns/policy/links", "/campaigns/policy/tasks/0"):
                answer = client.get(path)
                assert answer.status_code == 200
                assert "script-src 'self';" in answer.headers["content-security-policy"]
                assert "unsafe" not in answer.headers["content-security-policy"]
                assert not re.search(r"(src|href)=\"(https?:)?//", answer.text.replace(service.url, "")), path

    def test_what_is_not_there(self, service: Service) -> None:
        service.campaign("there")
        with signed_in(service) as client:
            for path in ("/campaigns/nope", "/campaigns/NO-NAME", "/campaigns/there/tasks/99", "/new/" + "0" * 32):
                answer = client.get(path)
                assert answer.status_code == 404 and "<h1>Not found</h1>" in answer.text, path


class TestCampaign:
    def test_list(self, service: Service, page: Page) -> None:
        service.campaign("listed", name="Listed one")
        labelled(service, "listed", "ann")
        page.goto("/")
        row = page.get_by_role("row", name=re.compile("Listed one"))
        expect(row).to_contain_text("Open")
        expect(row).to_contain_text("1 of 20")
        expect(row).to_contain_text("55.0%")  # after one label Beta(2, 1) has 3/4 on its side; four tasks have 1/2
        row.get_by_role("link").click()
        expect(page.get_by_role("heading", name="Listed one")).to_be_visible()

    def test_live_update(self, service: Service, page: Page) -> None:
        service.campaign("lively")
        page.goto("/campaigns/lively")
        expect(page.locator("[data-live=spent]")).to_have_text("0 of 20")
        labelled(service, "lively", "ann <b>")
        expect(page.locator("[data-live=spent]")).to_have_text("1 of 20")
        expect(page.locator("[data-live=accuracy]")).to_have_text("55.0%")
        expect(page.get_by_role("group", name="Workers")).to_contain_text("ann <b>")
        expect(page.locator("#log")).to_contain_text("ann <b> labelled")
        expect(page.locator("[data-part=by_labels]")).to_have_text(re.compile(r"0\s*4\s*1\s*1"))
        expect(page.locator("[data-part=certificate]")).to_contain_text("If workers are alike and the prior is right")

    def test_what_arrives_while_a_page_is_made_is_sent_later(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service.campaign("overtaken")
        labelled(service, "overtaken", "ann")

        def overtaken(*given: Any) -> Any:
            made = campaign_view(*given)
            service.campaign_service.certificates.of("overtaken")
            return made

        monkeypatch.setattr(campaign_routes, "campaign_view", overtaken)
        monkeypatch.setattr(service.campaign_service.certificates.jobs, "submit", lambda *_: None)
        with signed_in(service) as client:
            shown = client.get("/campaigns/overtaken").text
            seq, seen = (re.search(f'data-{name}="([^"]*)"', shown) for name in ("seq", "seen"))
            assert seq and seen
            answer = client.get("/campaigns/overtaken/live", params={"after": seq[1], "seen": seen[1]})
        assert answer.status_code == 200 and answer.json()["charts"]["curve"]

    def test_live_says_nothing_when_nothing_changed(self, service: Service) -> None:
        service.campaign("still")
        labelled(service, "still", "ann")
        with signed_in(service) as client:
            seq, seen, quiet = 0, "", 0
            while quiet < 3:  # values computed in the background arrive one after the other
                answer = client.get("/campaigns/still/live", params={"after": seq, "seen": seen})
                assert answer.status_code in (200, 204)
                if answer.status_code == 200:
                    seq, seen = answer.json()["seq"], answer.json()["seen"]
                quiet = quiet + 1 if answer.status_code == 204 else 0
                time.sleep(0.1)
            asked(service, "still", "bob")
            parts = client.get("/campaigns/still/live", params={"after": seq, "seen": seen}).json()["parts"]
            assert "bob" in parts["leases"] and "by_labels" not in parts
        assert (
            httpx.get(f"{service.url}/campaigns/still/live", headers={"accept": "application/json"}).status_code == 401
        )

    def test_pause_resume_and_settings(self, service: Service, page: Page) -> None:
        service.campaign("steered")
        page.goto("/campaigns/steered")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("[data-part=status]")).to_contain_text("Paused")
        assert service.campaign_service.store.row("steered").paused
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("[data-part=status]")).to_contain_text("Open")
        page.get_by_label("Budget labels, or money").fill("1,234")
        page.get_by_label("Lease time").fill("90")
        page.get_by_label("Deadline").fill("2090-01-02T03:04")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("[data-live=spent]")).to_have_text("0 of 1,234")
        expect(page.locator("#log")).to_contain_text(
            "changed the budget to 1,234 labels, the deadline to 2 Jan 2090, 03:04 UTC and the lease time to 2 min."
        )
        row = service.campaign_service.store.row("steered")
        assert (row.budget, row.config.lease_seconds, row.deadline) == (1234, 90.0, 3787009440.0)

    def test_a_deadline_is_shown_and_taken_in_the_time_zone_of_the_reader(
        self, service: Service, chromium: Browser
    ) -> None:
        service.campaign("zoned", deadline="2090-01-02T03:04:00Z")
        with at(chromium, DESKTOP, base_url=service.url, timezone_id="Asia/Kolkata") as page:
            sign_in(page, service)
            page.goto("/campaigns/zoned")
            expect(page.get_by_label("Deadline")).to_have_value("2090-01-02T08:34")
            expect(page.locator("label", has_text="Deadline")).to_contain_text("Asia/")
            page.get_by_label("Budget labels, or money").fill("30")
            page.get_by_role("button", name="Save").click()
            expect(page.locator("[data-live=spent]")).to_have_text("0 of 30")
            assert service.campaign_service.store.row("zoned").deadline == 3787009440.0  # as it was
            page.get_by_label("Deadline").fill("2091-01-02T08:34")
            page.get_by_role("button", name="Save").click()
            expect(page.locator("#log")).to_contain_text("changed the deadline to 2 Jan 2091, 03:04 UTC")

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"budget": "many"}, "is not a whole number"),
            ({"budget": "0"}, "Budget 0 is not a whole number of at least 1"),
            ({"budget": "20", "deadline": "soon"}, "is not a time"),
            ({"budget": "20", "lease_seconds": "0.1"}, "Lease time 0.1"),
            ({"budget": "20", "lease_seconds": "x"}, "Lease time &#39;x&#39; is not a number"),
        ],
    )
    def test_settings_that_are_not_allowed(self, service: Service, fields: dict[str, str], said: str) -> None:
        service.campaign("firm")
        before = service.campaign_service.store.row("firm")
        with signed_in(service) as client:
            answer = client.post("/campaigns/firm/settings", data=fields)
        assert answer.status_code == 422 and said in answer.text
        assert service.campaign_service.store.row("firm") == before

    def test_what_is_saved_again_stays(self, service: Service) -> None:
        deadline = 3_000_000_000.75
        service.campaign("kept", deadline=deadline, lease_seconds=61.5)
        with signed_in(service) as client:
            text = client.get("/campaigns/kept").text
            shown = dict(re.findall(r'name="(budget|deadline|lease_seconds)"[^>]*value="([^"]*)"', text))
            assert client.post("/campaigns/kept/settings", data=shown).status_code == 303
        row = service.campaign_service.store.row("kept")
        assert (row.budget, row.deadline, row.config.lease_seconds) == (20, deadline, 61.5)

    def test_a_worker_is_blocked_and_their_labels_dropped(self, service: Service, page: Page) -> None:
        """From the table of workers to the worker's page, and back again."""
        id = service.campaign("crowd_tools", pay_per_label=0.25, policy="uncertainty", tasks=6)
        for worker, said in (("ann", "no"), ("ann", "yes"), ("eve/?&", "yes"), ("bob", "no")):
            labelled(service, id, worker, said)
        page.goto(f"/campaigns/{id}")
        expect(page.locator('[data-part="workers"]')).to_contain_text("0.50")
        page.get_by_role("link", name="eve/?&").click()
        expect(page.get_by_text("Active. Gets tasks.")).to_be_visible()
        page.get_by_label("Reason for the log; the worker").fill("<b>guesses")
        page.get_by_role("button", name="Block", exact=True).click()
        expect(page.get_by_text("Reason: <b>guesses")).to_be_visible()
        page.get_by_role("button", name="Drop all labels").click()
        expect(page.get_by_role("status")).to_have_text("1 label dropped.")
        check_accessible(page)
        page.goto(f"/campaigns/{id}")
        expect(page.get_by_role("row", name=re.compile("eve"))).to_contain_text("1 dropped")
        expect(page.locator("#log")).to_contain_text("The requester dropped 1 label of eve/?&.")
        row = service.campaign_service.store.row(id)
        assert (row.spent, sum(r.labels for r in service.campaign_service[id].results())) == (4, 3)
        page.get_by_role("link", name="eve/?&").click()
        page.get_by_role("button", name="Restore labels").click()
        expect(page.get_by_role("status")).to_have_text("1 label restored.")
        page.get_by_role("button", name="Restore", exact=True).click()
        expect(page.get_by_text("Active. Gets tasks.")).to_be_visible()
        assert sum(r.labels for r in service.campaign_service[id].results()) == 4
        with signed_in(service) as client:
            table = client.get(f"/campaigns/{id}/workers.csv").text.splitlines()
            assert table[0].startswith("\ufeffworker,labels,bought") and len(table) == 4
            service.campaign_service[id].drop_labels("ann")
            text = client.get(f"/campaigns/{id}/labels.csv").content.decode("utf-8-sig")
            rows = list(csv.DictReader(text.splitlines()))
            assert {row["dropped"] for row in rows if row["worker"] == "ann"} == {"True"}
            service.campaign_service[id].restore_labels("ann")
            assert client.get(f"/campaigns/{id}/worker?name=nobody").status_code == 404
            wrong = client.post(f"/campaigns/{id}/worker", data={"name": "ann", "action": "fire"})
            assert wrong.status_code == 422 and "does not say what to do" in wrong.text

    def test_slider(self, service: Service, page: Page) -> None:
        service.campaign("if")
        page.goto("/campaigns/if")
        slider = page.get_by_role("slider", name="Labels beyond the budget")
        expect(slider).to_be_visible()
        slider.focus()
        before = page.locator("#what-if-text").inner_text()
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        said = page.locator("#what-if-text")
        expect(said).to_have_text(
            re.compile(r"25 more labels gain at most \+\d+\.\d points: from [\d.]+% to [\d.]+%\.")
        )
        assert said.inner_text() != before
        page.get_by_text("What additional labels buy, as a table").click()
        expect(page.locator("[data-part=more]").get_by_role("row")).to_have_count(4)  # header, 100, 500, 1000

    def test_readable_without_scripts(self, service: Service, chromium: Browser) -> None:
        service.campaign("plain")
        labelled(service, "plain", "ann")
        with at(chromium, base_url=service.url, java_script_enabled=False) as page:
            sign_in(page, service)
            page.goto("/campaigns/plain")
            while not page.locator("[data-part=more] tbody tr").count():  # until the bound has been computed
                page.wait_for_timeout(200)
                page.reload()
            assert page.locator("[data-part=more] tbody tr").count() == 3
            page.get_by_role("button", name="Pause").click()
            expect(page.locator("[data-part=status]")).to_contain_text("Paused")

    def test_log_by_pages(self, service: Service, page: Page) -> None:
        service.campaign("logged", tasks=15, budget=40)
        for k in range(12):
            labelled(service, "logged", f"w{k}")
        page.goto("/campaigns/logged")
        lines = page.locator("#log li")
        expect(lines).to_have_count(20)
        assert "w11 labelled" in lines.nth(0).inner_text()
        page.locator("#log").get_by_role("link", name="Older").click()
        expect(lines.last).to_contain_text("The campaign was created.")
        page.locator("#log").get_by_role("link", name="Newest").click()
        expect(lines.nth(0)).to_contain_text("w11 labelled")

    def test_hardest_items_and_labels_by_worker(self, service: Service, page: Page) -> None:
        service.campaign("hard", tasks=2)
        for worker, label in (("a", "yes"), ("b", "yes"), ("c", "no"), ("d", "no")):
            labelled(service, "hard", worker, label)
        page.goto("/campaigns/hard")
        table = page.get_by_role("group", name="Doubtful items")
        expect(table.get_by_role("row")).to_have_count(3)
        table.get_by_role("link", name="Labels by worker").first.click()
        expect(page.get_by_role("heading", name="Labels by worker")).to_be_visible()
        leases = service.campaign_service.store.leases("hard", [int(page.url.rpartition("/")[2])])
        expect(page.get_by_role("group", name="Labels by worker").get_by_role("row")).to_have_count(1 + len(leases))
        for lease in leases:
            row = page.get_by_role("row", name=re.compile(f"^{lease.worker} "))
            expect(row).to_contain_text("yes" if lease.label else "no")

    def test_items_are_shown_as_workers_see_them_and_dropped_labels_as_dropped(
        self, service: Service, page: Page
    ) -> None:
        """The text and not the id twice; hidden columns apart; a label that was dropped does not look like others."""
        id = service.campaign("told", tasks=0, show=["key", "review"], policy="uncertainty")
        with service.http() as http:
            rows = "key,review,batch\nk1,Works well,secret7\n"
            http.post(f"/campaigns/{id}/tasks?id_column=key", content=rows, headers={"content-type": "text/csv"})
        for worker in ("ann", "eve"):
            labelled(service, id, worker)
        service.campaign_service[id].drop_labels("eve", "guesses")
        page.goto(f"/campaigns/{id}")
        row = page.get_by_role("group", name="Doubtful items").get_by_role("row").nth(1)
        expect(row.locator(".item")).to_have_text(re.compile(r"^\s*Works well\s*k1\s*$"))
        expect(row.locator("del")).to_have_text("yes")
        row.get_by_role("link", name="Labels by worker").click()
        expect(page.get_by_role("row", name=re.compile("^eve "))).to_contain_text("dropped")
        expect(page.get_by_role("row", name=re.compile("^ann "))).not_to_contain_text("dropped")
        seen, hidden = page.locator("dl.payload").all()
        expect(seen).not_to_contain_text("secret7")
        expect(hidden).to_have_text(re.compile(r"^\s*batch\s*secret7\s*$"))
        check_accessible(page)

    @pytest.mark.parametrize("width", [1024, 1280, 1440, 1600])
    def test_the_table_of_workers_is_not_cut(self, service: Service, chromium: Browser, width: int) -> None:
        id = service.campaign("broad", tasks=3, pay_per_label=100.0, policy="crowd", display_names=["nay", "aye"])
        for worker in ("prolific:5f3a9c1e7b2d4f6a8c0e1d2b", "somebody"):
            if service.campaign_service.store.row(id).spent < 6:
                for label in ("yes", "no", "yes"):
                    labelled(service, id, worker, label)
        with at(chromium, {"width": width, "height": 900}, base_url=service.url) as page:
            sign_in(page, service)
            page.goto(f"/campaigns/{id}")
            table = page.get_by_role("group", name="Workers")
            expect(table.get_by_role("row")).to_have_count(3)
            expect(table).to_contain_text("to ")  # an interval
            assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 0

    @pytest.mark.parametrize(("rows", "flags"), [("tasks", []), ("labels", ["--dropped"]), ("workers", [])])
    def test_the_browser_and_the_command_line_export_the_same_table(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: str, flags: list[str]
    ) -> None:
        """With the mark by which Excel knows UTF-8 in the browser's."""
        with on_sqlite(tmp_path, pages=mount_pages) as service:
            service.campaign("both", pay_per_label=0.25)
            for worker in ("zoë", "eve"):
                labelled(service, "both", worker)
            service.campaign_service["both"].drop_labels("eve", "guesses")
            with signed_in(service) as client:
                name = "results" if rows == "tasks" else rows
                got = client.get(f"/campaigns/both/{name}.csv").content
            url = str(service.campaign_service.store.url)
        assert run(["campaign", "export", "both", "--rows", rows, *flags, "--db", url]) == 0
        assert got.startswith(b"\xef\xbb\xbf") and got.decode("utf-8-sig") == capsys.readouterr().out

    def test_downloads(self, service: Service, page: Page) -> None:
        service.campaign("down")
        labelled(service, "down", "ann")
        page.goto("/campaigns/down")
        texts = {}
        for name in ("Results, CSV", "Results, JSON lines", "All labels, CSV"):
            page.get_by_text("Download", exact=True).click()
            with page.expect_download() as caught:
                page.get_by_role("link", name=name).click()
            texts[name] = Path(caught.value.path()).read_text(encoding="utf-8-sig").splitlines()
            page.goto("/campaigns/down")
        assert texts["Results, CSV"][0].startswith("task,label,probability") and len(texts["Results, CSV"]) == 6
        found = [json.loads(line) for line in texts["Results, JSON lines"]]
        assert sorted(one["task"] for one in found) == [f"t{k}" for k in range(5)]
        assert [line.split(",")[1] for line in texts["All labels, CSV"]] == ["worker", "ann"]

    def test_nothing_that_is_shown_runs(self, service: Service, page: Page) -> None:
        labels = [SCRIPT[:60], '"><b>']
        service.campaign("hostile", tasks=0, name=SCRIPT, question=SCRIPT, labels=labels)
        with service.http() as http:
            tasks = [{"id": f"{SCRIPT}{k}", "payload": {SCRIPT: SCRIPT, "html": "</script>"}} for k in range(2)]
            assert http.post("/campaigns/hostile/tasks", json=tasks).status_code == 200
        labelled(service, "hostile", SCRIPT, labels[0])
        asked(service, "hostile", f"{SCRIPT}2")
        for path in ("/", "/campaigns/hostile", "/campaigns/hostile/tasks/0", "/campaigns/hostile/tasks/1"):
            page.goto(path)
            page.wait_for_timeout(300)
            assert SCRIPT in page.locator("body").inner_text()
            assert page.evaluate("window.ran") is None
        page.goto("/campaigns/hostile")
        labelled(service, "hostile", f"{SCRIPT}3", labels[1])  # what comes in later
        expect(page.locator("#log")).to_contain_text('as "><b>.')
        assert page.evaluate("window.ran") is None
        page.goto("/campaigns/hostile/links")
        page.get_by_label("Names of workers").fill(SCRIPT)
        page.get_by_role("button", name="Create links").click()
        expect(page.get_by_role("group", name="Links")).to_contain_text(SCRIPT)
        assert page.evaluate("window.ran") is None

    def test_tasks_with_priors_of_their_own(self, service: Service, page: Page) -> None:
        service.campaign("scored", tasks=0, budget=200)
        with service.http() as http:
            tasks = [{"id": f"t{k}", "text": "x", "score": (k + 1) / 102} for k in range(100)]
            assert http.post("/campaigns/scored/tasks", json=tasks).status_code == 200
        page.goto("/campaigns/scored")
        expect(page.locator("[data-part=tiles]")).to_contain_text("no forecast for more than 64 different priors")
        accuracy = np.mean([one.probability for one in service.campaign_service["scored"].results()])
        expect(page.locator("[data-live=accuracy]")).to_have_text(percent(float(accuracy)))

    def test_closed_and_without_tasks(self, service: Service) -> None:
        service.campaign("over", tasks=2, budget=1)
        labelled(service, "over", "ann")
        service.campaign("bare", tasks=0)
        with signed_in(service) as client:
            over, bare = client.get("/campaigns/over").text, client.get("/campaigns/bare").text
        assert "All labels of this campaign have been bought." in over and "/campaigns/over/pause" not in over
        assert "There are no tasks yet." in bare

    def test_every_kind_of_event_is_a_sentence(self, service: Service) -> None:
        service.campaign("eventful", tasks=4, lease_seconds=3600, budget=6)
        with service.http() as http:
            told = asked(service, "eventful", "ann")
            http.post(f"/leases/{told}/tell", json={"label": "yes"})
            http.post(f"/leases/{told}/undo")
            http.post(f"/leases/{told}/renew")
            http.post(f"/leases/{asked(service, 'eventful', 'bob')}/release")
            late = asked(service, "eventful", "cy")
            service.clock.ahead += 3601
            http.post(f"/leases/{late}/tell", json={"label": "no"})
            for verb in ("pause", "resume"):
                http.post(f"/campaigns/eventful/{verb}")
            http.patch("/campaigns/eventful", json={"budget": 1, "deadline": None, "lease_seconds": None})
            http.patch("/campaigns/eventful", json={"budget": 9, "pay_per_label": 0.1, "most_labels_per_worker": None})
            for standing in ("paused", "blocked", "active"):
                body = {"worker": "cy", "standing": standing, "reason": "guesses"}
                assert http.post("/campaigns/eventful/workers/standing", json=body).status_code == 200
            for verb in ("drop-labels", "restore-labels"):
                reply = http.post(f"/campaigns/eventful/workers/{verb}", json={"worker": "cy"})
                assert reply.json() == {"changed": 1, "left": 0}
        service.clock.ahead = 0.0
        lines, _ = log_page(
            service.campaign_service.store,
            "eventful",
            service.campaign_service.store.row("eventful").config,
            None,
            100,
        )
        kinds = {line.kind for line in lines}
        assert kinds >= {"undone", "released", "expired", "late", "paused", "resumed", "changed", "closed", "reopened"}
        assert kinds >= {"worker_paused", "worker_blocked", "worker_restored", "labels_dropped", "labels_restored"}
        for line in lines:
            assert line.text[-1] == "." and "None" not in line.text and "Somebody" not in line.text, line

    def test_store_in_memory(self) -> None:
        with running("memory:", pages=mount_pages) as service, signed_in(service) as client:
            service.campaign("demo")
            labelled(service, "demo", "ann")
            for path in ("/", "/campaigns/demo", "/campaigns/demo/live", "/campaigns/demo/tasks/0"):
                assert client.get(path).status_code == 200


class TestLinks:
    def test_links_end(self, service: Service, page: Page) -> None:
        service.campaign("ended")
        page.goto("/campaigns/ended/links")
        page.get_by_label("Names of workers").fill("ann\nbob")
        page.get_by_role("button", name="Create links").click()
        ann, bob = (
            page.get_by_role("row", name=name).get_by_role("link").get_attribute("href") for name in ("ann", "bob")
        )
        join = page.get_by_label("Link to join").input_value()
        assert ann and bob
        page.get_by_label("Names of workers").fill("ann")
        page.get_by_role("button", name="End links").click()
        expect(page.get_by_role("status")).to_contain_text("The links of ann have ended")
        assert [httpx.get(link).status_code for link in (ann, bob, f"{join}?worker=cy")] == [401, 303, 303]
        page.get_by_role("button", name="End this link").click()
        expect(page.get_by_role("status")).to_contain_text("The link for platforms has ended")
        other = page.get_by_label("Link to join").input_value()
        assert [httpx.get(f"{link}?worker=cy").status_code for link in (join, other)] == [401, 303]
        with signed_in(service) as client:
            assert client.post("/campaigns/ended/links/revoke", data={"workers": " "}).status_code == 422
            assert client.post("/campaigns/nobody/links/revoke", data={"join": "1"}).status_code == 404

    def test_links_work(self, service: Service, page: Page, chromium: Browser) -> None:
        service.campaign("linked", question="Is it so?")
        page.goto("/campaigns/linked/links")
        page.get_by_label("Names of workers").fill("ann\nbob, carl\nann")
        page.get_by_role("button", name="Create links").click()
        expect(page.get_by_role("heading", name="3 links")).to_be_visible()
        address = page.get_by_role("group", name="Links").get_by_role("link").first.get_attribute("href")
        prolific = page.get_by_label("Link for Prolific").input_value()
        assert address is not None and "?PROLIFIC_PID={{%PROLIFIC_PID%}}&" in prolific
        for link in (address, prolific.replace("{{%PROLIFIC_PID%}}", "5f2c")):
            with at(chromium) as worker:
                worker.goto(link)
                expect(worker.get_by_text("Is it so?")).to_be_visible()
        assert {row.worker for row in service.campaign_service.store.workers("linked")} == {"ann", "prolific:5f2c"}

    def test_copy(self, service: Service, page: Page) -> None:
        service.campaign("copied")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto("/campaigns/copied/links")
        page.get_by_role("button", name="Copy the link for Prolific").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == page.get_by_label("Link for Prolific").input_value()

    def test_names_that_are_not_allowed(self, service: Service) -> None:
        service.campaign("named")
        with signed_in(service) as client:
            for names in ("", " \n ,", "x" * 201):
                answer = client.post("/campaigns/named/links", data={"workers": names})
                assert answer.status_code == 422 and 'role="alert"' in answer.text


CSV = "key,text,model\n" + "".join(f"k{n},Text {n},0.{n}\n" for n in range(1, 6))


class TestLearntWorkers:
    def test_accuracy_is_drawn_and_every_number_explained(self, service: Service, page: Page) -> None:
        id = service.campaign("learnt", tasks=6, policy="crowd", budget=12)
        page.goto(f"/campaigns/{id}")
        expect(page.locator("#chart-curve canvas")).to_be_visible()
        expect(page.get_by_text("There are no labels yet")).to_be_visible()
        page.get_by_text("and the forecast, as a table").click()
        expect(page.locator("[data-part=by_spent] td", has_text="forecast").first).to_be_visible()
        page.get_by_role("link", name="What do these numbers mean?").click()
        expect(page.get_by_role("heading", name="What the numbers mean")).to_be_visible()
        check_accessible(page)


class TestNewCampaign:
    def test_from_a_file_to_links(self, service: Service, page: Page) -> None:
        page.goto("/")
        page.get_by_role("link", name="New campaign").first.click()
        file = {"name": "my_items.csv", "mimeType": "text/csv", "buffer": CSV.encode()}
        page.locator("#file").set_input_files([file])  # type: ignore[list-item]
        expect(page.get_by_text("5 items from my_items.csv")).to_be_visible()
        expect(page.get_by_role("group", name="First rows")).to_contain_text("Text 5")
        assert page.get_by_label("Name of the campaign").input_value() == "My items"
        assert page.get_by_label("Budget labels, or money").input_value() == "15"
        page.get_by_label("A model’s score").select_option("model")
        page.get_by_label("model", exact=True).uncheck()
        page.get_by_label("key", exact=True).uncheck()
        expect(page.locator("#budget-text")).to_have_text(
            re.compile(r"3\.0 labels per item: about \d\d\.\d% correct, at most \d\d\.\d% if workers are alike"),
            timeout=TIMEOUT_MS,
        )
        page.get_by_label("Budget labels, or money").fill("10")
        expect(page.locator("#budget-text")).to_contain_text("2.0 labels per item")
        page.get_by_role("textbox", name="Question").fill("Which?")
        page.get_by_role("button", name="Create campaign").click()
        expect(page.get_by_role("status")).to_contain_text("The campaign is ready: 5 tasks, a budget of 10 labels.")
        id = page.url.split("/")[-2]
        row = service.campaign_service.store.row(id)
        assert (row.tasks, row.budget, row.config.question) == (5, 10, "Which?")
        assert [(t.key, t.payload) for t in service.campaign_service.store.tasks(id)] == [
            (f"k{n}", {"key": f"k{n}", "text": f"Text {n}", "model": f"0.{n}"}) for n in range(1, 6)
        ]
        assert row.config.show == ("text",) and row.classes == 5

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (b"", "empty"),
            (b"a,b\n", "a header and no rows"),
            (b"a,b\n1,2\n\n1\n", "Row 4 of the file has 1 cell and its header 2."),
            (b"a,b\n1,2,3\n", "Row 2 of the file has 3 cells"),
            (b"a,a\n1,2\n", "Two columns of the file are called"),
            (b"a,,b\n1,2,3\n", "Column 2 of the file has no name"),
            (b"a,\n1,2\n", "Row 2 of the file has 2 cells"),
            (b"a\nx\xc3\xa4\n\xff\n", "Line 3 of the file is not UTF-8"),
            (b'a\nx\n"open\n', "The file ends inside a quoted cell"),
        ],
    )
    def test_bad_files(self, service: Service, data: bytes, said: str) -> None:
        before = len(service.campaign_service.store.campaigns())
        with signed_in(service) as client:
            answer = client.post("/new", files={"file": ("x.csv", data, "text/csv")})
        assert answer.status_code == 422 and said in answer.text
        assert len(service.campaign_service.store.campaigns()) == before

    @pytest.mark.parametrize(
        ("text", "fields", "said"),
        [
            ("id,t\na,1\nb,2\na,3\n", {"id_column": "id"}, "Task &#39;a&#39; is there with another payload or prior"),
            ("id,t\na,1\n ,2\n", {"id_column": "id"}, "The id of row 3 is not a text"),
            ("s,t\n0.5,1\n1.5,2\n", {"score_column": "s"}, "Row 3: score &#39;1.5&#39; is not a probability"),
            ("s,t\n0.5,1\n", {"score_column": "s", "labels": "a\nb\nc"}, "score needs two labels"),
            ("t\n1\n", {"labels": "one"}, "should have at least 2 items"),
            ("t\n1\n", {"budget": "0"}, "Budget 0 is not a whole number of at least 1"),
            ("t\n1\n", {"deadline": "2001-01-01T00:00"}, "deadline is in the past"),
            ("t\n1\n", {"label_cost": "0.5"}, "No label can add 0.5 to the chance that its item is right"),
            ("t\n1\n", {"shown": ""}, "has no column" ),
            ("t\n1\n", {"id_column": "nope"}, "has no column"),
        ],
    )  # fmt: skip
    def test_nothing_is_half_made(self, service: Service, text: str, fields: dict[str, str], said: str) -> None:
        before = len(service.campaign_service.store.campaigns())
        with signed_in(service) as client:
            sent = client.post("/new", files={"file": ("x.csv", text.encode(), "text/csv")})
            step = sent.headers["location"]
            form = {"labels": "no\nyes", "budget": "9", "shown": "t", **fields}
            if not form["shown"]:
                form["shown"] = "missing"
            answer = client.post(step, data=form)
            assert answer.status_code == 422 and said in answer.text, answer.text
            assert len(service.campaign_service.store.campaigns()) == before
            mended = client.post(step, data={"labels": "no\nyes", "budget": "9", "shown": "t"})
            assert mended.status_code == 303  # the file is still there
            assert client.get(step).status_code == 404

    def test_a_file_that_is_too_large_is_told_before_it_is_sent(self, service: Service, page: Page) -> None:
        page.goto("/new")
        large = {"name": "x.csv", "mimeType": "text/csv", "buffer": b"a\n" + b"x\n" * 1_200_000}
        page.locator("#file").set_input_files([large])  # type: ignore[list-item]
        expect(page.get_by_role("status")).to_contain_text(
            "The file has 2.3 MiB, but this page accepts at most 2.0 MiB"
        )
        assert page.url.endswith("/new")

    def test_a_file_larger_than_other_requests_may_be(self, service: Service, page: Page) -> None:
        page.goto("/new")
        large = {"name": "x.csv", "mimeType": "text/csv", "buffer": b"a\n" + b"some text\n" * 150_000}
        page.locator("#file").set_input_files([large])  # type: ignore[list-item]
        page.wait_for_url(re.compile("/new/.+"))
        expect(page.get_by_text("150,000").first).to_be_visible()

    def test_a_large_file_is_imported_while_its_page_waits(
        self, service: Service, page: Page, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(campaigns_service, "AT_ONCE", 20)
        monkeypatch.setattr(imports, "STEP", 10)
        go_on = threading.Event()
        publish = imports.Imports._publish_all
        monkeypatch.setattr(imports.Imports, "_publish_all", lambda *at: go_on.wait(PATIENCE_S) and publish(*at))
        monkeypatch.setattr(create, "RELOAD_S", 3600)  # not while somebody looks at it
        for last, state in (("0.5", "done"), ("7", "failed")):
            text = "id,t,s\n" + "".join(f"a{k},text {k},0.5\n" for k in range(59)) + f"z,end,{last}\n"
            with signed_in(service) as client:
                sent = client.post("/new", files={"file": ("x.csv", text.encode(), "text/csv")})
                form = {"labels": "no\nyes", "budget": "9", "shown": "t", "id_column": "id", "score_column": "s"}
                begun = client.post(sent.headers["location"], data=form)
                assert begun.status_code == 303 and "/import/" in begun.headers["location"]
            page.goto(begun.headers["location"])
            if state == "done":
                while "60 items read, 60 of 60 stored." not in page.get_by_role("status").inner_text():
                    page.reload()
                check_accessible(page)
                row = service.campaign_service.store.campaigns()[0]
                page.goto(f"/campaigns/{row.id}")
                expect(page.locator("[data-part=imports]")).to_contain_text("60 of 60 new ones stored")
                monkeypatch.setattr(create, "RELOAD_S", 1)
                page.goto(begun.headers["location"])
                go_on.set()
                expect(page.get_by_role("status")).to_contain_text("is ready: 60 tasks", timeout=TIMEOUT_MS)
            else:
                expect(page.get_by_role("alert")).to_contain_text("Row 61: score '7' is not", timeout=TIMEOUT_MS)
                check_accessible(page)
                page.get_by_role("link", name="Back to the form").click()
                expect(page.get_by_role("button", name="Create campaign")).to_be_visible()

    def test_without_scripts(self, service: Service, chromium: Browser) -> None:
        with at(chromium, base_url=service.url, java_script_enabled=False) as page:
            sign_in(page, service)
            page.goto("/new")
            file = {"name": "x.csv", "mimeType": "text/csv", "buffer": b"a;b\n1;2\n3;4\n"}
            page.locator("#file").set_input_files([file])  # type: ignore[list-item]
            page.get_by_role("button", name="Continue").click()
            page.get_by_role("link", name="Show what a budget buys").click()
            expect(page.locator("#budget-table tbody tr")).not_to_have_count(0)
            page.get_by_role("button", name="Create campaign").click()
            expect(page.get_by_role("status")).to_contain_text("The campaign is ready: 2 tasks")


class TestAccessible:
    @pytest.mark.parametrize(
        ("width", "scheme"),
        [
            (1280, "light"),
            (390, "dark"),
            *(pytest.param(w, "light", marks=pytest.mark.long) for w in (360, 768, 1024, 1600)),
        ],
    )
    def test_every_page(self, service: Service, chromium: Browser, width: int, scheme: str) -> None:
        """Every page that the application has, from a phone to 1,600 px: no finding of axe, and nothing cut."""
        service.campaign(
            "shown", tasks=30, budget=100, name="A rather long name of a campaign for a small phone", pay_per_label=0.1,
            currency="EUR", platform_fee=0.33,
        )  # fmt: skip
        with service.http() as http:
            if service.campaign_service.store.row("shown").spent == 0:
                for k in range(20):
                    labelled(service, "shown", f"somebody-with-a-long-name-{k}", "yes" if k % 3 else "no")
                asked(service, "shown", "ann")
                http.post("/campaigns/shown/webhooks", json={"url": "https://example.org/a/long/address/" + "x" * 60})
                http.post("/campaigns/shown/audit/draw", json={"items": 5})
            links = http.post("/campaigns/shown/links", json={"workers": ["bob"]}).json()
        with signed_in(service) as client:
            sent = client.post("/new", files={"file": ("x.csv", CSV.encode(), "text/csv")})
        fill = {"campaign": "shown", "number": "0", "upload": sent.headers["location"].removeprefix("/new/")}
        addresses = {"/campaigns/none", urlsplit(links["links"][0]["url"]).path}
        for part in service.app.routes:
            for one in part.effective_route_contexts() if hasattr(part, "effective_route_contexts") else [part]:
                inner = re.sub(r"\{(campaign|number|upload)\}", lambda found: fill[found[1]], one.path)
                if "GET" in (getattr(one, "methods", None) or ()) and "{" not in inner and "/api/v1" not in inner:
                    addresses.add(inner)
        addresses.add("/campaigns/shown/worker?name=somebody-with-a-long-name-3")
        seen = 0
        with at(chromium, {"width": width, "height": 844}, base_url=service.url, color_scheme=scheme) as page:
            sign_in(page, service)
            for path in sorted(addresses):
                reply = page.request.get(path, max_redirects=5)
                if "text/html" not in reply.headers.get("content-type", ""):
                    continue
                page.goto(path)
                if path == "/campaigns/shown":
                    expect(page.locator(".uplot")).to_have_count(3)
                check_accessible(page, *(["color-contrast"] if scheme == "dark" else []), grave=False)
                # Charts fit themselves in a moment after they were drawn.
                page.wait_for_function("w => document.documentElement.scrollWidth <= w", arg=width)
                assert not page.evaluate(CUT), path
                seen += 1
        assert seen >= 17


#: What is on a page and cannot be read, since its box is too small and does not scroll.
CUT = """[...document.querySelectorAll("main *")].filter(one => {
  const style = getComputedStyle(one), box = one.getBoundingClientRect();
  return ["hidden", "clip"].includes(style.overflowX) && style.textOverflow !== "ellipsis" && box.width > 1
    && box.height > 1 && one.scrollWidth > one.clientWidth + 1 && one.innerText?.trim();
}).map(one => one.outerHTML.slice(0, 200))"""


class TestReads:
    """What pages read: the same from every store as from looking at everything."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_same_everywhere(self, kind: str, tmp_path: Path) -> None:
        with opened(kind, tmp_path) as store:
            clock = Clock()
            campaign_service = service_of_store(store, clock)
            campaign_service.create(simple(30), "c")
            campaign_service.add_tasks("c", [{"id": f"t{k}", "text": str(k)} for k in range(6)])
            leases = []
            for k, worker in enumerate("abcabcabca"):
                clock.forward(7)
                lease = campaign_service["c"].ask(worker)
                assert lease
                leases.append(lease)
                if k % 4 != 3:
                    clock.forward(5)
                    campaign_service[lease.campaign].tell(lease.id, "yes" if k % 3 else "no")
                else:
                    clock.forward(61)
            events, tasks = store.events("c", 0, 1000), store.tasks("c")
            added = [replace(event, data={}) if event.kind == "tasks_added" else event for event in events]
            assert store.light_events("c", 1000) == added[::-1] and store.light_events("c", 1000, after=0) == added
            assert store.light_events("c", 5) == added[:-6:-1] and store.light_events("c", 3, after=4) == added[4:7]
            assert store.light_events("c", 5, before=2)[0].kind == "created"
            assert store.tasks_by_number("c", [0, 3, 99]) == {0: tasks[0], 3: tasks[3]}
            assert store.tasks_by_key("c", ["t5", "t9"]) == {"t5": tasks[5]}
            every = store.leases("c")
            assert [lease.id for lease in every] == [lease.id for lease in leases]
            ids = [lease.id for lease in leases]
            assert store.leases("c", ids=[*ids[2:4], "none", f"{ids[5]}0", "c.99.1"]) == every[2:4]
            out = [lease for lease in every if lease.status == "leased"]
            assert store.leases("c", open=True) == sorted(out, key=lambda lease: lease.expires_at)
            assert store.leases("c", [0, 2]) == [lease for lease in every if lease.task in (0, 2)]
            medians = campaign_service.run("c", lambda commands: commands.state.median_seconds())
            for one in store.workers("c"):
                told = [lease for lease in every if lease.worker == one.worker and lease.label is not None][::-1]
                assert len(told) == one.labels
                times = [(lease.ended_at or 0) - lease.leased_at for lease in told if lease.status == "labelled"]
                assert medians.get(one.worker) == (np.median(times) if times else None)
            with pytest.raises(NotFoundError):
                store.leases("none", open=True)

    def test_figures_are_those_of_the_results(self, tmp_path: Path) -> None:
        with opened("sqlite", tmp_path) as store:
            campaign_service = service_of_store(store, Clock())
            campaign_service.create(simple(40), "c")
            campaign_service.add_tasks("c", [{"id": f"t{k}", "score": 0.1 * (k % 4) + 0.3} for k in range(8)])
            for k in range(20):
                lease = campaign_service["c"].ask(f"w{k}")
                assert lease
                campaign_service[lease.campaign].tell(lease.id, "yes" if k % 3 else "no")
            results, row = list(campaign_service["c"].results()), store.row("c")
            numbers, *states = campaign_service.run("c", lambda commands: commands.state.states())
            beliefs = truths(row.config, store.classes("c"), *states)
            found = summarise(row.config.answer_type, numbers, states[-1], beliefs)
            assert found is not None
            assert found.accuracy == pytest.approx(np.mean([r.probability for r in results]))
            counts = np.bincount([r.labels for r in results])
            assert [many for _, many in found.by_labels] == counts.tolist()
            assert sum(many for _, many in found.by_probability) == found.labelled == sum(r.labels > 0 for r in results)
            distance = [round(abs(results[number].probability - 0.5), 12) for number in found.hardest]
            assert distance == sorted(distance) and len(distance) == found.labelled


class TestWords:
    def test_numbers_for_people(self) -> None:
        assert [percent(0.9312), percent(None), percent(0.5, 0)] == ["93.1%", "–", "50%"]
        assert [points(0.0131), points(0.00004), points(0.0)] == ["+1.3 points", "+0.0040 points", "+0 points"]
        assert [duration(s) for s in (3.21, 42, 600, 7200, 200_000)] == ["3.2 s", "42 s", "10 min", "2 h", "2 days"]
        assert [rate(None), rate(0.5), rate(0.001)] == ["not known yet", "30 per minute", "3.6 per hour"]

    def test_summary(self) -> None:
        assert payload_summary({"id": "x", "text": "  a\n b "}) == "a b"
        assert payload_summary({"x": [1, 2]}) == "[1, 2]"
        assert (
            payload_summary({}) == "{}" and payload_summary("t" * 500).endswith("…") and payload_summary(None) == "null"
        )

    def test_curve(self) -> None:
        curve = make_curve(50_000, 2, ())
        assert curve.scaled and curve.budgets[-1] == 8 * 50_000
        assert list(curve.expected) == sorted(curve.expected)
        assert all(e <= b + 1e-12 for e, b in zip(curve.expected, curve.most, strict=True))
        assert make_curve(10, 20, ()).why
        plan = make_plan(
            Problem.identical(1000, 8000, OneCoin(0.5, 0.8), arrival_rate=0.25, completion_rate=1.0),
            most=8000,
            replications=20,
        )
        assert list(curve.most) == list(plan.bound)
        better = make_curve(50_000, 2, (), 0.9)
        for name, more in (("expected", 0.05), ("most", 0.0)):
            at = [np.interp(100_000, one.budgets, getattr(one, name)) for one in (curve, better)]
            assert at[1] > at[0] + more
        assert list(curve.expected) == list(np.maximum.accumulate(np.minimum(plan.value, plan.bound)))
        assert len(kinds_of([0.1, 0.9, 0.5, 0.0, 1.0, 0.2])) == 5 and kinds_of([]) == ()


def test_fields_of_forms() -> None:
    for text in ("", "x", "-1", "1.5", "9" * 30):
        with pytest.raises(InputError):
            read_whole(text, "budget")
    with pytest.raises(InputError):
        read_time("tomorrow")
    assert read_time(" ") is None and read_whole(" 1 200 ", "budget") == 1200 and read_time("1970-01-01T00:01") == 60.0
