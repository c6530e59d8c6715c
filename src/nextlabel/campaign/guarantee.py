"""A live guarantee: labels are frozen, items are drawn for an expert, and the answers lead to a certificate.

The rule and its proof are in ``crowd.guarantee``. ``guarantee_drawn`` has the frozen labels, their hash and the fresh
entropy of the draw, ``guarantee_answered`` what the expert said and what the walk asks next, so that a replay gives the
same draw and the same certificate. Until ``guarantee_reopened`` the results are the frozen labels with the expert's in
place, whatever happens to labels; that event voids the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.events import Event
from nextlabel.campaign.results import ResultSource
from nextlabel.crowd.answers import Answer
from nextlabel.crowd.guarantee import FORMS, LABELS, Guarantee, GuaranteeTerms, guarantee, hash_of_labels
from nextlabel.crowd.questions import Form
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.files.columns import cell_text
from nextlabel.files.labels import LabelTable, ResultTable

#: Items that one guarantee can be about, and events that are read at once.
MOST_ITEMS, CHUNK = 100_000, 2000
#: Digits of a frozen probability.
DIGITS: Final = 6
_FREEZE: Final = "Freeze the labels first."


@dataclass(slots=True)
class LiveGuarantee:
    """What the events since the freeze say; tasks and answers are numbers.

    ``queue`` are all items that the expert was asked for, ``asked`` those of the last batch.
    """

    drawn: Event
    queue: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    removed: list[list[int]] = field(default_factory=list)
    answers: dict[int, int] = field(default_factory=dict)
    look: int = 0
    to_go: int = 0
    so_far: float | None = None
    certified: bool = False
    sentence: str = ""

    @classmethod
    def since(cls, first: int, log: Callable[[int, int], Sequence[Event]]) -> LiveGuarantee:
        """What event ``first``, which froze the labels, and later ones lead to; ``log`` has so many after a number."""
        live, after = None, first - 1
        while page := log(after, CHUNK):
            for event in page:
                live = cls(event) if live is None else live
                if event.kind == "guarantee_reopened":  # a moment ago
                    return live
                if event.kind.startswith("guarantee_"):
                    live.follow(event.data)
            after = page[-1].seq
        assert live is not None, "the campaign says that labels are frozen"
        return live

    def follow(self, data: Mapping[str, Any]) -> None:
        """Take in one event; one that ends a batch says what is next."""
        self.answers.update({task: answer for task, answer in data.get("answers", ())})
        if "asked" in data:
            self.asked, self.to_go = data["asked"], data["to_go"]
            self.removed += data["removed"]
            self.queue = [task for task in self.queue if task in self.answers] + self.asked
            self.look = data.get("look", self.look)
            self.certified, self.sentence, self.so_far = data["certified"], data["sentence"], data.get("so_far")

    @property
    def to_answer(self) -> list[int]:
        """Items that the expert is asked for now and has not answered."""
        return [task for task in self.asked if task not in self.answers]

    def promise(self, keys: Sequence[str], kind: Answer) -> Guarantee:
        """The guarantee with the ids of tasks and the names of labels, as its record has it."""
        data = self.drawn.data
        question, of = _about(kind, data.get("of"))
        frozen: list[int] = data["labels"]
        tasks = tuple(cell_text(key) for key in keys[: len(data["labels"])])
        terms = GuaranteeTerms(
            data["at_most_wrong"], data["sure"], data["items"], data["too_many"], tuple(data["audits"]),
            tuple(data["allowed"]), of=of, what=_what(kind, question),
        )  # fmt: skip
        crowd = _table(data["crowd"], tasks, kind.words(question)) if data.get("crowd") else None
        promise = Guarantee(
            terms, tasks, tuple(kind.said_of(question, label, label) for label in frozen), tuple(data["probability"]),
            {tasks[task]: kind.said_of(question, answer, frozen[task]) for task, answer, _ in data["known"]},
            data["entropy"], data["frozen_at"], data["given"], None, None if crowd is None else hash_of_labels(crowd),
            {tasks[task]: kind.said_of(question, answer, frozen[task]) for task, answer in self.answers.items()},
            [[tasks[task] for task in batch] for batch in self.removed], self.look, len(data.get("before", ())) + 1,
        )  # fmt: skip
        promise.start(crowd)
        return promise

    def final(self) -> dict[int, tuple[int, float, ResultSource]]:
        """Answer, probability and source of every frozen task, with the expert's answers in place."""
        data = self.drawn.data
        out: dict[int, tuple[int, float, ResultSource]] = {
            task: (label, probability, "frozen")
            for task, (label, probability) in enumerate(
                zip(data["labels"], data.get("certainty", data["probability"]), strict=True)
            )
        }
        out |= {task: (answer, 1.0, source) for task, answer, source in data["known"]}
        return out | {task: (answer, 1.0, "expert") for task, answer in self.answers.items()}


def live_guarantee(campaign: Commands) -> LiveGuarantee:
    """The guarantee of a campaign whose labels are frozen."""
    state = campaign.state
    first = state.row.guarantee
    if not first:
        raise ConflictError("the labels are not frozen.", _FREEZE)
    return LiveGuarantee.since(first, state.log)


def freeze(
    campaign: Commands, keys: Sequence[str], audits: int | Sequence[int] | None = None, of: str | None = None
) -> None:
    """Freeze the labels and draw items for the expert; ``keys`` are the ids of all tasks in their order.

    ``audits`` are K, or its values at several looks; ``of`` is the label that the statement is about, if about one, of
    several questions the one, which may be that about a single label. Without it the statement is about all labels, or
    about forms of which every answer is right, and then as many answers to each question are.
    """
    campaign.settle()
    row = campaign.state.row
    config = row.config
    if config.at_most_wrong is None:
        raise InputError("nothing says how many labels may be wrong.", "Set at_most_wrong first, e.g. to 0.05.")
    if row.guarantee:
        raise ConflictError("the labels are frozen already.", "Go on with the expert's answers, or reopen.")
    if not row.tasks or len(keys) != row.tasks or row.tasks > MOST_ITEMS:
        raise ConflictError(
            f"the campaign has {row.tasks:,} tasks, and labels of 1 to {MOST_ITEMS:,} can be frozen.",
            "Add tasks first, or try again when all are there.",
        )
    beliefs, gold = campaign.beliefs(), campaign.state.pool.tasks.gold[: row.tasks].copy()
    audited = {task: answer for task, answer in row.audited.items() if gold[task] < 0}
    gold[list(audited)] = list(audited.values())
    kind = config.answer_type
    question, label = _about(kind, of)
    if label is not None:
        kind.number_of(label)
    labels = np.where(gold >= 0, gold, kind.best(beliefs)).astype(int).tolist()
    probability, certainty = (
        np.where(gold >= 0, 1.0, sure).round(DIGITS).tolist()
        for sure in (kind.chances(beliefs, question), kind.certainty(beliefs))
    )
    sources = dict.fromkeys(row.adjudicated, "adjudicated") | dict.fromkeys(audited, "audited")
    known = [[task, int(gold[task]), sources.get(task, "control")] for task in np.flatnonzero(gold >= 0).tolist()]
    table = ResultTable(
        tuple(keys), tuple(kind.said_of(question, one, one) for one in labels), np.array(probability),
        np.asarray(gold >= 0),
    )  # fmt: skip
    crowd = _given(campaign, question)
    promise = guarantee(
        table, at_most_wrong=config.at_most_wrong, sure=config.sure, audits=audits, of=label,
        labels=_table(crowd, tuple(map(cell_text, keys)), kind.words(question)) if crowd else None,
        what=_what(kind, question),
    )  # fmt: skip
    promise.frozen_at = datetime.fromtimestamp(campaign.now, UTC).isoformat(timespec="seconds")
    last = campaign.state.last_event("guarantee_drawn")
    before = None if last is None else campaign.state.log(last - 1, 1)[0].data
    drawn = [] if before is None else [*before.get("before", ()), before["frozen"]]
    if promise.frozen in drawn:
        raise ConflictError(
            "these very labels were frozen and drawn before: a second draw of them would void the statement.",
            "Freeze again when labels have changed.",
        )
    promise.draws = len(drawn) + 1
    terms, place = promise.terms, {task: number for number, task in enumerate(promise.tasks)}
    campaign.record(
        "guarantee_drawn",
        {
            "at_most_wrong": terms.at_most_wrong, "sure": terms.sure, "items": terms.items,
            "too_many": terms.too_many, "audits": list(terms.audits), "allowed": list(terms.allowed),
            "entropy": promise.entropy, "frozen": promise.frozen, "given": promise.given,
            "frozen_at": promise.frozen_at, "labels": labels, "probability": probability, "known": known,
            "of": of, "before": drawn, "crowd": crowd, **_next(promise, place, 0),
            **({"certainty": certainty} if isinstance(kind, Form) else {}),
        },
    )  # fmt: skip


def answer(campaign: Commands, keys: Sequence[str], answers: Mapping[str, object]) -> int:
    """What the expert says of items that were asked for, all or none; returns how many are new or corrected.

    An answer can be corrected until its batch is complete: then it decides what is asked next.
    """
    campaign.settle()
    live, config = live_guarantee(campaign), campaign.state.row.config
    place, queue, open_ = {key: number for number, key in enumerate(keys)}, set(live.queue), set(live.asked)
    if not live.to_answer:
        open_ = set()
    new: list[list[int]] = []
    if not answers:
        raise InputError("no answers are given.", "Give the id of an item and one of the campaign's labels.")
    for key, label in answers.items():
        number, said = place.get(key, -1), config.answer_type.number_of(label)
        if number not in queue:
            raise NotFoundError(f"nobody asked the expert for item {key[:60]!r}.", "Answer items that are asked for.")
        if live.answers.get(number) == said:
            continue
        if number not in open_:
            raise ConflictError(
                f"the answer for {key[:60]!r} has decided what was asked next: it counts.", "Reopen to begin anew."
            )
        new.append([number, said])
    if new:
        data: dict[str, Any] = {"answers": new}
        live.follow(data)
        if not live.to_answer:
            promise = live.promise(keys, config.answer_type)
            data |= _next(promise, {task: number for number, task in enumerate(promise.tasks)}, len(live.removed))
        campaign.record("guarantee_answered", data)
    return len(new)


def next_look(campaign: Commands, keys: Sequence[str]) -> None:
    """Draw more audits along the same permutation, before labels are taken away."""
    campaign.settle()
    promise = live_guarantee(campaign).promise(keys, campaign.state.row.config.answer_type)
    promise.next_look()
    place = {task: number for number, task in enumerate(promise.tasks)}
    campaign.record("guarantee_looked", {"look": promise.look, **_next(promise, place, 0)})


def reopen(campaign: Commands) -> None:
    """Let labels decide again; a certificate of the frozen ones is void."""
    campaign.settle()
    certified = live_guarantee(campaign).certified
    campaign.record("guarantee_reopened", {"certified": certified})


def _next(promise: Guarantee, place: Mapping[str, int], removed: int) -> dict[str, Any]:
    """What the walk took away and asks for next, and what can be said."""
    to_go = len(promise.to_answer) if not promise.batches and removed == 0 else promise.to_answer_in_all()
    return {
        "asked": [place[task] for task in promise.to_answer],
        "removed": [[place[task] for task in batch] for batch in promise.batches[removed:]],
        "to_go": max(to_go, len(promise.to_answer)),
        "so_far": promise.so_far,
        "certified": promise.certified,
        "sentence": promise.sentences()[0],
    }


def _about(kind: Answer, of: str | None) -> tuple[str | None, str | None]:
    """The question and the label that a statement is about, None where it is about all."""
    return (of, None) if isinstance(kind, Form) else (None, of)


def _what(kind: Answer, question: str | None) -> str:
    return LABELS if not isinstance(kind, Form) else FORMS if question is None else f"answers to {question!r}"


def _given(campaign: Commands, question: str | None) -> list[list[int]]:
    """Task, worker and answer of each label that counts: the expert's answers teach who is good (policy crowd).

    Of several questions those to the one that the statement is about, if its answers are counted one by one.
    """
    config = campaign.state.row.config
    given, kind = campaign.crowd_snapshot().answers if config.knows_workers else None, config.answer_type
    if given is None or not kind.words(question):
        return []
    columns = [np.asarray(column) for column in given[:3]]
    if isinstance(kind, Form) and question is not None:
        columns[2] = kind.digits(columns[2])[:, kind.place(question)]
        columns = [column[columns[2] >= 0] for column in columns]
    return [column.tolist() for column in columns] if len(columns[0]) else []


def _table(crowd: Sequence[Sequence[int]], tasks: tuple[str, ...], names: tuple[str, ...]) -> LabelTable:
    task, worker, answer = (np.array(column, dtype=np.int64) for column in crowd)
    return LabelTable(task, worker, answer, tasks, tuple(map(str, range(int(worker.max()) + 1))), names)
