"""The demo from start to finish: the service in a thread, a campaign, a simulated crowd over HTTP, the certificate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

import numpy as np
import uvicorn
from fastapi import FastAPI

from nextlabel.campaigns.service import CampaignService
from nextlabel.client import Client
from nextlabel.demo.sample import LABELS, MODEL_NAME, PEOPLE, QUESTION, Answer, Item, Person, items, prediction
from nextlabel.errors import SolverError
from nextlabel.service.access import new_token
from nextlabel.service.app import create_app
from nextlabel.service.settings import ServiceSettings
from nextlabel.store.sql import open_store
from nextlabel.web.pages import mount_pages

#: Seconds between two certificates.
INTERVAL_S = 0.4

#: Seconds that a person takes for one review, and how many times faster the demo's crowd is.
PERSON_S, SPEED_UP = 18.0, 150.0

#: Reasons after which a worker stops.
FINAL = ("budget_spent", "finished", "nothing_left_for_you", "deadline_passed", "below_price")


@dataclass(frozen=True)
class DemoRun:
    """A running service with one campaign."""

    url: str
    token: str
    campaign: str
    budget: int
    sample: list[Item]
    seed: int
    client: Client


@dataclass(frozen=True)
class Played:
    """What the crowd left: each item's label, the answers in order, and what the campaign expected on the way."""

    labelled: dict[str, str]
    answers: list[Answer]
    moments: list[tuple[int, float]]


@contextmanager
def demo_run(folder: Path, port: int, number: int, labels_an_item: float, seed: int) -> Iterator[DemoRun]:
    """Start the service on a database in ``folder`` and create the campaign; both last as long as the block."""
    sample = items(number, seed)
    budget = round(labels_an_item * number)
    settings = ServiceSettings(port=port, log_level="warning")
    folder.mkdir(parents=True, exist_ok=True)
    campaign_service = CampaignService(open_store(f"{folder / 'demo.db'}"))
    token = new_token(campaign_service.store)
    app = create_app(campaign_service, settings, mount_pages, close_service=True)
    with served(app, settings.host, port), Client(settings.base_url, token) as client:
        campaign = client.create(
            budget=budget,
            labels=list(LABELS),
            name="Demo: product reviews",
            question=QUESTION,
            seed=seed,
        )
        client.add_tasks(campaign.id, [{"id": item.id, "text": item.text} for item in sample])
        client.add_predictions(
            campaign.id, MODEL_NAME, [{"task": item.id, "label": prediction(item.text)} for item in sample]
        )
        yield DemoRun(settings.base_url, token, campaign.id, budget, sample, seed, client)


def play(on: DemoRun, progress: Callable[[float], None]) -> Played:
    """Let the crowd label until the budget is spent."""
    links = on.client.links(on.campaign, [person.name for person in PEOPLE]).links
    token = {link.worker: link.token for link in links}
    moments: list[tuple[int, float]] = []
    over = threading.Event()

    def look() -> None:
        certificate = on.client.certificate(on.campaign)
        moments.append((certificate.spent, certificate.now))

    def watch() -> None:
        while not over.is_set():
            look()
            over.wait(INTERVAL_S)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        crowd(
            on.url, on.campaign, {person: token[person.name] for person in PEOPLE},
            {item.id: item.truth for item in on.sample}, on.seed, lambda n: progress(n / on.budget),
        )  # fmt: skip
    finally:
        over.set()
        watching.join()
    spent = on.client.status(on.campaign).spent
    look()
    while moments[-1][0] < spent:  # the service may reply with a certificate that is a little old
        time.sleep(INTERVAL_S)
        look()
    given = sorted(on.client.labels(on.campaign), key=lambda one: one.submitted or "")
    return Played(
        labelled={result.task: result.label for result in on.client.results(on.campaign)},
        answers=[(one.task, one.worker, one.label) for one in given if one.label is not None and one.counted],
        moments=moments,
    )


@contextmanager
def served(app: FastAPI, host: str, port: int) -> Iterator[None]:
    """Serve the app on that port inside the block."""
    config = uvicorn.Config(app, host=host, port=port, log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="service", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise SolverError(f"the service did not start at {host}:{port}.", "Give another --port.")
            time.sleep(0.02)
        yield
    finally:
        server.should_exit = True
        thread.join()


def crowd(
    url: str, campaign: str, tokens: Mapping[Person, str], truth: Mapping[str, str], seed: int,
    labelled: Callable[[int], None],
) -> int:  # fmt: skip
    """Work until nothing is left; ``tokens`` has each person's, ``labelled(n)`` reports progress."""
    done, lock, stop = 0, Lock(), Event()

    def work(number: int, person: Person, token: str) -> None:
        nonlocal done
        random = np.random.default_rng((seed, number))
        with Client(url, token) as client:
            while not stop.is_set():
                lease = client.ask(campaign)
                if not lease:
                    if lease.reason in FINAL:
                        return
                    stop.wait(0.1)
                    continue
                time.sleep(float(random.exponential(PERSON_S / SPEED_UP / person.speed)))
                client.tell(lease, person.says(truth[lease.task], float(random.random())))
                with lock:
                    done += 1
                    labelled(done)

    with ThreadPoolExecutor(len(tokens)) as pool:
        jobs = [pool.submit(work, number, *one) for number, one in enumerate(tokens.items())]
        try:
            wait(jobs)
        finally:
            stop.set()
        for job in jobs:
            job.result()
    return done
