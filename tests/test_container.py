"""The Dockerfile, whose steps run here as a script: in an empty folder, as nobody, with code that cannot be written to.

No builder of images runs where tests do. Of the steps only ``pip install`` is replaced: by a copy of the code.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml
from benchmarks.live.server import free_port

from nextlabel.service.settings import ServiceSettings
from service_fixtures import PATIENCE_S

ROOT = Path(__file__).parents[1]
KNOWN = {"NEXTLABEL_DB", *(f"NEXTLABEL_{name.upper()}" for name in ServiceSettings.model_fields)}
FOLDERS = re.compile(r"/(?:opt|var/lib|var/cache)/nextlabel")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_read_search",
          "--ambient-caps=+dac_read_search"]  # fmt: skip
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can run steps as two users, with setpriv"
)


def steps() -> list[tuple[str, str]]:
    """Instructions with their arguments."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    found = [line.partition(" ") for line in lines if line.strip() and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in found]


def of(word: str) -> list[str]:
    return [rest for one, rest in steps() if one == word]


def test_what_the_image_is_made_of() -> None:
    """A user without rights, extras that there are, files that are let through, settings that the service knows."""
    order = [word for word, _ in steps()]
    assert of("USER") == ["65534:65534"] and order.index("USER") < order.index("CMD")
    assert order.index("USER") < [f"{word} {rest}" for word, rest in steps()].index("RUN nextlabel warm")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"\.\[([a-z,]+)\]", of("RUN")[0])
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    copied = {name for rest in of("COPY") for name in rest.split()[:-1]}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == allowed and all((ROOT / name).exists() for name in copied)
    names = {rest.partition("=")[0] for rest in of("ENV")}
    assert {name for name in names if name.startswith("NEXTLABEL_")} <= KNOWN
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(compose["service"]["environment"]) <= KNOWN and compose["database"]["image"].startswith("postgres:")
    folders = {mount.partition(":")[2] for mount in compose["service"]["volumes"]}
    assert folders == {FOLDERS.match(rest.partition("=")[2])[0] for rest in of("ENV") if "/var/" in rest}  # type: ignore[index]


@contextmanager
def container(warm: bool) -> Iterator[tuple[str, dict[str, str], subprocess.Popen[bytes], Path]]:
    """The steps up to CMD, which is started: its address, its environment, its process and its log."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        root, port = Path(name), free_port()
        root.chmod(0o755)
        env = {"PATH": f"{root}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
        as_user: list[str] = []

        def inside(text: str) -> str:
            return FOLDERS.sub(lambda found: f"{root}{found[0]}", text)

        def run(command: str) -> None:
            typed = [*as_user, "sh", "-c", inside(command)]
            done = subprocess.run(typed, env=env, cwd=root, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{command}: {done.stderr}"

        for word, rest in steps():
            if word == "ENV":
                key, _, value = rest.partition("=")
                env[key] = inside(value)
            elif word == "USER":
                as_user = NOBODY
            elif word == "RUN" and rest.startswith("pip "):
                code = root / "opt" / "nextlabel"
                shutil.copytree(ROOT / "src", code, ignore=shutil.ignore_patterns("__pycache__"))
                for path in [code, *code.rglob("*")]:
                    path.chmod(0o555 if path.is_dir() else 0o444)
                (root / "bin").mkdir(mode=0o755)
                program = root / "bin" / "nextlabel"
                program.write_text(
                    f'#!/bin/sh\nexec {sys.executable} -c "from nextlabel.cli.app import main; main()" "$@"\n',
                    encoding="utf-8",
                )
                program.chmod(0o755)
                env["PYTHONPATH"] = str(code)
            elif word == "RUN" and (warm or rest != "nextlabel warm"):
                run(rest)
        env |= {"NEXTLABEL_PORT": str(port), "NEXTLABEL_HOST": "127.0.0.1"}
        command = shlex.split(of("CMD")[0].strip("[]").replace(",", " "))
        log = root / "log"
        with log.open("wb") as stream:
            process = subprocess.Popen([*NOBODY, *command], env=env, cwd=root, stderr=stream, start_new_session=True)
        try:
            yield f"http://127.0.0.1:{port}", env, process, log
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
            for path in root.rglob("*"):
                if not path.is_symlink() and path.is_dir():
                    path.chmod(0o755)


def healthy(url: str, env: dict[str, str], process: subprocess.Popen[bytes]) -> None:
    """Wait until the image's own check of health succeeds."""
    check = of("HEALTHCHECK")[0].partition(" CMD ")[2].replace("http://127.0.0.1:8000", url)
    until = time.monotonic() + PATIENCE_S
    while subprocess.run([*NOBODY, "sh", "-c", check], env=env, capture_output=True, check=False).returncode:
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.2)


@needs_root
def test_it_serves_as_nobody() -> None:
    """From an empty folder to a service that is healthy, and ends in good order."""
    with container(warm=False) as (url, env, process, log):
        healthy(url, env, process)
        assert httpx.get(f"{url}/sign-in").status_code == 200
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait() == 0, log.read_text()
        assert (Path(env["HOME"]) / "labels.db").stat().st_uid == 65534


@needs_root
@pytest.mark.long
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warmed"])
def test_the_first_label(warm: bool) -> None:
    """The seconds to the first label are printed; what was warmed compiles nothing."""
    begun = time.monotonic()
    with container(warm) as (url, env, process, log):
        if warm:
            print(f"nextlabel warm, when the image is built: {time.monotonic() - begun:.0f} s")
        begun = time.monotonic()
        healthy(url, env, process)
        made = subprocess.run([*NOBODY, "nextlabel", "token", "create", "--replace"], env=env, capture_output=True,
                              text=True, check=True)  # fmt: skip
        token = re.findall(r"nl_\S+", made.stdout + made.stderr)[0]
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=PATIENCE_S) as http:
            until = time.monotonic() + 4 * PATIENCE_S
            while http.get("/readyz").status_code != 200:
                assert time.monotonic() < until
                time.sleep(0.2)
            ready = time.monotonic() - begun
            assert (
                http.post("/campaigns", json={"id": "first", "budget": 6, "labels": ["no", "yes"]}).status_code == 201
            )
            http.post("/campaigns/first/tasks", json=[{"text": "one"}, {"text": "two"}])
            lease = http.post("/campaigns/first/ask", json={"worker": "ann"}).json()["lease"]["id"]
            assert http.post(f"/leases/{lease}/tell", json={"label": "yes"}).status_code == 200
            print(f"ready after {ready:.1f} s, first label after {time.monotonic() - begun:.1f} s, load "
                  f"{os.getloadavg()[0]:.0f}")  # fmt: skip
            assert http.get("/campaigns/first").json()["spent"] == 1
        assert ("Compiling numerical kernels" in log.read_text()) != warm
