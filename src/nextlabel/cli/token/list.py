"""``nextlabel token list``: the names and roles of all tokens."""

from __future__ import annotations

from datetime import UTC, datetime

from nextlabel.cli.database import opened_store
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, print_table
from nextlabel.prose import counted, without_passwords


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
