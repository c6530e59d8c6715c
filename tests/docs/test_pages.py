"""Every Python block and every quick command of README and docs runs, and prints what the page says it prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks.live.server import free_port

from documents import ROOT, RUNS, Block, Page, missing, missing_number, pages, read_page
from nextlabel.cli.app import run

#: Made from the commands themselves (tests/cli); its blocks show how commands are called, with [OPTIONS].
USAGE = ROOT / "docs" / "reference" / "cli.md"
#: Its blocks are parts of modules, which tests/docs/test_worked_examples.py puts in their places.
EXCERPTS = ROOT / "CONTRIBUTING.md"
PAGES = [
    page
    for page in map(read_page, pages())
    if page.path != USAGE and any(block.kind in ("python", "commands") for block in page.blocks)
]
REVIEWS = """id,text
r1,Great kettle. I use it every day.
r2,It broke in the first week.
r3,For that price it is what you would expect.
"""
ADDRESS = "127.0.0.1:8000"


@pytest.fixture
def folder(page: Page, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder but for what pages take for granted: the examples, a file of items, recorded labels (RTE)."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")  # a page must not write through a link
    shutil.copy(ROOT / "examples" / "first_to_lead.py", tmp_path)
    (tmp_path / "reviews.csv").write_text(REVIEWS, encoding="utf-8")
    if any("labels.csv" in block.text for block in page.blocks if block.kind == "commands" and not block.note):
        data = request.getfixturevalue("data")
        for name in ("rte", "temp"):
            shutil.copytree(data / name, tmp_path / name)
        for name in ("labels.csv", "gold.csv"):
            shutil.copyfile(data / "rte" / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


class Runner:
    """Runs a page's blocks in order and keeps what went wrong."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.names: dict[str, Any] = {}
        self.wrong: list[str] = []
        self.port = free_port()
        self.server: subprocess.Popen[str] | None = None

    def complain(self, block: Block, what: str, printed: str = "") -> None:
        self.wrong.append(f"{self.page.name}:{block.line}: {what}\n{printed}")

    def compare(self, block: Block, printed: str) -> None:
        line = missing(block.output, printed)
        if line is not None:
            self.complain(block, f"this line is not printed, or not there:\n{line}\nbut:", printed)

    def python(self, block: Block) -> None:
        if block.text.startswith(("import ", "from ")):
            self.names = {"__name__": "__main__"}
        code = compile(block.text.replace(ADDRESS, f"127.0.0.1:{self.port}"), f"{self.page.name}:{block.line}", "exec")
        with captured() as printed:
            try:
                exec(code, self.names)
            except Exception as error:
                self.complain(block, f"{type(error).__name__}: {error}")
                return
        self.compare(block, printed.getvalue())

    def commands(self, block: Block) -> None:
        everything = ""
        for command, comment in block.commands():
            if command.startswith("nextlabel serve"):
                self.serve(command)
                continue
            if not command.startswith(RUNS):
                self.complain(block, f"not a command that the tests run; mark it <!-- run: no, REASON -->: {command}")
                continue
            began = time.monotonic()
            code, printed = execute(command.replace(ADDRESS, f"127.0.0.1:{self.port}"))
            print(f"{time.monotonic() - began:6.1f} s  {command}")
            everything += printed
            if code != (2 if block.output.startswith("error:") else 0):
                self.complain(block, f"exit code {code}: {command}", printed)
            number = missing_number(comment, printed)
            if number is not None:
                self.complain(block, f"{number} is not printed by: {command}", printed)
        self.compare(block, everything)

    def serve(self, command: str) -> None:
        """A service for the rest of the page."""
        words = [
            sys.executable,
            "-c",
            "from nextlabel.cli.app import main; main()",
            *shlex.split(command)[1:],
            "--port",
            str(self.port),
        ]
        self.server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while True:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{self.port}/healthz")
                break
            assert self.server.poll() is None and time.monotonic() < until, f"{command}: the service did not start"
            time.sleep(0.1)
        given = words[words.index("--db") : words.index("--db") + 2] if "--db" in words else []
        # what is no terminal is not shown a token
        code, token = execute(shlex.join(["nextlabel", "token", "create", "--replace", *given]))
        assert code == 0
        os.environ["NEXTLABEL_TOKEN"] = token.strip()

    def close(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.communicate(timeout=60)


@contextlib.contextmanager
def captured() -> Iterator[io.StringIO]:
    """What is printed, on stdout and stderr, in one text."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        yield text


def execute(command: str) -> tuple[int, str]:
    """Exit code and output of a command, run in this process."""
    program, *words = shlex.split(command)
    with captured() as printed:
        try:
            if program == "nextlabel":
                return run(words), printed.getvalue()
            script, *more = words
            before = sys.argv
            sys.argv = [script, *more]
            try:
                runpy.run_path(script, run_name="__main__")
            finally:
                sys.argv = before
        except SystemExit as end:
            return int(end.code or 0), printed.getvalue()
    return 0, printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page: Page, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEXTLABEL_TOKEN", raising=False)
    runner = Runner(page)
    try:
        for block in page.blocks:
            if block.kind == "file":
                (folder / block.note).write_text(block.text, encoding="utf-8")
            elif block.kind in ("python", "commands") and not block.note:
                getattr(runner, block.kind)(block)
    finally:
        runner.close()
    assert not runner.wrong, "\n\n".join(runner.wrong)


@pytest.mark.slow
def test_the_type_checker_accepts_every_python_block(tmp_path: Path) -> None:
    for page in [one for one in PAGES if one.path != EXCERPTS]:
        for number, snippet in enumerate(page.snippets()):
            name = re.sub(r"\W", "_", page.name.removesuffix(".md"))
            text = "\n".join(block.text for block in snippet)
            (tmp_path / f"{name}_{number}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    found = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
