"""Compilation is announced once in a process, and only if there is any."""

from __future__ import annotations

from threading import Lock

import numba
import pytest

from nextlabel.kernels import jit as jit_module
from nextlabel.kernels.jit import announce_compilation


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
