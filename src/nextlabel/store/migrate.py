"""Make the tables of this version in an empty database; one of anything else, or of another version, is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError, OperationalError

from nextlabel.errors import InputError, NotFoundError
from nextlabel.store.engine import first_line, without_limits
from nextlabel.store.tables import HEAD

FOLDER = Path(__file__).parent / "migrations"
#: One process migrates at a time (an arbitrary number that names the lock).
ADVISORY_LOCK = 4_711_001
#: Alembic's own table, and tables that every version of nextlabel has.
VERSIONS = "alembic_version"
OURS = frozenset({"campaigns", "events", "tasks", "leases", "workers", VERSIONS})


def check_file(url: str, create: bool) -> None:
    """Refuse the SQLite file of something else, unchanged, and without ``create`` one that is not there."""
    if not url.startswith("sqlite"):
        return
    address = make_url(url)
    path = Path(str(address.database))
    if not path.exists():
        if not create:
            raise _missing(str(address.database))
        return
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        tables = {name for (name,) in found if not name.startswith("sqlite_")}
        row = connection.execute(f"SELECT version_num FROM {VERSIONS}").fetchone() if VERSIONS in tables else None
        _refuse_foreign(tables, None if row is None else row[0])


def revision(engine: Engine) -> str | None:
    """The database's revision, None for an empty one; a database of something else is refused."""
    with engine.connect() as connection:
        tables = set(inspect(connection).get_table_names())
        version = None
        if VERSIONS in tables:
            version = connection.execute(text(f"SELECT version_num FROM {VERSIONS}")).scalar()
        _refuse_foreign(tables, version)
        return None if version is None else str(version)


def migrate(engine: Engine, create: bool = True) -> None:
    """Make the tables where there are none; a database of another version of nextlabel is left alone."""
    try:
        before = revision(engine)
    except OperationalError as error:
        raise InputError(
            f"the database cannot be opened: {first_line(error.orig)}.", "Check the address and that the server runs."
        ) from None
    except DatabaseError as error:
        raise InputError(
            f"it is not a database of nextlabel: {first_line(error.orig)}.", "Give another address."
        ) from None
    if before == HEAD:
        return
    if before is None and not create:
        raise _missing(engine.url.render_as_string(hide_password=True))
    from alembic import command

    try:
        with engine.execution_options(writes=True).begin() as connection:
            without_limits(connection)
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": ADVISORY_LOCK})
            command.upgrade(alembic_config(connection), "head")
    except DatabaseError as error:
        raise InputError(
            f"the tables of nextlabel cannot be made in the database: {first_line(error.orig)}.",
            "Check that its user may write to it and make tables in it.",
        ) from None


def _refuse_foreign(tables: set[str], version: object) -> None:
    """Refuse a database of something else, or of another version of nextlabel."""
    if (tables >= OURS and version == HEAD) or (tables <= {VERSIONS} and version is None):
        return
    if tables >= OURS and version is not None:
        raise InputError(
            f"the database is of another version of nextlabel (its tables are {version}, not {HEAD}).",
            "Open it with that version, or give the address of a new database.",
        )
    stranger = next((name for name in sorted(tables) if name not in OURS), None)
    why = "it lacks tables of nextlabel" if stranger is None else f"it has a table {stranger!r} and lacks nextlabel's"
    raise InputError(f"the database belongs to something else: {why}.", "Give the address of another database.")


def _missing(where: str) -> NotFoundError:
    return NotFoundError(
        f"there is no database of nextlabel at {where}.", "Give its address with --db, or create a campaign first."
    )


def alembic_config(connection: Any) -> Any:
    """Alembic's settings for an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.attributes["connection"] = connection
    return config
