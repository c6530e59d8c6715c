"""The demo from beginning to end: service, campaign, crowd, certificate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService
from nextlabel.client import Client
from nextlabel.demo.background import served
from nextlabel.demo.crowd import crowd
from nextlabel.demo.outcome import Moment, Outcome, outcome
from nextlabel.demo.sample import LABELS, QUESTION, Item, items, prior
from nextlabel.problem.tables import prior_table
from nextlabel.service import tokens
from nextlabel.service.app import create_app
from nextlabel.service.settings import ServiceSettings
from nextlabel.store.open import open_store
from nextlabel.web.pages import mount_pages

WORKERS = ("ada", "ben", "chloe", "dan", "eva", "finn", "gita", "hugo", "ines", "jack", "kim", "leo")
#: Seconds between two looks at the expected accuracy.
LOOK_S = 0.4
#: Looks at the end until all labels are in the certificate.
PATIENCE = 25


@dataclass(frozen=True)
class DemoRun:
    """A service that runs, with one campaign on it."""

    url: str
    token: str
    campaign: str
    config: CampaignSettings
    sample: list[Item]
    seed: int
    client: Client


@contextmanager
def demo_run(folder: Path, port: int, number: int, labels_an_item: float, seed: int) -> Iterator[DemoRun]:
    """Start the service on a database in ``folder`` and make the campaign; both last as long as the block."""
    sample, belief = items(number, seed), prior()
    config = CampaignSettings(
        round(labels_an_item * number), LABELS, "Demo: product reviews", QUESTION, prior=belief, seed=seed
    )
    settings = ServiceSettings(port=port, log_level="warning")
    folder.mkdir(parents=True, exist_ok=True)
    campaign_service = CampaignService(open_store(f"{folder / 'demo.db'}"))
    token = tokens.new_token(campaign_service.store)
    app = create_app(campaign_service, settings, mount_pages, close_service=True)
    with served(app, settings.host, port), Client(settings.base_url, token) as client:
        made = client.create(
            budget=config.budget, labels=list(LABELS), name=config.name, question=QUESTION, prior=prior_table(belief),
            seed=seed,
        )  # fmt: skip
        client.add_tasks(made["id"], [{"id": item.id, "text": item.text} for item in sample])
        campaign_service.table_cache.wait(config, [belief], config.rho)
        yield DemoRun(settings.base_url, token, made["id"], config, sample, seed, client)


def play(on: DemoRun, progress: Callable[[float], None]) -> Outcome:
    """Let the crowd label until the budget is spent."""
    theta = {item.id: item.theta for item in on.sample}
    upper = float(on.client.certificate(on.campaign)["upper"])
    given = on.client.links(on.campaign, WORKERS)["links"]
    moments: list[Moment] = []
    over = threading.Event()

    def look() -> None:
        found = on.client.certificate(on.campaign)
        moments.append(Moment(int(found["spent"]), float(found["now"])))

    def watch() -> None:
        while not over.is_set():
            look()
            over.wait(LOOK_S)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        labels = crowd(
            on.url, on.campaign, {entry["worker"]: entry["token"] for entry in given},
            lambda task, u: LABELS[int(u < theta[task])], on.seed, lambda n: progress(n / on.config.budget),
        )  # fmt: skip
    finally:
        over.set()
        watching.join()
    for _ in range(PATIENCE):  # a certificate may be a little old
        look()
        if moments[-1].labels >= labels:
            break
        time.sleep(LOOK_S)
    labelled = {str(result["task"]): str(result["label"]) for result in on.client.results(on.campaign)}
    return outcome(on.config, on.sample, labelled, labels, moments[-1].now, upper, moments)
