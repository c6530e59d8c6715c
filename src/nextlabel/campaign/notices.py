"""What a requester should know and can do something about, and how many labels the workers can still give.

==================== ========================================== =============================================
kind                 there is one                               what can be done
==================== ========================================== =============================================
answers_at_random    for each active worker whose answers are   pause them; block them; block them and drop
                     noise (policy ``crowd``, ``crowd.noise``)  their labels
truths_contradict    if known answers contradict what the       audit; look at who fails the known items
                     labels say (``crowd.controls``)
nobody_can_label     if budget is left, and everybody who has   invite more workers
                     come is paused, blocked or turned away,
                     or has had all that they may have
==================== ========================================== =============================================

Notices are in the log (``noticed``) and in the campaign's row (``Rules.noticed``): page, command line, API and webhooks
show the same. Who answers at random is judged after every refit; whether nobody can label, whenever somebody gets no
task. An event that lets somebody label again takes that notice back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.campaign.states import PREFIX
from nextlabel.wording import counted

if TYPE_CHECKING:
    from nextlabel.campaign.state import CampaignState

Kind = Literal["answers_at_random", "truths_contradict", "nobody_can_label"]
Action = Literal["pause", "block", "block_and_drop", "audit", "invite"]
_ACTIONS: Final[dict[Kind, tuple[Action, ...]]] = {
    "answers_at_random": ("pause", "block", "block_and_drop"),
    "truths_contradict": ("audit",),
    "nobody_can_label": ("invite",),
}
#: A worker's number of labels is brought up to date when it has grown by this factor.
GROWN: Final = 1.5
#: Usual gaps after which a worker has left, and the items given out meanwhile until that is sure; newcomers who are
#: told apart at most.
SILENT, LONG, MOST_NEW = 10.0, 100, 30


class Notice(NamedTuple):
    """``worker`` with so many ``labels`` is the one it is about; else labels of the budget left, or known items."""

    kind: Kind
    worker: str | None
    labels: int

    @property
    def text(self) -> str:
        """In a sentence."""
        if self.worker is not None:
            return f"{self.worker} answers at random ({counted(self.labels, 'label')})."
        if self.kind == "truths_contradict":
            return (
                f"{counted(self.labels, 'item')} with a known answer contradict what the labels say of the workers: "
                "expected accuracy, forecast and 'at most' are withheld. Look at who fails the known items, drop their "
                "labels, and audit 30 to 60 items."
            )
        left = f"{counted(self.labels, 'label')} of the budget {'is' if self.labels == 1 else 'are'} left"
        return f"Nobody can label more, and {left}: invite more workers."

    @property
    def actions(self) -> tuple[Action, ...]:
        """What the requester can do about it."""
        return _ACTIONS[self.kind]


def notice_table(notice: Notice) -> dict[str, Any]:
    """A notice as JSON, with its sentence and what can be done."""
    return {**notice._asdict(), "text": notice.text, "actions": list(notice.actions)}


class Supply(NamedTuple):
    """Labels that can still be given: at most ``labels`` by ``workers``, who have come, and those of newcomers.

    Newcomers are expected as often per label as workers have come once only (``unseen``, [Good53]), always with nobody
    there yet, and each gives ``most_each`` labels at most. Of each worker in the order of the log: the most labels that
    can still be theirs (``each``), those in flight or lapsed included (``pending``), and how often they come among
    those who can label (``share``; the sum is above 1 where some have perhaps left). ``given`` is how many items one
    person has had on average, ``lapsed`` how many leases are over whose answers would still count.
    """

    labels: int
    workers: frozenset[str]
    most_each: int
    each: Ints
    pending: Ints
    share: Floats
    unseen: float
    given: float
    lapsed: int

    def of(self, left: int) -> int:
        """How many of ``left`` labels can come."""
        return min(left, self.labels + round(self.unseen * left * self.most_each))

    def expected(self, asks: float) -> tuple[Floats, float, int]:
        """Labels of each worker and of newcomers, and how many of these come, if so many ask.

        Nobody gives more than they can: where some run out of items, the others come the more often.
        """
        can = np.maximum(self.each - self.pending, 0).astype(np.float64)
        known, rounds = np.minimum(can, self.share * asks), 0
        while rounds < len(can) and known.sum() < asks - 1e-6 and (free := self.share[known < can].sum()) > 0:
            known = np.minimum(can, known + self.share * (asks - known.sum()) / free)
            rounds += 1
        people = max(min(math.ceil(self.unseen * asks), MOST_NEW), 1)
        new = min(self.unseen * max(self.given, 1.0), 1.0) * asks
        return known + np.minimum(self.pending, self.each), new, people


def supply_of(state: CampaignState) -> Supply:
    """Who can still label, and how much: items they never had, quotas, blocks. Cost: O(leases)."""
    row, pool, n = state.row, state.pool, state.pool.published
    tasks, entries = pool.tasks, pool.entries
    room = np.where(tasks.gold[:n] < 0, pool.most_labels - tasks.labels[:n] - tasks.w[:n], 0).astype(np.int64)
    is_open, able = room > 0, _able(state)
    task, worker = entries.task[: entries.size], entries.worker[: entries.size]
    there = task < n
    had = able[worker] & there
    had[had] = is_open[task[had]]
    items = np.maximum(int(is_open.sum()) - np.bincount(worker[had], minlength=len(able)), 0)
    most = row.config.most_labels_per_worker
    quota = np.array([n if most is None else max(most - one.labels, 0) for one in state.workers], dtype=np.int64)
    each = np.where(able, np.minimum(items[: len(able)], quota), 0)
    takers = np.minimum(room, int(able.sum()) - np.bincount(task[had], minlength=n))[is_open]
    can = frozenset(one.worker for one, labels in zip(state.workers, each, strict=True) if labels)
    people = [one.given for one in state.workers if one.given and not _is_model(one.worker)]
    once = sum(given == 1 for given in people) / sum(people) if people else 1.0
    out, lapsed = state.unanswered()
    heard = np.array([one.standing != "blocked" for one in state.workers], dtype=np.bool_)
    pending = np.where(heard, np.bincount(worker[np.concatenate([out, lapsed])], minlength=len(able)), 0)
    comes = np.where(each > 0, [one.given for one in state.workers], 0).astype(np.float64)
    perhaps, surely = _have_left(worker.astype(np.int64), state)
    comes[surely] = 0.0
    share = comes / np.where(perhaps, max(comes.sum(), 1.0), max(comes[~perhaps].sum(), 1.0))
    return Supply(
        min(int(each.sum()), int(takers.sum())), can, min(int(is_open.sum()), n if most is None else most),
        each + pending, pending,
        share, once, sum(people) / max(len(people), 1), int(heard[worker[lapsed]].sum()),
    )  # fmt: skip


def _have_left(worker: Ints, state: CampaignState) -> tuple[Bools, Bools]:
    """(W,) who perhaps has left, and who surely: nothing was given to them for ``SILENT`` times as long as usual.

    As long means in items given out, and a fifth of all of them at least; surely, half of them and ``LONG``. Who
    perhaps has left may come back, and others may come in their place. Somebody who was turned away has come.
    """
    number = np.arange(len(worker))
    first, last = np.full(len(state.workers), len(worker)), np.full(len(state.workers), -1)
    last[worker], first[worker[::-1]] = number, number[::-1]
    usual = (last - first) / np.maximum(np.bincount(worker, minlength=len(first)) - 1, 1)
    silent = np.where([one.turned_away > 0 for one in state.workers], 0, len(worker) - last)
    perhaps, surely = (
        silent > np.maximum(SILENT * usual, least) for least in (len(worker) / 5, max(len(worker) / 2, LONG))
    )
    return np.asarray(perhaps), np.asarray(surely)


def current_notices(state: CampaignState) -> tuple[Notice, ...]:
    """The notices as the campaign stands now."""
    row, crowd = state.row, state.crowd
    random = [
        Notice("answers_at_random", one.worker, one.labels)
        for number, one in enumerate(state.workers)
        if one.standing == "active" and crowd is not None and crowd.answers_at_random(number, one.labels)
    ]
    known = 0 if crowd is None else crowd.contradicted_by()
    contradicted = [Notice("truths_contradict", None, known)] if known else []
    return (*random, *contradicted, *([Notice("nobody_can_label", None, row.left)] if nobody_can_label(state) else []))


def nobody_can_label(state: CampaignState) -> bool:
    """Whether budget and items are left, people have come, and none of them can get an item."""
    row, crowd = state.row, state.crowd
    if row.state != "open" or not row.left or row.full >= row.tasks - row.controls:
        return False
    able = np.flatnonzero(_able(state))
    if not any(one.given and not _is_model(one.worker) for one in state.workers):
        return False
    if crowd is not None and row.config.turn_away:
        able = np.array([j for j in able.tolist() if crowd.turned_by.get(j) != crowd.version], dtype=np.int64)
    if any(state.pool.held[j] < row.tasks - row.full - row.controls for j in able):
        return False  # the usual case, without a look at all leases
    names = {state.workers[j].worker for j in able}
    return not names & supply_of(state).workers


def _able(state: CampaignState) -> Bools:
    """(W,) who may get items as far as the requester, their quota and the noise in their answers go."""
    most, crowd = state.row.config.most_labels_per_worker, state.crowd
    turns_away = crowd is not None and state.row.config.turn_away
    return np.array(
        [
            one.standing == "active"
            and one.given > 0
            and not _is_model(one.worker)
            and (most is None or one.labels < most)
            and not (turns_away and crowd is not None and crowd.answers_at_random(number, one.labels))
            for number, one in enumerate(state.workers)
        ],
        dtype=np.bool_,
    )


def _is_model(worker: str) -> bool:
    return worker.startswith(PREFIX)
