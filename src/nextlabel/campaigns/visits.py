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

Only the worker's newest visit to the campaign has an effect. A worker whom the requester has paused or blocked is left
alone. Everything can be repeated: a platform sends an event again until it gets an answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from decimal import ROUND_HALF_UP, Decimal
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.records import Visit
from nextlabel.campaign.worker_commands import set_standing
from nextlabel.campaigns.worker_reports import MOST_WORKERS, report_of
from nextlabel.errors import InputError
from nextlabel.integrations.platform import Bonus, Meaning, Platform, StatusChange
from nextlabel.integrations.platforms import find_platform

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

#: unknown: no such visit here; outdated: something newer is known; others as in ``integrations.platform``.
Effect = Literal["unknown", "outdated", "kept", "ended", "rejected"]
EFFECTS: Final[dict[Meaning, Effect]] = {"keeps": "kept", "ends": "ended", "rejects": "rejected"}
_CENT: Final = Decimal("0.01")


class PlatformVisits:
    """Visits to the campaigns of one service."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._service = campaign_service
        self._lock = Lock()  # two statuses of one submission follow one another

    def begin(self, campaign: str, worker: str, platform: str, id: str, study: str) -> Visit:
        """A worker comes, perhaps again; whoever was blocked because an earlier visit had ended gets tasks again."""
        visits = self._service.store.visits
        known = [one for one in visits.find(platform, id) if one.campaign == campaign]
        if known:
            return known[0]
        earlier = visits.of(campaign, platform, worker)
        sender = find_platform(platform)
        rejected = any(sender.meaning_of(one.status) == "rejects" for one in earlier)

        def enter(commands: Commands) -> int:
            tally = commands.state.find_worker(worker)
            if tally is None:
                return 0
            if tally.standing == "blocked" and tally.reason.startswith(_reason(platform)) and not rejected:
                set_standing(commands, worker, "active")
            return tally.labels

        before = self._service.run(campaign, enter)
        return visits.add(Visit(campaign, platform, id, worker, study, self._service.clock(), before))

    def status_changed(self, platform: str, change: StatusChange, at: float, drops: Collection[str] = ()) -> Effect:
        """A platform says that a visit has a status; labels are dropped for rejections, and for ``drops``."""
        worker = find_platform(platform).prefix + change.worker
        with self._lock:
            known = self._service.store.visits.find(platform, change.visit)
            effects = [self._apply(one, change.status, at, drops) for one in known if one.worker == worker]
        return effects[0] if effects else "unknown"

    def statuses_changed(
        self, campaign: str, platform: str, changes: Iterable[StatusChange], drops: Collection[str] = ()
    ) -> dict[Effect, int]:
        """The same for a list of visits, as it is now; those of other campaigns are left out."""
        known, now = {one.id for one in self._service.store.visits.of(campaign, platform)}, self._service.clock()
        effects: dict[Effect, int] = {}
        for change in changes:
            if change.visit in known:
                effect = self.status_changed(platform, change, now, drops)
                effects[effect] = effects.get(effect, 0) + 1
        return effects

    def _apply(self, visit: Visit, status: str, at: float, drops: Collection[str]) -> Effect:
        """Do what a status asks for, then keep it: after a crash in between it is all done again."""
        visits = self._service.store.visits
        if visit.status_at is not None and visit.status_at > at:
            return "outdated"
        platform = find_platform(visit.platform)
        meaning = platform.meaning_of(status)
        if visits.of(visit.campaign, visit.platform, visit.worker)[-1].id == visit.id:
            reason = f"{_reason(visit.platform)}submission {visit.id} is {platform.normal_status(status).lower()}"
            known = self._service.run(visit.campaign, lambda commands: _stand(commands, visit, meaning, reason))
            if known and _drops(platform, status, drops):
                self._service.drop_labels(visit.campaign, visit.worker, reason)
            elif known and _drops(platform, visit.status, drops):
                self._service.restore_labels(visit.campaign, visit.worker)
        visits.set_status(visit, status, at)
        return EFFECTS[meaning]

    def bonuses(self, campaign: str, platform: str, reward: float = 0.0) -> list[Bonus]:
        """What each worker of a platform is owed beyond the ``reward`` that it pays for a visit, most first.

        Those whose submission was rejected get none, and nobody gets less than a cent.
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
        newest: dict[str, Visit] = {}
        rewards: dict[str, Decimal] = {}
        for one in self._service.store.visits.of(campaign, platform):
            newest[one.worker] = one
            rewards[one.worker] = rewards.get(one.worker, Decimal(0)) + Decimal(str(reward))
        sender = find_platform(platform)
        bonuses = []
        for tally in self._service.store.workers(campaign, MOST_WORKERS):
            visit = newest.get(tally.worker)
            if not tally.worker.startswith(sender.prefix) or (sender.bonus_needs_visit and visit is None):
                continue
            if visit is not None and sender.meaning_of(visit.status) == "rejects":
                continue
            paid = rewards.get(tally.worker, Decimal(str(reward)))
            amount = (Decimal(str(report_of(tally, pay).amount)) - paid).quantize(_CENT, ROUND_HALF_UP)
            if amount >= _CENT:
                id = "" if visit is None else visit.id
                bonuses.append(Bonus(tally.worker.removeprefix(sender.prefix), id, amount))
        return sorted(bonuses, key=lambda one: (-one.amount, one.worker))

    def bonus_csv(self, campaign: str, platform: str, reward: float = 0.0) -> str:
        """The same in the form that the platform takes."""
        row = self._service.store.row(campaign)
        reason = f"Labels in {row.config.name or campaign}"
        return find_platform(platform).bonus_csv(self.bonuses(campaign, platform, reward), reason)


def _reason(platform: str) -> str:
    """How the reason begins for which a platform's status has blocked a worker."""
    return f"{find_platform(platform).title}: "


def _drops(platform: Platform, status: str, drops: Collection[str]) -> bool:
    """Whether labels are dropped for a status."""
    named = bool(status) and platform.normal_status(status) in {platform.normal_status(one) for one in drops}
    return named or platform.meaning_of(status) == "rejects"


def _stand(commands: Commands, visit: Visit, meaning: Meaning, reason: str) -> bool:
    """Block a worker whose visit has ended, or take that back; False if they never had a task."""
    worker = visit.worker
    tally = commands.state.find_worker(worker)
    if tally is None:
        return False
    by_platform = tally.reason.startswith(_reason(visit.platform))
    if meaning == "keeps":
        if tally.standing == "blocked" and by_platform:
            set_standing(commands, worker, "active")
    elif tally.standing == "active" or by_platform:
        set_standing(commands, worker, "blocked", reason)
    return True
