"""``nextlabel platform``: a campaign as a study on Prolific or as a HIT on Mechanical Turk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nextlabel.cli.database import Id, service_at, settings_at
from nextlabel.cli.options import DB, Db, Flag, PublicUrl, number, verb
from nextlabel.cli.output import Said, checked_file, say
from nextlabel.errors import InputError
from nextlabel.files.write import whole_file
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService
    from nextlabel.campaign.rows import CampaignRow

app = typer.Typer(help="Run a campaign on Prolific or Mechanical Turk.", no_args_is_help=True)

PlatformName = Annotated[Literal["prolific", "mturk"], typer.Argument(metavar="PLATFORM", help="prolific or mturk.")]

#: What a frame's flags go with.
MTURK = ("mturk", lambda typed: typed["platform"] == "mturk")


@app.command()
@verb()
def study(
    platform: PlatformName,
    id: Id,
    height: Annotated[
        float, number("PIXELS", "For mturk: height of the frame; 0 fits the worker's window. Default: 0.", needs=MTURK)
    ] = 0.0,
    public_url: PublicUrl = None,
    db: Db = DB,
) -> Said:
    """Print what the platform is given: the study's addresses and code, or MTurk's ExternalQuestion for CreateHIT.

    Prolific's webhook, submission.status.change, needs a service with NEXTLABEL_PROLIFIC_SECRET; without one, see
    'nextlabel platform statuses'. MTurk shows the campaign's page in a frame, by https alone.
    """
    if height != int(height):
        raise InputError(f"the frame's height {height:g} is not a whole number.", "Give e.g. 800.")
    with service_at(db) as service:
        make = _prolific if platform == "prolific" else _mturk
        return make(service, id, public_url, int(height))


def _prolific(service: CampaignService, id: str, public_url: str | None, height: int) -> Said:
    from nextlabel.integrations.prolific import Prolific
    from nextlabel.service.app_state import link_warning
    from nextlabel.service.links import LinkSigner, link_url
    from nextlabel.service.routes.platforms import hook_url

    row, settings = service.store.row(id), settings_at(service.store, public_url)
    token = LinkSigner.of(service.store, settings.key_file).join_token(id)
    address = Prolific().link(link_url(settings.base_url, token))
    hook, code = hook_url(settings.base_url), row.config.completion_code
    notes = _warned([*_notes_on(row, needs_code=True), link_warning(settings.base_url)])
    fields: dict[str, object] = {"study_url": address, "completion_code": code, "hook": hook, "warnings": notes}
    return Said(fields, text=f"study\t{address}\ncode\t{code or '-'}\nwebhook\t{hook}\n")


def _mturk(service: CampaignService, id: str, public_url: str | None, height: int) -> Said:
    from nextlabel.integrations.mturk import external_question
    from nextlabel.service.links import LinkSigner, link_url

    row, settings = service.store.row(id), settings_at(service.store, public_url)
    address = link_url(settings.base_url, LinkSigner.of(service.store, settings.key_file).join_token(id), "f")
    xml = external_question(address, height)
    plain = f"MTurk shows pages by https alone, and this one is at {settings.base_url}. Give --public-url."
    notes = _warned([*_notes_on(row, needs_code=False), "" if settings.is_https else plain])
    return Said({"question": xml, "url": address, "warnings": notes}, text=xml)


def _notes_on(row: CampaignRow, needs_code: bool) -> list[str]:
    """What a campaign lacks for workers to come to an end."""
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
    return notes


def _warned(notes: list[str]) -> list[str]:
    """The warnings among these, also said on stderr."""
    given = [note for note in notes if note]
    for note in given:
        say(f"warning: {note}")
    return given


@app.command()
@verb()
def statuses(
    platform: Annotated[Literal["prolific"], typer.Argument(metavar="PLATFORM", help="prolific.")],
    id: Id,
    file: Annotated[
        str | None, typer.Argument(metavar="EXPORT", help="Prolific's list of submissions, a CSV file. Default: none.")
    ] = None,
    db: Db = DB,
) -> Said:
    """List the submissions of a campaign; with Prolific's export, do first what its webhook would have done.

    Items of participants who returned their submission or ran out of time go to others. Labels of rejected submissions
    are dropped, until the rejection is taken back.
    """
    changes = []
    if file is not None:
        from nextlabel.files.tables import open_stream
        from nextlabel.integrations.prolific import read_export

        with open_stream(file) as stream:
            changes = read_export(stream, file)
    with service_at(db) as service:
        from nextlabel.service.settings import ServiceSettings

        service.store.row(id)
        effects = service.visits.statuses_changed(id, platform, changes, ServiceSettings().drop_statuses)
        visits = service.store.visits.of(id, platform)
    if file is not None:
        done = ", ".join(f"{many} {effect}" for effect, many in effects.items()) or "none of this campaign"
        say(f"{counted(len(changes), 'submission')} read: {done}.")
    rows = [{"submission": one.id, "worker": one.worker, "study": one.study, "status": one.status} for one in visits]
    lines = "".join(f"{one.id}\t{one.worker}\t{one.status or '-'}\n" for one in visits)
    return Said({"submissions": rows, "effects": effects}, text=lines)


@app.command()
@verb()
def bonus(
    platform: PlatformName,
    id: Id,
    platform_reward: Annotated[
        float, number("AMOUNT", "What the platform pays a worker for each visit already. Default: 0.")
    ] = 0.0,
    save: Annotated[str | None, Flag("FILE", "Write to this file. Default: stdout.")] = None,
    db: Db = DB,
) -> Said:
    """Write what each worker is owed beyond the platform's reward: labels times pay per label, less the reward.

    For Prolific's bulk payment one line 'participant,amount' each, without those whose submission was rejected; for
    MTurk the arguments of SendBonus: WorkerId, AssignmentId, BonusAmount, Reason.
    """
    target = None if save is None else checked_file("--save", save)
    with service_at(db) as service:
        bonuses = service.visits.bonuses(id, platform, platform_reward)
        table = service.visits.bonus_csv(id, platform, platform_reward)
        unconfirmed = service.visits.unconfirmed(id, platform)
    if target is not None:
        with whole_file(target) as stream:
            stream.write(table)
    total = sum(float(one.amount) for one in bonuses)
    _warned([unconfirmed])
    rows = [{"worker": one.worker, "visit": one.visit, "amount": float(one.amount)} for one in bonuses]
    where = "" if save is None else f", written to {save}"
    return Said(
        {"bonuses": rows, "total": round(total, 2), "file": save},
        f"{counted(len(bonuses), 'bonus', 'bonuses')} with a total of {total:.2f}{where}.",
        table if target is None else "",
    )
