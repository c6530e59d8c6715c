"""``nextlabel token``: tokens for requesters, auditors and viewers of a database, and new secrets."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from nextlabel.cli.database import opened_store
from nextlabel.cli.options import DB, Db, Json, refuse_idle
from nextlabel.cli.output import answer, print_json, print_table
from nextlabel.prose import counted, without_passwords

app = typer.Typer()

ROLE_HELP = (
    "What its holder may do: a requester everything, an auditor read everything, a viewer read how campaigns stand and "
    "what they resulted in, but not who did what."
)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is, e.g. ann or grafana.")],
    role: Annotated[Literal["requester", "auditor", "viewer"], typer.Option("--role", help=ROLE_HELP)] = "requester",
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Make and show a further token; it is shown only once."""
    with opened_store(db) as store:
        from nextlabel.service.access import create_token

        made = create_token(store, name, role)
    if as_json:
        print_json({"name": name, "role": role, "token": made})
    else:
        sys.stdout.write(made + "\n")


def list_tokens(db: Db = DB, as_json: Json = False) -> None:
    """Show the names and roles of all tokens. The tokens themselves are not stored."""
    with opened_store(db) as store:
        tokens = store.access.tokens()
    made = [datetime.fromtimestamp(token.created_at, UTC).isoformat(timespec="seconds") for token in tokens]
    if as_json:
        rows = [
            {"name": token.name, "role": token.role, "created_at": at} for token, at in zip(tokens, made, strict=True)
        ]
        print_json({"tokens": rows})
        return
    cells = [[token.name, token.role, at] for token, at in zip(tokens, made, strict=True)]
    print_table(
        f"Tokens of {without_passwords(db)}", ["name", "role", "made"], cells, f"{counted(len(tokens), 'token')}."
    )


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name; nextlabel token list shows them.")],
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """End a token and the sessions of browsers that signed in with it, in running services within seconds."""
    with opened_store(db) as store:
        from nextlabel.service.access import revoke_token

        revoke_token(store, name)
    answer(as_json, {"revoked": name}, f"The token {name} is no longer valid.")


def rotate(db: Db = DB, as_json: Json = False) -> None:
    """Invalidate all workers' links and end all sessions, in running services within seconds. Tokens stay valid."""
    with opened_store(db) as store:
        from nextlabel.service.access import rotate_secrets

        rotate_secrets(store)
    answer(
        as_json,
        {"rotated": True},
        "All links and sessions have ended. Make links again: nextlabel campaign links. Tokens are as before.",
    )


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
        from nextlabel.service.access import new_token

        made = new_token(store)
    if as_json:
        print_json({"token": made})
    else:
        sys.stdout.write(made + "\n")
