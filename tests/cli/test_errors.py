"""Bad input of every kind: exit code 2, one sentence on stderr, nothing on stdout, nothing left behind."""

from __future__ import annotations

import inspect
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nextlabel as nl
from nextlabel import errors
from nextlabel.cli.app import run

READS = {
    "prior": ["prior", "FILE"],
    "rates": ["rates", "FILE"],
    "workers": ["workers", "FILE"],
    "results": ["audit", "FILE", "labels.csv"],
    "backtest": ["backtest", "FILE"],
    "gold": ["backtest", "labels.csv", "--gold", "FILE"],
    "pilot": ["plan", "--pilot", "FILE"],
    "scores": ["bound", "--scores", "FILE", "--strength", "2", "--budget", "3"],
    "problem": ["bound", "--problem", "FILE"],
    "tasks": ["campaign", "create", "FILE", "--budget", "3"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "binary.csv").write_bytes(b"\x89PNG\r\n\x00\x01\xff")
    (tmp_path / "labels.csv").write_text("task,worker,label\na,ann,1\nb,ann,0\n", encoding="utf-8")
    return tmp_path


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("error: ") and last.endswith(".") and err.count("error: ") == 1
    assert "Traceback" not in err
    return last


@pytest.mark.parametrize("command", READS)
@pytest.mark.parametrize("file", ["nowhere.csv", "folder", "empty.csv", "binary.csv"])
def test_files_that_cannot_be_read(command: str, file: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(folder.iterdir())
    words = refusal([file if word == "FILE" else word for word in READS[command]], capsys)
    if command != "problem" or file != "empty.csv":  # an empty problem file is one without a budget
        assert file in words or "task" in words
    assert [path for path in sorted(folder.iterdir()) if path.name != "nextlabel.db"] == before
    if (folder / "nextlabel.db").exists():  # tasks are read while the campaign is made
        assert run(["campaign", "status", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"campaigns": []}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["campaign", "status"], "there is no database of nextlabel at nextlabel.db"),
        (["campaign", "change", "x", "--pause"], "there is no database of nextlabel at nextlabel.db"),
        (["campaign", "status", "--db", "other.db"], "belongs to something else: it has a table 'birds'"),
        (["campaign", "create", "--budget", "3", "--db", "other.db"], "belongs to something else"),
        (["serve", "--db", "other.db", "--port", "0"], "belongs to something else"),
        (["token", "create", "--db", "text.db"], "not a database"),
        (["token", "create", "--db", "folder"], "folder is a folder"),
        (["token", "create", "--db", "mysql://x"], "kind 'mysql' are not supported"),
        (["token", "create", "--db", "no/such/x.db"], "does not exist"),
        (["serve", "--port", "70000"], "65535"),
    ],
)
def test_databases_that_cannot_be_used(
    words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect("other.db") as other:
        other.execute("CREATE TABLE birds (name TEXT)")
    other.close()
    (folder / "text.db").write_text("hello, I am not a database at all", encoding="utf-8")
    assert said in refusal(words, capsys)
    with sqlite3.connect("other.db") as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("birds",)]
    other.close()
    assert not (folder / "nextlabel.db").exists()


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_a_port_in_use(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"127.0.0.1:{port} cannot be listened on" in refusal([command, "--port", str(port)], capsys)
    assert not (folder / "nextlabel.db").exists() and not (folder / "nextlabel-demo").exists()


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("fastapi", ["serve"], "nextlabel[service]"),
        ("uvicorn", ["campaign", "status"], "nextlabel[service]"),
        ("matplotlib", ["simulate", "--tasks", "2", "--budget", "3", "--out", "x"], "nextlabel[figures]"),
        ("pyarrow", ["prior", "labels.parquet"], "nextlabel[data]"),
    ],
)
def test_a_missing_extra_is_named(
    package: str,
    words: list[str],
    extra: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "labels.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    assert extra in refusal(words, capsys)


def test_every_error_is_public_has_a_hint_and_is_drawn() -> None:
    found = {
        name: cls
        for name, cls in inspect.getmembers(errors, inspect.isclass)
        if issubclass(cls, Exception) and cls.__module__ == errors.__name__
    }
    assert len(found) > 10
    for name, cls in found.items():
        assert getattr(nl.errors, name) is cls
        assert issubclass(cls, nl.errors.NextlabelError)
        assert f" {name} " in errors.__doc__ or name == "NextlabelError"
    error = nl.errors.InputError("The budget is 0.", "Give 1.")
    assert (str(error), error.hint) == ("The budget is 0. Give 1.", "Give 1.")


@pytest.mark.slow
def test_interrupted_leaves_nothing_half_written(folder: Path) -> None:
    """Ctrl-C while a simulation runs: exit code 130, one sentence, no file."""
    words = ["simulate", "--tasks", "300", "--budget", "900", "--replications", "200000", "--out", "out"]
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in the background
        "from nextlabel.cli.app import main; print('ready', file=sys.stderr, flush=True); main()"
    )
    command = [sys.executable, "-c", program, *words]
    before = sorted(folder.iterdir())
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stderr is not None and process.stderr.readline() == "ready\n"
    time.sleep(4)  # in the middle of it on most machines; at any other moment the same holds
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("error: interrupted, nothing was written.\n")
    assert sorted(folder.iterdir()) == before


LOST = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from nextlabel.cli import app

def compile_kernels(*_, **__):
    if sys.argv[1] == "pressed":
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            pass
    raise RuntimeError("no compiled object yet")

app._commands = lambda: compile_kernels
sys.exit(app.run([]))
"""


def test_an_interrupt_that_the_compiler_has_swallowed(folder: Path) -> None:
    """Ctrl-C in a callback of LLVM ends the compilation with another error."""
    pressed, not_pressed = (
        subprocess.run([sys.executable, "-c", LOST, word], capture_output=True, text=True, timeout=60)
        for word in ("pressed", "not")
    )
    assert (pressed.returncode, pressed.stderr) == (130, "error: interrupted, nothing was written.\n")
    assert not_pressed.returncode == 1 and "RuntimeError: no compiled object yet" in not_pressed.stderr
