"""The guarantees of a service's campaigns: freeze and draw, the expert's queue, the certificate and its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.campaign.guarantee import LiveGuarantee, answer, freeze, next_look, reopen
from nextlabel.campaign.replies import AuditItem
from nextlabel.campaign.results import ResultSource
from nextlabel.campaign.rows import CampaignRow
from nextlabel.crowd.guarantee import Guarantee, choose_audits, exactly, first_too_many
from nextlabel.errors import ConflictError, TablesPendingError
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService

#: Tasks, and events, that are read at once.
CHUNK = 10_000
#: Seconds for which the next step is waited for.
PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class GuaranteeStatus:
    """How far the guarantee of a campaign is.

    ``frozen``: labels are frozen and items were drawn, at the time ``drawn``. ``to_answer`` items are in the expert's
    queue now, and about ``to_go`` are missing in all. ``sentence`` is the certificate, or what is missing, and
    ``next_step`` the cheapest way on. ``so_far`` is the share of wrong labels that the answers so far speak for,
    ``look`` the number of the look (from 0) with so many ``audits``, ``looks`` how many were planned, ``of`` the label
    that the statement is about, if about one. ``entropy`` and ``hash`` of the frozen labels are those of the draw.
    """

    frozen: bool
    certified: bool
    sentence: str
    to_answer: int = 0
    to_go: int = 0
    expert_answers: int = 0
    audits: int = 0
    items: int = 0
    drawn: str | None = None
    entropy: str | None = None
    hash: str | None = None
    so_far: float | None = None
    look: int = 0
    looks: int = 1
    of: str | None = None
    next_step: str = ""


class Guarantees:
    """The guarantees of all campaigns of a service."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._service, self._store = campaign_service, campaign_service.store

    def freeze(self, id: str, audits: int | Sequence[int] | None = None, of: str | None = None) -> GuaranteeStatus:
        """Freeze the labels and draw items for the expert; without ``audits`` their number follows from the labels."""
        keys = self._keys(id)
        self._service.run(id, lambda commands: freeze(commands, keys, audits, of))
        return self.status(id)

    def next_look(self, id: str) -> GuaranteeStatus:
        """Draw more audits along the same permutation, if several looks were planned."""
        keys = self._keys(id)
        self._service.run(id, lambda commands: next_look(commands, keys))
        return self.status(id)

    def answer(self, id: str, answers: Mapping[str, object]) -> int:
        """What the expert says of items that are asked for; returns how many answers are new or corrected."""
        keys = self._keys(id)
        return self._service.run(id, lambda commands: answer(commands, keys, answers))

    def reopen(self, id: str) -> GuaranteeStatus:
        """Let labels decide again, which voids the certificate."""
        self._service.run(id, reopen)
        return self.status(id)

    def items(self, id: str) -> list[AuditItem]:
        """The items that the expert was asked for, with the answers so far; not what the campaign believes of them."""
        live = self._live(self._store.row(id))
        return [] if live is None else self._service.audit_items(id, {one: live.answers.get(one) for one in live.queue})

    def status(self, id: str) -> GuaranteeStatus:
        """How far it is."""
        row = self._store.row(id)
        live = self._live(row)
        if live is None:
            before = self._store.last_event(id, "guarantee_reopened")
            void = before is not None and self._store.light_events(id, 1, after=before - 1)[0].data["certified"]
            said = "The labels were reopened, and the certificate is void." if void else "The labels are not frozen."
            return GuaranteeStatus(False, False, said, next_step=self._next_step(row))
        data, left = live.drawn.data, len(live.to_answer)
        to_go = max(live.to_go - (len(live.asked) - left), left)
        sentence, looks, step = live.sentence, len(data["audits"]), ""
        if not live.certified:
            sentence = f"At most {float(data['at_most_wrong']):.1%} wrong is not certified yet: the expert has "
            sentence += f"{counted(left, 'item')} to answer now, about {to_go:,} in all."
            step = f"Next: the expert, who has about {counted(to_go, 'item')} to go."
            if live.look + 1 < looks and live.so_far is not None and not live.removed:
                step += f" Or draw the next look, {data['audits'][live.look + 1]:,} items in all."
        return GuaranteeStatus(
            True, live.certified, sentence, left, to_go, len(live.answers), data["audits"][live.look],
            data["items"], data["frozen_at"], data["entropy"], data["frozen"], live.so_far, live.look, looks,
            data.get("of"), step,
        )  # fmt: skip

    def _next_step(self, row: CampaignRow) -> str:
        """Whether more labels or the expert are the cheaper way on, while labels are not frozen."""
        config = row.config
        if config.at_most_wrong is None or not row.kept:
            return ""
        try:
            crowd = self._service.crowd(row, PATIENCE_S)
        except TablesPendingError:
            return ""
        if crowd is None or not (asked := np.flatnonzero(crowd.gold < 0)).size:
            return ""
        now, channel = crowd.beliefs[asked], np.average(crowd.channels, axis=0, weights=np.maximum(crowd.labels, 1e-9))
        rng = np.random.default_rng(row.seq)
        more = rng.permutation(len(now))[: row.left]
        truth = (now[more].cumsum(axis=1) > rng.random((len(more), 1))).argmax(axis=1)
        said = (channel[truth].cumsum(axis=1) > rng.random((len(more), 1))).argmax(axis=1)
        later = now.copy()
        later[more] *= channel[:, said].T
        later /= later.sum(axis=1, keepdims=True)
        r, alpha = first_too_many(row.tasks, config.at_most_wrong), 1 - exactly(config.sure)
        first, then = (round(len(now) * choose_audits(one.max(axis=1), r, alpha)[1]) for one in (now, later))
        label = f"{counted(len(more), 'more label')}" + (", one for each item," if len(more) == len(now) else "")
        saved = max(first - then, 0)
        if not len(more):
            return f"Next: the expert, with about {counted(first, 'item')}: the budget is spent."
        if config.expert_cost is None:
            now_and_then = f"about {counted(first, 'item')}, about {then:,} after {label.rstrip(',')}"
            return f"If you freeze now, the expert answers {now_and_then}. Set expert_cost to learn which is cheaper."
        saves = (
            f"{label} would save the expert about {counted(saved, 'answer')}, worth {saved * config.expert_cost:,.0f}."
        )
        best = "more labels" if saved * config.expert_cost > len(more) else f"the expert, with about {first:,} items"
        return f"Next: {best}. {saves}"

    def record(self, id: str) -> Guarantee:
        """Frozen labels, draw and answers, with which anybody can check the certificate (``examples/guarantee``)."""
        row = self._store.row(id)
        live = self._live(row)
        if live is None:
            raise ConflictError("the labels are not frozen.", "Freeze the labels first.")
        return live.promise(self._keys(id), row.config.labels)

    def final(self, row: CampaignRow) -> Mapping[int, tuple[int, float, ResultSource]] | None:
        """Answers, probabilities and sources of frozen tasks; None if labels are not frozen."""
        live = self._live(row)
        return None if live is None else live.final()

    def _live(self, row: CampaignRow) -> LiveGuarantee | None:
        if not row.rules.guarantee:
            return None
        return LiveGuarantee.since(
            row.rules.guarantee, lambda after, most: self._store.light_events(row.id, most, after=after)
        )

    def _keys(self, id: str) -> list[str]:
        return [task.key for tasks in self._service.task_chunks(id, CHUNK) for task in tasks]
