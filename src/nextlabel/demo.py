"""A whole campaign on this machine: sample items, the real service, a simulated crowd over HTTP, the certificate.

The reviews are short and either positive or negative. Six people are right about most of them, one answers fast and at
random, one has mixed the two answers up, and a crude model looks for a few words. What the campaign found is held
against the hidden truth, and against fixed overlap, played with the same people and the same items: n different people
for each item, drawn as often as they come, read out by majority and by Dawid and Skene's model as this library fits it
(``learn_crowd``), which has the model's labels too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import uvicorn

from nextlabel.application.service import CampaignService
from nextlabel.campaign.results import Result
from nextlabel.client import Client
from nextlabel.crowd.learn import LearntCrowd, learn_crowd
from nextlabel.crowd.skill import AGAINST, AT_CHANCE
from nextlabel.errors import SolverError
from nextlabel.reporting.report import Report, Table
from nextlabel.reporting.style import BLUE, GREY, INK, drawing
from nextlabel.service.access import create_token
from nextlabel.service.app import create_app
from nextlabel.service.settings import ServiceSettings
from nextlabel.store.sql import open_store
from nextlabel.web.pages import mount_pages

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = ("negative", "positive")
QUESTION = "Is this review positive or negative?"
#: A label: task, worker, answer.
Answer = tuple[str, str, str]
#: A share after each of some numbers of labels.
Curve = Sequence[tuple[int, float]]
#: Share of positive reviews.
POSITIVE = 0.6

_THINGS = (
    "kettle", "desk lamp", "rucksack", "pair of headphones", "notebook", "rain jacket", "bicycle pump", "frying pan",
    "alarm clock", "office chair",
)  # fmt: skip
_SAYINGS = (
    (
        "The {} broke in the first week and nobody answered my mail.",
        "I would not buy this {} again, not even at half the price.",
        "What a disappointment: the {} looks nothing like its picture.",
        "Great, another {} for the bin.",
        "My old {} was better in every way.",
        "After the third repair I gave the {} away.",
    ),
    (
        "The {} does exactly what it should, and I use it every day.",
        "I bought a second {} for my sister: that says it all.",
        "Best {} I have had so far. It feels solid and arrived early.",
        "I expected a disappointment. The {} proved me wrong.",
        "My neighbours keep borrowing the {}.",
        "Great {}, fair price.",
    ),
)
#: The model says 'negative' where it finds one of these words.
_BAD_WORDS = ("broke", "disappointment", "not buy", "repair")


@dataclass(frozen=True, slots=True)
class Item:
    """One review; ``truth`` is hidden from the campaign."""

    id: str
    text: str
    truth: str


@dataclass(frozen=True, slots=True)
class Person:
    """A worker: what they are, the chance that they are right about a negative and about a positive review, and how
    many labels they give in the time that others take for one."""

    name: str
    kind: str
    right: tuple[float, float]
    speed: float = 1.0

    @property
    def accuracy(self) -> float:
        """The chance that they are right about a review."""
        return (1.0 - POSITIVE) * self.right[0] + POSITIVE * self.right[1]

    def says(self, truth: str, u: float) -> str:
        """Their answer for a uniform ``u``."""
        place = LABELS.index(truth)
        return LABELS[place] if u < self.right[place] else LABELS[1 - place]


GOOD, SPAMMER, CONTRARIAN, MODEL = "good", "spammer", "contrarian", "model"
PEOPLE = (
    Person("ada", GOOD, (0.94, 0.95)),
    Person("ben", GOOD, (0.85, 0.90)),
    Person("chloe", GOOD, (0.92, 0.86)),
    Person("dan", GOOD, (0.78, 0.88)),
    Person("eva", GOOD, (0.90, 0.93)),
    Person("finn", GOOD, (0.75, 0.82)),
    Person("jack", SPAMMER, (0.5, 0.5), speed=2.5),
    Person("kim", CONTRARIAN, (0.1, 0.08)),
)
MODEL_NAME = "keywords"


def items(number: int, seed: int) -> list[Item]:
    """``number`` reviews."""
    random = np.random.default_rng(seed)
    texts = [[say.format(thing) for thing, say in product(_THINGS, sayings)] for sayings in _SAYINGS]
    out = []
    for k in range(number):
        truth = int(random.random() < POSITIVE)
        text = texts[truth][int(random.integers(len(texts[truth])))]
        out.append(Item(f"review-{k + 1:03d}", text, LABELS[truth]))
    return out


def prediction(text: str) -> str:
    """The model's label of a review."""
    return LABELS[not any(word in text for word in _BAD_WORDS)]


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


@contextmanager
def demo_run(folder: Path, port: int, number: int, labels_an_item: float, seed: int) -> Iterator[DemoRun]:
    """Start the service on a database in ``folder`` and create the campaign; both last as long as the block."""
    sample, budget = items(number, seed), round(labels_an_item * number)
    settings = ServiceSettings(port=port, log_level="warning")
    folder.mkdir(parents=True, exist_ok=True)
    campaign_service = CampaignService(open_store(f"{folder / 'demo.db'}"))
    token = create_token(campaign_service.store, replace=True)
    app = create_app(campaign_service, settings, mount_pages, close_service=True)
    server = uvicorn.Server(
        uvicorn.Config(app, host=settings.host, port=port, log_config=None, access_log=False, server_header=False)
    )
    thread = Thread(target=server.run, name="service", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise SolverError(f"the service did not start at {settings.host}:{port}.", "Give another --port.")
            time.sleep(0.02)
        with Client(settings.base_url, token) as client:
            campaign = client.create(
                budget=budget, labels=list(LABELS), name="Demo: product reviews", question=QUESTION, seed=seed
            )
            client.add_tasks(campaign.id, [{"id": item.id, "text": item.text} for item in sample])
            said = [{"task": item.id, "label": prediction(item.text)} for item in sample]
            client.add_predictions(campaign.id, MODEL_NAME, said)
            yield DemoRun(settings.base_url, token, campaign.id, budget, sample, seed, client)
    finally:
        server.should_exit = True
        thread.join()


def play(on: DemoRun, progress: Callable[[float], None]) -> tuple[list[Result], list[Answer], list[tuple[int, float]]]:
    """Let the crowd label until the budget is spent.

    What it leaves is each item's result, the answers in order, and what the campaign expected on the way.
    """
    links = on.client.links(on.campaign, [person.name for person in PEOPLE]).links
    tokens, truth = {link.worker: link.token for link in links}, {item.id: item.truth for item in on.sample}
    moments: list[tuple[int, float]] = []
    over, done = Event(), count(1)

    def look() -> None:
        certificate = on.client.certificate(on.campaign)
        moments.append((certificate.spent, certificate.now))

    def watch() -> None:
        while not over.is_set():
            look()
            over.wait(INTERVAL_S)

    def work(number: int, person: Person) -> None:
        random = np.random.default_rng((on.seed, number))
        with Client(on.url, tokens[person.name]) as client:
            while not over.is_set():
                lease = client.ask(on.campaign)
                if not lease and lease.reason in FINAL:
                    return
                if not lease:
                    over.wait(0.1)
                    continue
                time.sleep(float(random.exponential(PERSON_S / SPEED_UP / person.speed)))
                client.tell(lease, person.says(truth[lease.task], float(random.random())))
                progress(next(done) / on.budget)

    with ThreadPoolExecutor(len(PEOPLE) + 1) as pool:
        pool.submit(watch)
        jobs = [pool.submit(work, number, person) for number, person in enumerate(PEOPLE)]
        try:
            wait(jobs)
        finally:
            over.set()
        for job in jobs:
            job.result()
    spent = on.client.status(on.campaign).spent
    look()
    while moments[-1][0] < spent:  # the service may reply with a certificate that is a little old
        time.sleep(INTERVAL_S)
        look()
    given = sorted(on.client.labels(on.campaign), key=lambda one: one.submitted or "")
    answers = [(one.task, one.worker, one.label) for one in given if one.label is not None and one.counted]
    return list(on.client.results(on.campaign)), answers, moments


#: Labels per item of fixed overlap, how often it is played, and the overlap that savings are said against.
OVERLAPS, PLAYED, USUAL = (1, 3, 5, 7), 4, 5
#: Read-outs of fixed overlap, as people call them.
NAMES = {"majority": "majority", "dawid-skene": "Dawid-Skene"}
#: Points of the campaign's own curve.
POINTS = 24
#: What a worker of a kind is flagged as, if the crowd is seen as it is.
FLAGS = {SPAMMER: [AT_CHANCE], CONTRARIAN: [AGAINST]}


class Outcome(NamedTuple):
    """What came of it: ``fields`` as JSON has them, and the curves of the figure.

    ``curve`` has the share right after some numbers of labels, ``moments`` what the campaign itself expected, and
    ``overlaps`` by read-out the share right for each of OVERLAPS.
    """

    fields: dict[str, Any]
    curve: Curve
    moments: Curve
    overlaps: dict[str, list[float]]


def outcome(
    sample: Sequence[Item], labelled: Mapping[str, str], people: Sequence[Answer], moments: Curve, seed: int,
    progress: Callable[[float], None],
) -> Outcome:  # fmt: skip
    """``labelled`` has the label of each item, ``people`` the answers that were bought, in order."""
    truth = {item.id: item.truth for item in sample}
    predicted = [(item.id, f"model:{MODEL_NAME}", prediction(item.text)) for item in sample]
    model = float(np.mean([truth[task] == label for task, _, label in predicted]))
    known = {person.name: (person.kind, person.accuracy) for person in PEOPLE} | {predicted[0][1]: (MODEL, model)}
    curve = []
    for n in np.unique(np.linspace(0.1 * len(people), len(people), POINTS).astype(int)).tolist():
        curve.append((n, _right(_learnt(*people[:n], *predicted), truth)))
        progress(0.3 * n / len(people))
    workers = [
        {"worker": one.name, "kind": known[one.name][0], "labels": one.labels, "right": known[one.name][1],
         "learnt": one.accuracy.as_dict(), "flags": list(one.flags)}
        for one in _learnt(*people, *predicted).workers
    ]  # fmt: skip
    overlaps = fixed_overlap(sample, predicted, seed, lambda share: progress(0.3 + 0.7 * share))
    fields = {
        "items": len(sample), "labels": len(people),
        "right": float(np.mean([truth[task] == label for task, label in labelled.items()])),
        "expected": moments[-1][1],
        "all_found": all(one["flags"] == FLAGS.get(str(one["kind"]), []) for one in workers), "workers": workers,
        "overlap": [saving(name, shares, curve, len(sample)) for name, shares in overlaps.items()],
    }  # fmt: skip
    return Outcome(fields, curve, moments, overlaps)


def fixed_overlap(
    sample: Sequence[Item], predicted: Sequence[Answer], seed: int, progress: Callable[[float], None]
) -> dict[str, list[float]]:
    """Play fixed overlap with the same people: by majority, and by Dawid and Skene's model."""
    truth = {item.id: item.truth for item in sample}
    right = np.zeros((len(NAMES), PLAYED, len(OVERLAPS)))
    for play in range(PLAYED):
        random = np.random.default_rng((seed, 1, play))
        given = [_answers(item, random) for item in sample]
        for column, n in enumerate(OVERLAPS):
            some = [answer for answers in given for answer in answers[:n]]
            votes = np.array([label == truth[task] for task, _, label in some]).reshape(len(sample), n).sum(axis=1)
            coins = random.random(len(votes)) < 0.5  # they decide ties
            right[0, play, column] = np.mean(np.where(2 * votes == n, coins, 2 * votes > n))
            right[1, play, column] = _right(_learnt(*some, *predicted), truth)
        progress((play + 1) / PLAYED)
    return dict(zip(NAMES, right.mean(axis=1).tolist(), strict=True))


def saving(readout: str, shares: Sequence[float], curve: Curve, items: int) -> dict[str, Any]:
    """From how many labels on the campaign was as right as USUAL labels for each item, and what share that saves."""
    usual = shares[OVERLAPS.index(USUAL)]
    at = level(curve, usual)
    saved = None if at is None else 1.0 - at / (USUAL * items)
    return {"readout": readout, "right": usual, "level_after": at, "saved": saved}


def level(curve: Curve, right: float) -> int | None:
    """The number of labels from which on the curve stays at ``right`` or above."""
    found = None
    for labels, share in reversed(curve):
        if share < right:
            break
        found = labels
    return found


def _answers(item: Item, random: np.random.Generator) -> list[Answer]:
    """The answers of as many different people as the largest overlap needs; who works fast comes more often."""
    speed = np.array([person.speed for person in PEOPLE])
    order = random.choice(len(PEOPLE), max(OVERLAPS), replace=False, p=speed / speed.sum())
    return [(item.id, PEOPLE[j].name, PEOPLE[j].says(item.truth, float(random.random()))) for j in order]


def _learnt(*answers: Answer) -> LearntCrowd:
    return learn_crowd(dict(zip(("task", "worker", "label"), map(list, zip(*answers, strict=True)), strict=True)))


def _right(crowd: LearntCrowd, truth: Mapping[str, str]) -> float:
    """The share of items for which the most probable answer is the truth."""
    return float(np.mean([truth[task] == label for task, label in zip(crowd.task_names, crowd.predict(), strict=True)]))


def draw(found: Outcome) -> Figure:
    """The share right against labels bought, and fixed overlap."""
    items = found.fields["items"]
    with drawing(figsize=(7.2, 4.2)) as (figure, axes):
        axes.plot(*zip(*found.curve, strict=True), color=BLUE, label="this campaign")
        axes.plot(*zip(*found.moments, strict=True), color=BLUE, linestyle=":", label="what the campaign expected")
        for (name, shares), (style, color) in zip(found.overlaps.items(), (("s--", GREY), ("o--", INK)), strict=True):
            axes.plot(
                [n * items for n in OVERLAPS], shares, style, color=color, markersize=4,
                label=f"1, 3, 5, 7 labels for every item, {NAMES[name]}",
            )  # fmt: skip
        axes.set(xlabel="labels bought from people", ylabel="share of items right")
        axes.legend(loc="lower right", frameon=False)
        axes.set_title(f"{items} items; a spammer, a contrarian, a model and six good people")
    return figure


def demo_report(campaign: DemoRun, left: Sequence[Result], found: Outcome, seconds: float, folder: str) -> Report:
    """What came of it: who was found out, and what the labels saved."""
    truth = {item.id: item.truth for item in campaign.sample}
    results = [
        {"task": one.task, "label": one.label, "probability": f"{one.probability:.4f}", "labels": one.labels,
         "hidden_truth": truth[one.task], "text": one.payload["text"]}
        for one in left
    ]  # fmt: skip
    fields = {"campaign": campaign.campaign, **found.fields, "seconds": seconds, "folder": folder}
    people = [
        {**one, **one["learnt"], "low": 100 * one["learnt"]["low"], "high": 100 * one["learnt"]["high"],
         "flagged": ", ".join(one["flags"])}
        for one in fields["workers"]
    ]  # fmt: skip
    rows = [
        ["labels bought", f"{fields['labels']:,} of {campaign.budget:,}"],
        ["right, against the hidden truth", f"{fields['right']:.1%}"],
        ["right, as the campaign itself expects", f"{fields['expected']:.1%}"],
    ]
    for one in fields["overlap"]:
        rows.append([f"right with {USUAL} labels for every item, by {NAMES[one['readout']]}", f"{one['right']:.1%}"])
        there = (
            "not reached" if one["saved"] is None else f"after {one['level_after']:,} labels: {one['saved']:.0%} saved"
        )
        rows.append(["    the campaign was there", there])
    spread = float((fields["right"] * (1.0 - fields["right"]) / fields["items"]) ** 0.5)
    caption = (
        f"Shares are of these {fields['items']} items and vary by about {spread:.1%} with the set of items. "
        f"{USUAL} labels for every item are {USUAL * fields['items']:,}, by the same people. {seconds:.0f} seconds."
    )
    said = "'right' is hidden from the campaign; 'learnt' is how often it thinks they are right, with a 95% interval."
    columns = {
        "worker": "{worker}", "is": "{kind}", "labels": "{labels:,}", "right": "{right:.0%}",
        "learnt": "{mean:.0%} ({low:.0f} to {high:.0f})", "flagged": "{flagged}",
    }  # fmt: skip
    tables = [Table.of("Workers", columns, people, said), Table("Certificate", ["", ""], rows, caption)]
    files = {"results.csv": results, "demo.png": draw(found)}
    return Report("The demo", tables, [], fields=fields, files=lambda: files)
