"""What platforms say of their workers: visits that begin, submissions that end, and bonuses to be paid.

What a status means for a worker is in ``integrations.platform``. Here it becomes commands on the campaign:

========== ===========================================================================================================
meaning    what happens
========== ===========================================================================================================
keeps      nothing; whoever was blocked or had labels dropped because of an earlier status has it taken back
ends       the worker is blocked, so that what they hold goes to others; their labels count, unless the service is set
           to drop them
rejects    likewise, and their labels are dropped, which can be taken back
========== ===========================================================================================================

A visit begins by an address that anybody can write, so it counts for nothing before the platform has said something of
it: it neither lets a worker in again nor is paid or deducted. Of the visits that the platform knows, a rejected one
decides, else the newest. Where it knows none of a worker's visits to a campaign, but rejects one that never began here,
that decides: whoever writes another submission's id does not evade what becomes of their own. A worker whom the
requester has paused or blocked is left alone. Everything can be repeated: a platform sends an event again until it gets
an answer.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal

from nextlabel.application.worker_reports import MOST_WORKERS, report_of
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.records import UNCLAIMED, Visit
from nextlabel.campaign.worker_commands import set_standing
from nextlabel.errors import InputError
from nextlabel.integrations.platform import Bonus, Meaning, Platform, StatusChange
from nextlabel.integrations.platforms import find_platform
from nextlabel.wording import counted, listed

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService

#: What holds for the worker now, as in ``integrations.platform``; unknown: the event is about nothing that began here;
#: outdated: something newer is known.
Effect = Literal["unknown", "outdated", "kept", "ended", "rejected"]
EFFECTS: Final[dict[Meaning, Effect]] = {"keeps": "kept", "ends": "ended", "rejects": "rejected"}
_CENT: Final = Decimal("0.01")


class PlatformVisits:
    """Visits to the campaigns of one service."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._service = campaign_service
        self._lock = Lock()  # two statuses of one submission follow one another

    def begin(self, campaign: str, worker: str, platform: str, id: str, study: str) -> Visit:
        """A worker comes, perhaps again; what the platform has said of this visit before holds now."""
        records = self._service.store.records
        known = records.find(Visit, platform=platform, id=id)
        for one in known:
            if one.campaign == campaign:
                return one
        labels = self._service.run(campaign, lambda commands: getattr(commands.state.find_worker(worker), "labels", 0))
        begun = Visit(campaign, platform, id, worker, study, self._service.clock(), labels)
        heard = next((one for one in known if (one.campaign, one.worker) == (UNCLAIMED, worker)), None)
        with self._lock:
            if not records.add(begun):  # another request was quicker
                (begun,) = records.find(Visit, platform=platform, id=id, campaign=campaign)
            if heard is not None and heard.status_at is not None:
                self._apply(begun, heard.status, heard.status_at, ())
        return begun

    def status_changed(
        self, platform: str, change: StatusChange, at: float, drops: Collection[str] = (), campaign: str = UNCLAIMED
    ) -> Effect:
        """A platform says that a visit has a status; labels are dropped for rejections, and for ``drops``.

        A visit that never began here is one to ``campaign`` if that is named.
        """
        worker, records = find_platform(platform).prefix + change.worker, self._service.store.records
        with self._lock:
            known = records.find(Visit, platform=platform, id=change.visit, worker=worker)
            if all(one.campaign == UNCLAIMED for one in known):
                if all(one.campaign == UNCLAIMED for one in records.find(Visit, platform=platform, worker=worker)):
                    return "unknown"
                heard = Visit(campaign, platform, change.visit, worker, "", self._service.clock(), 0)
                if not known or campaign != UNCLAIMED:
                    records.add(heard)
                    known += records.find(Visit, platform=platform, id=change.visit, campaign=campaign)
            effects = [self._apply(one, change.status, at, drops) for one in known]
        return next((one for one in effects if one != "unknown"), "unknown")

    def statuses_changed(
        self, campaign: str, platform: str, changes: Iterable[StatusChange], drops: Collection[str] = ()
    ) -> dict[Effect, int]:
        """The same for a list of visits, as it is now, if it is about any to this campaign."""
        there = self._service.store.records.find(Visit, campaign=campaign, platform=platform)
        sender, listed = find_platform(platform), [*changes]
        known, workers = {one.id for one in there}, {one.worker for one in there}
        effects: dict[Effect, int] = {}
        if any(change.visit in known for change in listed):
            for change in listed:
                if sender.prefix + change.worker in workers:
                    effect = self.status_changed(platform, change, self._service.clock(), drops, campaign)
                    effects[effect] = effects.get(effect, 0) + 1
        return effects

    def _apply(self, visit: Visit, status: str, at: float, drops: Collection[str]) -> Effect:
        """Do what a status asks for, then keep it: after a crash in between it is all done again."""
        records, platform = self._service.store.records, find_platform(visit.platform)
        if visit.status_at is not None and visit.status_at > at:
            return "outdated"
        now, meanings = replace(visit, status=status, status_at=at), list[Meaning]()
        campaigns = [visit.campaign]
        if visit.campaign == UNCLAIMED:
            theirs = records.find(Visit, platform=visit.platform, worker=visit.worker)
            campaigns = sorted({one.campaign for one in theirs} - {UNCLAIMED})
        for campaign in campaigns:
            said = self._told(campaign, now)
            if not said or (visit.campaign == UNCLAIMED and now not in said):
                continue
            before = self._told(campaign, visit)
            decides = next((one for one in said if platform.meaning_of(one.status) == "rejects"), said[0])
            meaning = platform.meaning_of(decides.status)
            meanings.append(meaning)
            status_said = platform.normal_status(decides.status).lower()
            reason = f"{platform.title}: submission {decides.id} is {status_said}"
            known = self._service.run(campaign, partial(_stand, platform, visit.worker, meaning, reason))
            if known and _drops(platform, decides.status, drops):
                self._service[campaign].drop_labels(visit.worker, reason)
            elif known and (_drops(platform, visit.status, drops) or any(one.campaign == UNCLAIMED for one in before)):
                self._service[campaign].restore_labels(visit.worker)
        records.hear(visit, status, at)
        return EFFECTS[meanings[0]] if meanings else "unknown"

    def _told(self, campaign: str, now: Visit) -> list[Visit]:
        """What decides about a worker in a campaign, the newest first: visits that the platform has spoken of."""
        records, sender = self._service.store.records, find_platform(now.platform)
        theirs = records.find(Visit, platform=now.platform, worker=now.worker)
        own = [one for one in theirs if one.campaign == campaign]
        known = [now if one.id == now.id else one for one in own]
        if all(one.status == "" for one in known):
            other = [one for one in theirs if one.campaign == UNCLAIMED]
            elsewhere = {one.id for one in theirs} - {one.id for one in other}
            since = min(one.begun_at for one in own) if own else math.inf
            known = [now if one.id == now.id else one for one in other if one.id not in elsewhere]
            known = [one for one in known if one.begun_at >= since and sender.meaning_of(one.status) == "rejects"]
        return [one for one in reversed(known) if one.status]

    def bonuses(self, campaign: str, platform: str, reward: float = 0.0) -> list[Bonus]:
        """What each worker of a platform is owed beyond the ``reward`` that it pays for a visit, most first.

        Those whose submission was rejected get none, nor those of whose visits the platform has said nothing
        (``unconfirmed``), and nobody gets less than a cent. Deducted are visits that the platform pays.
        """
        row = self._service.store.row(campaign)
        pay = row.config.pay_per_label
        if pay <= 0:
            raise InputError(
                f"campaign {campaign!r} has no pay per label, so nobody is owed anything.",
                f"Set it: nextlabel campaign change {campaign} --pay-per-label 0.05.",
            )
        if not 0 <= reward < 1e6:
            raise InputError(f"the reward {reward:g} is not an amount.", "Give what the platform pays, e.g. 1.20.")
        sender = find_platform(platform)
        rejected, newest, paid = set[str](), dict[str, Visit](), dict[str, int]()
        for one in self._service.store.records.find(Visit, campaign=campaign, platform=platform):
            meaning = sender.meaning_of(one.status)
            if meaning == "rejects":
                rejected.add(one.worker)
            if one.status or not sender.confirms:
                newest[one.worker] = one
                paid[one.worker] = paid.get(one.worker, 0) + (meaning == "keeps")
        bonuses = []
        for tally in self._service.store.workers(campaign, MOST_WORKERS):
            visit = newest.get(tally.worker)
            if not tally.worker.startswith(sender.prefix) or tally.worker in rejected:
                continue
            if visit is None and (sender.confirms or sender.bonus_needs_visit):
                continue
            owed = Decimal(str(report_of(tally, pay).amount)) - paid.get(tally.worker, 1) * Decimal(str(reward))
            amount = owed.quantize(_CENT, ROUND_HALF_UP)
            if amount >= _CENT:
                id = "" if visit is None else visit.id
                bonuses.append(Bonus(tally.worker.removeprefix(sender.prefix), id, amount))
        return sorted(bonuses, key=lambda one: (-one.amount, one.worker))

    def unconfirmed(self, campaign: str, platform: str) -> str:
        """Who has labels and is not in the list of bonuses, because the platform has told nothing of them; a note."""
        sender = find_platform(platform)
        visits = self._service.store.records.find(Visit, campaign=campaign, platform=platform)
        known = {one.worker for one in visits if one.status}
        there = [one for one in self._service.store.workers(campaign, MOST_WORKERS) if one.bought]
        left = [one.worker for one in there if one.worker.startswith(sender.prefix) and one.worker not in known]
        if not left or not sender.confirms:
            return ""
        return (
            f"{counted(len(left), 'worker')} with labels {'is' if len(left) == 1 else 'are'} not in the list: "
            f"{sender.title} has said nothing of their submissions ({listed(left)}). Connect its webhook or give its "
            "export of the study."
        )

    def bonus_csv(self, campaign: str, platform: str, reward: float = 0.0) -> str:
        """The same in the form that the platform takes."""
        row = self._service.store.row(campaign)
        reason = f"Labels in {row.config.name or campaign}"
        return find_platform(platform).bonus_csv(self.bonuses(campaign, platform, reward), reason)


def _drops(platform: Platform, status: str, drops: Collection[str]) -> bool:
    """Whether labels are dropped for a status."""
    named = bool(status) and platform.normal_status(status) in {platform.normal_status(one) for one in drops}
    return named or platform.meaning_of(status) == "rejects"


def _stand(platform: Platform, worker: str, meaning: Meaning, reason: str, commands: Commands) -> bool:
    """Block a worker whose visit has ended, or take that back; False if they never had a task."""
    tally = commands.state.find_worker(worker)
    if tally is None:
        return False
    by_platform = tally.reason.startswith(f"{platform.title}: ")
    if meaning == "keeps":
        if tally.standing == "blocked" and by_platform:
            set_standing(commands, worker, "active")
    elif tally.standing == "active" or by_platform:
        set_standing(commands, worker, "blocked", reason)
    return True
