"""Compilation is announced once in a process, and only if there is any."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

import numba
import pytest

from nextlabel.kernels import jit as jit_module
from nextlabel.kernels.jit import VERSION, announce_compilation, version_of
from nextlabel.kernels.no_delay import no_delay


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_two_blocks_announce_compilation_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_module, "_told", Lock())
    told: list[str] = []
    one, two, three = (numba.njit(lambda x, n=n: x + n) for n in (1, 2, 3))
    with announce_compilation(lambda: told.append("no kernel")):
        pass
    assert told == []
    with announce_compilation(lambda: told.append("first block")):
        assert one(1) == 2
        assert two(1) == 3
    with announce_compilation(lambda: told.append("second block")):
        assert one(1) == 2
        assert three(1) == 4
    assert told == ["first block"]


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
