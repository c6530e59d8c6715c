"""A guarantee end to end: six workers, an expert with a phone, a service killed twice, a record to check."""

from __future__ import annotations

import csv
import io
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import numpy as np
from benchmarks.live.server import free_port
from playwright.sync_api import Browser, Error, Page, expect

from browser import PHONE, at, check_accessible, chromium
from guarantee_record import proved
from service_fixtures import PATIENCE_S

__all__ = ["chromium"]

COMMAND = str(Path(sys.executable).with_name("nextlabel"))
ITEMS, WORKERS, LABELS, WRONG = 120, 6, 240, 0.1


def truth_of(text: str) -> str:
    return "even" if int(text.split()[-1]) % 2 == 0 else "odd"


class KilledService:
    """``nextlabel serve`` on one database and port, to be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.port, self.folder = free_port(), folder
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()
        create = [COMMAND, "token", "create", "tests", "--db", f"sqlite:///{folder}/labels.db"]
        self.token = subprocess.run(create, capture_output=True, text=True, check=True).stdout.split()[-1]

    def start(self) -> None:
        command = [COMMAND, "serve", "--port", str(self.port)]
        command += ["--db", f"sqlite:///{self.folder}/labels.db"]
        with (self.folder / "service.log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                if httpx.get(f"{self.url}/healthz").status_code == 200:
                    return
            except httpx.TransportError:
                assert self.process.poll() is None and time.monotonic() < until
                time.sleep(0.05)

    def http(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=PATIENCE_S)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)


def until_told(call: Callable[[], httpx.Response]) -> httpx.Response:
    """A request as often as it takes: the service may be gone, or have to learn first."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            reply = call()
            if reply.status_code != 503:
                return reply
        except httpx.TransportError:
            pass
        assert time.monotonic() < until
        time.sleep(0.1)


def work(service: KilledService, number: int, most: int) -> None:
    """A worker who is wrong on a tenth of the items, by chance, gives at most so many labels."""
    rng = np.random.default_rng(number)
    with service.http() as http:
        for _ in range(most):
            asked = until_told(lambda: http.post("/campaigns/parity/ask", json={"worker": f"w{number}"})).json()
            if not asked.get("lease"):
                return
            label = truth_of(asked["lease"]["payload"]["text"])
            if rng.random() < WRONG:
                label = "odd" if label == "even" else "even"
            told = until_told(partial(http.post, f"/leases/{asked['lease']['id']}/tell", json={"label": label}))
            assert told.status_code == 200, told.text


def opened(page: Page, address: str) -> None:
    """The page at an address, which may have to come back first."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            page.goto(address)
            return
        except Error:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_from_the_first_label_to_a_certificate_that_a_file_alone_proves(tmp_path: Path, chromium: Browser) -> None:
    service = KilledService(tmp_path)
    try:
        with service.http() as http:
            settings = {
                "budget": LABELS,
                "labels": ["even", "odd"],
                "turn_away": False,
                "question": "Is it even?",
                "language": "en",
            }
            promise = {"at_most_wrong": 0.1, "sure": 0.9, "expert_cost": 10}
            assert http.post("/campaigns", json={"id": "parity", **settings, **promise}).status_code == 201
            items = [{"id": f"t{k}", "text": f"number {k}"} for k in range(ITEMS)]
            assert http.post("/campaigns/parity/tasks", json=items).status_code == 200
        with ThreadPoolExecutor(WORKERS) as people:
            done = [people.submit(work, service, number, ITEMS) for number in range(WORKERS)]
            with service.http() as http:
                while until_told(lambda: http.get("/campaigns/parity")).json()["spent"] < LABELS // 2:
                    time.sleep(0.1)
            service.kill()  # the first time, while six people label
            service.start()
            for one in done:
                one.result()
        with at(chromium) as page, at(chromium, PHONE) as phone:
            page.goto(f"{service.url}/sign-in")
            page.get_by_label("Token").fill(service.token)
            page.get_by_role("button", name="Sign in").click()
            page.goto(f"{service.url}/campaigns/parity")
            panel = page.locator("#guarantee")
            expect(panel).to_contain_text("The labels are not frozen.")
            expect(panel).to_contain_text("Next: the expert, with about ")
            panel.get_by_role("button", name="Freeze the labels").click()
            expect(panel).to_contain_text("Next: the expert, who has about")
            check_accessible(page)
            panel.get_by_role("link", name="Link for the expert").click()
            phone.goto(page.locator("#audit-link").input_value())
            answers = killed = 0
            while phone.get_by_role("heading", name="All items are answered").count() == 0:
                text = phone.locator("section.item").inner_text()
                label = truth_of(next(line for line in text.splitlines() if line.startswith("number ")))
                if answers == 20 and not killed:
                    service.kill()  # the second time, before an answer of the expert
                    killed = 1
                    service.start()
                phone.get_by_role("button", name=label).click()
                answers += 1
                expect(phone.locator(".whole")).to_contain_text(f" {answers} of ")
            assert killed
            opened(page, f"{service.url}/campaigns/parity")
            expect(panel).to_contain_text(f"At most 10.0% of the {ITEMS} labels are wrong (90% sure;")
            with page.expect_download() as record:
                panel.get_by_role("link", name="Record").click()
            record.value.save_as(tmp_path / "record.json")
        with service.http() as http:
            results = list(csv.DictReader(io.StringIO(http.get("/campaigns/parity/results?format=csv").text)))
    finally:
        service.kill()
    assert f"At most 10.0% of the {ITEMS} labels are wrong" in proved(tmp_path / "record.json", tmp_path)
    wrong = sum(row["label"] != truth_of(f"number {row['task'][1:]}") for row in results)
    assert len(results) == ITEMS and sum(row["source"] == "expert" for row in results) == answers
    assert wrong <= ITEMS // 10  # with 90% chance it must be, and these workers leave far fewer
