"""``nextlabel token create``: a further token with a name and a role."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from nextlabel.cli.database import opened_store
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json

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
        from nextlabel.service.tokens import create_token

        made = create_token(store, name, role)
    if as_json:
        print_json({"name": name, "role": role, "token": made})
    else:
        sys.stdout.write(made + "\n")
