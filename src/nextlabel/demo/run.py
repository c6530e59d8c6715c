"""The demo from start to finish: service, campaign, crowd, certificate."""

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
#: Seconds between two certificates.
INTERVAL_S = 0.4


@dataclass(frozen=True)
class DemoRun:
    """A running service with one campaign."""

    url: str
    token: str
    campaign: str
    config: CampaignSettings
    sample: list[Item]
    seed: int
    client: Client


@contextmanager
def demo_run(folder: Path, port: int, number: int, labels_an_item: float, seed: int) -> Iterator[DemoRun]:
    """Start the service on a database in ``folder`` and create the campaign; both last as long as the block."""
    sample, belief = items(number, seed), prior()
    config = CampaignSettings(
        round(labels_an_item * number),
        LABELS,
        "Demo: product reviews",
        QUESTION,
        policy="index",
        prior=belief,
        seed=seed,
    )
    settings = ServiceSettings(port=port, log_level="warning")
    folder.mkdir(parents=True, exist_ok=True)
    campaign_service = CampaignService(open_store(f"{folder / 'demo.db'}"))
    token = tokens.new_token(campaign_service.store)
    app = create_app(campaign_service, settings, mount_pages, close_service=True)
    with served(app, settings.host, port), Client(settings.base_url, token) as client:
        campaign = client.create(
            budget=config.budget, labels=list(LABELS), name=config.name, question=QUESTION, prior=prior_table(belief),
            policy=config.policy, seed=seed,
        )  # fmt: skip
        client.add_tasks(campaign.id, [{"id": item.id, "text": item.text} for item in sample])
        campaign_service.table_cache.wait(config, [belief], config.rho)
        yield DemoRun(settings.base_url, token, campaign.id, config, sample, seed, client)


def play(on: DemoRun, progress: Callable[[float], None]) -> Outcome:
    """Let the crowd label until the budget is spent."""
    theta = {item.id: item.theta for item in on.sample}
    upper = on.client.certificate(on.campaign).upper
    assert upper is not None  # the demo's policy has one
    links = on.client.links(on.campaign, WORKERS).links
    moments: list[Moment] = []
    over = threading.Event()

    def look() -> None:
        certificate = on.client.certificate(on.campaign)
        moments.append(Moment(certificate.spent, certificate.now))

    def watch() -> None:
        while not over.is_set():
            look()
            over.wait(INTERVAL_S)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        labels = crowd(
            on.url, on.campaign, {link.worker: link.token for link in links},
            lambda task, u: LABELS[int(u < theta[task])], on.seed, lambda n: progress(n / on.config.budget),
        )  # fmt: skip
    finally:
        over.set()
        watching.join()
    spent = on.client.status(on.campaign).spent
    look()
    while moments[-1].labels < spent:  # the service may reply with a certificate that is a little old
        time.sleep(INTERVAL_S)
        look()
    labelled = {result.task: result.label for result in on.client.results(on.campaign)}
    return outcome(on.config, on.sample, labelled, labels, moments[-1].now, upper, moments)
