"""``nextlabel campaign workers`` and ``links``: the people of a campaign."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nextlabel.cli.database import Id, service_at
from nextlabel.cli.options import DB, Db, Json, PublicUrl, refuse_idle
from nextlabel.cli.output import answer, print_json, print_table, say
from nextlabel.errors import InputError
from nextlabel.prose import counted, listed

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService
    from nextlabel.campaigns.worker_reports import WorkerReport

#: Workers in the table on the screen.
SHOWN = 50
Action = Literal["pause", "block", "restore", "drop-labels", "restore-labels"]


def workers(
    context: typer.Context,
    id: Id,
    action: Annotated[
        Action | None,
        typer.Argument(
            metavar="[ACTION]", help="pause, block, restore, drop-labels or restore-labels. Default: show all workers."
        ),
    ] = None,
    worker: Annotated[str | None, typer.Argument(metavar="[WORKER]", help="The worker's name.")] = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why, for the log; the worker does not see it.", show_default=False)
    ] = "",
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Show each worker's labels, accuracy, pay and standing, or change how one of them stands.

    A paused worker gets no new task. A blocked one gets none, loses the one that they hold, and no answer that still
    comes counts. Dropped labels leave the results but stay spent; restored ones come back where there is room.
    """
    if action not in ("pause", "block", "drop-labels"):
        refuse_idle(context, ["reason"], "pause, block or drop-labels")
    with service_at(db) as service:
        if action is None:
            _show(id, service.worker_reports.of(id), as_json)
            return
        if worker is None:
            raise InputError(
                f"nothing says whom to {action}.", f"Give nextlabel campaign workers {id} {action} WORKER."
            )
        fields, sentence = _change(service, id, action, worker, reason)
    answer(as_json, fields, sentence)


def _change(
    service: CampaignService, id: str, action: Action, worker: str, reason: str
) -> tuple[dict[str, object], str]:
    from nextlabel.campaign.states import STANDINGS, Standing

    standings: dict[str, Standing] = {"pause": "paused", "block": "blocked", "restore": "active"}
    if action in standings:
        row = service.set_standing(id, worker, standings[action], reason)
        fields: dict[str, object] = {"worker": worker, "standing": row.standing, "reason": row.reason}
        return fields, f"{worker} is {row.standing}. {STANDINGS[row.standing]}"
    if action == "drop-labels":
        changed = service.drop_labels(id, worker, reason).changed
        return {
            "worker": worker,
            "dropped": changed,
        }, f"{counted(changed, 'label')} of {worker} dropped; they stay spent."
    done = service.restore_labels(id, worker)
    left = f" {counted(done.left, 'label')} found no room." if done.left else ""
    fields = {"worker": worker, "restored": done.changed, "left": done.left}
    return fields, f"{counted(done.changed, 'label')} of {worker} restored.{left}"


def _show(id: str, reports: list[WorkerReport], as_json: bool) -> None:
    if as_json:
        print_json({"workers": [asdict(one) for one in reports]})
        return
    rows = [
        [
            one.worker,
            f"{one.labels:,}" + (f" ({one.dropped:,} dropped)" if one.dropped else ""),
            "-" if one.accuracy is None else f"{one.accuracy:.2f} [{one.accuracy_low:.2f}, {one.accuracy_high:.2f}]",
            "-" if one.agreement is None else f"{one.agreement:.2f}",
            f"{one.amount:,.2f}",
            one.standing,
            ", ".join(one.flags),
        ]
        for one in reports[:SHOWN]
    ]
    many = counted(len(reports), "worker")
    caption = f"{many}. Accuracy with its 95% interval. All as a file: nextlabel campaign export {id} --rows workers."
    head = ["worker", "labels", "accuracy", "agreement", "amount", "standing", "stands out"]
    print_table(f"Workers of {id}", head, rows, caption)


def links(
    context: typer.Context,
    id: Id,
    workers: Annotated[list[str] | None, typer.Argument(metavar="WORKERS...", help="The workers' names.")] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="End the links of these workers, in running services within seconds.")
    ] = False,
    join: Annotated[
        bool,
        typer.Option("--join", help="With --revoke: the link for platforms, and the sessions of all who came by it."),
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="With --revoke: the links of experts who answer an audit.")
    ] = False,
    public_url: PublicUrl = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Make a link per worker, and one for platforms such as Prolific; or end links."""
    if revoke:
        refuse_idle(context, ["public_url"], "links that are made")
        _revoke(id, workers or [], join, audit, db, as_json)
        return
    refuse_idle(context, ["join", "audit"], "--revoke")
    with service_at(db) as service:
        from nextlabel.service.app_state import link_warning
        from nextlabel.service.links import LinkSigner, join_url, worker_url
        from nextlabel.service.settings import ServiceSettings

        service.store.row(id)
        settings = ServiceSettings(public_url=public_url)
        base, signer = settings.base_url, LinkSigner.of(service.store, settings.key_file)
        made = {worker: worker_url(base, signer.worker_token(id, worker)) for worker in workers or []}
        address, warning = join_url(base, signer.join_token(id)), link_warning(base)
    if warning:
        say(f"warning: {warning}")
    if as_json:
        print_json({"workers": made, "join": address, "warning": warning or None})
        return
    for worker, link in made.items():
        sys.stdout.write(f"{worker}\t{link}\n")
    sys.stdout.write(f"any\t{address}?PROLIFIC_PID=...\n")


def _revoke(id: str, workers: list[str], join: bool, audit: bool, db: str, as_json: bool) -> None:
    if not workers and not join and not audit:
        raise InputError("nothing says whose links are to end.", "Name workers, or give --join or --audit.")
    with service_at(db) as service:
        from nextlabel.service.links import revoke_links

        service.store.row(id)
        revoke_links(service.store, id, workers, join, audit)
    ended = [*workers, *(["everybody who came from a platform"] if join else []), *(["experts"] if audit else [])]
    answer(
        as_json,
        {"campaign": id, "workers": workers, "join": join, "audit": audit},
        f"Links to {id} are no longer valid for {listed(ended)}.",
    )
