"""What platforms say of their workers: visits that begin, submissions that end, and bonuses to be paid.

What a status of Prolific means for a worker is in ``integrations.prolific``. Here it becomes commands on the campaign:

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
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.records import Visit
from nextlabel.campaign.worker_commands import set_standing
from nextlabel.campaigns.worker_reports import MOST_WORKERS, report_of
from nextlabel.errors import InputError
from nextlabel.integrations import mturk, prolific

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

Platform = Literal["prolific", "mturk"]
PLATFORMS: Final[tuple[Platform, ...]] = ("prolific", "mturk")
#: How the reason begins for which a platform's status has blocked a worker.
REASON: Final = "Prolific: "
#: unknown: no such visit here; outdated: something newer is known; others as in ``integrations.prolific``.
Effect = Literal["unknown", "outdated", "kept", "ended", "rejected"]
EFFECTS: Final[dict[prolific.Meaning, Effect]] = {"keeps": "kept", "ends": "ended", "rejects": "rejected"}
_CENT: Final = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Bonus:
    """What is still to be paid to a worker for a visit."""

    worker: str
    visit: str
    amount: Decimal


class PlatformVisits:
    """Visits to the campaigns of one service."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._service = campaign_service
        self._lock = Lock()  # two statuses of one submission follow one another

    def begin(self, campaign: str, worker: str, platform: Platform, id: str, study: str) -> Visit:
        """A worker comes, perhaps again; whoever was blocked because an earlier visit had ended gets tasks again."""
        visits = self._service.store.visits
        known = [one for one in visits.find(platform, id) if one.campaign == campaign]
        if known:
            return known[0]
        earlier = visits.of(campaign, platform, worker)
        rejected = any(prolific.meaning_of(one.status) == "rejects" for one in earlier)

        def enter(commands: Commands) -> int:
            tally = commands.state.find_worker(worker)
            if tally is None:
                return 0
            if tally.standing == "blocked" and tally.reason.startswith(REASON) and not rejected:
                set_standing(commands, worker, "active")
            return tally.labels

        before = self._service.run(campaign, enter)
        return visits.add(Visit(campaign, platform, id, worker, study, self._service.clock(), before))

    def status_changed(self, change: prolific.StatusChange, at: float, drops: Collection[str] = ()) -> Effect:
        """Prolific says that a submission has a status; labels are dropped for rejections, and for ``drops``."""
        worker = prolific.PREFIX + change.participant
        with self._lock:
            found = self._service.store.visits.find(prolific.PLATFORM, change.submission)
            effects = [self._apply(one, change.status, at, drops) for one in found if one.worker == worker]
        return effects[0] if effects else "unknown"

    def statuses_changed(
        self, campaign: str, changes: Iterable[prolific.StatusChange], drops: Collection[str] = ()
    ) -> dict[Effect, int]:
        """The same for a list of submissions, as it is now; those of other campaigns are left out."""
        known, now = (
            {one.id for one in self._service.store.visits.of(campaign, prolific.PLATFORM)},
            self._service.clock(),
        )
        effects: dict[Effect, int] = {}
        for change in changes:
            if change.submission in known:
                effect = self.status_changed(change, now, drops)
                effects[effect] = effects.get(effect, 0) + 1
        return effects

    def _apply(self, visit: Visit, status: str, at: float, drops: Collection[str]) -> Effect:
        """Do what a status asks for, then keep it: after a crash in between it is all done again."""
        visits = self._service.store.visits
        if visit.status_at is not None and visit.status_at > at:
            return "outdated"
        meaning = prolific.meaning_of(status)
        if visits.of(visit.campaign, visit.platform, visit.worker)[-1].id == visit.id:
            reason = f"{REASON}submission {visit.id} is {prolific.normal_status(status).lower()}"
            known = self._service.run(visit.campaign, lambda commands: _stand(commands, visit.worker, meaning, reason))
            if known and self._drops(status, drops):
                self._service.drop_labels(visit.campaign, visit.worker, reason)
            elif known and self._drops(visit.status, drops):
                self._service.restore_labels(visit.campaign, visit.worker)
        visits.set_status(visit, status, at)
        return EFFECTS[meaning]

    @staticmethod
    def _drops(status: str, drops: Collection[str]) -> bool:
        return prolific.meaning_of(status) == "rejects" or (
            bool(status) and prolific.normal_status(status) in {prolific.normal_status(one) for one in drops}
        )

    def bonuses(self, campaign: str, platform: Platform, reward: float = 0.0) -> list[Bonus]:
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
        prefix = {"prolific": prolific.PREFIX, "mturk": mturk.PREFIX}[platform]
        found = []
        for tally in self._service.store.workers(campaign, MOST_WORKERS):
            visit = newest.get(tally.worker)
            if not tally.worker.startswith(prefix) or (platform == mturk.PLATFORM and visit is None):
                continue
            if visit is not None and prolific.meaning_of(visit.status) == "rejects":
                continue
            paid = rewards.get(tally.worker, Decimal(str(reward)))
            amount = (Decimal(str(report_of(tally, pay).amount)) - paid).quantize(_CENT, ROUND_HALF_UP)
            if amount >= _CENT:
                found.append(Bonus(tally.worker.removeprefix(prefix), "" if visit is None else visit.id, amount))
        return sorted(found, key=lambda one: (-one.amount, one.worker))

    def bonus_csv(self, campaign: str, platform: Platform, reward: float = 0.0) -> str:
        """The same in the form that the platform takes."""
        found = self.bonuses(campaign, platform, reward)
        if platform == prolific.PLATFORM:
            return prolific.bonus_csv((one.worker, one.amount) for one in found)
        row = self._service.store.row(campaign)
        reason = f"Labels in {row.config.name or campaign}"
        return mturk.bonus_csv(((one.worker, one.visit, one.amount) for one in found), reason)


def _stand(commands: Commands, worker: str, meaning: prolific.Meaning, reason: str) -> bool:
    """Block a worker whose visit has ended, or take that back; False if they never had a task."""
    tally = commands.state.find_worker(worker)
    if tally is None:
        return False
    by_platform = tally.reason.startswith(REASON)
    if meaning == "keeps":
        if tally.standing == "blocked" and by_platform:
            set_standing(commands, worker, "active")
    elif tally.standing == "active" or by_platform:
        set_standing(commands, worker, "blocked", reason)
    return True
