"""``nextlabel token``: who may use a database, who changed what, and an end to links."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

import typer

from nextlabel.campaign.records import AccessToken
from nextlabel.cli.database import names_of, service_at
from nextlabel.cli.options import DB, argument, flag, switch, verb
from nextlabel.cli.output import Said, tabled
from nextlabel.errors import InputError
from nextlabel.reporting.report import Report
from nextlabel.wording import counted, iso, without_passwords

app = typer.Typer(help="Make, list and revoke tokens.", no_args_is_help=True)
#: Changes that are shown at most.
MOST_ACTIVITY = 10_000
ROLE_HELP = (
    "What its holder may do: an administrator everything, a requester everything with their own campaigns, an auditor "
    "read everything, a viewer read results but not who did what. Default: requester, or administrator for the token "
    "of that name."
)


@app.command()
@verb()
def create(
    name: str = argument("NAME", "Whose token it is, e.g. ann or grafana. Default: administrator.", "administrator"),
    role: Literal["administrator", "requester", "auditor", "viewer"] | None = flag(None, ROLE_HELP),
    owner: str | None = flag(
        "NAME", "Whose campaigns it opens. Default: a requester's own, by the token's name; else all."
    ),
    campaigns: str | None = flag("ID,ID", "The only campaigns that it opens. Default: no limit."),
    replace: bool = switch("Replace the token of that name, which stops working."),
    db: str = DB,
) -> Said:
    """Make a token and show it, this once."""
    with service_at(db) as service:
        from nextlabel.service.access import FIRST, create_token

        role = role or ("administrator" if name == FIRST else "requester")
        limits = [] if campaigns is None else names_of(campaigns)
        made = create_token(service.store, name, role, owner, limits, replace)
    return Said({"name": name, "role": role, "token": made}, text=f"{made}\n")


@app.command("list")
@verb()
def list_tokens(
    activity: bool = switch("Instead: who changed what over HTTP and in the browser, newest first."),
    db: str = DB,
) -> Report:
    """Show the names, roles and limits of all tokens, which themselves are not stored; or what was done with them."""
    with service_at(db) as service:
        records = service.store.records
        if activity:
            rows = [asdict(one) | {"at": iso(one.at)} for one in records.activity("", (), "", MOST_ACTIVITY)]
            header = ("at", "token", "campaign", "request")
            cells = [[row[name] for name in header] for row in rows]
            return tabled("Who changed what", header, cells, f"{counted(len(rows), 'change')}.", {"activity": rows})
        told = ("name", "role", "owner", "campaigns")
        rows = [
            {name: getattr(one, name) for name in told}
            | {"campaigns": ",".join(one.campaigns), "created_at": iso(one.created_at)}
            for one in records.find(AccessToken)
        ]
    title, cells = f"Tokens of {without_passwords(db)}", [list(row.values()) for row in rows]
    columns = ("name", "role", "owner", "only", "made")
    return tabled(title, columns, cells, f"{counted(len(rows), 'token')}.", {"tokens": rows})


@app.command()
@verb()
def revoke(
    name: str | None = argument("NAME", "The token's name; nextlabel token list shows them.", None),
    links: bool = switch("Instead of a token: all workers' links and all sessions of browsers."),
    db: str = DB,
) -> Said:
    """End a token and the sessions of browsers that signed in with it, in running services within seconds."""
    if (name is None) is not links:
        raise InputError("a token's name or --links says what ends.", "Give one of them.")
    with service_at(db) as service:
        from nextlabel.service.access import revoke_token, rotate_secrets

        if name is not None:
            revoke_token(service.store, name)
            return Said({"revoked": name}, f"The token {name} is no longer valid.")
        rotate_secrets(service.store)
    sentence = "All links and sessions have ended. Make links again: nextlabel campaign links. Tokens are as before."
    return Said({"links": True}, sentence)
