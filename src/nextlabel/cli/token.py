"""``nextlabel token``: who may use a database, who changed what, and an end to links."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nextlabel.cli.database import opened_store
from nextlabel.cli.options import DB, Db, Flag, verb
from nextlabel.cli.output import Said, tabled
from nextlabel.errors import InputError
from nextlabel.prose import counted, iso, without_passwords

if TYPE_CHECKING:
    from nextlabel.reporting.report import Report

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
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Whose token it is, e.g. ann or grafana. Default: administrator.")
    ] = "administrator",
    role: Annotated[
        Literal["administrator", "requester", "auditor", "viewer"] | None,
        Flag(None, ROLE_HELP),
    ] = None,
    owner: Annotated[
        str | None,
        Flag("NAME", "Whose campaigns it opens. Default: a requester's own, by the token's name; else all."),
    ] = None,
    campaigns: Annotated[str | None, Flag("ID,ID", "The only campaigns that it opens. Default: no limit.")] = None,
    replace: Annotated[bool, Flag(None, "Replace the token of that name, which stops working.")] = False,
    db: Db = DB,
) -> Said:
    """Make a token and show it, this once."""
    with opened_store(db) as store:
        from nextlabel.service.access import FIRST, create_token

        role = role or ("administrator" if name == FIRST else "requester")
        limits = [] if campaigns is None else [id.strip() for id in campaigns.split(",")]
        made = create_token(store, name, role, owner, limits, replace)
    return Said({"name": name, "role": role, "token": made}, text=f"{made}\n")


@app.command("list")
@verb()
def list_tokens(
    activity: Annotated[
        bool, Flag(None, "Instead: who changed what over HTTP and in the browser, newest first.")
    ] = False,
    db: Db = DB,
) -> Report:
    """Show the names, roles and limits of all tokens, which themselves are not stored; or what was done with them."""
    with opened_store(db) as store:
        if activity:
            rows = [asdict(one) | {"at": iso(one.at)} for one in store.access.activity("", (), "", MOST_ACTIVITY)]
            header = ("at", "token", "campaign", "request")
            cells = [[row[name] for name in header] for row in rows]
            return tabled("Who changed what", header, cells, f"{counted(len(rows), 'change')}.", {"activity": rows})
        told = ("name", "role", "owner", "campaigns")
        rows = [
            {name: getattr(one, name) for name in told} | {"created_at": iso(one.created_at)}
            for one in store.access.tokens()
        ]
    title, cells = f"Tokens of {without_passwords(db)}", [list(row.values()) for row in rows]
    columns = ("name", "role", "owner", "only", "made")
    return tabled(title, columns, cells, f"{counted(len(rows), 'token')}.", {"tokens": rows})


@app.command()
@verb()
def revoke(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The token's name; nextlabel token list shows them.")
    ] = None,
    links: Annotated[bool, Flag(None, "Instead of a token: all workers' links and all sessions of browsers.")] = False,
    db: Db = DB,
) -> Said:
    """End a token and the sessions of browsers that signed in with it, in running services within seconds."""
    if (name is None) is not links:
        raise InputError("a token's name or --links says what ends.", "Give one of them.")
    with opened_store(db) as store:
        from nextlabel.service.access import revoke_token, rotate_secrets

        if name is None:
            rotate_secrets(store)
        else:
            revoke_token(store, name)
    if name is not None:
        return Said({"revoked": name}, f"The token {name} is no longer valid.")
    sentence = "All links and sessions have ended. Make links again: nextlabel campaign links. Tokens are as before."
    return Said({"links": True}, sentence)
