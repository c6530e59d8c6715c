"""Links begin with the address by which the service is reached, and say so where only this machine reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.service.app_state import only_this_machine
from nextlabel.service.settings import ServiceSettings
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("address"), pages=mount_pages) as running:
        running.campaign("demo", tasks=1)
        yield running


@pytest.mark.parametrize(("address", "local"), [
    ("http://127.0.0.1:8000", True), ("http://localhost", True), ("http://[::1]:80", True), ("http://0.0.0.0:1", True),
    ("http://a.localhost", True), ("http://192.168.0.7:8000", False), ("https://labels.example.org", False),
])  # fmt: skip
def test_addresses_of_this_machine(address: str, local: bool) -> None:
    assert only_this_machine(address) == local


@pytest.mark.parametrize(("headers", "base"), [
    ({}, None),
    ({"host": "labels.example.org"}, "http://labels.example.org"),
    ({"host": "192.168.0.7:8000"}, "http://192.168.0.7:8000"),
    ({"host": "in side", "x-forwarded-for": "1.2.3.4"}, None),
    # uvicorn trusts the proxy on this machine
    ({"x-forwarded-for": "1.2.3.4", "x-forwarded-proto": "https", "x-forwarded-host": "shop.example"}, "https://shop.example"),
    # no proxy: whoever sends the header is not asked
    ({"x-forwarded-host": "evil.example"}, None),
])  # fmt: skip
def test_links_carry_the_address_of_the_request(service: Service, headers: dict[str, str], base: str | None) -> None:
    with service.http(**headers) as http:
        made = http.post("/campaigns/demo/links", json={"workers": ["ann"]}).json()
    expected = base or service.url
    for url in (made["links"][0]["url"], made["join"]["url"], made["join"]["prolific"]):
        assert url.startswith(f"{expected}/"), url
    assert (made["warning"] is None) == (base is not None)


def test_the_dashboard_warns(service: Service) -> None:
    with httpx.Client(base_url=service.url, follow_redirects=True) as http:
        http.post("/sign-in", data={"token": service.token}, headers={"origin": service.url})
        assert "work on this machine only" in http.get("/campaigns/demo/links").text
        there = http.get("/campaigns/demo/links", headers={"host": "labels.example.org"}).text
        assert "work on this machine only" not in there and "http://labels.example.org/j/" in there


def test_a_setting_wins(tmp_path: Path) -> None:
    with on_sqlite(tmp_path, public_url="https://labels.example.org") as service:
        service.campaign("demo", tasks=1)
        with nl.Client(service.url, service.token) as client:
            made = client.links("demo", ["ann"])
        assert made.links[0].url.startswith("https://labels.example.org/w/") and made.warning is None
    assert ServiceSettings(host="0.0.0.0").base_url == "http://127.0.0.1:8000"


def test_the_command_line_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["campaign", "create", "--budget", "3", "--id", "mine"]) == 0
    capsys.readouterr()
    assert run(["campaign", "links", "mine", "ann"]) == 0
    assert "work on this machine only" in capsys.readouterr().err
    assert run(["campaign", "links", "mine", "ann", "--public-url", "https://x.example"]) == 0
    assert "machine" not in capsys.readouterr().err
