"""What the commands for platforms share: the platform's reward, a file of bonuses, and a note on missing settings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from nextlabel.cli.campaign.common import number_of, service_at
from nextlabel.cli.options import text
from nextlabel.cli.output import print_json, say
from nextlabel.cli.output_files import checked_file
from nextlabel.files.write import whole_file
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.campaign.rows import CampaignRow
    from nextlabel.campaigns.visits import Platform

Reward = Annotated[
    str, text("--platform-reward", "AMOUNT", "What the platform pays a worker for each visit already. Default: 0.")
]
SaveBonuses = Annotated[str | None, text("--save", "FILE", "Write to this file. Default: stdout.")]


def write_bonuses(id: str, platform: Platform, reward: str, save: str | None, db: str, as_json: bool) -> None:
    """Write what workers are owed, in the platform's form; the sum on stderr."""
    paid = number_of("--platform-reward", reward)
    target = None if save is None else checked_file("--save", save)
    with service_at(db) as service:
        found = service.visits.bonuses(id, platform, paid)
        table = service.visits.bonus_csv(id, platform, paid)
    if target is not None:
        with whole_file(target) as stream:
            stream.write(table)
    total = sum(float(one.amount) for one in found)
    if as_json:
        rows = [{"worker": one.worker, "visit": one.visit, "amount": float(one.amount)} for one in found]
        print_json({"bonuses": rows, "total": round(total, 2), "file": save})
        return
    if target is None:
        sys.stdout.write(table)
    where = "" if save is None else f", written to {save}"
    say(f"{counted(len(found), 'bonus', 'bonuses')} with a total of {total:.2f}{where}.")


def notes_on(row: CampaignRow, needs_code: bool) -> list[str]:
    """What a campaign lacks for workers to come to an end; also said on stderr."""
    notes = []
    if row.config.most_labels_per_worker is None:
        notes.append(
            f"Campaign {row.id} has no limit per worker: they are led back when nothing is left for them. "
            f"Set one: nextlabel campaign change {row.id} --most-labels-per-worker 50."
        )
    if needs_code and not row.config.completion_code:
        notes.append(
            f"Campaign {row.id} has no completion code. "
            f"Set the study's: nextlabel campaign change {row.id} --completion-code C1A2B3C4."
        )
    for note in notes:
        say(f"warning: {note}")
    return notes
