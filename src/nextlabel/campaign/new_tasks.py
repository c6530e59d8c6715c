"""One new task from a plain table, checked.

======== ======================================================================================================
key      meaning
======== ======================================================================================================
id       the user's name for the task; the task's number if there is none (with a further number, such as 7.2, if
         somebody has used 7 as an id)
payload  what the task is about, any JSON; without this key all keys that are not in this table make it up
score    a model's probability that the answer is label 1 (two labels); ``score_column`` is the key of the payload that
         it was taken from, which is left out if workers would be shown it
gold     the answer, if it is known: the task is a control question, which workers cannot tell from others
prior    [alpha, beta], one weight for each label, or a table with a kind (``model.tables``)
======== ======================================================================================================

In a campaign for pairs a task is a pair: what is shown as its ``first`` and as its ``second``, and their names in
``items``, without which they are called what they show. Tasks without ``first`` and ``second`` are items: each becomes
a pair with every item before it (``paired``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from nextlabel.campaign.settings import (
    ITEMS,
    SIDES,
    CampaignSettings,
    columns_sentence,
    is_pair,
    is_shown,
    shown_payload,
)
from nextlabel.errors import InputError
from nextlabel.files.tables import is_frame
from nextlabel.files.tasks import TaskReader
from nextlabel.model.prior import Prior
from nextlabel.model.tables import prior_from, prior_table
from nextlabel.model.tasks import TaskClass, prior_of_score
from nextlabel.policies.allocation import PLACES, chance
from nextlabel.wording import is_text

#: Characters of an id and of a payload as JSON; levels of lists and tables within a task.
LONGEST_KEY, LARGEST_PAYLOAD, DEEPEST = 200, 65_536, 32
#: A score of 0 or 1 would leave nothing for labels to say.
LEAST_SCORE = 1e-3
#: Items of which all pairs are made.
MOST_PAIRED = 300
RESERVED = ("id", "payload", "score", "prior", "score_column", "gold")


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task that has been checked; ``key`` is None if it is to be called by its number, ``size`` is its payload's."""

    key: str | None
    payload: Any
    prior: Prior
    size: int
    gold: int | None = None

    def digest(self) -> bytes:
        """What tells this task from others."""
        known = [] if self.gold is None else [self.gold]
        return json.dumps([self.key, self.payload, _prior_table(self.prior), *known], sort_keys=True).encode()


@lru_cache(1024)
def _prior_table(prior: Prior) -> Any:
    return prior_table(prior)


def read_task(config: CampaignSettings, task: Any, place: int) -> NewTask:
    """One task from a table; ``place`` names it in errors."""
    where = f"task {place}"
    if not isinstance(task, Mapping):
        task = {"payload": task}
    key = task.get("id")
    if key is not None:
        key = str(key).strip()
        if not 0 < len(key) <= LONGEST_KEY or not is_text(key):
            raise InputError(f"the id of {where} is not a text of 1 to {LONGEST_KEY} characters.", "Give a shorter id.")
    if _depth_exceeds(task, DEEPEST):
        raise InputError(
            f"{where} is nested more than {DEEPEST} levels deep.", "Give flatter tables, or put the rest into a text."
        )
    payload = task["payload"] if "payload" in task else {k: v for k, v in task.items() if k not in RESERVED}
    payload = _without_score(config, payload, task.get("score_column"))
    if isinstance(payload, Mapping) and payload and not shown_payload(config.show, payload):
        raise InputError(
            f"{where} has nothing that workers would be shown. {columns_sentence(config.show, payload)}",
            "Name the columns to show in the campaign's setting show (--show).",
        )
    try:
        text = json.dumps(payload, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"the payload of {where} is not JSON.", "Give texts, numbers, lists and tables.") from None
    if "\\u0000" in text or not is_text(text):
        raise InputError(f"the payload of {where} has a null character or half a character.", "Leave it out.")
    if len(text) > LARGEST_PAYLOAD:
        raise InputError(
            f"the payload of {where} has {len(text):,} characters.",
            f"Give at most {LARGEST_PAYLOAD:,}; put large things elsewhere and their address here.",
        )
    return NewTask(key, payload, _prior(config, task, where), len(text), _gold(config, task.get("gold"), where))


def _gold(config: CampaignSettings, answer: Any, where: str) -> int | None:
    """The number of the known answer, None if there is none."""
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        return None
    try:
        return config.answer_type.number_of(answer.strip() if isinstance(answer, str) else answer)
    except InputError as error:
        raise InputError(f"the gold answer of {where}: {error.message}", error.hint) from None


def _without_score(config: CampaignSettings, payload: Any, column: Any) -> Any:
    """The payload without the column of scores, which would tell workers what to answer, if they would be shown it."""
    if not isinstance(column, str) or not isinstance(payload, Mapping) or not is_shown(config.show, column):
        return payload
    if config.show is not None and column in config.show:
        return payload  # somebody wants it so
    return {name: value for name, value in payload.items() if name != column}


def _depth_exceeds(value: Any, most: int) -> bool:
    """Whether lists and tables are nested deeper than that; level by level, so that no depth is too much for it."""
    level = [value]
    for _ in range(most + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, Mapping | list | tuple)
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
        ]
        if not level:
            return False
    return any(isinstance(one, Mapping | list | tuple) for one in level)


def _prior(config: CampaignSettings, task: Mapping[str, Any], where: str) -> Prior:
    score, prior = task.get("score"), task.get("prior")
    if score in (None, "") and prior is None:
        return config.default_prior
    try:
        belief = prior_from(prior) if prior is not None else _of_score(config, score)
        TaskClass(1, belief, config.threshold, config.reward)
    except InputError as error:
        raise InputError(f"{where}: {error.message}", error.hint) from None
    if belief.answers != config.answers:
        raise InputError(
            f"the prior of {where} has {belief.answers} answers and the campaign {config.answers}.",
            "Give one weight for each label.",
        )
    return belief


def _of_score(config: CampaignSettings, score: Any) -> Prior:
    if config.answers != 2:
        raise InputError("a score is for campaigns with two labels.", "Give a prior with one weight for each label.")
    try:
        p = float(score)
    except (TypeError, ValueError):
        p = float("nan")
    if isinstance(score, bool) or not 0.0 <= p <= 1.0:
        raise InputError(f"score {str(score)[:40]!r} is not a probability.", "Give a number from 0 to 1.")
    p = min(max(p, LEAST_SCORE), 1.0 - LEAST_SCORE)
    return prior_of_score(p, config.strength, config.accuracy)


def read_tasks(config: CampaignSettings, tasks: Iterable[Any]) -> Iterator[NewTask]:
    """Tasks from tables, one after the other; those that have been checked stay as they are."""
    return (
        task if isinstance(task, NewTask) else read_task(config, task, place)
        for place, task in enumerate(tasks, start=1)
    )


def paired(config: CampaignSettings, tasks: Iterable[NewTask], there: Iterable[Any]) -> Iterator[NewTask]:
    """Tasks of a campaign for pairs, whose payloads so far are ``there``; others stay as they are."""
    if config.answer != "pair":
        yield from tasks
        return
    sides: dict[str, Any] = {}
    for payload in there:
        sides |= zip(pair_of(payload), map(payload.get, SIDES), strict=True)
    made, task = len(sides), None
    for task in tasks:
        if is_pair(task.payload):
            names = pair_of(task.payload)
            if names[0] == names[1]:
                raise InputError(f"item {names[0][:60]!r} is compared with itself.", "Give two items.")
            sides |= zip(names, map(task.payload.get, SIDES), strict=True)
            yield replace(task, payload={**task.payload, ITEMS: list(names)})
            made += 1
            continue
        name = task.key or _text(task.payload)
        if name in sides:
            continue
        if task.gold is not None or len(sides) >= MOST_PAIRED:
            raise InputError(
                f"{MOST_PAIRED} items and more, or items with known answers, are not made pairs of.",
                "Give the pairs: tables with first, second and, to name them, items.",
            )
        for other in list(sides):
            turned = chance(config.seed, PLACES, made) < 0.5  # which one is on which side says nothing
            pair = [(name, task.payload), (other, sides[other])][:: -1 if turned else 1]
            payload = {**{side: one[1] for side, one in zip(SIDES, pair, strict=True)}, ITEMS: [pair[0][0], pair[1][0]]}
            key = " | ".join(payload[ITEMS])
            yield replace(task, key=key if len(key) <= LONGEST_KEY else None, payload=payload, size=2 * task.size)
            made += 1
        sides[name] = task.payload
    if task is not None and not made:
        raise InputError("there is one item, and nothing to compare it with.", "Give two items or more.")


def pair_of(payload: Any) -> tuple[str, str]:
    """The names of a pair's items: those that were given, or what they show."""
    names = payload.get(ITEMS)
    first, second = names if isinstance(names, list) and len(names) == 2 else map(payload.get, SIDES)
    return _text(first), _text(second)


def _text(side: Any) -> str:
    return side if isinstance(side, str) else json.dumps(side, sort_keys=True, ensure_ascii=False)


def row_tables(rows: Any) -> Iterable[Any]:
    """Rows with all their columns, of a list or a data frame."""
    found = task_tables(rows)
    return found.rows() if isinstance(found, TaskReader) else found


def task_tables(tasks: Any, score_column: str | None = None) -> Iterable[Any]:
    """One text or table per task; data frames are read row by row, with scores in a column if it is named."""
    if is_frame(tasks) and not isinstance(tasks, Mapping):
        return TaskReader(tasks, "the data frame", score_column=score_column)
    if score_column is not None:
        raise InputError("only data frames have a column of scores.", 'Give each task a "score" of its own.')
    if isinstance(tasks, str | bytes | Mapping) or not isinstance(tasks, Iterable):
        raise InputError(
            f"tasks are given as {type(tasks).__name__}.",
            "Give a list of texts or tables, or a data frame with one row per task.",
        )
    return tasks
