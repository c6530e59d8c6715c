"""Bring a database to the tables of this version: Alembic's migrations, run where they are needed and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import DatabaseError, OperationalError

from nextlabel.errors import InputError
from nextlabel.prose import without_passwords
from nextlabel.store.engine import without_limits
from nextlabel.store.tables import HEAD, campaigns

FOLDER = Path(__file__).parent / "migrations"
#: One process migrates at a time (an arbitrary number that names the lock).
ADVISORY_LOCK = 4_711_001


def revision(engine: Engine) -> str | None:
    """The database's revision, None for an empty one; a database of something else is refused."""
    with engine.connect() as connection:
        tables = inspect(connection).get_table_names()
        others = [name for name in tables if name != "alembic_version"]
        if others and campaigns.name not in others:
            raise InputError(
                f"the database belongs to something else: it has a table {others[0]!r} and none of nextlabel.",
                "Give the address of another database.",
            )
        if "alembic_version" not in tables:
            return None
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return None if found is None else str(found)


def migrate(engine: Engine) -> None:
    """Upgrade to the newest revision; a database from a newer version of nextlabel is left alone."""
    try:
        if revision(engine) == HEAD:
            return
    except OperationalError as error:
        raise InputError(
            f"the database cannot be opened: {_first_line(error)}.", "Check the address and that the server runs."
        ) from None
    except DatabaseError as error:
        raise InputError(
            f"the file is not a database of nextlabel: {_first_line(error)}.", "Give another path."
        ) from None
    from alembic import command
    from alembic.util.exc import CommandError

    with engine.execution_options(writes=True).begin() as connection:
        without_limits(connection)
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": ADVISORY_LOCK})
        try:
            command.upgrade(alembic_config(connection), "head")
        except CommandError:
            raise InputError(
                "the database is from a newer version of nextlabel.", "Upgrade nextlabel: pip install -U nextlabel."
            ) from None


def alembic_config(connection: Any) -> Any:
    """Alembic's settings for an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.attributes["connection"] = connection
    return config


def _first_line(error: DatabaseError) -> str:
    return without_passwords(str(error.orig).strip().splitlines()[0].rstrip("."))[:200]
