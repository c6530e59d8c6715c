"""New tasks (``campaign.new_tasks``) are numbered and put into classes, all of them or none.

Tasks with the same id are one task: the same one again changes nothing, and another payload or prior under its id is a
conflict, and so are other tasks under the key of a batch that is there. Tasks without an id are one each; those that
have the contents of another are counted (``Added.alike``). What fits into one transaction is added by ``add_tasks``;
larger imports are staged first and published when all of them have been checked (``campaigns.imports``).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from nextlabel.campaign import scoring
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.known_answers import record_gold
from nextlabel.campaign.new_tasks import NewTask
from nextlabel.campaign.replies import Added
from nextlabel.campaign.rows import BatchRow, TaskRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import BusyError, ConflictError, InputError
from nextlabel.model.prior import Prior
from nextlabel.model.tables import prior_table
from nextlabel.policies.allocation import PLACES, chance

#: Tasks in one event, characters of the payloads in it after which it is full, tasks of a campaign.
CHUNK, CHUNK_SIZE, MOST_TASKS = 1000, 1 << 20, 50_000_000
#: Keys in one statement, and KiB of them that stay in memory.
KEYS, CACHE_KIB = 500, 16_384
#: Before the fingerprint of a task without an id, among the keys: no id has this character.
_ALIKE = "\0"
Find = Callable[[Sequence[str]], dict[str, TaskRow]]


class SeenKeys:
    """The keys of the tasks that an intake has met, each with the fingerprint of its task.

    They are in a temporary file of SQLite, which is one only when there are many: memory does not grow with them.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE_KIB}"):
            self._file.execute(f"PRAGMA {pragma}")
        self._file.execute("CREATE TABLE keys (key TEXT PRIMARY KEY, fingerprint BLOB NOT NULL) WITHOUT ROWID")

    def find(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Those of the keys that were met."""
        found: dict[str, bytes] = {}
        for first in range(0, len(keys), KEYS):
            some = keys[first : first + KEYS]
            marks = ", ".join("?" * len(some))
            found.update(self._file.execute(f"SELECT key, fingerprint FROM keys WHERE key IN ({marks})", some))
        return found

    def add(self, pairs: Sequence[tuple[str, bytes]]) -> None:
        """More keys, none of which was met before."""
        self._file.execute("BEGIN")
        self._file.executemany("INSERT INTO keys VALUES (?, ?)", pairs)
        self._file.execute("COMMIT")

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


class Numbered(NamedTuple):
    """The new ones among some tasks, as [key, payload, class] or [key, payload, class, gold], and the new priors."""

    tasks: list[list[Any]]
    priors: list[Any]


class Intake:
    """Tells new tasks from known ones, chunk by chunk; ``find`` looks for tasks that the campaign has."""

    def __init__(self, classes: Iterable[Prior], first: int, find: Find, digested: bool) -> None:
        self.classes = {prior: number for number, prior in enumerate(classes)}
        self.first, self.next = first, first
        self.known = self.alike = 0
        self._find, self._seen = find, SeenKeys()
        self._digest = hashlib.sha256() if digested else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._seen.close()

    @property
    def added(self) -> int:
        """How many tasks are new."""
        return self.next - self.first

    @property
    def digest(self) -> str | None:
        """What tells this batch from others, as far as it goes."""
        return None if self._digest is None else self._digest.hexdigest()

    def number(self, chunk: Sequence[NewTask]) -> Numbered:
        """The new tasks of a chunk; raises ConflictError where one contradicts a task that is there."""
        names = [task.key for task in chunk if task.key is not None]
        # A task without an id is called by its number, unless somebody has used that as an id.
        numbers = [] if len(names) == len(chunk) else [str(self.next + k) for k in range(len(chunk))]
        there = self._find([*names, *numbers]) if self.first else {}
        contents = [task.digest() for task in chunk]
        prints = [hashlib.blake2b(content, digest_size=16).digest() for content in contents]
        unnamed = [_ALIKE + print.hex() for task, print in zip(chunk, prints, strict=True) if task.key is None]
        seen = self._seen.find([*names, *numbers, *unnamed])
        taken = {*there, *names}
        found = Numbered([], [])
        fresh: list[tuple[str, bytes]] = []
        for task, content, fingerprint in zip(chunk, contents, prints, strict=True):
            if self._digest is not None:
                self._digest.update(content)
            key = task.key if task.key is not None else self._free_key(taken, seen)
            old = there.get(key)
            if old is not None or key in seen:
                same = seen.get(key) == fingerprint
                if old is not None:
                    same = old.payload == task.payload and self.classes.get(task.prior) == old.class_number
                    same = same and task.gold in (None, old.gold)
                if not same:
                    raise ConflictError(
                        f"task {key[:60]!r} is there with another payload or prior.",
                        "Give the new task an id of its own.",
                    )
                self.known += 1
                continue
            mark = [] if task.key is not None else [_ALIKE + fingerprint.hex()]
            self.alike += sum(one in seen for one in mark)
            fresh += [(one, fingerprint) for one in (key, *mark) if one not in seen]
            seen |= dict.fromkeys((key, *mark), fingerprint)
            if task.prior not in self.classes:
                self.classes[task.prior] = len(self.classes)
                found.priors.append(prior_table(task.prior))
            known = [] if task.gold is None else [task.gold]
            found.tasks.append([key, task.payload, self.classes[task.prior], *known])
            self.next += 1
        if self.next > MOST_TASKS:
            raise InputError(f"a campaign has at most {MOST_TASKS:,} tasks.", "Make another campaign for the rest.")
        self._seen.add(fresh)
        return found

    def _free_key(self, taken: Collection[str], seen: Collection[str]) -> str:
        """The number of a task as its key, with a further number where that is somebody's id."""
        key, further = str(self.next), 1
        while key in taken or key in seen or (further > 1 and (self._find([key]) or self._seen.find([key]))):
            further += 1
            key = f"{self.next}.{further}"
        return key


def add_tasks(campaign: Commands, tasks: Iterable[NewTask], batch: str | None = None) -> Added:
    """Take tasks in; a ``batch`` that was taken in before is not taken in again, and must be the same."""
    state = campaign.state
    row = state.row
    same = None if batch is None else state.batches.get(batch)
    if same is not None:
        check_repeated(str(batch), tasks, same)
        return Added(0, same.tasks, row.tasks)
    if state.source.importing():
        raise being_imported(row.id)
    campaign.settle()
    with Intake(state.classes, row.tasks, state.tasks_by_key, batch is not None) as intake:
        recorded = True
        for chunk in chunks(tasks):
            new = intake.number(chunk)
            recorded = bool(new.tasks)
            if recorded:
                ranked = will_rank(row.config, row.ranked, len(intake.classes))
                record_tasks(campaign, new.tasks, publication(new.priors, ranked, batch, intake.digest))
        if batch is not None and not recorded:
            record_batch(campaign, batch, str(intake.digest))
        return Added(intake.added, intake.known, row.tasks, intake.alike)


def will_rank(config: CampaignSettings, ranked: bool, classes: int) -> bool:
    """Whether tasks are ranked one by one with so many priors; refuses a policy that cannot rank."""
    ranked = ranked or (classes > scoring.FEW_CLASSES and not config.knows_workers)
    if ranked:
        scoring.check_policy(config)
    return ranked


def check_repeated(key: str, tasks: Iterable[NewTask], before: BatchRow) -> None:
    """Refuse a batch under the key of another one; no tasks at all only ask whether it is there."""
    digest, given = hashlib.sha256(), False
    for task in tasks:
        digest.update(task.digest())
        given = True
    if given and before.digest is not None and digest.hexdigest() != before.digest:
        raise ConflictError(
            f"the batch {key[:60]!r} was added before with other tasks.",
            "Send the same tasks again, or add these under another key.",
        )


def being_imported(campaign: str) -> BusyError:
    """Tasks are numbered in the order in which they are added: one import at a time."""
    return BusyError(
        f"tasks are being imported into campaign {campaign[:60]!r}.", "Try again when that import has ended."
    )


def chunks(tasks: Iterable[NewTask], most: int | None = None) -> Iterator[list[NewTask]]:
    """Tasks as many at a time as one event holds, or at most so many."""
    most = CHUNK if most is None else min(most, CHUNK)
    chunk: list[NewTask] = []
    size = 0
    for task in tasks:
        chunk.append(task)
        size += task.size
        if len(chunk) == most or size >= CHUNK_SIZE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def record_tasks(campaign: Commands, tasks: list[list[Any]], published: dict[str, Any] | None) -> None:
    """Write tasks [key, payload, class, gold if known] to the log, ``published`` at once or hidden with others."""
    row = campaign.state.row
    first = row.tasks + row.hidden
    numbers = range(first, first + len(tasks))
    places = [chance(row.config.seed, PLACES, number) for number in numbers]
    gold = [[number, task[3]] for number, task in zip(numbers, tasks, strict=True) if len(task) > 3]
    new = {"first": first, "tasks": [task[:3] for task in tasks], "places": places}
    campaign.record("tasks_added", new | ({"hidden": True} if published is None else published))
    if published is not None:
        record_gold(campaign, gold)
        campaign.reopen()
    elif gold:
        campaign.record("gold_set", {"answers": gold})


def publish_tasks(campaign: Commands, published: dict[str, Any]) -> None:
    """All tasks of an import are in the log: from now on they are there."""
    campaign.settle()
    row = campaign.state.row
    campaign.record("tasks_published", {"first": row.tasks, "tasks": row.hidden, **published})
    campaign.reopen()


def publication(priors: list[Any], ranked: bool, batch: str | None, digest: str | None) -> dict[str, Any]:
    """What an event says of tasks that are there from now on: priors that are new, ranking, and their batch."""
    return {"classes": priors, "ranked": ranked, "batch": batch, "digest": digest}


def record_batch(campaign: Commands, batch: str, digest: str) -> None:
    """A batch has ended with tasks that were there already."""
    campaign.record("batch_ended", {"batch": batch, "digest": digest})
