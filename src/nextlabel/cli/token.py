"""``nextlabel token``: tokens for requesters, auditors and viewers of a database, and an end to links."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from nextlabel.cli.database import opened_store
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import answer, print_json, print_table
from nextlabel.errors import InputError
from nextlabel.prose import counted, iso, without_passwords

app = typer.Typer(help="Make, list and revoke tokens.", no_args_is_help=True)
ROLE_HELP = (
    "What its holder may do: a requester everything, an auditor read everything, a viewer read how campaigns stand and "
    "what they resulted in, but not who did what."
)


@app.command()
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Whose token it is, e.g. ann or grafana. Default: requester.")
    ] = "requester",
    role: Annotated[Literal["requester", "auditor", "viewer"], typer.Option("--role", help=ROLE_HELP)] = "requester",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the token of that name, which stops working.")
    ] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Make a token and show it, this once."""
    with opened_store(db) as store:
        from nextlabel.service.access import create_token, new_token

        made = (new_token if replace else create_token)(store, name, role)
    if as_json:
        print_json({"name": name, "role": role, "token": made})
    else:
        sys.stdout.write(made + "\n")


@app.command("list")
def list_tokens(db: Db = DB, as_json: Json = False) -> None:
    """Show the names and roles of all tokens. The tokens themselves are not stored."""
    with opened_store(db) as store:
        rows = [
            {"name": one.name, "role": one.role, "created_at": iso(one.created_at)} for one in store.access.tokens()
        ]
    if as_json:
        print_json({"tokens": rows})
        return
    cells = [list(row.values()) for row in rows]
    title = f"Tokens of {without_passwords(db)}"
    print_table(title, ["name", "role", "made"], cells, f"{counted(len(rows), 'token')}.")


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
