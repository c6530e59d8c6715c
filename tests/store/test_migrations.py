"""The migration makes the tables that the code uses, on both databases; another version's are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import IntegrityError

from nextlabel.errors import InputError
from nextlabel.store.engine import checked_url, make_engine
from nextlabel.store.migrate import alembic_config, migrate, revision
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
        "UPDATE tasks SET w = -1",
        "UPDATE leases SET status = 9",
        "UPDATE leases SET label = 1",
        "INSERT INTO leases SELECT campaign, number + 1, task, worker, answer, previous, status, leased_at, "
        "expires_at, seq, ended_at, label, counted, dropped, free, secret, comment FROM leases",
        "INSERT INTO workers SELECT campaign, number + 1, worker, given, labels, late, expired, released, seconds, "
        "last_at, bought, dropped, standing, reason, tested, free, turned_away FROM workers",
        "INSERT INTO events SELECT * FROM events",
    ],
)
def test_the_database_itself_refuses_what_must_not_be(kind: str, wrong: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        campaign_service = service_of_store(store, Clock())
        id = campaign_service.create(simple(), tasks=["a", "b"]).id
        assert campaign_service[id].ask("ann")
        assert isinstance(store, SqlStore)
        with pytest.raises(IntegrityError), store.engine.execution_options(writes=True).begin() as connection:
            connection.execute(sa.text(wrong))
        campaign_service.table_cache.close()
