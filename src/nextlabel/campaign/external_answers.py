"""Answers that another tool keeps: the campaign follows it, whatever happened there and in whatever order it is told.

People who label in a tool of their own can do there what they like: change an answer days later, delete it, label a
task that nobody gave them. ``follow_answer`` makes a worker's answer to a task what the tool says it is. To tell the
same again changes nothing.

============================== ======================================================================================
the tool says                  what happens
============================== ======================================================================================
an answer to a lease           ``tell``: counted, or late
an answer without a lease      ``self_assigned``, then ``tell``: counted like a late one, if budget and task allow
another answer than before     ``withdrawn``, then ``tell``: it takes the old one's place in the budget
no answer any more             ``withdrawn``: the budget has its price back, and the task may go to somebody else
skipped                        ``release`` or ``withdrawn``; without a lease ``self_assigned``: they do not get it again
============================== ======================================================================================

A label that the requester dropped stays as it is.
"""

from __future__ import annotations

from typing import Final

from nextlabel.campaign.commands import Commands, checked_worker
from nextlabel.campaign.replies import Receipt
from nextlabel.campaign.rows import lease_id
from nextlabel.campaign.transitions import LEASED, after
from nextlabel.errors import NotFoundError


class Skipped:
    """Instead of an answer to ``Campaign.set_answer``: the worker has passed the task on."""

    def __repr__(self) -> str:
        return "SKIPPED"


SKIPPED: Final = Skipped()


def follow_answer(campaign: Commands, key: str, worker: str, answer: object | Skipped | None) -> Receipt | None:
    """Make the worker's answer to a task ``answer``; None is no answer.

    Returns what became of the worker's lease, None if there is nothing.
    """
    worker = checked_worker(worker)
    state, row = campaign.state, campaign.state.row
    wanted = None if answer is None or isinstance(answer, Skipped) else row.config.answer_type.number_of(answer)
    task = state.tasks_by_key([key]).get(key)
    if task is None:
        raise NotFoundError(f"there is no task {key[:60]!r} in campaign {row.id!r}.", "Add the task first.")
    campaign.expire()
    lease = state.lease_of(task.number, worker)
    if lease is None:
        if answer is None:
            return None
        if row.config.knows_workers and campaign.crowd().crowd.tasks <= task.number:
            campaign.refit(wait=True)  # the label that follows is learnt at once, and the task must be known
        id = lease_id(row.id, row.given)
        campaign.record("self_assigned", {"lease": id, "task": task.number, "worker": worker})
        lease = state.get_lease(id)
    if lease.dropped:
        return None
    if lease.label is not None and lease.label != wanted:
        after(lease.status, "withdraw")
        campaign.record("withdrawn", {"lease": lease.id, "label": lease.label, "counted": bool(lease.counted)})
        campaign.reopen()
    if wanted is not None:
        return campaign.tell(lease.id, answer, worker)
    if isinstance(answer, Skipped) and lease.status == LEASED:
        return campaign.release(lease.id, worker)
    campaign.closing_reason()
    return campaign.receipt(lease.id)
