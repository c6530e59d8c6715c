"""What a leaked copy of the database opens (nothing), tokens by name and role, links that end, secrets in messages."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from itsdangerous import URLSafeTimedSerializer

from nextlabel.campaign.records import AccessToken, Session
from nextlabel.cli.app import run
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.service import access
from nextlabel.service.access import FINGERPRINT, create_token, hashed, revoke_token
from nextlabel.service.links import LinkSigner, default_path, revoke_links, signing_key
from nextlabel.service.logs import JsonFormatter
from nextlabel.store.engine import checked_url
from nextlabel.store.sql import SqlStore
from nextlabel.web.pages import mount_pages
from nextlabel.wording import without_passwords
from service_fixtures import Service, on_sqlite
from stores import KINDS, opened, postgres_url


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service whose processes notice at once what they otherwise notice within seconds."""
    monkeypatch.setattr(access, "CACHE_S", 0.0)
    monkeypatch.setattr(access, "MISMATCH_CACHE_S", 0.0)
    with on_sqlite(tmp_path, pages=mount_pages) as running:
        running.campaign("demo")
        yield running


def copied(service: Service, folder: Path) -> SqlStore:
    """What somebody has who can read the database: all of it, but not the key file."""
    folder.mkdir()
    store = service.campaign_service.store
    assert isinstance(store, SqlStore)
    original, copy = str(store.engine.url.database), folder / "stolen.db"
    with closing(sqlite3.connect(original)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return SqlStore(str(folder / "stolen.db"))


class TestLeakedDatabase:
    def test_it_makes_no_links(self, service: Service, tmp_path: Path) -> None:
        stolen = copied(service, tmp_path / "thief")
        with pytest.raises(InputError, match="is missing"):
            LinkSigner.of(stolen)
        stolen.put(FINGERPRINT, b"", replace=True)  # a thief may take the fingerprint out and make a key
        links = LinkSigner.of(stolen)
        with service.http(links.worker_token("demo", "ann")) as http:
            assert http.post("/campaigns/demo/ask").status_code == 401
        for path in (f"/w/{links.worker_token('demo', 'ann')}", f"/j/{links.join_token('demo')}?worker=ann"):
            assert httpx.get(service.url + path).status_code == 401
        stolen.close()

    def test_it_signs_nobody_in(self, service: Service, tmp_path: Path) -> None:
        signed = httpx.post(f"{service.url}/sign-in", data={"token": service.token})
        assert signed.status_code == 303
        stolen = copied(service, tmp_path / "thief")
        with stolen.engine.connect() as connection:
            tables = sa.inspect(connection).get_table_names()
            cells = {
                cell.hex() if isinstance(cell, bytes) else str(cell)
                for table in tables
                for row in connection.execute(sa.text(f"SELECT * FROM {table}"))
                for cell in row
            }
        (secret,) = [cell for cell in cells if cell == (stolen.get("link_secret") or b"").hex()]
        stamp = hashed("")[:16]
        cookies = [*cells]
        for hash in [token.hash for token in stolen.records.find(AccessToken)]:  # as cookies were made before
            mark = hashlib.sha256(b"dashboard" + hash.encode()).hexdigest()[:16]
            options = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
            signer = URLSafeTimedSerializer(bytes.fromhex(secret), salt="d2", signer_kwargs=options)
            cookies += [f"d2.{signer.dumps([mark])}", f"d2.{signer.dumps([stamp])}"]
        assert signed.cookies["nl_requester"] not in cells and service.token not in cells
        for cookie in cookies:
            if cookie.isprintable() and cookie.isascii() and not set(cookie) & set(' ";,\\'):
                answer = httpx.get(f"{service.url}/", headers={"cookie": f"nl_requester={cookie}"})
                assert answer.status_code == 303, cookie
        assert httpx.get(f"{service.url}/", cookies=dict(signed.cookies)).status_code == 200
        stolen.close()

    def test_its_files_are_for_their_owner_alone(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            store = SqlStore(str(tmp_path / "labels.db"))
            LinkSigner.of(store)
        finally:
            os.umask(before)
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert found == dict.fromkeys(("labels.db", "labels.db-wal", "labels.db-shm", "labels.db.key"), 0o600)
        store.close()


class TestKeyFile:
    def test_it_is_made_once_and_may_be_elsewhere(self, tmp_path: Path) -> None:
        store = SqlStore(str(tmp_path / "labels.db"))
        assert signing_key(store) == signing_key(store)
        token = LinkSigner.of(store).worker_token("demo", "ann")
        assert LinkSigner.of(store).read_worker(token) == ("demo", "ann")
        (tmp_path / "labels.db.key").rename(tmp_path / "moved.key")
        assert LinkSigner.of(store, str(tmp_path / "moved.key")).read_worker(token) == ("demo", "ann")
        store.close()

    def test_another_key_is_refused_in_one_sentence(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert run(["campaign", "create", "--budget", "5", "--id", "demo", "--db", "labels.db"]) == 0
        links, key = ["campaign", "links", "demo", "--db", "labels.db"], tmp_path / "labels.db.key"
        assert run(links) == 0
        before = key.read_text()
        key.write_text("x" * 64)
        capsys.readouterr()
        for words in (links, ["serve", "--db", "labels.db", "--port", "0"]):
            assert run(words) == 2
            said = capsys.readouterr().err.splitlines()[-1]
            assert f"the key file {key} is not that of this database" in said and "NEXTLABEL_KEY_FILE" in said
        key.unlink()
        assert run(links) == 2 and not key.exists()  # no other one is made in silence
        assert f"the key file {key} is missing" in capsys.readouterr().err
        key.write_text(before)
        key.chmod(0o600)
        assert run(links) == 0
        key.unlink()
        assert run(["token", "revoke", "--links", "--db", "labels.db"]) == 0
        assert run(links) == 0 and key.read_text() != before

    def test_one_that_others_can_read_or_that_is_short_is_refused(self, tmp_path: Path) -> None:
        store, path = SqlStore(str(tmp_path / "labels.db")), tmp_path / "my.key"
        path.write_text("x" * 64)
        path.chmod(0o644)
        with pytest.raises(InputError, match="read by everybody"):
            signing_key(store, str(path))
        path.chmod(0o600)
        assert signing_key(store, str(path)) == b"x" * 64
        path.write_text("short\n")
        with pytest.raises(InputError, match="5 characters"):
            signing_key(store, str(path))
        with pytest.raises(InputError, match="NEXTLABEL_KEY_FILE"):
            signing_key(store, str(tmp_path / "none" / "my.key"))
        store.close()

    def test_databases_of_a_server_have_keys_of_their_own(self) -> None:
        stores = [SqlStore(postgres_url(name)) for name in ("key_one", "key_two")]
        places = [default_path(store) for store in stores]
        assert places[0] != places[1] and str(places[0]).startswith(os.environ["XDG_CONFIG_HOME"])
        assert signing_key(stores[0]) == places[0].read_bytes().strip() != signing_key(stores[1])
        for store in stores:
            store.close()


READABLE = {
    "/campaigns": "av", "/campaigns/demo": "av", "/campaigns/demo/results": "av", "/campaigns/demo/certificate": "av",
    "/metrics": "av", "/campaigns/demo/events": "a", "/campaigns/demo/workers": "a",
    "/campaigns/demo/guarantee": "av", "/campaigns/demo/guarantee/items": "a",
}  # fmt: skip
CHANGES = [
    ("POST", "/campaigns"), ("PATCH", "/campaigns/demo"), ("POST", "/campaigns/demo/pause"),
    ("POST", "/campaigns/demo/resume"), ("POST", "/campaigns/demo/tasks"), ("POST", "/campaigns/demo/links"),
    ("POST", "/campaigns/demo/links/revoke"), ("POST", "/campaigns/demo/ask"), ("POST", "/leases/demo-0-00/tell"),
]  # fmt: skip


class TestTokens:
    def test_a_new_token_works_at_once(self, tmp_path: Path) -> None:
        with on_sqlite(tmp_path) as service:
            store = service.campaign_service.store
            with service.http() as http:
                assert http.get("/campaigns").status_code == 200
            with service.http(create_token(store, "new", "viewer")) as http:
                assert http.get("/campaigns").status_code == 200

    def test_roles(self, service: Service) -> None:
        store = service.campaign_service.store
        for role in ("auditor", "viewer"):
            with service.http(create_token(store, role, role)) as http:  # type: ignore[arg-type]
                for path, who in READABLE.items():
                    assert http.get(path).status_code == (200 if role[0] in who else 403), (role, path)
                for method, path in CHANGES:
                    refused = http.request(method, path, json={})
                    assert refused.status_code == 403, (role, path)
                    assert refused.json()["type"] == "urn:nextlabel:not-allowed"

    def test_several_at_once_each_ends_alone(self, service: Service) -> None:
        store = service.campaign_service.store
        second = create_token(store, "bea", "requester")
        with service.http() as first, service.http(second) as bea:
            assert first.get("/campaigns").status_code == bea.get("/campaigns").status_code == 200
            revoke_token(store, "bea")
            assert (first.get("/campaigns").status_code, bea.get("/campaigns").status_code) == (200, 401)
        with pytest.raises(NotFoundError):
            revoke_token(store, "bea")
        with pytest.raises(ConflictError):
            create_token(store, "administrator", "viewer")
        with pytest.raises(InputError):
            create_token(store, "two words", "viewer")

    def test_a_revoked_token_ends_its_sessions(self, service: Service) -> None:
        store = service.campaign_service.store
        token = create_token(store, "bea", "requester")
        cookies = dict(httpx.post(f"{service.url}/sign-in", data={"token": token}).cookies)
        assert httpx.get(f"{service.url}/", cookies=cookies).status_code == 200
        revoke_token(store, "bea")
        assert httpx.get(f"{service.url}/", cookies=cookies).status_code == 303

    def test_commands(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert run(["campaign", "create", "--budget", "5", "--id", "demo"]) == 0
        capsys.readouterr()
        assert run(["token", "create", "ann", "--role", "viewer"]) == 0
        token = capsys.readouterr().out.strip()
        assert run(["token", "create", "ann"]) == 2 and "already" in capsys.readouterr().err
        assert run(["token", "list", "--json"]) == 0
        listed = capsys.readouterr().out
        assert [(one["name"], one["role"]) for one in json.loads(listed)["tokens"]] == [("ann", "viewer")]
        assert token not in listed and hashed(token) not in listed
        assert run(["campaign", "links", "demo", "ann", "--json"]) == 0
        before = json.loads(capsys.readouterr().out)
        assert run(["campaign", "links", "demo", "--revoke", "ann"]) == 0
        assert run(["campaign", "links", "demo", "ann", "--json"]) == 0
        after = json.loads(capsys.readouterr().out)
        assert before["workers"] != after["workers"] and before["join"] == after["join"]
        assert run(["token", "revoke", "--links"]) == run(["campaign", "links", "demo", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["join"] != after["join"]
        assert run(["token", "revoke", "ann"]) == 0 and run(["token", "revoke", "ann"]) == 2
        assert run(["campaign", "links", "demo", "--revoke"]) == 2
        capsys.readouterr()


class TestLinksThatEnd:
    def test_a_workers_link(self, service: Service) -> None:
        with service.http() as http:
            made = http.post("/campaigns/demo/links", json={"workers": ["ann", "bob"]}).json()
            ann, bob = (one["token"] for one in made["links"])
            page = httpx.get(f"{service.url}/w/{ann}")
            assert page.status_code == 303
            again = http.post("/campaigns/demo/links/revoke", json={"workers": ["ann"]}).json()
            assert again["links"][0]["token"] != ann and again["join"] == made["join"]
        for token, status in ((ann, 401), (bob, 200), (again["links"][0]["token"], 200)):
            with service.http(token) as worker:
                assert worker.post("/campaigns/demo/ask").status_code == status
        assert httpx.get(f"{service.url}/w/{ann}").status_code == 401
        assert httpx.get(f"{service.url}/work/demo", cookies=dict(page.cookies)).status_code == 401

    def test_the_platforms_link_with_all_who_came_by_it(self, service: Service) -> None:
        store = service.campaign_service.store
        with service.http() as http:
            made = http.post("/campaigns/demo/links", json={"workers": ["ann"]}).json()
        join, personal = f"{made['join']['url']}?worker=eve", made["links"][0]["url"]
        eve, ann = (dict(httpx.get(address).cookies) for address in (join, personal))
        assert httpx.get(f"{service.url}/work/demo", cookies=eve).status_code == 200
        revoke_links(store, "demo", [], join=True)
        assert httpx.get(join).status_code == 401
        assert httpx.get(f"{service.url}/work/demo", cookies=eve).status_code == 401
        assert httpx.get(f"{service.url}/work/demo", cookies=ann).status_code == 200

    def test_new_secrets_end_all_links_and_sessions_while_the_service_runs(self, service: Service) -> None:
        with service.worker("ann") as ann:
            signed = dict(httpx.post(f"{service.url}/sign-in", data={"token": service.token}).cookies)
            assert ann.post("/campaigns/demo/ask").status_code == 200
            access.rotate_secrets(service.campaign_service.store)
            assert ann.post("/campaigns/demo/ask").status_code == 401
        assert httpx.get(f"{service.url}/", cookies=signed).status_code == 303
        with service.worker("ann") as ann, service.http() as http:
            assert ann.post("/campaigns/demo/ask").status_code == http.get("/campaigns").status_code == 200


@pytest.mark.parametrize("kind", KINDS)
def test_records_of_every_store(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        records = store.records
        first, second = AccessToken("ann", "viewer", "a" * 64, 1.0), AccessToken("ann", "auditor", "b" * 64, 2.0)
        assert records.add(first) and not records.add(second)
        assert records.find(AccessToken) == [first]
        assert records.add(second, replace=True) and records.find(AccessToken) == [second]
        assert records.remove(AccessToken, name="ann") and not records.remove(AccessToken, name="ann")
        old, new = Session("s" * 64, "a" * 64, 1.0), Session("t" * 64, "a" * 64, 2.0)
        records.add(old)
        records.add(new)
        assert records.find(Session, hash=old.hash) == [old] and records.find(Session, hash="u") == []
        records.forget(Session, 2.0)
        assert records.find(Session) == [new]
        assert records.remove(Session, hash=new.hash) and records.find(Session) == []
        assert records.revoke_link("demo", "ann") == 1 and records.revoke_link("demo", "ann") == 2
        assert records.link_versions() == {("demo", "ann"): 2}


def test_strict_transport_behind_tls_alone(tmp_path: Path) -> None:
    with on_sqlite(tmp_path, public_url="https://labels.example.org") as service:
        assert "max-age=" in httpx.get(f"{service.url}/healthz").headers["strict-transport-security"]
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    with on_sqlite(tmp_path) as service:
        assert "strict-transport-security" not in httpx.get(f"{service.url}/healthz").headers


SECRET_ADDRESSES = [
    "postgresql://ann:hunter2@127.0.0.1:1/base", "postgresql://ann:hunter2@x@127.0.0.1:1/base",
    "postgresql://127.0.0.1:1/base?user=ann&password=hunter2", "mysql://ann:hunter2@host/base",
    "nonsense://ann:hunter2@[::1/base",
]  # fmt: skip


class TestSecretsInMessages:
    @pytest.mark.parametrize("address", SECRET_ADDRESSES)
    @pytest.mark.parametrize("words", [["serve", "--port", "0"], ["campaign", "status"], ["token", "create"]])
    def test_no_message_repeats_a_password(
        self, address: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("NEXTLABEL_DB", address)
        assert run(words) == 2
        said = capsys.readouterr()
        assert "hunter2" not in said.err + said.out

    def test_a_password_on_the_command_line_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        for words in (["--db", SECRET_ADDRESSES[0]], [f"--db={SECRET_ADDRESSES[2]}"]):
            assert run(["campaign", "status", *words]) == 2
            said = capsys.readouterr().err
            assert "NEXTLABEL_DB" in said and "list of processes" in said and "hunter2" not in said

    def test_plain_addresses_are_shown(self) -> None:
        for address in (
            "sqlite:///labels.db",
            "postgresql://ann@host:5432/base",
            "postgresql://ann:@/base?host=/tmp",
            "x.db",
        ):
            assert without_passwords(address) == address
        assert checked_url("postgresql://ann:hunter2@host/base") == "postgresql+psycopg://ann:hunter2@host/base"

    def test_the_log_shows_neither_tokens_nor_passwords_in_tracebacks(self) -> None:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(JsonFormatter())
        logger = logging.getLogger("nextlabel.test_access")
        logger.addHandler(handler)
        token = "nl_" + "k" * 43
        try:
            raise RuntimeError(f"cannot reach {SECRET_ADDRESSES[0]} with {token}")
        except RuntimeError:
            logger.exception("failed at %s with %s", SECRET_ADDRESSES[0], token)
        logger.removeHandler(handler)
        assert "RuntimeError" in stream.getvalue()
        assert "hunter2" not in stream.getvalue() and token not in stream.getvalue()


def test_a_503_leaves_its_cause_in_the_log(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    with service.http() as http:
        join = http.post("/campaigns/demo/links", json={}).json()["join"]["url"]
        cookies = dict(httpx.get(join, params={"worker": "ann"}).cookies)
        store = service.campaign_service.store
        assert isinstance(store, SqlStore)
        with closing(sqlite3.connect(str(store.engine.url.database))) as connection, connection:
            connection.execute("ALTER TABLE campaigns RENAME TO lost")
        with caplog.at_level(logging.WARNING, "nextlabel.service"):
            answers = [http.get("/campaigns"), httpx.get(f"{service.url}/work/demo", cookies=cookies)]
        assert [one.status_code for one in answers] == [503, 503]
        assert all("retry-after" in one.headers and "lost" not in one.text for one in answers)
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    told = [(line["level"], line["path"]) for line in lines if "no such table: campaigns" in line.get("cause", "")]
    assert told == [("warning", "/api/v1/campaigns"), ("warning", "/work/demo")]
