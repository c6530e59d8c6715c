"""Compilation is announced once in a process, and only if there is any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

from nextlabel.kernels import jit as jit_module
from nextlabel.kernels.jit import VERSION, version_of
from nextlabel.kernels.no_delay import no_delay

#: Compiles one small kernel, twice.
PROGRAM = "from nextlabel.kernels.events import stream_key; print(stream_key(1, 2, 3) == stream_key(1, 2, 3))"


def as_nobody() -> list[str]:
    """What to write before a command for another user to run it, who reads everything and writes nothing of ours."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed: this user may write everywhere")
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_read_search",
            "--ambient-caps=+dac_read_search"]  # fmt: skip


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compilation_is_said_once_and_kept(tmp_path: Path) -> None:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = [subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True).stderr
            for _ in range(2)]  # fmt: skip
    assert said == ["Compiling numerical kernels, once per installation, which takes a minute or two ...\n", ""]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_a_user_who_may_write_nowhere_but_to_temporary_files() -> None:
    package = Path(jit_module.__file__).parents[1]
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder, temporary = Path(name), Path(name, "tmp")
        folder.chmod(0o755)
        temporary.mkdir(mode=0o777)
        temporary.chmod(0o777)
        shutil.copytree(package, folder / "code" / "nextlabel", ignore=shutil.ignore_patterns("__pycache__"))
        for path in folder.joinpath("code").rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)
        env = {**os.environ, "HOME": "/nonexistent", "TMPDIR": str(temporary), "PYTHONPATH": str(folder / "code")}
        env = {key: value for key, value in env.items() if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
        for compiles in (True, False):
            command = [*as_nobody(), sys.executable, "-c", PROGRAM]
            ran = subprocess.run(command, cwd="/tmp", env=env, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stderr
            assert f"Compiled code is kept in {temporary / 'nextlabel-'}" in ran.stderr and "HOME" not in ran.stderr
            assert ("Compiling numerical kernels" in ran.stderr) == compiles
            assert ran.stderr.count("\n") == 1 + compiles and "Traceback" not in ran.stderr
        (kept,) = temporary.glob("nextlabel-*")
        assert kept.stat().st_mode & 0o077 == 0 and any(kept.rglob("*.nbi"))
        for path in folder.joinpath("code").rglob("*"):
            path.chmod(0o755)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compiled_kernels_may_be_copied_with_their_code(tmp_path: Path) -> None:
    """A container's image and a copied checkout have other times of files; what they hold is the same."""
    package = Path(jit_module.__file__).parents[1]
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(package, first / "nextlabel", ignore=shutil.ignore_patterns("__pycache__"))
    for folder, compiles in ((first, True), (second, False)):
        if folder == second:
            shutil.copytree(first, second, copy_function=shutil.copyfile)
        env = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
        env["PYTHONPATH"] = str(folder)
        ran = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
        assert ("Compiling numerical kernels" in ran.stderr) == compiles, ran.stderr


def test_a_change_of_any_kernel_compiles_all_of_them_again(tmp_path: Path) -> None:
    """A compiled kernel holds those that it calls: Numba looks at its own file alone."""
    (tmp_path / "one.py").write_text("a = 1", encoding="utf-8")
    before = version_of(tmp_path)
    assert before == version_of(tmp_path)
    (tmp_path / "two.py").write_text("b = 2", encoding="utf-8")
    assert version_of(tmp_path) != before


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_numba_asks_for_the_version_before_it_reads_its_cache(tmp_path: Path) -> None:
    index = no_delay._cache._cache_file  # type: ignore[attr-defined]
    assert index._version == VERSION
    file = type(index)
    old = file(str(tmp_path), "kernel", ("stamp", 1))
    old._version = "another version"
    old._save_index({"key": "data"})
    new = file(str(tmp_path), "kernel", ("stamp", 1))
    assert new._load_index() == {}
    new._version = old._version
    assert new._load_index() == {"key": "data"}
