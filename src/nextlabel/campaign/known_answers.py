"""Tasks whose true answer is known: control questions, adjudicated items, and items of an audit.

A *control question* has an answer that the requester knows; workers get it among the others, so that something is
learnt of them (``campaign.controls``). An *audit* draws tasks at random whose truth an expert finds out, so that the
accuracy of the results is known. Drawn are tasks of all that are not control questions, whatever labels they have: so
the sample says what share of the labels of the tasks that were there is right at any later time, whatever the model
believes (``crowd.audit``). Further draws add to it: a task has a random number of its own, and the sample is the tasks
with the smallest ones, so that it stays one when tasks have been added in between. What the expert says replaces the
item's label in the results and teaches nobody; nor can such an item become a control question or be adjudicated:
without the items that were found wrong the others would look better than they are. An *adjudicated* item has an answer
that the requester has set: it is final and teaches who is good, workers get the item no more, and it can be undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rows import CampaignRow, TaskRow
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.model.tasks import whole

#: Answers in one event, and in one command; tasks of one audit, all draws together; adjudicated tasks.
IN_EVENT, AT_ONCE, MOST_AUDITED, MOST_ADJUDICATED = 1000, 100_000, 2000, 10_000
_HINT: Final = "Give the id of a task and one of the campaign's labels."


def set_gold(campaign: Commands, answers: Mapping[str, object]) -> int:
    """Take answers by the ids of tasks, all of them or none; returns how many are new or corrected."""
    if len(answers) > AT_ONCE:
        raise InputError(f"{len(answers):,} answers are too many at once.", f"Give at most {AT_ONCE:,}.")
    known = _by_task(campaign, answers)
    _refuse_drawn(campaign, known)
    new = [[task.number, gold] for task, gold in known.values() if task.gold != gold]
    record_gold(campaign, new)
    return len(new)


def record_gold(campaign: Commands, answers: list[list[Any]]) -> None:
    """Write answers [number of the task, answer] to the log."""
    for first in range(0, len(answers), IN_EVENT):
        campaign.record("gold_set", {"answers": answers[first : first + IN_EVENT]})
    if answers:
        campaign.closing_reason()


def adjudicate(campaign: Commands, answers: Mapping[str, object]) -> int:
    """Set the answers of tasks by their ids, all or none: they are final; returns how many are new or corrected."""
    new, known = [], _by_task(campaign, answers)
    _refuse_drawn(campaign, known)
    for key, (task, answer) in known.items():
        adjudicated = campaign.state.is_adjudicated(task.number)
        if task.gold is not None and not adjudicated:
            raise ConflictError(
                f"task {key[:60]!r} is a control question, whose answer is known.", "Correct it as a known answer."
            )
        if not adjudicated or task.gold != answer:
            new.append([task.number, answer])
    added = sum(not campaign.state.is_adjudicated(task) for task, _ in new)
    if len(campaign.state.row.adjudicated) + added > MOST_ADJUDICATED:
        raise InputError(
            f"a campaign has at most {MOST_ADJUDICATED:,} adjudicated items.", "Give more answers as control questions."
        )
    if new:
        campaign.record("adjudicated", {"answers": new})
        campaign.closing_reason()
        campaign.learn_if_over()
    return len(new)


def undo_adjudication(campaign: Commands, keys: Sequence[str]) -> int:
    """The labels decide about these tasks again, all or none; returns how many there are."""
    campaign.settle()
    tasks = _tasks(campaign, keys)
    for key, task in tasks.items():
        if not campaign.state.is_adjudicated(task.number):
            raise ConflictError(f"nobody has set the answer of task {key[:60]!r}.", "Give one whose answer was set.")
    if tasks:
        campaign.record("adjudication_undone", {"tasks": sorted(task.number for task in tasks.values())})
        if campaign.state.row.closed_reason == "finished":
            campaign.reopen()
        campaign.closing_reason()
        campaign.learn_if_over()
    return len(tasks)


def draw_audit(campaign: Commands, items: Any, seed: Any = 0) -> int:
    """Draw tasks at random, beside those that were drawn before; returns how many there are now."""
    many = whole("items", items, 1, "Give the number of items to audit, e.g. 60.")
    number = whole("seed", seed, 0, "Give a whole number such as 0.")
    campaign.settle()
    row = campaign.state.row
    drawn = dict(row.audit)
    if len(drawn) + many > MOST_AUDITED:
        raise InputError(f"an audit has at most {MOST_AUDITED:,} items.", "Draw fewer.")
    smallest = np.random.default_rng([row.config.seed, row.audit_seed if drawn else number]).random(row.tasks)
    free = (task for task in np.argsort(smallest).tolist() if task not in drawn)
    tasks = list(islice((task for task in free if not campaign.state.is_control(task)), many + 1))
    if many > len(tasks):
        raise ConflictError(f"{many:,} items are to be drawn, and {len(tasks):,} are left.", "Draw fewer.")
    if len(tasks) > many and drawn and smallest[tasks[many]] < smallest[list(drawn)].max():
        raise ConflictError(
            f"items were added since the last draw, and with {many:,} more the sample would have too few of them.",
            "Draw more at once.",
        )
    tasks = tasks[:many]
    # in the order of the draw, so that the first ones to be answered are a random sample too
    campaign.record("audit_drawn", {"tasks": tasks, "seed": number})
    return len(drawn) + many


def answer_audit(campaign: Commands, answers: Mapping[str, object]) -> int:
    """What the expert found, by the ids of drawn tasks, all or none; returns how many are new or corrected."""
    drawn, new = dict(campaign.state.row.audit), []
    for key, (task, answer) in _by_task(campaign, answers).items():
        if task.number not in drawn:
            raise NotFoundError(
                f"task {key[:60]!r} was not drawn for the audit.",
                "Answer items that were drawn: an audit of chosen ones says nothing of the others.",
            )
        if drawn[task.number] != answer:
            new.append([task.number, answer])
    if new:
        campaign.record("audit_answered", {"answers": new})
        campaign.stop_at_target()
    return len(new)


def check_drawn(row: CampaignRow) -> None:
    """Refuse to go on without items."""
    if not row.audit:
        raise ConflictError("no items have been drawn for an audit.", "Draw some first.")


def _refuse_drawn(campaign: Commands, answers: Mapping[str, tuple[TaskRow, int]]) -> None:
    """Refuse items of an audit."""
    drawn = dict(campaign.state.row.audit)
    found = next((key for key, (task, _) in answers.items() if task.number in drawn), None)
    if found is not None:
        raise ConflictError(
            f"task {found[:60]!r} was drawn for the audit, which would no longer be a random sample without it.",
            "Answer it in the audit: that answer replaces its label in the results.",
        )


def _tasks(campaign: Commands, keys: Iterable[str]) -> dict[str, TaskRow]:
    """Tasks by their ids, or a NotFoundError."""
    tasks = campaign.state.tasks_by_key(list(keys))
    missing = next((key for key in keys if key not in tasks), None)
    if missing is not None:
        raise NotFoundError(f"the campaign has no task {missing[:60]!r}.", _HINT)
    return tasks


def _by_task(campaign: Commands, answers: Mapping[str, object]) -> dict[str, tuple[TaskRow, int]]:
    """Answers by the ids of tasks, each with its task."""
    campaign.settle()
    if not answers:
        raise InputError("no answers are given.", _HINT)
    numbers = {key: campaign.state.row.config.answer_type.number_of(answer) for key, answer in answers.items()}
    tasks = _tasks(campaign, numbers)
    return {key: (tasks[key], answer) for key, answer in numbers.items()}
