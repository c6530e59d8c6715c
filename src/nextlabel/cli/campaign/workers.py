"""``nextlabel campaign workers``, ``worker``, ``links`` and ``revoke``: the people of a campaign."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from nextlabel.cli.database import Id, service_at
from nextlabel.cli.options import DB, Db, Json, PublicUrl, refuse_idle
from nextlabel.cli.output import answer, print_json, print_table, say
from nextlabel.errors import InputError
from nextlabel.prose import counted, listed

#: Workers in the table on the screen.
SHOWN = 50
Action = Literal["pause", "block", "restore", "drop-labels", "restore-labels"]


def workers(id: Id, db: Db = DB, as_json: Json = False) -> None:
    """Show each worker's labels, accuracy, pay and standing; 'campaign worker' changes it."""
    with service_at(db) as service:
        found = service.worker_reports.of(id)
    if as_json:
        print_json({"workers": [asdict(one) for one in found]})
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
        for one in found[:SHOWN]
    ]
    many = counted(len(found), "worker")
    caption = f"{many}. Accuracy with its 95% interval. All as a file: nextlabel campaign export {id} --rows workers."
    head = ["worker", "labels", "accuracy", "agreement", "amount", "standing", "stands out"]
    print_table(f"Workers of {id}", head, rows, caption)


def worker(
    context: typer.Context,
    id: Id,
    name: Annotated[str, typer.Argument(metavar="WORKER", help="The worker's name.")],
    action: Annotated[Action, typer.Argument(metavar="ACTION", help="What to do, as described above.")],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why, for the log; the worker does not see it.", show_default=False)
    ] = "",
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Change how one worker stands: pause, block, restore, drop-labels or restore-labels.

    A paused worker gets no new task. A blocked one gets none, loses the one that they hold, and no answer that still
    comes counts. Dropped labels leave the results but stay spent; restored ones come back where there is room.
    """
    from nextlabel.campaign.states import STANDINGS, Standing

    standings: dict[str, Standing] = {"pause": "paused", "block": "blocked", "restore": "active"}
    if action in ("restore", "restore-labels"):
        refuse_idle(context, ["reason"], "pause, block or drop-labels")
    with service_at(db) as service:
        if action in standings:
            row = service.set_standing(id, name, standings[action], reason)
            table: dict[str, object] = {"worker": name, "standing": row.standing, "reason": row.reason}
            sentence = f"{name} is {row.standing}. {STANDINGS[row.standing]}"
        elif action == "drop-labels":
            changed = service.drop_labels(id, name, reason).changed
            table = {"worker": name, "dropped": changed}
            sentence = f"{counted(changed, 'label')} of {name} dropped; they stay spent."
        else:
            done = service.restore_labels(id, name)
            table = {"worker": name, "restored": done.changed, "left": done.left}
            left = f" {counted(done.left, 'label')} found no room." if done.left else ""
            sentence = f"{counted(done.changed, 'label')} of {name} restored.{left}"
    answer(as_json, table, sentence)


def links(
    id: Id,
    workers: Annotated[list[str] | None, typer.Argument(metavar="WORKERS...", help="The workers' names.")] = None,
    public_url: PublicUrl = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Make a link per worker, and one for platforms such as Prolific."""
    with service_at(db) as service:
        from nextlabel.service.app_state import link_warning
        from nextlabel.service.links import LinkSigner, join_url, worker_url
        from nextlabel.service.settings import ServiceSettings

        service.store.row(id)
        settings = ServiceSettings(public_url=public_url)
        base, signer = settings.base_url, LinkSigner.of(service.store, settings.key_file)
        made = {worker: worker_url(base, signer.worker_token(id, worker)) for worker in workers or []}
        join = join_url(base, signer.join_token(id))
        warning = link_warning(base)
    if warning:
        say(f"warning: {warning}")
    if as_json:
        print_json({"workers": made, "join": join, "warning": warning or None})
        return
    for worker, link in made.items():
        sys.stdout.write(f"{worker}\t{link}\n")
    sys.stdout.write(f"any\t{join}?PROLIFIC_PID=...\n")


def revoke(
    id: Id,
    workers: Annotated[list[str] | None, typer.Argument(metavar="WORKERS...", help="The workers' names.")] = None,
    join: Annotated[
        bool, typer.Option("--join", help="The link for platforms, and the sessions of all who came by it.")
    ] = False,
    audit: Annotated[bool, typer.Option("--audit", help="The links of experts who answer an audit.")] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """End the links of workers, in running services within seconds; 'campaign links' then makes new ones."""
    if not workers and not join and not audit:
        raise InputError("nothing says whose links are to end.", "Name workers, or give --join or --audit.")
    with service_at(db) as service:
        from nextlabel.service.links import revoke_links

        service.store.row(id)
        revoke_links(service.store, id, workers or [], join, audit)
    if as_json:
        print_json({"campaign": id, "workers": workers or [], "join": join, "audit": audit})
        return
    ended = [*(workers or []), *(["everybody who came from a platform"] if join else [])]
    ended += ["experts"] if audit else []
    say(f"Links to {id} are no longer valid for {listed(ended)}.")
