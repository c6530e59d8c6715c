"""What a campaign with the policy ``crowd`` has learnt of its workers and tasks: a function of its log alone.

    refitted      all is learnt anew from the labels up to event ``upto``, and a new plan is made
                  (``policies.crowd.allocator``); the events from there to this one move it like any others
    refitting     somebody has begun with that, up to this event
    other events  move the belief of one task and what is known of one worker

A ``refitted`` event says by its version which plan later leases were chosen by, and all that enters beside the events:
tasks, labels given, labels left. One without ``upto`` was made within its transaction, from all labels before it.
So a process that has not seen the campaign before reads the log once and computes only the last refit and what follows
it; a process that has missed events of others reads those.

A refit in the background is made on a copy of the model as of the ``refitting`` event, its *shadow*, so that nobody
waits for it (``application.refits``); when it has learnt and caught up, it takes the model's place.
Cost: an event some microseconds; a refit 0.05 to 1 s; a start about 20 us per event.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.campaign.events import Event
from nextlabel.campaign.new_tasks import pair_of
from nextlabel.campaign.rates import expected_asks, labels_before_deadline
from nextlabel.campaign.records import deleted_campaign
from nextlabel.campaign.rows import CampaignRow, WorkerRow, erased_number, lease_number
from nextlabel.campaign.settings import ALL, CampaignSettings, columns_of
from nextlabel.crowd.answers import Z95, Answer, Choice, Number
from nextlabel.crowd.audit import exact_interval
from nextlabel.crowd.controls import Contradiction, contradiction, held_out
from nextlabel.crowd.expected import DRAWS, ExpectedAccuracy, expected_accuracy, usual_share
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.learner import expected_jointly, learn_jointly
from nextlabel.crowd.number_draws import expected_numbers
from nextlabel.crowd.numbers import NumberFit
from nextlabel.crowd.pairs import LearntPairs
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.crowd.questions import RIGHT
from nextlabel.errors import InputError
from nextlabel.files.features import Features, read_features
from nextlabel.files.tables import NamedColumns
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.fact import Fact, OneCoin
from nextlabel.model.prior import Prior
from nextlabel.policies.crowd.allocator import LEAST, TRIAL_LABELS
from nextlabel.policies.crowd.forms import FormCrowd, new_crowd
from nextlabel.policies.crowd.valued import NumberCrowd, PairCrowd, RatingCrowd, ValuedCrowd, numbers_of
from nextlabel.version import __version__

if TYPE_CHECKING:
    from nextlabel.campaign.state import CampaignState

#: Snapshots of another format or version are ignored.
SNAPSHOT = f"crowd 1, nextlabel {__version__}"
#: Events that are read at once.
CHUNK = 2000
#: A refit comes after ``FEWEST`` labels more, or after these shares of the labels given and of the tasks, but after
#: this share of the budget at the latest and ``LEAST_STEP`` labels at the earliest. New tasks wait for it unless they
#: are more than that share of the tasks.
FEWEST, OF_GIVEN, OF_TASKS, OF_BUDGET, LEAST_STEP = 10, 1 / 5, 1 / 500, 1 / 40, 4
#: Points of the expected accuracy's history after which every other one is left out, and crowds drawn for one.
MOST_POINTS, QUICK_DRAWS = 60, 16
#: Events after which the next task is chosen by what is learnt anew.
REVISING = frozenset({
    "withdrawn", "predicted", "features_added", "gold_set", "adjudicated", "adjudication_undone", "labels_dropped",
    "labels_restored", "predictions_dropped", "predictions_restored",
})  # fmt: skip
#: Seconds after which nobody waits any more for a refit that was begun: its process has stopped.
PATIENCE_S = 20.0


#: Nobody is taken to be more accurate than this before a label of theirs is seen.
MOST_ACCURATE = 0.95


@dataclass(frozen=True, eq=False)
class CrowdSnapshot:
    """What was believed after an event.

    ======== ========== ===================================================================================
    code     shape      meaning
    ======== ========== ===================================================================================
    beliefs  (K, C)     probability of each truth of each task
    told     (K,)       labels of each task that count
    gold     (K,)       the answer of a control question, else -1
    shares   (C,)       of a task without labels
    prior_offset     (K, C)     log beliefs without labels, less those of a usual task
    prior    --         what was thought of the crowd before any label
    draws    --         crowds that are drawn for ``expected``
    seen     (W, C, C)  counts of each worker's answers to each truth, with pseudo-counts
    channels (W, C, C)  P(worker says y | truth c), in the order of ``workers``
    stranger (C, C)     the same of somebody who has not come yet
    labels   (W,)       labels of theirs that count
    answers  --         these labels one by one: task, worker, answer
    kind     --         what an answer is; of numbers there are no shares, prior_offsets and channels
    fit      --         of ratings and numbers, what the last refit has learnt of the workers
    history  --         (labels, expected accuracy, ends of its interval) at the refits so far
    word     (K, C)     what a learner says of each task; None without one
    learner  --         how much that says, as in the event ``refitted``; None without one
    pairs    --         of pairs, the order of their items
    after    --         of several labels, what so many labels more add to the share that is right
    ======== ========== ===================================================================================
    """

    beliefs: Floats
    told: Ints
    gold: Ints
    shares: Floats
    prior_offset: Floats
    prior: CrowdPrior
    draws: int
    workers: tuple[str, ...]
    seen: Floats
    channels: Floats
    stranger: Floats
    labels: Ints
    answers: CrowdLabels
    history: tuple[tuple[int, float, float, float], ...]
    kind: Answer
    fit: NumberFit | None = None
    word: Floats | None = None
    learner: Mapping[str, Any] | None = None
    pairs: LearntPairs | None = None
    after: Callable[[int], float] | None = None

    @cached_property
    def expected(self) -> ExpectedAccuracy:
        """The share of the tasks that are right by the model's own word; its interval is from a part of many tasks.

        It takes ``draws`` passes over the labels, once, and not while the campaign is locked for the snapshot. Where
        known truths contradict the model, it is the share of the known tasks that would be right if they were not
        known (``crowd.controls``), with its exact interval.
        """
        if isinstance(self.kind, Number) and self.fit is not None:
            return expected_numbers(
                self.kind, self.fit, numbers_of(self.kind, self.answers), self.gold < 0, self.beliefs[:, 0], self.draws
            )
        if self.kind.noun:
            sure = self.kind.certainty(self.beliefs[self.gold < 0])
            mean, spread = float(sure.mean()), Z95 * float(np.sqrt((sure * (1.0 - sure)).sum())) / max(len(sure), 1)
            return ExpectedAccuracy(mean, max(mean - spread, 0.0), min(mean + spread, 1.0), 0.0)
        if self.contradiction is not None:
            one = held_out(self.answers, self.seen, self.shares, self.gold)
            known = np.unique(self.answers.task[one.rows])
            right = int((one.logp[known].argmax(axis=1) == self.gold[known]).sum())
            low, high = exact_interval(len(self.beliefs), len(known), right, 0.95)
            return ExpectedAccuracy(right / len(known), low, high, 0.0)
        if self.word is not None and self.learner is not None:
            return expected_jointly(self.beliefs, self.shares, self.word, self.learner["bits"], self.gold)
        return expected_accuracy(
            self.answers, self.beliefs, self.prior, self.gold, self.prior_offset, self.draws,
            None if self.kind.utility is None else self.kind.best(self.beliefs),
        )  # fmt: skip

    @cached_property
    def contradiction(self) -> Contradiction | None:
        """How known truths contradict the model, if they do; not for ratings, which are rarely right to the point."""
        if not isinstance(self.kind, Choice):
            return None
        return contradiction(self.answers, self.seen, self.shares, self.gold)

    @property
    def expected_accuracy(self) -> float:
        """The share of the tasks but controls that are right: the model's own word, unless it is contradicted."""
        return self.expected.mean


class CrowdModel:
    """Tasks and workers of one campaign as of event ``seq``, chosen by plan ``version`` since the last refit."""

    def __init__(self, config: CampaignSettings) -> None:
        self.kind = config.answer_type
        self.crowd = new_crowd(
            self.kind, config.seed, start_of(config.default_prior), config.policy,
            None if self.kind.noun else workers_of(config), top=config.top,
            right=RIGHT if config.accuracy is None else min(config.accuracy, MOST_ACCURATE),
        )  # fmt: skip
        self._usual = np.log(start_of(config.default_prior))
        self.seq = self.version = 0
        #: A refit of others that this model does not have yet, and one that is under way.
        self.missed: Event | None = None
        self.begun: Event | None = None
        self.shadow: CrowdModel | None = None
        self.last_refit = 0
        #: [labels, expected accuracy, ends of its interval] at the refits so far.
        self.history: list[list[float]] = []
        #: The version of the model that last turned each worker away, the time since when people were turned away and
        #: nobody got a task, and whether everybody gets one until the next refit.
        self.turned_by: dict[int, int] = {}
        self._visits: dict[int, tuple[int, int]] = {}  # versions that gave the worker a task: the last, how many
        self.nobody_since: float | None = None
        self.serves_all = False
        self._due = self._labels = self._budget = 0
        self._turns_away = False
        self._judged: tuple[int, Bools, int] | None = None
        self._people = -1, 0
        self._revised = False
        #: What the last refit says of its learner, None without one: the hash of its word, and how much that says.
        self.learner: dict[str, Any] | None = None
        self._word: tuple[Floats, Floats] | None = None
        self._features: list[Features] = []  # read so far, shared with the shadow

    # Following the log ------------------------------------------------------------------------------------------

    def catch_up(self, log: CampaignState) -> None:
        """Bring the model to the last event of the log."""
        for event in _events(log, self.seq, log.row.seq):
            self.apply(log, event)

    def apply(self, log: CampaignState, event: Event) -> None:
        """The next event."""
        self._move(log, event)
        if event.kind == "refitting":
            self.begun, self.shadow = event, self._copy()
        elif event.kind == "refitted":
            self.begun, self.last_refit = None, event.seq
            self.history = event.data.get("history", self.history)
            if event.data["version"] > self.version and "upto" in event.data:
                self.missed = event
            elif event.data["version"] > self.version:
                self.learn(log, event.data)

    def _copy(self) -> CrowdModel:
        """A shadow of the model, which has no plan before it learns."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.crowd, copy.begun, copy.shadow = deepcopy(self.crowd), None, None
        copy.turned_by, copy._visits = dict(self.turned_by), dict(self._visits)
        copy.crowd.planned = False
        return copy

    def _move(self, log: CampaignState, event: Event) -> None:
        self.seq, kind, data = event.seq, event.kind, event.data
        who = -1
        if "worker" in data:  # workers are numbered in the order of the log
            erased = erased_number(data["worker"])
            who = log.numbers[data["worker"]] if erased is None else erased
            while self.crowd.people <= who:
                self.crowd.add_worker("first" not in data)  # predictions say which entry is their first
        if "profile" in data:
            self.crowd.introduce(who, np.array(data["profile"], dtype=np.float64))
        for move, arguments in moves(event, lambda _: who):
            getattr(self.crowd, move)(*arguments)
        self._revised |= kind in REVISING and data.get("counted", True)
        if kind == "leased":
            self.nobody_since, self.serves_all = None, self.serves_all or data.get("waited", False)
            version, (last, visits) = data.get("model", 0), self._visits.get(who, (0, 0))
            if version > last:
                self._visits[who] = version, visits + 1
        elif kind == "turned_away":
            self.turned_by[who] = data["model"]
            self.nobody_since = event.at if self.nobody_since is None else self.nobody_since
            self.crowd.turn_away(who, self._visits.get(who, (0, 0))[1])
        elif kind == "predicted":
            self.crowd.reserve_tasks(max(data["tasks"]) + 1)
            for entry, (task, label) in enumerate(zip(data["tasks"], data["labels"], strict=True), data["first"]):
                self.crowd.assign(entry, task, who)
                self.crowd.complete(entry, label, places=0)
        elif kind in ("predictions_dropped", "predictions_restored"):
            self._change_predictions(log, who, kind == "predictions_dropped")

    def _change_predictions(self, log: CampaignState, who: int, drop: bool) -> None:
        """A model's labels up to here leave, or come back."""
        leases, n = log.leases, self.crowd.entries
        for entry in np.flatnonzero((leases.worker[:n] == who) & (leases.secret[:n] < 0)).tolist():
            if drop:
                self.crowd.reopen(entry, places=0)
                self.crowd.cancel(entry)
            else:
                self.crowd.complete(entry, int(leases.label[entry]), places=0)

    # Snapshots --------------------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """What was given out and came in up to event ``seq``, of which all else is a function; without names."""
        facts = {
            "format": SNAPSHOT, "seq": self.seq, "last_refit": self.last_refit, "history": self.history,
            "turned_by": list(self.turned_by.items()), "visits": list(self._visits.items()),
            "nobody_since": self.nobody_since, "crowd": self.crowd.facts(),
        }  # fmt: skip
        file = io.BytesIO()
        columns: dict[str, Any] = {"facts": np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)}
        columns |= self.crowd.columns()
        np.savez(file, **columns)
        return zlib.compress(file.getvalue(), 1)

    def restore(self, data: bytes, most: int) -> bool:
        """Become the model of a snapshot of event ``most`` or before; False, and of no use, if it is another's."""
        try:
            with np.load(io.BytesIO(zlib.decompress(data)), allow_pickle=False) as arrays:
                facts = json.loads(bytes(arrays["facts"]))
                if facts["format"] != SNAPSHOT or facts["seq"] > most:
                    return False
                self.crowd.restore(facts["crowd"], {name: arrays[name] for name in arrays.files})
        except (zlib.error, ValueError, KeyError, OSError):
            return False
        self.seq, self.last_refit, self.history = facts["seq"], facts["last_refit"], facts["history"]
        self.turned_by, self.nobody_since = dict(facts["turned_by"]), facts["nobody_since"]
        self._visits = {number: (last, many) for number, (last, many) in facts["visits"]}
        return True

    # Refitting --------------------------------------------------------------------------------------------------

    def is_due(self, row: CampaignRow) -> bool:
        """Whether the next task should be chosen by a new plan."""
        new = row.tasks - self.crowd.tasks
        return (
            self.version == 0
            or self._revised
            or row.spent + row.reserved >= self._due
            or row.budget != self._budget
            or row.config.turn_away != self._turns_away
            or expert_worth(row.config) != self.crowd.settings.expert
            or new > OF_TASKS * self.crowd.tasks
        )

    def has_news(self, row: CampaignRow) -> bool:
        """Whether labels have come in, or tasks been added, since the last refit."""
        return self.version == 0 or self._revised or row.spent != self._labels or row.tasks != self.crowd.tasks

    def begin_refit(self, row: CampaignRow, now: float) -> dict[str, Any]:
        """All that enters into a refit from the labels so far: the data of its event.

        ``left`` labels are to come; ``arrivals`` are the asks that are expected where workers may be turned away.
        """
        given, left, arrivals = row.spent + row.reserved, labels_before_deadline(row, now), expected_asks(row, now)
        step = min(row.budget * OF_BUDGET, max(FEWEST, given * OF_GIVEN, row.tasks * OF_TASKS))
        data: dict[str, Any] = {
            "version": self.version + 1, "labels": row.spent, "tasks": row.tasks, "given": given, "left": left,
            "budget": row.budget, "next": given + max(LEAST_STEP, int(step)),
        }  # fmt: skip
        if row.config.at_most_wrong is not None:
            data["expert"] = expert_worth(row.config)
        data |= {} if self.learner is None else {"learner": self.learner}
        return data if arrivals is None else {**data, "arrivals": arrivals}

    def refit(self, log: CampaignState, now: float) -> dict[str, Any]:
        """Learn anew; returns the data of the event that must be recorded next."""
        data = self.begin_refit(log.row, now)
        data |= self.taught(log, data)
        self.learn(log, data)
        return {**data, **self.found(log, data, self.history)}

    def taught(self, log: CampaignState, data: dict[str, Any]) -> dict[str, Any]:
        """Teach a learner of the tasks' features by the labels so far, and keep its word; what the event says of it."""
        tasks, labels = data["tasks"], self.crowd.labels(data["tasks"])
        none = {"learner": None} if self.learner else {}
        found = None if len(np.unique(labels.answer)) < 2 else self._read_features(log, tasks)
        if found is None:
            return none
        try:
            _, taught = learn_jointly(labels, self._gold(tasks), *found, prior=self.crowd.prior)
        except InputError:  # texts, and no scikit-learn
            return none
        if taught.prior is None or taught.prior_offset is None or taught.learner is None:
            return none
        file = io.BytesIO()
        np.savez(file, prior=taught.prior.astype(np.float32), prior_offset=taught.prior_offset.astype(np.float32))
        word = file.getvalue()
        digest = sha256(word).hexdigest()[:32]
        log.source.keep(f"learner-{digest}", word)
        told = {"bits": taught.bits, "agrees": taught.learner.accuracy, "with": taught.with_, "without": taught.without}
        return {"learner": {"hash": digest, **{name: round(value, 6) for name, value in told.items()}}}

    def _read_features(self, log: CampaignState, tasks: int) -> tuple[Features, tuple[str, ...]] | None:
        """Features, those of the tasks' columns read once, and the tasks' ids; None without any to learn from."""
        named, given = log.row.config.features or (), log.row.features
        data = log.source.kept(f"features-{given}") if given else None
        if not named and data is None:
            return None
        have = len(self._features[0]) if self._features else 0
        ids: list[str] = []
        payloads: list[Any] = []
        while have + len(ids) < tasks:
            page = log.source.payloads(have + len(ids) - 1, min(CHUNK, tasks - have - len(ids)))
            if not page:
                return None
            ids += [one for one, _ in page]
            payloads += [payload if isinstance(payload, Mapping) else {} for _, payload in page]
        if ids:
            wanted = list(named) if ALL not in named else columns_of(payloads)
            columns = {f"feature {name}": [payload.get(name) for payload in payloads] for name in wanted}
            try:
                read = Features(tuple(ids), np.zeros((len(ids), 0), dtype=np.float32))
                if columns:
                    read = read_features(NamedColumns("the tasks", task=ids, **columns))
                self._features[:] = [self._features[0].then(read) if self._features else read]
            except InputError:
                return None
        if not self._features:
            return None
        own, beside = self._features[0], None if data is None else read_features(data)
        return (own if beside is None else own.beside(beside) if named else beside), own.tasks

    def _hear(self, log: CampaignState, said: dict[str, Any] | None) -> None:
        """Take over the learner's word that a refit names; without one, tasks have the priors of their classes."""
        if said is None and self.learner is None:
            return
        crowd, self.learner, self._word = self.crowd, said, None
        crowd.offsets[: crowd.tasks] = self.prior_offsets(log.classes)[
            np.asarray(log.task_classes(0, crowd.tasks), dtype=np.int64)
        ]
        crowd.beside_learner = False
        data = None if said is None else log.source.kept(f"learner-{said['hash']}")
        if data is not None:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                prior, prior_offset = arrays["prior"].astype(np.float64), arrays["prior_offset"].astype(np.float64)
            self._word = prior, prior_offset
            crowd.offsets[: min(len(prior_offset), crowd.tasks)] += prior_offset[: crowd.tasks]
            crowd.beside_learner = True

    def found(self, log: CampaignState, data: dict[str, Any], history: list[list[float]]) -> dict[str, Any]:
        """What a ``refitted`` event tells of the outcome, for people; ``history`` is that of the refits before."""
        expected = self.snapshot(log, QUICK_DRAWS).expected
        point = [float(data["labels"]), *(round(float(x), 5) for x in expected[:3])]
        return {
            "workers": self.crowd.people,
            "shares": [round(float(p), 6) for p in self.crowd.start],
            "history": [*history[:: 1 if len(history) < MOST_POINTS else 2], point],
        }

    def waits_for_others(self, now: float) -> bool:
        """Whether somebody has begun a refit and may still end it."""
        return self.begun is not None and now < self.begun.at + PATIENCE_S

    def learn(self, log: CampaignState, data: dict[str, Any]) -> None:
        """Learn anew from the events up to here, as a ``refitted`` event with that data says."""
        crowd, config = self.crowd, log.row.config
        if data["tasks"] > crowd.tasks:
            classes = np.asarray(log.task_classes(crowd.tasks, data["tasks"]), dtype=np.int64)
            crowd.add_tasks(self.prior_offsets(log.classes)[classes], config.most_labels, config.most_in_flight)
        self._prepare(log, data)
        crowd.learn(data["version"], data["given"], data["left"], data.get("arrivals"), data.get("expert", 0.0))
        self._turns_away, self.serves_all = data.get("arrivals") is not None, False
        self.version, self._due, self._budget = data["version"], data["next"], data["budget"]
        self._labels, self.missed, self._revised = data["labels"], None, False

    def _prepare(self, log: CampaignState, data: dict[str, Any]) -> None:
        """What has to be known before learning: the learner's word."""
        self._hear(log, data.get("learner"))

    def prior_offsets(self, classes: Sequence[Prior]) -> Floats:
        """(classes, C) log beliefs of tasks of each class, less those of a usual task."""
        return np.stack([np.log(start_of(prior)) - self._usual for prior in classes])

    # What is asked ----------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about, those of the shadow included."""
        return self.crowd.nbytes + (0 if self.shadow is None else self.shadow.nbytes)

    def people_who_came(self, workers: Sequence[WorkerRow]) -> int:
        """Workers who have been given a task, counted once for each version: models that only predict are none."""
        if self._people[0] != self.version:
            self._people = self.version, sum(one.given > 0 for one in workers)
        return self._people[1]

    def answers_at_random(self, number: int, labels: int) -> bool:
        """Whether a worker's answers up to the last refit are noise; of nobody before ``TRIAL_LABELS`` labels."""
        at_random = self._verdicts()[0] if labels >= TRIAL_LABELS else ()
        return 0 <= number < len(at_random) and bool(at_random[number])

    def contradicted_by(self) -> int:
        """How many tasks with a known truth contradict what was learnt up to the last refit; 0 if they do not."""
        return self._verdicts()[1]

    def _verdicts(self) -> tuple[Bools, int]:
        if self._judged is None or self._judged[0] != self.version:
            crowd, found = self.crowd, None
            if isinstance(self.kind, Choice):
                labels = self.crowd.labels(len(crowd.gold))
                found = contradiction(labels, self._seen[: crowd.people], crowd.start, crowd.gold)
            self._judged = self.version, crowd.at_random(), 0 if found is None else found.tasks
        return self._judged[1:]

    def profiles(self) -> Floats:
        """(W, C, C) how often each worker gave an answer (last axis) to a truth here, in expectation."""
        labels = self.crowd.labels(len(self.crowd.gold))
        counts = np.zeros((self.crowd.people, labels.answers, labels.answers))
        np.add.at(counts.transpose(0, 2, 1), (labels.worker, labels.answer), self.crowd.beliefs[labels.task])
        return counts

    @property
    def _seen(self) -> Floats:
        return self.crowd.campaign.state.counts + self.crowd.campaign.state.pseudo

    def snapshot(self, log: CampaignState, draws: int = DRAWS) -> CrowdSnapshot:
        """All that is believed now, as a copy."""
        crowd, tasks, people = self.crowd, log.row.tasks, self.crowd.people
        answers = self.crowd.labels(tasks)
        gold = self._gold(tasks)
        shares, prior_offset, beliefs = self._believed(log, answers)
        for known in np.flatnonzero(gold >= 0).tolist():
            beliefs[known] = self.kind.known(int(gold[known]), beliefs[known])
        seen, channels, stranger = self._channels(people)
        return CrowdSnapshot(
            beliefs=beliefs,
            told=_padded(crowd.came[: crowd.tasks], tasks),
            gold=gold,
            shares=shares,
            prior_offset=prior_offset,
            prior=crowd.prior,
            draws=draws,
            workers=tuple(one.worker for one in log.workers[:people]),
            seen=seen,
            channels=channels,
            stranger=stranger,
            labels=np.bincount(answers.worker, minlength=people)[:people],
            answers=answers,
            history=tuple((int(n), mean, low, high) for n, mean, low, high in self.history),
            kind=self.kind,
            fit=crowd.fit if isinstance(crowd, NumberCrowd | RatingCrowd) else None,
            word=self._all_words(shares, tasks),
            learner=self.learner,
            pairs=crowd.order(answers, [one.worker for one in log.workers[:people]])
            if isinstance(crowd, PairCrowd)
            else None,
            after=crowd.forecast() if isinstance(crowd, FormCrowd) else None,
        )

    def _gold(self, tasks: int) -> Ints:
        return _padded(self.crowd.gold[: min(tasks, len(self.crowd.gold))], tasks, -1)

    def _believed(self, log: CampaignState, labels: CrowdLabels) -> tuple[Floats, Floats, Floats]:
        """Of the campaign's tasks the usual shares of the truths, log beliefs less those, and beliefs."""
        crowd, tasks = self.crowd, labels.tasks
        shares = usual_share(crowd.given_share, crowd.start, crowd.campaign.state.total)
        beliefs, prior_offset = np.empty((tasks, len(shares))), np.zeros((tasks, len(shares)))
        beliefs[: crowd.tasks], prior_offset[: crowd.tasks] = crowd.beliefs[: crowd.tasks], crowd.offsets[: crowd.tasks]
        if tasks > crowd.tasks:  # without labels until the next refit
            classes = np.asarray(log.task_classes(crowd.tasks, tasks), dtype=np.int64)
            prior_offset[crowd.tasks :] = self.prior_offsets(log.classes)[classes]
        bare = np.bincount(labels.task, minlength=tasks)[:tasks] == 0
        bare[crowd.tasks :] = True  # until the next refit
        odds = shares * np.exp(prior_offset[bare])
        beliefs[bare] = odds / odds.sum(axis=1, keepdims=True)
        if isinstance(crowd, RatingCrowd) and crowd.fit is not None:
            rated = np.flatnonzero(~bare)
            beliefs[rated] = crowd.kind.beliefs(*crowd.fit.read(numbers_of(crowd.kind, labels)))[rated]
        return shares, prior_offset, beliefs

    def _channels(self, people: int) -> tuple[Floats, Floats, Floats]:
        """Counts and channels of the workers, and the channel of a stranger."""
        channels = self.crowd.channels
        return self._seen[:people], channels[:people].copy(), channels[people].copy()

    def _all_words(self, shares: Floats, tasks: int) -> Floats | None:
        """What the learner says of each task, the shares where it has not been asked."""
        if self._word is None:
            return None
        known = self._word[0][:tasks]
        return np.vstack([known, np.tile(shares, (tasks - len(known), 1))])


class ValuedModel(CrowdModel):
    """The same of a campaign for numbers, pairs or several labels: its crowd chooses by what a label is worth."""

    crowd: ValuedCrowd

    def _prepare(self, log: CampaignState, data: dict[str, Any]) -> None:
        if isinstance(self.crowd, PairCrowd):
            while (after := len(self.crowd.first)) < self.crowd.tasks:
                page = log.source.payloads(after - 1, min(CHUNK, self.crowd.tasks - after))
                if not page:
                    raise deleted_campaign(log.row.id)
                self.crowd.add_pairs([pair_of(payload) for _, payload in page])

    def taught(self, log: CampaignState, data: dict[str, Any]) -> dict[str, Any]:
        """Nothing: no learner looks at such items."""
        return {}

    def prior_offsets(self, classes: Sequence[Prior]) -> Floats:
        """None: items have no priors of their own."""
        return np.zeros((len(classes), 2))

    def _believed(self, log: CampaignState, labels: CrowdLabels) -> tuple[Floats, Floats, Floats]:
        return np.full(2, 0.5), np.zeros((labels.tasks, 2)), self.crowd.read(labels.tasks)

    def _channels(self, people: int) -> tuple[Floats, Floats, Floats]:
        """Those of a coin, right as often as a worker is on average."""
        rates = self.crowd.right_rates
        right = np.append(rates, rates[-1:].repeat(max(people + 1 - len(rates), 0)))
        coins = np.stack([np.stack([right, 1 - right], axis=1), np.stack([1 - right, right], axis=1)], axis=1)
        return coins[:0], coins[:people], coins[-1]


def moves(event: Event, number_of: Callable[[str], int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What an event means for allocators (``policies.allocation``): methods, each with its arguments.

    ``number_of`` says the number of a worker. Predictions are left to whoever follows: allocators differ in them.
    """
    kind, data = event.kind, event.data
    entry = lease_number(data["lease"]) if "lease" in data else -1
    if kind in ("leased", "self_assigned"):
        yield "assign" if kind == "leased" else "hold", (entry, data["task"], number_of(data["worker"]))
    elif kind in ("labelled", "late") and data["counted"]:
        yield "complete", (entry, data["label"])
    elif kind in ("labelled", "expired", "released"):
        yield "cancel", (entry,)
    elif kind == "undone":
        yield "reopen", (entry,)
    elif kind == "worker_blocked":
        yield from (("cancel", (lease_number(lease),)) for lease in data["leases"])
    elif kind in ("gold_set", "adjudicated"):
        yield from (("know", (task, answer)) for task, answer in data["answers"])
    elif kind == "adjudication_undone":
        yield from (("forget_truth", (task,)) for task in data["tasks"])
    elif kind == "labels_restored":
        yield from (("complete", (lease_number(lease), label)) for lease, label in data["leases"])
    elif kind == "labels_dropped" or (kind == "withdrawn" and data["counted"]):
        for lease, _ in data.get("leases", [(data.get("lease"), None)]):
            yield "reopen", (lease_number(lease),)
            yield "cancel", (lease_number(lease),)


def first_model(config: CampaignSettings) -> CrowdModel:
    """The model of a campaign before its first event."""
    return (ValuedModel if config.answer_type.noun else CrowdModel)(config)


def _events(log: CampaignState, after: int, upto: int) -> Iterator[Event]:
    """The events above a number up to another one; GoneError if the campaign is deleted meanwhile."""
    while after < upto:
        page = log.log(after, min(CHUNK, upto - after))
        if not page:
            raise deleted_campaign(log.row.id)
        yield from page
        after = page[-1].seq


def _padded(counts: Ints, size: int, rest: int = 0) -> Ints:
    return np.concatenate([counts, np.full(size - len(counts), rest, dtype=np.int64)])


def expert_worth(config: CampaignSettings) -> float:
    """What a task is worth at least, because an expert answers the least certain ones: 0 without a guarantee.

    If the errors of the labels that are kept spread from 0 to 1 - t, half of that is their share: t = 1 - 2 eps.
    """
    return 0.0 if config.at_most_wrong is None else max(1.0 - 2.0 * config.at_most_wrong, 0.0)


def new_model(log: CampaignState, snapshot: bool = True) -> CrowdModel:
    """The model at the last event of a log, perhaps from a ``snapshot``; of all refits only the last is computed."""
    config, last = log.row.config, log.last_event("refitted")
    refitted = log.log(last - 1, 1)[0] if last else None
    upto = log.row.seq if refitted is None else last_seen(refitted)
    model, data = first_model(config), log.source.kept("snapshot") if snapshot else None
    if data is not None and not model.restore(data, upto):
        model = first_model(config)
    model.crowd.reserve_tasks(log.row.tasks)
    if refitted is not None:
        for event in _events(log, model.seq, upto):
            model._move(log, event)
        model.learn(log, refitted.data)
    model.catch_up(log)
    return model


def adopted(model: CrowdModel, log: CampaignState) -> CrowdModel:
    """A model with the refit of others that this one has missed: its shadow, or one read from the log anew."""
    missed, shadow = model.missed, model.shadow
    if missed is None or shadow is None or shadow.seq != last_seen(missed):
        return new_model(log)
    shadow.learn(log, missed.data)
    shadow.catch_up(log)
    return shadow


def last_seen(refitted: Event) -> int:
    """The last event that a refit has looked at."""
    return int(refitted.data.get("upto", refitted.seq - 1))


def workers_of(config: CampaignSettings) -> CrowdPrior:
    """What workers are like before any label: as accurate as the requester says, if they do; held like any first idea.

    An accuracy is that of the settings or of a one-coin prior, worth as many labels per worker as the usual idea.
    """
    usual, prior = CrowdPrior.default(config.answers), config.default_prior
    accuracy = prior.accuracy if isinstance(prior, OneCoin) else config.accuracy
    if accuracy is None:
        return usual
    accuracy = min(accuracy, MOST_ACCURATE)
    pseudo = np.full_like(usual.pseudo, (1.0 - accuracy) / (config.answers - 1))
    np.fill_diagonal(pseudo, accuracy)
    return CrowdPrior(pseudo * usual.pseudo[0].sum(), usual.share, usual.hold)


@lru_cache(maxsize=16_384)
def start_of(prior: Prior) -> Floats:
    """(C,) the probability of each truth of a task with that prior, before any label.

    Weights of answers (``Beta``, ``Dirichlet``) are read as shares of the truths: what a model's score says.
    """
    found: Floats
    if isinstance(prior, Beta):
        found = np.array([prior.beta, prior.alpha])
    elif isinstance(prior, Dirichlet):
        found = np.array(prior.weights)
    elif isinstance(prior, Fact):
        found = np.array(prior.probabilities)
    else:
        found = np.asarray(prior.believe(0.5, 1)[1][0])
    found = np.maximum(found / found.sum(), LEAST)
    found = found / found.sum()
    found.setflags(write=False)
    return found
