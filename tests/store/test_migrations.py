"""The migration makes the tables that the code uses, on both databases; another version's are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import IntegrityError

from nextlabel.errors import InputError
from nextlabel.store import questions, statements
from nextlabel.store.engine import checked_url, make_engine
from nextlabel.store.migrate import alembic_config, migrate, revision
from nextlabel.store.prepared import compiled
from nextlabel.store.sql import SqlStore
from nextlabel.store.tables import HEAD, metadata
from stores import Clock, opened, postgres_url, service_of_store, simple


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return checked_url(f"{tmp_path / 'm.db'}" if request.param == "sqlite" else postgres_url("migrations"))


def test_migrations_make_the_tables_of_the_code(url: str) -> None:
    engine = make_engine(url)
    assert revision(engine) is None
    migrate(engine)
    migrate(engine)
    assert revision(engine) == HEAD
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert ScriptDirectory.from_config(alembic_config(connection)).get_heads() == [HEAD]
    engine.dispose()


def test_down_and_up_again(url: str) -> None:
    from alembic import command

    engine = make_engine(url)
    migrate(engine)
    with engine.execution_options(writes=True).begin() as connection:
        command.downgrade(alembic_config(connection), "base")
    with engine.connect() as connection:
        assert set(sa.inspect(connection).get_table_names()) <= {"alembic_version"}
    migrate(engine)
    assert revision(engine) == HEAD
    engine.dispose()


@pytest.mark.parametrize("other", ["0017", "0001", "9999"])
def test_a_database_of_another_version_is_left_alone(url: str, other: str, tmp_path: Path) -> None:
    engine = make_engine(url)
    migrate(engine)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{other}'"))
    with pytest.raises(InputError, match=f"another version of nextlabel .its tables are {other}.*Open it with"):
        migrate(engine)
    engine.dispose()
    before = [path.read_bytes() for path in tmp_path.glob("*.db")]
    with pytest.raises(InputError, match="another version of nextlabel"):
        SqlStore(url)
    assert [path.read_bytes() for path in tmp_path.glob("*.db")] == before


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ("empty", " "),
        ("needs a file", "sqlite://"),
        ("does not exist", "/no/such/folder/x.db"),
        ("not supported", "mysql://u@h/x"),
        ("is a folder", "{tmp}"),
    ],
)
def test_addresses_that_cannot_be(said: str, where: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        checked_url(where.replace("{tmp}", str(tmp_path)))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "letter.db"
    path.write_text("Dear Sir or Madam, " * 100)
    with pytest.raises(InputError, match="not a database of nextlabel"):
        SqlStore(str(path))
    assert path.read_text().startswith("Dear")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    "wrong",
    [
        "UPDATE campaigns SET spent = budget + 1",
        "UPDATE campaigns SET reserved = -1",
        "UPDATE states SET count = -1",
        "UPDATE tasks SET w = -1",
        "UPDATE leases SET status = 'lost'",
        "UPDATE leases SET label = 1",
        "INSERT INTO leases SELECT campaign, 'other', task, worker, status, leased_at, expires_at, seq, ended_at, "
        "label, counted, dropped, free, comment FROM leases",
        "INSERT INTO events SELECT * FROM events",
    ],
)
def test_the_database_itself_refuses_what_must_not_be(kind: str, wrong: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        campaign_service = service_of_store(store, Clock())
        id = campaign_service.create(simple(), tasks=["a", "b"]).id
        assert campaign_service.ask(id, "ann")
        assert isinstance(store, SqlStore)
        with pytest.raises(IntegrityError), store.engine.execution_options(writes=True).begin() as connection:
            connection.execute(sa.text(wrong))
        campaign_service.table_cache.close()


@pytest.mark.parametrize(
    ("statement", "index"),
    [("expired_leases", "ix_leases_expiring")],
)
def test_no_statement_of_an_ask_looks_at_all_rows(statement: str, index: str, tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqlStore)
        ready = compiled(getattr(statements, statement), store.engine.dialect)
        plan = explained(store, ready.text, [1] * len(ready.names or ()))
    assert f"USING INDEX {index}" in plan[0] and not any("SCAN" in step for step in plan)


@pytest.mark.parametrize(
    ("question", "index"),
    [
        ("open_leases", "ix_leases_open"),
        ("first_expiries", "ix_leases_expiring"),
        ("pick_from", "ix_tasks_state"),
        ("pick_before", "ix_tasks_state"),
        ("search_from", "ix_tasks_state"),
        ("search_before", "ix_tasks_state"),
        ("best_of_all", "ix_tasks_score"),
        ("search_best", "ix_tasks_score"),
        ("leases_by_id", "sqlite_autoindex_leases"),
        ("tasks_of_leases", "sqlite_autoindex_tasks"),
        ("workers_by_name", "sqlite_autoindex_workers"),
        ("states_of_many", "sqlite_autoindex_states"),
        ("campaigns_by_id", "sqlite_autoindex_campaigns"),
    ],
)
def test_no_question_of_an_ask_looks_at_all_rows(question: str, index: str, tmp_path: Path) -> None:
    """Nothing is scanned but the list that was given, and a window of what an index has in order."""
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqlStore)
        text = getattr(questions, question)("sqlite").text
        plan = explained(store, text, {name: "[]" for name in re.findall(r":(\w+)", text)})
    scanned = [step for step in plan if step.startswith("SCAN") and step not in ("SCAN t", "SCAN (subquery-1)")]
    assert any(f"USING INDEX {index}" in step for step in plan)
    assert all("json_each" in step for step in scanned) and not any("ORDER BY" in step for step in plan[:-1])


def explained(store: SqlStore, text: str, values: Any) -> list[str]:
    """The steps by which SQLite answers."""
    with store.engine.connect() as connection:
        cursor = connection.connection.cursor()
        return [row[3] for row in cursor.execute(f"EXPLAIN QUERY PLAN {text}", values)]
