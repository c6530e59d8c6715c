"""``nextlabel warm`` takes every step once, so that nothing is compiled later."""

from __future__ import annotations

from pathlib import Path

import pytest

from nextlabel.cli import warm
from nextlabel.cli.app import run


def test_what_warm_does_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [one for one in warm.COMMANDS if one.startswith(("prior", "bound --tasks 3 --budget 4", "workers"))]
    monkeypatch.setattr(warm, "COMMANDS", commands[:3])
    assert run(["warm"]) == 0
    said = capsys.readouterr()
    assert "3 of 3: nextlabel bound ..." in said.err and "Everything is compiled, after" in said.out + said.err
    monkeypatch.setattr(warm, "COMMANDS", ("bound --tasks none",))
    assert run(["warm"]) == 1
    assert "error: nextlabel bound --tasks none failed: error:" in capsys.readouterr().err


@pytest.mark.long
def test_warm_compiles_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["warm"]) == 0, capsys.readouterr().err
