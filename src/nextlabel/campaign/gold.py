"""Answers that the requester knows: they make tasks control questions (``campaign.controls``).

A task that has become a control is one for good: its labels are about the workers from then on. Its answer can be
corrected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nextlabel.campaign.recording import Recording
from nextlabel.errors import InputError, NotFoundError

#: Answers in one event, and in one command.
IN_EVENT, AT_ONCE = 1000, 100_000
_HINT: Final = "Give the id of a task and one of the campaign's labels."


def set_gold(campaign: Recording, answers: Mapping[str, object]) -> int:
    """Take answers by the ids of tasks, all of them or none; returns how many are new or corrected."""
    campaign.settle()
    if not answers:
        raise InputError("no answers are given.", _HINT)
    if len(answers) > AT_ONCE:
        raise InputError(f"{len(answers):,} answers are too many at once.", f"Give at most {AT_ONCE:,}.")
    config = campaign.ledger.row.config
    known = {key: config.answer(answer) for key, answer in answers.items()}
    found = campaign.ledger.tasks_by_key(list(known))
    missing = next((key for key in known if key not in found), None)
    if missing is not None:
        raise NotFoundError(f"the campaign has no task {missing[:60]!r}.", _HINT)
    record_gold(campaign, [[found[key].number, gold] for key, gold in known.items() if found[key].gold != gold])
    return sum(found[key].gold != gold for key, gold in known.items())


def record_gold(campaign: Recording, answers: list[list[Any]]) -> None:
    """Write answers [number of the task, answer] to the log."""
    for first in range(0, len(answers), IN_EVENT):
        campaign.record("gold_set", {"answers": answers[first : first + IN_EVENT]})
    if answers:
        campaign.closing_reason()
