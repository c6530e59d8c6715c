"""``nextlabel mturk bonus``: what workers are owed, as the arguments of SendBonus."""

from __future__ import annotations

from nextlabel.cli.campaign.common import Id
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.platform_options import Reward, SaveBonuses, write_bonuses


def bonus(id: Id, reward: Reward = "0", save: SaveBonuses = None, db: Db = DB, as_json: Json = False) -> None:
    """Write what each worker is owed beyond the reward, with the assignment by which it can be paid.

    A table with the arguments of MTurk's SendBonus: WorkerId, AssignmentId, BonusAmount, Reason. The amount is labels
    times the campaign's pay per label, less the reward of each assignment.
    """
    write_bonuses(id, "mturk", reward, save, db, as_json)
