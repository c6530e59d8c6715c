"""What a campaign's log says about how it is read: limits of tasks, how candidates are ranked, the memory of rates.

Every value comes from an event, so that a log means the same under any later constants of the code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Final, NamedTuple

from nextlabel.campaign.hours import NOTHING_SEEN, Hours, hours_from_json, hours_to_json

#: A task that was drawn for an audit and has no answer yet.
NOT_ANSWERED: Final = -1


class Limits(NamedTuple):
    """Most labels, and most workers at once, of each task from number ``first`` on."""

    first: int
    most_labels: int
    most_in_flight: int


@dataclass(frozen=True, slots=True)
class Rules:
    """``ranked``: tasks are chosen by a score stored with each of them, and no longer by groups of equal tasks.

    ``segments``: places of tasks are below it (each import that was published has an interval of length 1 of its own).
    ``hidden``: tasks after the last one that are in the log, but not published yet. ``unranked_from``: tasks from this
    number on have no score yet; None if all have theirs. ``predicted``: labels that came from models;
    those of ``dropped_models`` are left out of the results. ``audit``: tasks that were drawn for an audit, each
    with the expert's answer or ``NOT_ANSWERED``. ``turned_away``: how often workers were, and how many different
    ones (``turned_away_workers``). ``core``: with the policy ``crowd`` and three answers or more, labels per
    truth that the way of the many is worth for somebody who is one of them (``kernels.crowd_core``); 0: no such core.
    ``hours``: workers and seconds by the hour of the day (``campaign.hours``).
    """

    rate_memory: int
    ranked: bool = False
    limits: tuple[Limits, ...] = ()
    segments: int = 1
    hidden: int = 0
    unranked_from: int | None = None
    predicted: int = 0
    dropped_models: tuple[str, ...] = ()
    audit: tuple[tuple[int, int], ...] = ()
    turned_away: int = 0
    turned_away_workers: int = 0
    core: float = 0.0
    hours: Hours = NOTHING_SEEN

    def limits_of(self, task: int) -> Limits:
        """The limits of a task, which are those that it was added with."""
        for limits in reversed(self.limits):
            if task >= limits.first:
                return limits
        raise LookupError(f"no limits for task {task}")

    def with_tasks(self, limits: Limits, ranked: bool) -> Rules:
        """The rules after tasks with these limits were added; those of earlier tasks stay."""
        same = bool(self.limits) and self.limits[-1][1:] == limits[1:]
        return replace(self, ranked=ranked, limits=self.limits if same else (*self.limits, limits))

    def with_published(self, limits: Limits, ranked: bool) -> Rules:
        """The rules after the hidden tasks were published; those that are ranked from now on get their scores later."""
        start = None if not ranked else limits.first if self.ranked else 0
        rules = self.with_tasks(limits, ranked)
        return replace(rules, segments=self.segments + 1, hidden=0, unranked_from=start)


#: Of a campaign before its first event; ``created`` says what holds.
NEW_RULES: Final = Rules(rate_memory=1)


@lru_cache(maxsize=1024)
def rules_to_json(rules: Rules) -> str:
    """One line of JSON."""
    table = {field.name: getattr(rules, field.name) for field in fields(rules)}
    return json.dumps({**table, "hours": hours_to_json(rules.hours)})


@lru_cache(maxsize=1024)
def rules_from_json(text: str) -> Rules:
    """The inverse."""
    table = json.loads(text)
    table["limits"] = tuple(Limits(*limits) for limits in table["limits"])
    table["dropped_models"] = tuple(table["dropped_models"])
    table["audit"] = tuple((task, answer) for task, answer in table["audit"])
    return Rules(**{**table, "hours": hours_from_json(table["hours"])})
