"""The service below a path of a site: behind nginx, and mounted in another FastAPI application."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from benchmarks.live.server import free_port
from fastapi import FastAPI
from playwright.sync_api import Browser, expect

from browser import at, chromium
from nextlabel.client import Client
from nextlabel.service.access import create_token
from nextlabel.store.sql import open_store
from nextlabel.web.pages import asgi_app, mount_pages
from service_fixtures import PATIENCE_S, QUICK, on_sqlite

__all__ = ["chromium"]
NGINX = """
worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; daemon off; user root;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ return 404; }}
        location /labels/ {{
            proxy_pass http://127.0.0.1:{to}{rest};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
        }}
    }}
}}
"""


@contextmanager
def nginx(folder: Path, port: int, to: int, strips: bool) -> Iterator[None]:
    """Debian's nginx before the service, which takes the path off or leaves it."""
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    file = folder / "nginx.conf"
    file.write_text(NGINX.format(folder=folder, port=port, to=to, rest="/" if strips else ""))
    process = subprocess.Popen([program, "-p", str(folder), "-c", str(file)])
    try:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/")
                break
            except httpx.TransportError:
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def try_everything(site: str, token: str, chromium: Browser) -> None:
    """API, dashboard and workers' page below a path, and nothing outside of it."""
    outside = httpx.URL(site).copy_with(path="/")
    with Client(site, token) as client:
        settings = {key: value for key, value in QUICK.items() if key != "budget"}
        client.create(id="demo", budget=6, **settings)
        client.add_tasks("demo", [{"id": f"t{k}", "text": f"item {k}"} for k in range(3)])
        link = client.links("demo", ["ann"]).links[0].url
        join = client.links("demo").join.url
    assert link.startswith(f"{site}/w/") and join.startswith(f"{site}/j/")
    assert httpx.get(f"{site}/healthz").json()["status"] == "ok" and httpx.get(f"{outside}healthz").status_code == 404
    with at(chromium) as page:
        failed: list[str] = []
        page.on("response", lambda reply: failed.append(reply.url) if reply.status >= 400 else None)
        page.goto(link)
        assert page.url == f"{site}/work/demo"
        expect(page.locator("#mine")).to_have_text("0")
        page.get_by_role("button", name="yes").click()
        expect(page.locator("#mine")).to_have_text("1")
        assert {cookie["path"] for cookie in page.context.cookies()} == {"/labels/work/demo"}
        page.goto(f"{site}/")
        assert page.url.startswith(f"{site}/sign-in")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="demo").first.click()
        expect(page).to_have_url(f"{site}/campaigns/demo")
        for name in ("links", "platforms", "edit", "webhooks"):
            page.goto(f"{site}/campaigns/demo/{name}")
            collect = "all => all.map(one => one.getAttribute('href') || one.getAttribute('action'))"
            here = page.eval_on_selector_all("a[href^='/'], form[action^='/']", collect)
            assert here and all(address.startswith("/labels/") for address in here), here
        page.goto(f"{site}/campaigns/demo")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(f"{site}/sign-in")
        assert failed == []


@pytest.mark.parametrize("strips", [True, False], ids=["nginx takes the path off", "nginx leaves the path"])
def test_behind_nginx(tmp_path: Path, chromium: Browser, strips: bool) -> None:
    port = free_port()
    site = f"http://127.0.0.1:{port}/labels"
    with (
        on_sqlite(tmp_path, pages=mount_pages, public_url=site) as service,
        nginx(tmp_path, port, httpx.URL(service.url).port or 0, strips),
    ):
        try_everything(site, service.token, chromium)


def test_mounted_in_another_application(tmp_path: Path, chromium: Browser) -> None:
    labels = asgi_app(f"sqlite:///{tmp_path / 'labels.db'}")
    store = open_store(f"sqlite:///{tmp_path / 'labels.db'}")
    token = create_token(store, replace=True)
    store.close()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with labels.router.lifespan_context(labels):
            yield

    app = FastAPI(lifespan=lifespan)
    app.mount("/labels", labels)
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the application did not start"
            time.sleep(0.01)
        try_everything(f"http://127.0.0.1:{port}/labels", token, chromium)
    finally:
        server.should_exit = True
        thread.join()
