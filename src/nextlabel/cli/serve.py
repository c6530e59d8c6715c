"""``nextlabel serve``: campaigns over HTTP, the workers' page and the requester's dashboard."""

from __future__ import annotations

import logging
import os
import socket
import sys
from contextlib import suppress
from importlib.util import find_spec

from nextlabel.cli.options import DB, HOST, LOG_LEVEL, PORT, PUBLIC_URL, LogLevel, flag, switch, verb, whole
from nextlabel.cli.output import say
from nextlabel.errors import InputError
from nextlabel.wording import without_passwords


@verb()
def serve(
    db: str = DB,
    host: str | None = HOST,
    port: int | None = PORT,
    processes: int | None = whole("N", 1, "4", "Processes that answer requests. Default: 1."),
    public_url: str | None = flag(*PUBLIC_URL),
    open_metrics: bool = switch("Serve metrics without a token."),
    log_level: LogLevel | None = LOG_LEVEL,
) -> None:
    """Run campaigns: HTTP API, workers' page and dashboard. Ctrl-C stops it without losing anything.

    Every option can be set by an environment variable instead, e.g. NEXTLABEL_PORT; options win.
    """
    needs_service()
    from nextlabel.service.run import serve as run
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.store.engine import file_open_to_others
    from nextlabel.web.pages import mount_pages

    settings = ServiceSettings(
        host=host, port=port, processes=processes, public_url=public_url, log_level=log_level,
        open_metrics=open_metrics or None,
    )  # fmt: skip
    check_port(settings.host, settings.port)

    def show_start() -> None:
        _tell(f"nextlabel serves {without_passwords(db)} at {settings.base_url} (API under /api/v1). Ctrl-C ends it.")
        if (path := file_open_to_others(db)) is not None:
            _tell(f"warning: others on this machine can read {path}, with all labels and names: chmod 600 {path}")

    with suppress(KeyboardInterrupt):  # by then the service has ended in good order
        run(settings, db, pages=mount_pages, show_token=show_token, show_start=show_start)
    _tell("nextlabel serve ended.")
    # Tables and kernels that threads still make may take a minute, and the next start makes them again; all that
    # counts is in the database.
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _tell(sentence: str) -> None:
    """Say something on a terminal; elsewhere stderr is a log, in which every line is JSON."""
    if sys.stderr.isatty():
        say(sentence)
    else:
        logging.getLogger("nextlabel.service").warning(sentence)


def show_token(token: str) -> None:
    """Show the requester's token, once, to a person: what is not a terminal is a log, and a log keeps no token."""
    if sys.stderr.isatty():
        say(
            f"administrator's token (shown once, so keep it; nextlabel token create --replace makes a new one): {token}"
        )
    else:
        _tell("nobody has a token yet: make one with nextlabel token create, with the same --db.")


def needs_service() -> None:
    """Refuse where the packages of the service are missing."""
    for package in ("fastapi", "itsdangerous", "pydantic_settings", "uvicorn"):
        if find_spec(package) is None:
            raise InputError(f"the service needs the package {package}.", "pip install 'nextlabel[service]'.")


def check_port(host: str, port: int) -> None:
    """Refuse a port that is taken, before anything is made."""
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
