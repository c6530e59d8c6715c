"""Databases that are not nextlabel's, or not there: refused in a sentence, and left exactly as they are."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.errors import InputError, NotFoundError
from nextlabel.store.engine import checked_url
from nextlabel.store.sql import SqlStore, open_store
from stores import postgres_url

#: What other programs may have: tables of their own, some named like ours, and revisions of their own.
FOREIGN = {
    "a table": ["CREATE TABLE invoices (id INTEGER)"],
    "a table named like ours": ["CREATE TABLE campaigns (id INTEGER, budget INTEGER)"],
    "tables named like ours": [
        *(f"CREATE TABLE {name} (id INTEGER)" for name in ("campaigns", "events", "tasks", "workers", "settings")),
    ],
    "revisions": [
        "CREATE TABLE alembic_version (version_num VARCHAR(32))", "INSERT INTO alembic_version VALUES ('ab12')",
    ],
    "revisions and tables": [
        "CREATE TABLE alembic_version (version_num VARCHAR(32))", "INSERT INTO alembic_version VALUES ('ab12')",
        "CREATE TABLE campaigns (id INTEGER)", "CREATE TABLE users (id INTEGER)",
    ],
}  # fmt: skip


def content(url: str) -> dict[str, int]:
    """The tables of a database, with their numbers of columns."""
    engine = sa.create_engine(checked_url(url))
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        found = {name: len(inspector.get_columns(name)) for name in inspector.get_table_names()}
    engine.dispose()
    return found


@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_stays_byte_for_byte(
    statements: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    before = path.read_bytes()
    for words in (
        ["campaign", "status"],
        ["campaign", "create", "--budget", "5"],
        ["token", "create"],
        ["token", "list"],
    ):
        assert run([*words, "--db", str(path)]) == 2
        said = capsys.readouterr().err
        assert "belongs to something else" in said and said.count("\n") == 1
    with pytest.raises(InputError, match="belongs to something else"):
        SqlStore(str(path))
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["foreign.db"]


@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_database_of_a_server(statements: list[str]) -> None:
    url = postgres_url("foreign")
    engine = sa.create_engine(checked_url(url))
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    engine.dispose()
    before = content(url)
    with pytest.raises(InputError, match="belongs to something else"):
        SqlStore(url)
    assert content(url) == before


def test_nothing_is_made_where_something_was_looked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mistyped.db"
    for words in (
        ["status"],
        ["change", "x", "--pause"],
        ["links", "x"],
        ["export", "x", "--rows", "events", "--format", "jsonl"],
        ["links", "x", "ann", "--revoke"],
        ["verify", "x", "--repair"],
    ):
        assert run(["campaign", *words, "--db", str(path)]) == 2
        assert "no database" in capsys.readouterr().err
    assert run(["token", "create", "--db", str(path)]) == run(["token", "revoke", "--links", "--db", str(path)]) == 2
    with pytest.raises(NotFoundError, match="no database"):
        nl.Campaign.open(str(path), "x")
    assert os.listdir(tmp_path) == []
    path.touch()
    with pytest.raises(NotFoundError, match="no database"):
        open_store(str(path), create=False)
    assert content(str(path)) == {}


def test_an_empty_database_of_a_server_is_filled_only_on_purpose() -> None:
    url = postgres_url("empty")
    with pytest.raises(NotFoundError, match="no database"):
        nl.Campaign.open(url, "x")
    assert content(url) == {}
    open_store(url).close()
    assert "campaigns" in content(url)


def test_a_user_who_may_not_make_tables() -> None:
    url = postgres_url("readonly")
    engine = sa.create_engine(checked_url(url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text("ALTER DATABASE readonly SET default_transaction_read_only = on"))
    engine.dispose()
    with pytest.raises(InputError, match="cannot be made"):
        SqlStore(url)


def test_a_database_that_fails_a_command_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.db"
    assert run(["campaign", "create", "--budget", "5", "--id", "demo", "--db", str(path)]) == 0
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE events RENAME COLUMN at TO lost")
    capsys.readouterr()
    assert run(["campaign", "export", "demo", "--rows", "events", "--format", "jsonl", "--db", str(path)]) == 1
    said = capsys.readouterr().err
    assert "the database does not answer: no such column" in said and said.count("\n") == 1
