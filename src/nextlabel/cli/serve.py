"""``nextlabel serve``: campaigns over HTTP, the workers' page and the requester's dashboard."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated, Literal

import typer

from nextlabel.cli.flag_values import parse_whole
from nextlabel.cli.output import say
from nextlabel.errors import InputError

DB = "nextlabel.db"
DbFlag = Annotated[
    str,
    typer.Option("--db", metavar="URL", envvar="NEXTLABEL_DB", help="A SQLite file, or postgresql://user@host/base."),
]


def serve(
    db: DbFlag = DB,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[str, typer.Option(metavar="N", help="Port to listen on.")] = "8000",
    workers: Annotated[str, typer.Option(metavar="N", help="Processes.")] = "1",
    public_url: Annotated[
        str, typer.Option(metavar="URL", help="What links begin with, e.g. https://labels.example.org.")
    ] = "",
    open_metrics: Annotated[bool, typer.Option("--open-metrics", help="Metrics without a token.")] = False,
    log_level: Annotated[Literal["debug", "info", "warning", "error"], typer.Option(help="What is logged.")] = "info",
) -> None:
    """Run campaigns: HTTP API, workers' page, dashboard. Ctrl-C ends it, nothing is lost."""
    number = parse_whole("--port", port, 0, "Give e.g. --port 8000.")
    processes = parse_whole("--workers", workers, 1, "Give the number of processes, e.g. --workers 4.")
    needs_service()
    from nextlabel.service.run import serve as run
    from nextlabel.service.settings import Settings
    from nextlabel.web.pages import mount_pages

    settings = Settings(host=host, port=number, public_url=public_url, log_level=log_level, open_metrics=open_metrics)
    check_port(settings.host, settings.port)
    say(f"nextlabel serves {db} at {settings.base_url} (API under /api/v1). Ctrl-C ends it.")
    with suppress(KeyboardInterrupt):  # by then the service has ended in good order
        run(settings, db, workers=processes, pages=mount_pages, show_token=show_token)
    say("nextlabel serve ended.")


def token(db: DbFlag = DB) -> None:
    """Make and show another requester token; the old one ends."""
    needs_service()
    from nextlabel.service.tokens import new_token
    from nextlabel.store.open import open_store

    store = open_store(db)
    try:
        sys.stdout.write(new_token(store) + "\n")
    finally:
        store.close()


def show_token(token: str) -> None:
    """Tell the requester's token, once."""
    say(f"requester token (shown once, keep it; nextlabel token makes another): {token}")


def needs_service() -> None:
    """Refuse where the packages of the service are missing."""
    try:
        import fastapi
        import sqlalchemy
        import uvicorn
    except ModuleNotFoundError as error:
        raise InputError(f"the service needs the package {error.name}.", "pip install 'nextlabel[service]'.") from None
    del fastapi, sqlalchemy, uvicorn


def check_port(host: str, port: int) -> None:
    """Refuse a port that is taken, before anything is made."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError(
                f"{host}:{port} cannot be listened on: {(error.strerror or str(error)).lower()}.",
                "Give another --port or --host.",
            ) from None
