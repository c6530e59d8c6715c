"""``nextlabel platform``: a campaign as a study on Prolific or as a HIT on Mechanical Turk."""

from __future__ import annotations

from typing import Literal

import typer

from nextlabel.campaign.records import Visit
from nextlabel.cli.database import ID, links_at, service_at
from nextlabel.cli.options import DB, PUBLIC_URL, argument, flag, number, verb
from nextlabel.cli.output import Said, checked_file, say
from nextlabel.errors import InputError
from nextlabel.files.tables import open_stream
from nextlabel.files.write import whole_file
from nextlabel.wording import counted

app = typer.Typer(help="Run a campaign on Prolific or Mechanical Turk.", no_args_is_help=True)
Platform = Literal["prolific", "mturk"]
PLATFORM = argument("PLATFORM", "prolific or mturk.")

#: What a frame's flags go with.
MTURK = ("mturk", lambda typed: typed["platform"] == "mturk")


@app.command()
@verb()
def study(
    platform: Platform = PLATFORM,
    id: str = ID,
    height: float = number(
        "PIXELS", "For mturk: height of the frame; 0 fits the worker's window. Default: 0.", default=0.0, needs=MTURK
    ),
    public_url: str | None = flag(*PUBLIC_URL),
    db: str = DB,
) -> Said:
    """Print what the platform is given: the study's addresses and code, or MTurk's ExternalQuestion for CreateHIT.

    Prolific's webhook, submission.status.change, needs a service with NEXTLABEL_PROLIFIC_SECRET; without one, see
    'nextlabel platform statuses'. MTurk shows the campaign's page in a frame, by https alone.
    """
    if height != int(height):
        raise InputError(f"the frame's height {height:g} is not a whole number.", "Give e.g. 800.")
    with service_at(db) as service:
        from nextlabel.integrations.mturk import external_question
        from nextlabel.integrations.prolific import Prolific
        from nextlabel.service.links import link_url
        from nextlabel.service.routes.platforms import hook_url

        config = service.store.row(id).config
        signer, settings, warning = links_at(service.store, public_url)
        base, token, code = settings.base_url, signer.join_token(id), config.completion_code
    notes = []
    if config.most_labels_per_worker is None:
        notes.append(
            f"Campaign {id} has no limit per worker: they are led back when nothing is left for them. "
            f"Set one: nextlabel campaign change {id} --most-labels-per-worker 50."
        )
    if platform == "mturk":
        plain = f"MTurk shows pages by https alone, and this one is at {base}. Give --public-url."
        address = link_url(base, token, "f")
        xml = external_question(address, int(height))
        notes = _warned(*notes, "" if settings.is_https else plain)
        return Said({"question": xml, "url": address, "warnings": notes}, text=xml)
    if not code:
        notes.append(
            f"Campaign {id} has no completion code. "
            f"Set the study's: nextlabel campaign change {id} --completion-code C1A2B3C4."
        )
    address, hook = Prolific().link(link_url(base, token)), hook_url(base)
    fields = {"study_url": address, "completion_code": code, "hook": hook, "warnings": _warned(*notes, warning)}
    return Said(fields, text=f"study\t{address}\ncode\t{code or '-'}\nwebhook\t{hook}\n")


def _warned(*notes: str) -> list[str]:
    """The warnings among these, also said on stderr."""
    given = [note for note in notes if note]
    for note in given:
        say(f"warning: {note}")
    return given


@app.command()
@verb()
def statuses(
    platform: Literal["prolific"] = argument("PLATFORM", "prolific."),
    id: str = ID,
    file: str | None = argument("EXPORT", "Prolific's list of submissions, a CSV file. Default: none.", None),
    db: str = DB,
) -> Said:
    """List the submissions of a campaign; with Prolific's export, do first what its webhook would have done.

    Items of participants who returned their submission or ran out of time go to others. Labels of rejected submissions
    are dropped, until the rejection is taken back.
    """
    from nextlabel.integrations.prolific import read_export

    changes = []
    if file is not None:
        with open_stream(file) as stream:
            changes = read_export(stream, file)
    with service_at(db) as service:
        from nextlabel.service.settings import ServiceSettings

        service.store.row(id)
        effects = service.visits.statuses_changed(id, platform, changes, ServiceSettings().drop_statuses)
        visits = service.store.records.find(Visit, campaign=id, platform=platform)
    if file is not None:
        done = ", ".join(f"{many} {effect}" for effect, many in effects.items()) or "none of this campaign"
        say(f"{counted(len(changes), 'submission')} read: {done}.")
    rows = [{"submission": one.id, "worker": one.worker, "study": one.study, "status": one.status} for one in visits]
    lines = "".join(f"{one.id}\t{one.worker}\t{one.status or '-'}\n" for one in visits)
    return Said({"submissions": rows, "effects": effects}, text=lines)


@app.command()
@verb()
def bonus(
    platform: Platform = PLATFORM,
    id: str = ID,
    platform_reward: float = number(
        "AMOUNT", "What the platform pays a worker for each visit already. Default: 0.", default=0.0
    ),
    save: str | None = flag("FILE", "Write to this file. Default: stdout."),
    db: str = DB,
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
    _warned(unconfirmed)
    rows = [{"worker": one.worker, "visit": one.visit, "amount": float(one.amount)} for one in bonuses]
    where = "" if save is None else f", written to {save}"
    return Said(
        {"bonuses": rows, "total": round(total, 2), "file": save},
        f"{counted(len(bonuses), 'bonus', 'bonuses')} with a total of {total:.2f}{where}.",
        table if target is None else "",
    )
