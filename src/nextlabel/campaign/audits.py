"""An audit: tasks drawn at random whose truth an expert finds out, so that the accuracy of the results is known.

Drawn are tasks of all that are not control questions, whatever labels they have: so the sample says what share of the
results is right at any later time, whatever the model believes (``crowd.audit``). Further draws add to it. What the
expert says is not used for the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import numpy as np

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.problem.tasks import whole

#: Tasks of one audit, all draws together.
MOST_AUDITED: Final = 2000


def draw_audit(campaign: Commands, items: Any, seed: Any = 0) -> int:
    """Draw tasks at random, beside those that were drawn before; returns how many there are now."""
    many = whole("items", items, 1, "Give the number of items to audit, e.g. 60.")
    number = whole("seed", seed, 0, "Give a whole number such as 0.")
    campaign.settle()
    row = campaign.state.row
    drawn = dict(row.rules.audit)
    if len(drawn) + many > MOST_AUDITED:
        raise InputError(f"an audit has at most {MOST_AUDITED:,} items.", "Draw fewer.")
    order = np.random.default_rng([row.config.seed, number, len(drawn)]).permutation(row.tasks)
    free = (int(task) for task in order if int(task) not in drawn)
    tasks = list(islice((task for task in free if not campaign.state.is_control(task)), many))
    if many > len(tasks):
        raise ConflictError(f"{many:,} items are to be drawn, and {len(tasks):,} are left.", "Draw fewer.")
    campaign.record("audit_drawn", {"tasks": sorted(tasks), "seed": number})
    return len(drawn) + many


def answer_audit(campaign: Commands, answers: Mapping[str, object]) -> int:
    """What the expert found, by the ids of drawn tasks, all or none; returns how many are new or corrected."""
    campaign.settle()
    state = campaign.state
    drawn = dict(state.row.rules.audit)
    if not answers:
        raise InputError("no answers are given.", "Give the answers of items that were drawn.")
    said = {key: state.row.config.answer(answer) for key, answer in answers.items()}
    found = state.source.tasks_by_key(list(said))
    for key in said:
        if key not in found or found[key].number not in drawn:
            raise NotFoundError(
                f"task {key[:60]!r} was not drawn for the audit.",
                "Answer items that were drawn: an audit of chosen ones says nothing of the others.",
            )
    new = [[found[key].number, answer] for key, answer in said.items() if drawn[found[key].number] != answer]
    if new:
        campaign.record("audit_answered", {"answers": new})
    return len(new)


def check_drawn(row: CampaignRow) -> None:
    """Refuse to go on without items."""
    if not row.rules.audit:
        raise ConflictError("no items have been drawn for an audit.", "Draw some first.")
