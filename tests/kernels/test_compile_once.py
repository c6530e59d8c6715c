"""Processes that need a kernel at the same time compile it once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nextlabel.kernels import jit as jit_module
from nextlabel.kernels.jit import only_process

KERNELS = """
from nextlabel.kernels.jit import jit

@jit
def callee(n):
    return n + 1

@jit
def caller(n):
    total = 0
    for k in range(n):
        total += callee(k)
    return total
"""
ASKS = """
import sys
from numba.core import event
import kernels

class Counts(event.Listener):
    compiled = 0
    def on_start(self, event):
        self.compiled += event.data["dispatcher"].py_func.__module__ == "kernels"
    def on_end(self, event):
        pass

counts = Counts()
print("ready", flush=True)
sys.stdin.readline()
with event.install_listener("numba:compile", counts):
    assert kernels.caller(10) == 55
print(counts.compiled)
"""


def test_one_of_several_processes_compiles(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    env = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ASKS], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    compiled = [int(process.communicate()[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum(compiled) == 2  # the caller and what it calls, whoever came first


def test_a_folder_that_cannot_be_written_to_does_not_stop_anybody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with only_process(tmp_path / "file" / "below" / "a.lock"):
        entered = True
    assert entered


def test_nobody_waits_for_ever_for_a_process_that_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_module, "LONGEST_S", 0.1)
    file = tmp_path / "a.lock"
    with only_process(file), only_process(file):  # each has a descriptor of its own, as two processes have
        entered = True
    assert entered


def test_an_error_inside_gives_the_lock_back(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), only_process(tmp_path / "a.lock"):
        raise ZeroDivisionError
    with only_process(tmp_path / "a.lock"):
        entered = True
    assert entered


def test_compiling_leaves_stderr_alone() -> None:
    """Kernels are compiled in threads too: nobody else's words may go elsewhere meanwhile."""
    watched = """
import sys, types
import nextlabel.kernels.jit
import numba, numpy

class Watched(types.ModuleType):
    def __setattr__(self, name, value):
        assert name not in ("stdout", "stderr"), name
        super().__setattr__(name, value)

sys.__class__ = Watched
assert numba.njit(lambda x: x[:1].sum() + 1)(numpy.ones(2)) == 2
"""
    done = subprocess.run([sys.executable, "-c", watched], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
