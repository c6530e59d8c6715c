"""Webhooks against a real receiver: signatures, order, failures, hangs, a service that is killed."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from email import message_from_bytes
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from benchmarks.live.server import free_port
from playwright.sync_api import Browser, expect

from browser import PHONE, at, check_accessible, chromium
from nextlabel.application import webhooks as webhooks_module
from nextlabel.application.webhooks import GIVEN_UP_S, Webhooks
from nextlabel.campaign.webhooks import FOR_PEOPLE, TYPES, Message, Reply, Webhook
from nextlabel.cli.app import run
from nextlabel.client import Client
from nextlabel.errors import InputError
from nextlabel.service.settings import ServiceSettings
from nextlabel.service.webhooks import WebhookSender, check_addresses, checked_address, checked_url, signature_headers
from nextlabel.store.sql import open_store
from nextlabel.web.pages import mount_pages
from service_fixtures import PATIENCE_S, QUICK, Service, on_sqlite

__all__ = ["chromium"]


class Receiver:
    """An HTTP server that keeps what it is told; ``replies`` are given first, one for each request: a status or None
    to hang up only when the test ends."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.acknowledged: list[dict[str, Any]] = []
        self.replies: list[Any] = []
        self.released = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                status = receiver.replies.pop(0) if receiver.replies else 204
                if status is None:
                    receiver.released.wait(PATIENCE_S)
                    return
                if status < 300:
                    receiver.acknowledged.append({"id": self.headers["webhook-id"], **json.loads(body)})
                self.send_response(status)
                self.send_header("content-length", "0")
                if status == 302:
                    self.send_header("location", "http://127.0.0.1:1/")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def check_signatures(self, secret: str) -> None:
        """As the specification of Standard Webhooks says, written down again."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        assert self.got
        for headers, body in self.got:
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
            assert headers["webhook-signature"] == f"v1,{expected}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    hosts = "127.0.0.1"
    with on_sqlite(tmp_path_factory.mktemp("webhooks"), pages=mount_pages, webhook_hosts=hosts) as running:
        yield running


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks_module, "WAITS_S", (0.05,))


def until(done: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not done():
        assert time.monotonic() < begun + PATIENCE_S
        time.sleep(0.02)


def add(service: Service, id: str, url: str, **more: Any) -> dict[str, Any]:
    with service.http() as http:
        made = http.post(f"/campaigns/{id}/webhooks", json={"url": url, **more})
    assert made.status_code == 201, made.text
    return dict(made.json())


def label(http: httpx.Client, id: str, worker: str, label: str = "yes") -> str:
    lease = http.post(f"/campaigns/{id}/ask", json={"worker": worker}).json()["lease"]
    assert http.post(f"/leases/{lease['id']}/tell", json={"label": label}).status_code == 200
    return str(lease["id"])


def test_the_signature_is_that_of_the_specification() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signature_headers(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', 1614265330.0)
    assert made == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }  # fmt: skip


def test_everything_is_told_in_order_through_failures(service: Service, receiver: Receiver) -> None:
    id = service.campaign("told", tasks=2, budget=4, most_labels=2)
    made = add(service, id, receiver.url)
    receiver.replies += [500, 302, 429, 204, 503]
    with service.http() as http:
        for worker in ("ann", "bob"):
            for _ in range(2):
                lease = label(http, id, worker)
        until(lambda: any(one["type"] == "campaign.closed" for one in receiver.acknowledged))
        found = http.get(f"/campaigns/{id}/webhooks").json()["webhooks"]
    told = receiver.acknowledged
    assert [one["type"] for one in told] == [
        "label.created", "label.created", "label.created", "task.closed", "label.created", "task.closed",
        "campaign.closed",
    ]  # fmt: skip
    events = [one["data"]["event"] for one in told]
    assert events == sorted(events) and len({one["id"] for one in told}) == len(told)
    assert [one["id"] for one in told] == [f"told.{n}.{one['type']}" for n, one in zip(events, told, strict=True)]
    last = told[-3]
    assert last["data"] == {
        "campaign": id, "event": events[-3], "task": last["data"]["task"], "worker": "bob", "label": "yes",
        "lease": lease, "counted": True,
    }  # fmt: skip
    assert told[-2]["data"]["labels"] == {"no": 0, "yes": 2} and told[-1]["data"]["reason"] == "budget_spent"
    receiver.check_signatures(made["secret"])
    assert len(receiver.got) == len(told) + 4  # 500, 302, 429, 503 were tried again
    until(lambda: service.campaign_service.store.records.find(Webhook, campaign=id)[0].delivered == len(told))
    assert found[0]["url"] == receiver.url and "secret" not in json.dumps(found)


def test_a_receiver_that_hangs_or_is_down_keeps_nobody_waiting(service: Service, receiver: Receiver) -> None:
    id = service.campaign("hangs", tasks=3)
    receiver.replies += [None]
    add(service, id, receiver.url)
    add(service, id, f"http://127.0.0.1:{free_port()}/nobody")
    other = Receiver()
    try:
        add(service, id, other.url, types=["label.created"])
        with service.http() as http:
            lease = label(http, id, "ann")
            until(lambda: len(other.acknowledged) == 1 and len(receiver.got) == 1)
            assert http.post(f"/leases/{lease}/undo").status_code == 200
            label(http, id, "ann")
            until(lambda: len(other.acknowledged) == 2)  # label.undone is not among its types
            shown = {one["url"]: one for one in http.get(f"/campaigns/{id}/webhooks").json()["webhooks"]}
        assert [one["type"] for one in other.acknowledged] == ["label.created", "label.created"]
        down = next(one for url, one in shown.items() if "nobody" in url)
        until(lambda: service.campaign_service.store.records.find(Webhook, campaign=id)[1].failures > 1)
        assert down["state"] in ("failing", "active")
        assert "ConnectError" in service.campaign_service.store.records.find(Webhook, campaign=id)[1].last_reply
    finally:
        other.close()


@pytest.mark.long
def test_a_service_that_is_killed_loses_nothing(tmp_path: Path, receiver: Receiver) -> None:
    db, port = f"sqlite:///{tmp_path / 'labels.db'}", free_port()
    environment = {**os.environ, "NEXTLABEL_WEBHOOK_HOSTS": receiver.host, "NEXTLABEL_WEBHOOK_SECONDS": "1"}
    with on_sqlite(tmp_path, webhook_hosts=receiver.host) as service:
        id, token = service.campaign("killed", tasks=8, budget=20), service.token
        made = add(service, id, receiver.url)
    code = (
        "from nextlabel.application import webhooks; from nextlabel.cli.app import main\n"
        "webhooks.WAITS_S = (0.1,); main()"
    )
    command = [sys.executable, "-c", code, "serve", "--db", db, "--port", str(port)]

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

        def answers() -> bool:
            assert process.poll() is None
            try:
                return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_S).is_success
            except httpx.TransportError:
                return False

        until(answers)
        return process

    headers = {"Authorization": f"Bearer {token}"}
    receiver.replies += [204, 204, None]  # the third is in the receiver's hands when the service is killed
    process = start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers, timeout=PATIENCE_S) as http:
        for _ in range(8):
            label(http, id, "ann")
        until(lambda: len(receiver.got) >= 3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = start()
    until(lambda: len({one["id"] for one in receiver.acknowledged}) == 8)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    receiver.check_signatures(made["secret"])
    firsts = list(dict.fromkeys(one["id"] for one in receiver.acknowledged))
    assert firsts == sorted(firsts, key=lambda one: int(one.split(".")[1]))


class TestGivingUp:
    """With a clock that the test moves, and replies as the sender would make them."""

    @pytest.fixture
    def told(self, service: Service) -> Iterator[tuple[Webhooks, Webhook, list[float]]]:
        id = f"given_up_{time.time_ns()}"
        service.campaign(id, tasks=2)
        now = [time.time()]
        webhooks = Webhooks(service.campaign_service.store, clock=lambda: now[0])
        made = webhooks.add(id, "https://example.org/")
        store = service.campaign_service.store
        store.records.save_webhook(replace(made, next_at=now[0] + 1e9), "", 0.0)  # the service leaves it alone
        with service.http() as http:
            label(http, id, "ann")
        yield webhooks, made, now
        webhooks.remove(id, made.id)

    @staticmethod
    def deliver(webhooks: Webhooks, webhook: Webhook, reply: Reply) -> Webhook:
        async def send(webhook: Webhook, message: Message) -> Reply:
            return reply

        asyncio.run(webhooks.deliver(webhook, send))
        return webhooks.get(webhook.campaign, webhook.id)

    def test_after_days_of_failing(
        self, told: tuple[Webhooks, Webhook, list[float]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        webhooks, _, now = told
        monkeypatch.setattr(webhooks_module, "WAITS_S", (1.0, 5.0, 30.0))
        webhook = webhooks.get(told[1].campaign, told[1].id)
        begun, waits = now[0], []
        while webhook.disabled is None:
            webhook = self.deliver(webhooks, webhook, Reply(False, "status 500"))
            waits.append(webhook.next_at - now[0])
            now[0] += 86_400.0
        assert [round(one) for one in waits] == [1, 5, 30, 30]
        assert now[0] - begun > GIVEN_UP_S
        assert webhook.disabled == "It has failed for 3 days, 4 times in a row."
        assert webhook.id not in [one.id for one in webhooks.due()]
        again = webhooks.enable(webhook.campaign, webhook.id)
        assert again.position == webhook.position and again.id in [one.id for one in webhooks.due()]
        found = self.deliver(webhooks, again, Reply(True, "status 200"))
        assert (found.delivered, found.state) == (1, "active") and found.position > webhook.position

    def test_a_receiver_that_says_when_and_one_that_is_gone(self, told: tuple[Webhooks, Webhook, list[float]]) -> None:
        webhooks, made, now = told
        webhook = webhooks.get(made.campaign, made.id)
        webhook = self.deliver(webhooks, webhook, Reply(False, "status 429", retry_after=77.0))
        assert webhook.next_at == now[0] + 77.0
        webhook = self.deliver(webhooks, webhook, Reply(False, "status 410", gone=True))
        assert webhook.state == "disabled"

    def test_what_a_killed_process_has_told_is_told_again_by_the_next(
        self, told: tuple[Webhooks, Webhook, list[float]], service: Service
    ) -> None:
        webhooks, made, now = told
        with service.http() as http:
            label(http, made.campaign, "ann")
        webhook = webhooks.get(made.campaign, made.id)
        first: list[str] = []

        async def killed(webhook: Webhook, message: Message) -> Reply:
            first.append(message.id)
            if len(first) == 2:
                raise SystemExit  # nothing is written any more, and the claim stays
            return Reply(True, "status 200")

        with pytest.raises(SystemExit):
            asyncio.run(webhooks.deliver(webhook, killed))
        second, told_by_second = Webhooks(webhooks._store, clock=lambda: now[0]), []
        assert webhook.id not in [one.id for one in second.due()]
        now[0] += 1e9 + 31.0  # the service of these tests leaves it alone until then; the claim ran out before

        async def send(webhook: Webhook, message: Message) -> Reply:
            told_by_second.append(message.id)
            return Reply(True, "status 200")

        (due,) = [one for one in second.due() if one.id == webhook.id]
        assert asyncio.run(second.deliver(due, send)) == 2
        assert told_by_second == first

    def test_events_that_it_is_not_told_are_passed_over_without_a_write(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        id = service.campaign(f"passed_{time.time_ns()}", tasks=5)
        webhooks = Webhooks(service.campaign_service.store)
        made = webhooks.add(id, "https://example.org/", ["campaign.closed"])
        with service.http() as http:
            label(http, id, "ann")
        told = self.deliver(webhooks, made, Reply(True, "status 200"))
        assert told == made  # not even claimed
        monkeypatch.setattr(webhooks_module, "PASSED", 2)
        assert self.deliver(webhooks, made, Reply(True, "status 200")).position == made.position + 2
        webhooks.remove(id, made.id)

    def test_two_processes_do_not_tell_the_same(self, told: tuple[Webhooks, Webhook, list[float]]) -> None:
        webhooks, made, now = told
        webhook = webhooks.get(made.campaign, made.id)
        second = Webhooks(webhooks._store, clock=lambda: now[0])
        sent: list[str] = []

        async def both() -> tuple[int, int]:
            async def slow(webhook: Webhook, message: Message) -> Reply:
                sent.append(message.id)
                assert await second.deliver(webhook, slow) == 0
                return Reply(True, "status 200")

            return await webhooks.deliver(webhook, slow), await second.deliver(webhook, slow)

        assert asyncio.run(both()) == (1, 0)
        assert len(sent) == 1


class TestAddresses:
    @pytest.mark.parametrize(
        "url",
        [
            "https://127.0.0.1/x", "https://10.1.2.3/", "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://0.0.0.0/",
            "https://169.254.169.254/latest/meta-data", "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:7f00:1::]/",
            "https://[::10.0.0.1]/", "https://[::127.0.0.1]/", "https://localhost/x", "https://192.168.0.1/", "ftp://example.org",
            "http://example.org/x", "https://user:pass@example.org/", "nonsense", "https:///x", "",
        ],
    )  # fmt: skip
    def test_those_that_are_refused(self, url: str) -> None:
        with pytest.raises(InputError):
            checked_url(url, ServiceSettings())

    def test_names_are_looked_up_at_the_time_of_the_call(self) -> None:
        url = checked_url("https://example.org/x", ServiceSettings())
        check_addresses(url, ["93.184.216.34"], ServiceSettings())
        with pytest.raises(InputError, match="private network"):
            check_addresses(url, ["93.184.216.34", "10.0.0.1"], ServiceSettings())
        check_addresses(url, ["10.0.0.1"], ServiceSettings(webhook_hosts="example.org"))
        assert checked_url("http://hooks.internal:8080/x", ServiceSettings(webhook_hosts="hooks.internal:8080"))
        with pytest.raises(InputError, match="is not a host name"):
            ServiceSettings(webhook_hosts="a/b")


def test_over_http_refusals(service: Service) -> None:
    id = service.campaign("refusals", tasks=1)
    path = f"/campaigns/{id}/webhooks"
    with service.http() as http:
        assert http.post(path, json={"url": "https://10.0.0.1/"}).status_code == 422
        assert http.post(path, json={"url": "https://example.org/", "types": ["label"]}).status_code == 422
        assert http.post("/campaigns/none/webhooks", json={"url": "https://example.org/"}).status_code == 404
        assert http.delete(f"{path}/wh_{'0' * 24}").status_code == 404
        assert http.post(f"{path}/wh_{'0' * 24}/enable").status_code == 404
        for _ in range(20):
            assert http.post(path, json={"url": "https://example.org/"}).status_code == 201
        assert http.post(path, json={"url": "https://example.org/"}).status_code == 409
        first = http.get(path).json()["webhooks"][0]
        assert (first["state"], first["types"], first["next_at"]) == ("active", list(TYPES), None)
        assert http.delete(f"{path}/{first['id']}").status_code == 204
        assert len(http.get(path).json()["webhooks"]) == 19
        assert http.delete(f"/campaigns/{id}").status_code == 200
    until(lambda: not service.campaign_service.store.records.unfinished())


def test_by_the_command_line(
    service: Service, receiver: Receiver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    id = service.campaign("shell", tasks=1)
    url = service.campaign_service.store.engine.url  # type: ignore[attr-defined]
    db = ["--db", f"sqlite:///{url.database}"]
    assert run(["campaign", "webhooks", id, "add", receiver.url, *db]) == 2
    assert "would be told without encryption" in capsys.readouterr().err
    monkeypatch.setenv("NEXTLABEL_WEBHOOK_HOSTS", receiver.host)
    assert run(["campaign", "webhooks", id, "add", receiver.url, "--types", "campaign.closed", *db]) == 0
    secret = capsys.readouterr().out.strip()
    assert run(["campaign", "webhooks", id, "--json", *db]) == 0
    (found,) = json.loads(capsys.readouterr().out)["webhooks"]
    assert found["types"] == ["campaign.closed"]
    assert run(["campaign", "webhooks", id, "test", found["id"], *db]) == 0
    assert receiver.acknowledged[0]["type"] == "webhook.test"
    receiver.check_signatures(secret)
    receiver.replies += [500]
    assert run(["campaign", "webhooks", id, "test", found["id"], *db]) == 1
    assert "did not acknowledge the message: status 500" in capsys.readouterr().err
    assert run(["campaign", "webhooks", id, "enable", found["id"], *db]) == 0
    assert run(["campaign", "webhooks", id, *db]) == 0
    assert run(["campaign", "webhooks", id, "remove", found["id"], *db]) == 0
    assert run(["campaign", "webhooks", id, "remove", found["id"], *db]) == 2


def test_in_a_browser(service: Service, receiver: Receiver, chromium: Browser) -> None:
    id = service.campaign("browser", tasks=2)
    with at(chromium, PHONE) as page:
        page.goto(f"{service.url}/sign-in")
        page.fill("[name=token]", service.token)
        page.click("button[type=submit]")
        page.goto(f"{service.url}/campaigns/{id}/webhooks")
        page.get_by_label("Address").fill(receiver.url)
        page.get_by_role("button", name="Add").click()
        secret = page.get_by_label("Secret", exact=True).input_value()
        assert secret.startswith("whsec_")
        check_accessible(page)
        page.get_by_role("button", name="Send a trial").click()
        expect(page.get_by_role("status")).to_contain_text("The trial arrived.")
        receiver.check_signatures(secret)
        assert secret not in page.content()
        page.get_by_label("Address").fill("https://10.0.0.1/")
        page.get_by_role("button", name="Add").click()
        expect(page.get_by_role("alert")).to_contain_text("private network")
        webhook = service.campaign_service.store.records.find(Webhook, campaign=id)[0]
        service.campaign_service.store.records.save_webhook(replace(webhook, disabled="It has failed."), "", 0.0)
        page.goto(f"{service.url}/campaigns/{id}")
        expect(page.get_by_text("1 webhook disabled")).to_be_visible()
        page.get_by_role("link", name="See why").click()
        page.get_by_role("button", name="Enable").click()
        expect(page.get_by_role("button", name="Enable")).to_have_count(0)
        page.get_by_role("button", name="Remove").click()
        expect(page.get_by_text("Send a trial")).to_have_count(0)


# ---------------------------------------------------------------------------------------- people: mail and chats


class Post:
    """An SMTP server on this machine that keeps its mail."""

    def __init__(self, **options: Any) -> None:
        self.mail: list[Any] = []
        self.port = free_port()
        self.server = Controller(self, hostname="127.0.0.1", port=self.port, **options)
        self.server.start()

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mail.append((envelope.rcpt_tos, message_from_bytes(envelope.content, policy=default)))
        return "250 OK"


@pytest.fixture
def post() -> Iterator[Post]:
    made = Post()
    yield made
    made.server.stop()


def ended(service: Service, *urls: str) -> str:
    """A campaign whose budget was spent, told to these addresses."""
    with Client(service.url, service.token) as client:
        id = client.create(**{**QUICK, "budget": 1, "name": "Films"}).id  # type: ignore[arg-type]
        client.add_tasks(id, [{"id": "t0", "text": "x"}, {"id": "t1", "text": "y"}])
        for url in urls:
            webhook, secret = client.add_webhook(id, url)
            assert (webhook.types, secret) == (FOR_PEOPLE, "")
            assert client.test_webhook(id, webhook.id)
        lease = client.ask(id, "ann")
        assert lease
        client.tell(lease, "yes")
    return id


def test_mail_and_chat(tmp_path: Path, post: Post, receiver: Receiver) -> None:
    settings = {"smtp": f"smtp://127.0.0.1:{post.port}", "mail_from": "labels@example.org"}
    with on_sqlite(tmp_path, webhook_hosts="127.0.0.1", **settings) as service:
        id = ended(service, "mailto:eve+crowd@example.org", f"chat+{receiver.url}")
        until(lambda: len(post.mail) == 2 and len(receiver.got) == 2)
    recipients, mail = post.mail[1]
    assert recipients == [mail["To"]] == ["eve+crowd@example.org"] and mail["From"] == "labels@example.org"
    assert mail["Subject"] == f"Campaign {id} has ended. All labels of this campaign have been bought."
    assert f"/campaigns/{id}" in mail.get_content() and f"{id}." in mail["Message-ID"]
    assert [json.loads(body) for _, body in receiver.got] == [
        {"text": f"Campaign {id}: messages arrive here."}, {"text": mail["Subject"]},
    ]  # fmt: skip


def test_a_name_calls_nobody_in_a_chat(tmp_path: Path, receiver: Receiver) -> None:
    with (
        on_sqlite(tmp_path, webhook_hosts="127.0.0.1") as service,
        Client(service.url, service.token) as client,
    ):
        id = client.create(**QUICK).id  # type: ignore[arg-type]
        client.add_tasks(id, [{"id": "t0", "text": "x"}])
        client.add_webhook(id, f"chat+{receiver.url}", ["label.created"])
        lease = client.ask(id, "<!channel>")
        assert lease
        client.tell(lease, "yes")
        until(lambda: len(receiver.got) == 1)
    assert "&lt;!channel&gt;" in json.loads(receiver.got[0][1])["text"]


def test_a_password_is_never_sent_without_encryption(tmp_path: Path) -> None:
    asked = []

    def check(*given: Any) -> AuthResult:
        asked.append(given)
        return AuthResult(success=True)

    post = Post(authenticator=check, auth_require_tls=False)
    try:
        with (
            on_sqlite(tmp_path, smtp=f"smtp://ann:secret@127.0.0.1:{post.port}") as service,
            Client(service.url, service.token) as client,
        ):
            id = client.create(**QUICK).id  # type: ignore[arg-type]
            webhook, _ = client.add_webhook(id, "mailto:eve@example.org")
            assert not client.test_webhook(id, webhook.id)
    finally:
        post.server.stop()
    assert not asked and not post.mail


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_mail_over_tls_goes_to_a_server_with_a_trusted_certificate_only(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    ask = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    subprocess.run([*ask.split(), "-keyout", key, "-out", cert], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)
    got = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(reader)  # only after the handshake
        writer.close()

    async def said() -> Reply:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
        async with server:
            port = server.sockets[0].getsockname()[1]
            settings = ServiceSettings(smtp=f"smtps://ann:secret@127.0.0.1:{port}", key_file=str(tmp_path / "key"))
            webhook = Webhook("wh_" + "0" * 24, "c", "mailto:eve@example.org", FOR_PEOPLE, 0.0, 0)
            message = Message("c.1.webhook.test", "webhook.test", 0.0, {"campaign": "c"})
            return await WebhookSender(open_store("memory:"), settings).send(webhook, message)

    reply = asyncio.run(said())
    assert not reply.ok and "CERTIFICATE_VERIFY_FAILED" in reply.said and not got


@pytest.mark.parametrize(
    "address", ["mailto:", "mailto:ann", "mailto:ann@example.org\nBcc: x@y.z", "mailto:a@b.c,d@e.f", "mailto:a@b?cc=d",
                "chat+ftp://example.org", "chat+http://example.org/x", "chat+https://127.0.0.1/x", "chat+mailto:a@b.c"],
)  # fmt: skip
def test_addresses_that_are_refused(address: str) -> None:
    with pytest.raises(InputError):
        checked_address(address, ServiceSettings(smtp="smtp://127.0.0.1"))


def test_mail_needs_a_server() -> None:
    with pytest.raises(InputError, match="no mail server is set up"):
        checked_address("mailto:ann@example.org", ServiceSettings())
    with pytest.raises(InputError):
        ServiceSettings(smtp="mail.example.org")
