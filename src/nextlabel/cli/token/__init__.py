"""``nextlabel token``: tokens for requesters, auditors and viewers of a database, and new secrets."""

from __future__ import annotations

import sys

import typer

from nextlabel.cli.database import opened_store
from nextlabel.cli.options import DB, Db, Json, refuse_idle
from nextlabel.cli.output import print_json
from nextlabel.cli.token.create import create
from nextlabel.cli.token.list import list_tokens
from nextlabel.cli.token.revoke import revoke
from nextlabel.cli.token.rotate import rotate

app = typer.Typer()
app.command()(create)
app.command(name="list")(list_tokens)
app.command()(revoke)
app.command()(rotate)


@app.callback(invoke_without_command=True)
def token(context: typer.Context, db: Db = DB, as_json: Json = False) -> None:
    """Make and show a new token for the requester; the old one stops working. Further tokens have names and roles."""
    if context.invoked_subcommand is not None:
        refuse_idle(context, ["db", "as_json"], f"'token' alone, or after 'token {context.invoked_subcommand}'")
        return
    with opened_store(db) as store:
        from nextlabel.service.tokens import new_token

        made = new_token(store)
    if as_json:
        print_json({"token": made})
    else:
        sys.stdout.write(made + "\n")
