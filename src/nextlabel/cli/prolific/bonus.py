"""``nextlabel prolific bonus``: what participants are owed, for Prolific's bulk bonus payment."""

from __future__ import annotations

from nextlabel.cli.campaign.common import Id
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.platform_options import Reward, SaveBonuses, write_bonuses


def bonus(id: Id, reward: Reward = "0", save: SaveBonuses = None, db: Db = DB, as_json: Json = False) -> None:
    """Write what each participant is owed beyond the reward, as Prolific's bulk bonus payment takes it.

    One line per participant, 'participant,amount' in the study's currency: labels times the campaign's pay per label,
    less the reward. Participants whose submission was rejected get none.
    """
    write_bonuses(id, "prolific", reward, save, db, as_json)
