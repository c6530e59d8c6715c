"""Answers that another tool keeps: the campaign follows it, whatever happened there and in whatever order it is told.

People who label in a tool of their own can do there what they like: change an answer days later, delete it, label a
task that nobody gave them. ``follow_answer`` makes a worker's answer to a task what the tool says it is. To tell the
same again changes nothing.

============================== ======================================================================================
the tool says                  what happens
============================== ======================================================================================
an answer to a lease           ``tell``: counted, or late
an answer without a lease      ``unasked``, then ``tell``: counted like a late one, while the budget and the task allow
another answer than before     ``withdrawn``, then ``tell``: it takes the old one's place in the budget
no answer any more             ``withdrawn``: the budget has its price back, and the task may go to somebody else
skipped                        ``release`` or ``withdrawn``; without a lease ``unasked``: they are not given it again
============================== ======================================================================================

A label that the requester dropped stays as it is.
"""

from __future__ import annotations

from typing import Final

from nextlabel.campaign.commands import Commands, checked_worker
from nextlabel.campaign.replies import Told
from nextlabel.campaign.rows import lease_id
from nextlabel.campaign.transitions import LEASED, after


class Skipped:
    """Instead of an answer to ``Campaign.set_answer``: the worker has passed the task on."""

    def __repr__(self) -> str:
        return "SKIPPED"


SKIPPED: Final = Skipped()


def follow_answer(
    campaign: Commands, task: int, worker: str, lease: str | None, answer: object | Skipped | None
) -> Told | None:
    """Make the worker's answer to a task ``answer``; None is no answer.

    ``lease`` is the worker's for this task, None if there is none. Returns what became of it, None if there is nothing.
    """
    checked_worker(worker)
    wanted = None if answer is None or isinstance(answer, Skipped) else campaign.state.row.config.answer(answer)
    campaign.expire()
    if lease is None:
        if answer is None:
            return None
        lease = _unasked(campaign, task, worker)
    found = campaign.state.lease(lease)
    if found is None or found.dropped:
        return None
    if found.label is not None and found.label != wanted:
        after(found.status, "withdraw")
        campaign.record("withdrawn", {"lease": lease, "label": found.label, "counted": bool(found.counted)})
        campaign.reopen()
    if wanted is not None:
        return campaign.tell(lease, answer, worker)
    if isinstance(answer, Skipped) and found.status == LEASED:
        return campaign.release(lease, worker)
    campaign.closing_reason()
    return campaign.told(lease)


def _unasked(campaign: Commands, task: int, worker: str) -> str:
    """A lease for a task that nobody gave the worker."""
    row = campaign.state.row
    if row.config.knows_workers and campaign.crowd().crowd.tasks <= task:
        campaign.refit(wait=True)  # the label that follows is learnt at once, and the task must be known
    id = lease_id(row.id, row.given)
    campaign.record("unasked", {"lease": id, "task": task, "worker": worker})
    return id
