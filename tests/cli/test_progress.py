"""Progress of long work where stderr is a log."""

from __future__ import annotations

import pytest

from nextlabel.cli import output


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr(output, "SAY_S", 0.0)
    with output.working("Searching") as progress:
        progress(0.25)
        progress(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" after")[0] for line in lines] == ["Searching: 25%", "Searching: 50%"]
