"""``nextlabel token``: who may use a database, who changed what, and an end to links."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from nextlabel.cli.database import opened_store
from nextlabel.cli.options import DB, Db, Json, text
from nextlabel.cli.output import answer, print_json, print_table
from nextlabel.errors import InputError
from nextlabel.prose import counted, iso, without_passwords

app = typer.Typer(help="Make, list and revoke tokens.", no_args_is_help=True)
#: Changes that are shown at most.
MOST_ACTIVITY = 10_000
ROLE_HELP = (
    "What its holder may do: an administrator everything, a requester everything with their own campaigns, an auditor "
    "read everything, a viewer read how campaigns stand and what they resulted in, but not who did what. Default: "
    "requester, or administrator for the token of that name."
)


@app.command()
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Whose token it is, e.g. ann or grafana. Default: administrator.")
    ] = "administrator",
    role: Annotated[
        Literal["administrator", "requester", "auditor", "viewer"] | None,
        typer.Option("--role", help=ROLE_HELP, show_default=False),
    ] = None,
    owner: Annotated[
        str | None,
        text("--owner", "NAME", "Whose campaigns it opens. Default: a requester's own, by the token's name; else all."),
    ] = None,
    campaigns: Annotated[
        str | None, text("--campaigns", "ID,ID", "The only campaigns that it opens. Default: no limit.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the token of that name, which stops working.")
    ] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Make a token and show it, this once."""
    with opened_store(db) as store:
        from nextlabel.service.access import FIRST, create_token

        role = role or ("administrator" if name == FIRST else "requester")
        limits = [] if campaigns is None else [id.strip() for id in campaigns.split(",")]
        made = create_token(store, name, role, owner, limits, replace)
    if as_json:
        print_json({"name": name, "role": role, "token": made})
    else:
        sys.stdout.write(made + "\n")


@app.command("list")
def list_tokens(
    activity: Annotated[
        bool, typer.Option("--activity", help="Instead: who changed what over HTTP and in the browser, newest first.")
    ] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Show the names, roles and limits of all tokens, which themselves are not stored; or what was done with them."""
    if activity:
        with opened_store(db) as store:
            done = [asdict(one) | {"at": iso(one.at)} for one in store.access.activity("", (), "", MOST_ACTIVITY)]
        if as_json:
            print_json({"activity": done})
            return
        cells = [[one["at"], one["token"], one["campaign"], one["request"]] for one in done]
        print_table(
            "Who changed what", ["at", "token", "campaign", "request"], cells, f"{counted(len(done), 'change')}."
        )
        return
    with opened_store(db) as store:
        rows = [
            {
                "name": one.name,
                "role": one.role,
                "owner": one.owner,
                "campaigns": one.campaigns,
                "created_at": iso(one.created_at),
            }
            for one in store.access.tokens()
        ]
    if as_json:
        print_json({"tokens": rows})
        return
    cells = [list(row.values()) for row in rows]
    title = f"Tokens of {without_passwords(db)}"
    print_table(title, ["name", "role", "owner", "only", "made"], cells, f"{counted(len(rows), 'token')}.")


@app.command()
def revoke(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The token's name; nextlabel token list shows them.")
    ] = None,
    links: Annotated[
        bool, typer.Option("--links", help="Instead of a token: all workers' links and all sessions of browsers.")
    ] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
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
        answer(as_json, {"revoked": name}, f"The token {name} is no longer valid.")
        return
    sentence = "All links and sessions have ended. Make links again: nextlabel campaign links. Tokens are as before."
    answer(as_json, {"links": True}, sentence)
