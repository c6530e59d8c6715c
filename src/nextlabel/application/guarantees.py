"""How far the guarantee of a campaign is, in a sentence, what is the cheapest way on, and its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.campaign.guarantee import LiveGuarantee
from nextlabel.campaign.results import ResultSource
from nextlabel.campaign.rows import CampaignRow
from nextlabel.crowd.guarantee import Guarantee, choose_audits, exactly, first_too_many
from nextlabel.errors import ConflictError, TablesPendingError
from nextlabel.wording import counted

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService

#: Seconds for which the next step is waited for.
PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class GuaranteeStatus:
    """How far the guarantee of a campaign is.

    ``frozen``: labels are frozen and items were drawn, at the time ``drawn``. ``to_answer`` items are in the expert's
    queue now, and about ``to_go`` are missing in all. ``sentence`` is the certificate, or what is missing, and
    ``next_step`` the cheapest way on. ``so_far`` is the share of wrong labels that the answers so far speak for,
    ``look`` the number of the look (from 0) with so many ``audits``, ``looks`` how many were planned, ``of`` the label
    or question that the statement is about, if about one. ``entropy`` and ``hash`` of the frozen labels are those of
    the draw.
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


def live_guarantee(service: CampaignService, row: CampaignRow) -> LiveGuarantee | None:
    """What has happened since the labels were frozen; None if they are not."""
    if not row.guarantee:
        return None
    return LiveGuarantee.since(row.guarantee, lambda after, most: service.store.light_events(row.id, most, after=after))


def final_answers(service: CampaignService, row: CampaignRow) -> Mapping[int, tuple[int, float, ResultSource]] | None:
    """Answers, probabilities and sources of frozen tasks; None if labels are not frozen."""
    live = live_guarantee(service, row)
    return None if live is None else live.final()


def guarantee_record(service: CampaignService, id: str) -> Guarantee:
    """Frozen labels, draw and answers, with which anybody can check the certificate (``examples/guarantee``)."""
    row = service.store.row(id)
    live = live_guarantee(service, row)
    if live is None:
        raise ConflictError("the labels are not frozen.", "Freeze the labels first.")
    return live.promise(service.keys(id), row.config.answer_type)


def guarantee_status(service: CampaignService, row: CampaignRow) -> GuaranteeStatus:
    """How far it is."""
    live = live_guarantee(service, row)
    if live is None:
        before = service.store.last_event(row.id, "guarantee_reopened")
        void = before is not None and service.store.light_events(row.id, 1, after=before - 1)[0].data["certified"]
        said = "The labels were reopened, and the certificate is void." if void else "The labels are not frozen."
        return GuaranteeStatus(False, False, said, next_step=_next_step(service, row))
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


def _next_step(service: CampaignService, row: CampaignRow) -> str:
    """Whether more labels or the expert are the cheaper way on, while labels are not frozen."""
    config = row.config
    if config.at_most_wrong is None or config.answer_type.noun or not row.kept:
        return ""
    try:
        crowd = service.crowd(row, PATIENCE_S)
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
    saves = f"{label} would save the expert about {counted(saved, 'answer')}, worth {saved * config.expert_cost:,.0f}."
    best = "more labels" if saved * config.expert_cost > len(more) else f"the expert, with about {first:,} items"
    return f"Next: {best}. {saves}"
