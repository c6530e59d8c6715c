"""``nextlabel prolific`` and ``nextlabel mturk``: a campaign as a study on Prolific or as a HIT on Mechanical Turk."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nextlabel.cli.database import Id, number_of, service_at
from nextlabel.cli.options import DB, Db, Json, PublicUrl, text
from nextlabel.cli.output import checked_file, print_json, say
from nextlabel.cli.serve import needs_service
from nextlabel.errors import InputError
from nextlabel.files.write import whole_file
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.campaign.rows import CampaignRow

prolific = typer.Typer(help="Run a campaign as a study on Prolific.", no_args_is_help=True)
mturk = typer.Typer(help="Run a campaign as a HIT on Amazon Mechanical Turk.", no_args_is_help=True)

Reward = Annotated[
    str, text("--platform-reward", "AMOUNT", "What the platform pays a worker for each visit already. Default: 0.")
]
SaveBonuses = Annotated[str | None, text("--save", "FILE", "Write to this file. Default: stdout.")]


@prolific.command()
def study(id: Id, public_url: PublicUrl = None, db: Db = DB, as_json: Json = False) -> None:
    """Print the address of the study, its completion code, and the address for Prolific's webhook.

    The webhook, submission.status.change, is taken by a service that was started with the workspace's secret in
    NEXTLABEL_PROLIFIC_SECRET. Without one, see 'nextlabel prolific statuses'.
    """
    with service_at(db) as service:
        from nextlabel.integrations.prolific import Prolific
        from nextlabel.service.app_state import link_warning
        from nextlabel.service.links import LinkSigner, join_url
        from nextlabel.service.routes.platforms import hook_url
        from nextlabel.service.settings import ServiceSettings

        row = service.store.row(id)
        settings = ServiceSettings(public_url=public_url)
        token = LinkSigner.of(service.store, settings.key_file).join_token(id)
        address = Prolific().link(join_url(settings.base_url, token))
        hook, code = hook_url(settings.base_url), row.config.completion_code
        notes = notes_on(row, needs_code=True)
        warning = link_warning(settings.base_url)
        if warning:
            notes.append(warning)
            say(f"warning: {warning}")
    if as_json:
        print_json({"study_url": address, "completion_code": code, "hook": hook, "warnings": notes})
        return
    sys.stdout.write(f"study\t{address}\ncode\t{code or '-'}\nwebhook\t{hook}\n")


@prolific.command()
def statuses(
    id: Id,
    file: Annotated[
        str | None, typer.Argument(metavar="EXPORT", help="Prolific's list of submissions, a CSV file. Default: none.")
    ] = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """List the submissions of a campaign; with Prolific's export, do first what its webhook would have done.

    What participants hold who returned their submission or ran out of time goes to others. Labels of rejected
    submissions are dropped, and taken in again if the rejection is taken back.
    """
    needs_service()
    changes = []
    if file is not None:
        from nextlabel.files.tables import open_stream
        from nextlabel.integrations.prolific import read_export

        with open_stream(file) as stream:
            changes = read_export(stream, file)
    with service_at(db) as service:
        from nextlabel.service.settings import ServiceSettings

        service.store.row(id)
        effects = service.visits.statuses_changed(id, "prolific", changes, ServiceSettings().drop_statuses)
        found = service.store.visits.of(id, "prolific")
    if file is not None:
        done = ", ".join(f"{many} {effect}" for effect, many in effects.items()) or "none of this campaign"
        say(f"{counted(len(changes), 'submission')} read: {done}.")
    if as_json:
        rows = [{"submission": one.id, "worker": one.worker, "study": one.study, "status": one.status} for one in found]
        print_json({"submissions": rows, "effects": effects})
        return
    for one in found:
        sys.stdout.write(f"{one.id}\t{one.worker}\t{one.status or '-'}\n")


@prolific.command("bonus")
def prolific_bonus(id: Id, reward: Reward = "0", save: SaveBonuses = None, db: Db = DB, as_json: Json = False) -> None:
    """Write what each participant is owed beyond the reward, as Prolific's bulk bonus payment takes it.

    One line per participant, 'participant,amount' in the study's currency: labels times the campaign's pay per label,
    less the reward. Participants whose submission was rejected get none.
    """
    write_bonuses(id, "prolific", reward, save, db, as_json)


@mturk.command()
def question(
    id: Id,
    height: Annotated[str, text("--height", "PIXELS", "Height of the frame; 0 fits the worker's window.")] = "0",
    public_url: PublicUrl = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Print the ExternalQuestion for MTurk's CreateHIT: the campaign's page in a frame.

    MTurk shows pages by https alone. Only the sites of NEXTLABEL_FRAME_HOSTS may frame the page, those of MTurk unless
    it says otherwise.
    """
    pixels = number_of("--height", height)
    if pixels != int(pixels):
        raise InputError(f"the frame's height {height} is not a whole number.", "Give e.g. 800.")
    with service_at(db) as service:
        from nextlabel.integrations.mturk import external_question
        from nextlabel.service.links import LinkSigner, frame_url
        from nextlabel.service.settings import ServiceSettings

        row = service.store.row(id)
        settings = ServiceSettings(public_url=public_url)
        address = frame_url(settings.base_url, LinkSigner.of(service.store, settings.key_file).join_token(id))
        xml = external_question(address, int(pixels))
        notes = notes_on(row, needs_code=False)
        if not settings.is_https:
            notes.append(
                f"MTurk shows pages by https alone, and this one is at {settings.base_url}. Give --public-url."
            )
            say(f"warning: {notes[-1]}")
    if as_json:
        print_json({"question": xml, "url": address, "warnings": notes})
    else:
        sys.stdout.write(xml)


@mturk.command("bonus")
def mturk_bonus(id: Id, reward: Reward = "0", save: SaveBonuses = None, db: Db = DB, as_json: Json = False) -> None:
    """Write what each worker is owed beyond the reward, with the assignment by which it can be paid.

    A table with the arguments of MTurk's SendBonus: WorkerId, AssignmentId, BonusAmount, Reason. The amount is labels
    times the campaign's pay per label, less the reward of each assignment.
    """
    write_bonuses(id, "mturk", reward, save, db, as_json)


def write_bonuses(id: str, platform: str, reward: str, save: str | None, db: str, as_json: bool) -> None:
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
