"""``python -m benchmarks.live.label_studio``: a campaign in a real Label Studio, in which both servers are killed.

Six simulated people label through Label Studio's API as its page does, and one through the page itself in Chromium,
until the budget is spent. Each answers a task the same way whenever they get it. nextlabel is killed (SIGKILL) after a
third of the labels and Label Studio after two thirds; both are started again. Then the annotations of Label Studio are
held against the labels of the campaign, and its accuracy against campaigns without Label Studio, in which the same
people come in the same order.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from playwright.sync_api import Error as PageError
from playwright.sync_api import Page, sync_playwright

from benchmarks.live.label_studio_server import PASSWORD, TOKEN, Person, StudioServer
from benchmarks.live.server import free_port
from nextlabel.application.service import Campaign
from nextlabel.store.sql import open_store

LABELS = ("negative", "positive")
#: How often each of the people is right; the last one labels in the browser.
PEOPLE = (0.95, 0.92, 0.88, 0.85, 0.8, 0.7, 0.9)
ALONE = 10
#: Seconds without a task after which a simulated person looks again.
PAUSE_S = 0.5


class Crowd:
    """Truths of the tasks, and what each person says about each of them."""

    def __init__(self, tasks: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.truth = rng.integers(0, 2, tasks)
        right = rng.random((len(PEOPLE), tasks)) < np.array(PEOPLE)[:, None]
        self.says = np.where(right, self.truth, 1 - self.truth)

    def text(self, task: int) -> str:
        return f"Review number {task} of the sample."

    def answer(self, person: int, text: str) -> str:
        return LABELS[int(self.says[person, int(text.split()[2])])]


class Connection:
    """``nextlabel label-studio connect`` in a process of its own."""

    def __init__(self, folder: Path, studio: StudioServer, project: int, budget: int, people: list[str]) -> None:
        self.db, self.port, self._log = folder / "labels.db", free_port(), folder / "connect.log"
        self._command = [
            sys.executable, "-c", "from nextlabel.cli.app import main; main()", "label-studio", "connect",
            "--url", studio.url, "--project", str(project), "--budget", str(budget), "--db", str(self.db),
            "--port", str(self.port), "--annotators", ",".join(people), "--log-level", "warning", "--every", "3",
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as out:
            environment = {**os.environ, "LABEL_STUDIO_API_KEY": TOKEN}
            self.process = subprocess.Popen(
                self._command, stdout=out, stderr=out, env=environment, start_new_session=True
            )
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"connect ended: {self._log.read_text()[-2000:]}")
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/healthz", timeout=5)
                return
            except httpx.TransportError:
                time.sleep(0.2)

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(300)


def label_by_api(person: Person, number: int, crowd: Crowd, over: threading.Event) -> None:
    """Label whatever the tab shows until all is over."""
    while not over.is_set():
        try:
            task = person.next_task()
            if task is None:
                over.wait(PAUSE_S)
            else:
                person.submit(task["id"], crowd.answer(number, task["data"]["text"]))
        except httpx.HTTPError:  # Label Studio is down: a person tries again
            over.wait(1.0)


def label_by_page(page: Page, link: str, email: str, crowd: Crowd, over: threading.Event) -> int:
    """The same in the labelling page; returns the number of labels that were submitted."""
    number, done = len(PEOPLE) - 1, 0
    while not over.is_set():
        with suppress(PageError):
            page.goto(link)
            if "/user/login" in page.url:
                page.fill("input[name=email]", email)
                page.fill("input[name=password]", PASSWORD)
                page.click("button[type=submit]")
                page.wait_for_load_state("networkidle")
                continue
            submit, empty = page.get_by_test_id("bottombar-submit-button"), page.get_by_text("No More Tasks Left")
            while not over.is_set():
                submit.or_(empty).first.wait_for()
                if empty.is_visible():
                    over.wait(2.0)
                    break  # a person reloads the page
                text = page.get_by_text("Review number").first.inner_text()
                page.locator(f"label:has-text('{crowd.answer(number, text)}')").first.click()
                with page.expect_response(lambda reply: "id=next_task" in reply.url):
                    submit.click()
                done += 1
                page.wait_for_function("before => !document.body.innerText.includes(before)", arg=text, timeout=20_000)
    return done


def spent_of(db: Path, campaign: str) -> tuple[int, bool]:
    """Labels spent, and whether the campaign is closed."""
    store = open_store(f"sqlite:///{db}", create=False)
    try:
        row = store.row(campaign)
        return row.spent, row.closed_seq is not None
    finally:
        store.close()


def accuracy(results: Any, truth: Any) -> float:
    """The share of tasks whose result is the truth."""
    right = [LABELS.index(one.label) == truth[int(one.payload["text"].split()[2])] for one in results]
    return float(np.mean(right))


def alone(crowd: Crowd, order: list[int], budget: int, seed: int) -> float:
    """The accuracy of a campaign of nextlabel in which the same people label in the same order."""
    tasks = [{"id": str(k), "text": crowd.text(k)} for k in range(len(crowd.truth))]
    with Campaign.create("memory:", tasks, budget=budget, labels=LABELS, seed=seed) as campaign:
        held = {person: campaign.ask(f"p{person}") for person in range(len(PEOPLE))}
        for person in order:  # each has the next task in hand as soon as the last is labelled, as in Label Studio
            lease = held[person] or campaign.ask(f"p{person}")
            if lease:
                campaign.tell(lease, LABELS[int(crowd.says[person, int(lease.task)])])
                held[person] = campaign.ask(f"p{person}")
        return accuracy(campaign.results(), crowd.truth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--budget", type=int, default=900)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="nextlabel-label-studio-"))
    crowd = Crowd(given.tasks, given.seed)
    studio = StudioServer(folder)
    studio.start()
    emails = [f"p{k}@example.org" for k in range(len(PEOPLE))]
    tokens = [studio.sign_up(email) for email in emails]
    project = studio.make_project([crowd.text(k) for k in range(given.tasks)])
    connection = Connection(folder, studio, project, given.budget, emails)
    over = threading.Event()
    begun = time.monotonic()
    try:
        connection.start()
        campaign = f"label_studio_{project}"
        people = [Person(studio, token, project) for token in tokens]
        threads = [
            threading.Thread(target=label_by_api, args=(person, k, crowd, over), daemon=True)
            for k, person in enumerate(people[:-1])
        ]
        for thread in threads:
            thread.start()

        def direct() -> None:
            """Kill each server once, and say when all is over."""
            for share, server in ((3, connection), (1.5, studio)):
                while spent_of(connection.db, campaign)[0] < given.budget / share:
                    time.sleep(0.5)
                print(f"{time.monotonic() - begun:.0f} s: kill -9 of {type(server).__name__}", flush=True)
                server.kill()
                time.sleep(5.0)
                server.start()
            while not spent_of(connection.db, campaign)[1]:
                time.sleep(0.5)
            time.sleep(15.0)  # nobody may get anything any more
            over.set()

        director = threading.Thread(target=direct, daemon=True)
        director.start()
        tabs = people[-1].http.get("/api/dm/views", params={"project": project}).json()
        tab = next(tab["id"] for tab in tabs if f",{people[-1].user}," in str(tab["data"]))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(30_000)
            link = f"{studio.url}/projects/{project}/data?tab={tab}&labeling=1"
            by_page = label_by_page(page, link, emails[-1], crowd, over)
            browser.close()
        director.join()
        seconds = time.monotonic() - begun
        print(f"{seconds:.0f} s: the budget is spent", flush=True)
        report(given, folder, studio, connection, project, crowd, people, by_page, seconds)
    finally:
        over.set()
        connection.stop()
        studio.kill()
    print(f"logs and databases: {folder}")


def report(
    given: argparse.Namespace, folder: Path, studio: StudioServer, connection: Connection, project: int,
    crowd: Crowd, people: list[Person], by_page: int, seconds: float,
) -> None:  # fmt: skip
    """Hold both systems against each other, and print the figures."""
    theirs = studio.annotations(project)
    names = {person.user: f"p{k}@example.org" for k, person in enumerate(people)}
    campaign = Campaign.open(f"sqlite:///{connection.db}")
    with campaign:
        ours = list(campaign.labels())
        in_studio = {(str(one["task"]), names[one["user"]], one["label"]) for one in theirs}
        in_campaign = {(one.task, one.worker, one.label) for one in ours}
        pairs = [(one["task"], one["user"]) for one in theirs]
        given_out = [event.data for event in campaign.events() if event.kind == "leased"]
        leased = [(one["task"], one["worker"]) for one in given_out]
        found = accuracy(campaign.results(), crowd.truth)
        status, verified = campaign.status(), campaign.verify().right
        order = [int(one.worker[1]) for one in sorted(ours, key=lambda one: one.submitted or "") if one.counted]
    others = [alone(crowd, order, given.budget, seed) for seed in range(ALONE)]
    usual = statistics.mean(others)
    answer = {
        "tasks": given.tasks, "budget": given.budget, "annotations in Label Studio": len(theirs),
        "labels in nextlabel": len(ours), "labels equal in both": in_studio == in_campaign,
        "spent": status.spent, "counted": sum(one.counted for one in ours), "state": status.state,
        "labels over budget": sum(not one.counted for one in ours),
        "annotations of one person for one task, at most": max(pairs.count(pair) for pair in set(pairs)),
        "tasks given twice to one person": len(leased) - len(set(leased)),
        "labels through the page": sum(one["user"] == people[-1].user for one in theirs),
        "submitted in the page": by_page, "state follows from the log": verified,
        "accuracy": round(found, 4), f"mean of {ALONE} campaigns without Label Studio": round(usual, 4),
        "their standard deviation": round(statistics.stdev(others), 4), "minutes": round(seconds / 60, 1),
    }  # fmt: skip
    print(json.dumps(answer, indent=2), flush=True)
    right = (
        in_studio == in_campaign and status.spent == given.budget and len(pairs) == len(set(pairs))
        and len(leased) == len(set(leased)) and verified and abs(found - usual) <= 0.01
    )  # fmt: skip
    print("all as it must be" if right else "NOT as it must be", flush=True)


if __name__ == "__main__":
    main()
