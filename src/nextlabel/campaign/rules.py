"""What a campaign's log says about how it is read: limits of tasks, how candidates are ranked, the memory of rates.

Every value comes from an event, so that a log means the same under any later constants of the code. Logs of the first
version lack them: ``legacy_log`` has what that version did.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from nextlabel.campaign.hours import hours_from_json, hours_to_json

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
    truth that the way of the many is worth for somebody who is one of them (``kernels.crowd_core``); 0: no such core,
    as in campaigns from before it was in the log.
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
    #: Workers and seconds by the hour of the day (``campaign.hours``); None in logs that do not count them.
    hours: tuple[float, ...] | None = None

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
#: Fields that are written where they differ from those of a new campaign: versions before 0.3 did not have them.
_LATER: Final = (
    "segments", "hidden", "unranked_from", "predicted", "dropped_models", "audit", "turned_away", "turned_away_workers",
    "core", "hours",
)  # fmt: skip


@lru_cache(maxsize=1024)
def rules_to_json(rules: Rules) -> str:
    """One line of JSON."""
    table = {"rate_memory": rules.rate_memory, "ranked": rules.ranked, "limits": rules.limits}
    later = {name: getattr(rules, name) for name in _LATER if getattr(rules, name) != getattr(NEW_RULES, name)}
    if rules.hours is not None:
        later["hours"] = hours_to_json(rules.hours)
    return json.dumps({**table, **later})


@lru_cache(maxsize=1024)
def rules_from_json(text: str) -> Rules:
    """The inverse."""
    table = json.loads(text)
    later = {name: table[name] for name in _LATER if name in table}
    if later.get("hours") is not None:
        later["hours"] = hours_from_json(later["hours"])
    later["dropped_models"] = tuple(later.get("dropped_models", ()))
    later["audit"] = tuple((task, answer) for task, answer in later.get("audit", ()))
    return Rules(table["rate_memory"], table["ranked"], tuple(Limits(*limits) for limits in table["limits"]), **later)
