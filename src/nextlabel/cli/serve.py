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
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (127.0.0.1); 0.0.0.0 admits other machines.")
    ] = None,
    port: Annotated[str | None, typer.Option(metavar="N", help="Port to listen on (8000).")] = None,
    workers: Annotated[str | None, typer.Option(metavar="N", help="Number of processes (1).")] = None,
    public_url: Annotated[
        str | None, typer.Option(metavar="URL", help="What links begin with, e.g. https://labels.example.org.")
    ] = None,
    open_metrics: Annotated[bool, typer.Option("--open-metrics", help="Metrics without a token.")] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None, typer.Option(help="Least severity that is logged (info).")
    ] = None,
) -> None:
    """Run campaigns: HTTP API, workers' page, dashboard. Ctrl-C stops it without losing anything.

    Every flag can be set by an environment variable instead, e.g. NEXTLABEL_PORT; flags win.
    """
    number = None if port is None else parse_whole("--port", port, 0, "Give e.g. --port 8000.")
    hint = "Give the number of processes, e.g. --workers 4."
    processes = None if workers is None else parse_whole("--workers", workers, 1, hint)
    needs_service()
    from nextlabel.service.run import serve as run
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.web.pages import mount_pages

    settings = ServiceSettings(
        host=host, port=number, processes=processes, public_url=public_url, log_level=log_level,
        open_metrics=open_metrics or None,
    )  # fmt: skip
    check_port(settings.host, settings.port)
    say(f"nextlabel serves {db} at {settings.base_url} (API under /api/v1). Ctrl-C ends it.")
    with suppress(KeyboardInterrupt):  # by then the service has ended in good order
        run(settings, db, pages=mount_pages, show_token=show_token)
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
        import itsdangerous
        import pydantic_settings
        import sqlalchemy
        import uvicorn
    except ModuleNotFoundError as error:
        raise InputError(f"the service needs the package {error.name}.", "pip install 'nextlabel[service]'.") from None
    del fastapi, itsdangerous, pydantic_settings, sqlalchemy, uvicorn


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
