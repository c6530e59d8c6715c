"""Progress of long work where stderr is a log."""

from __future__ import annotations

import time

import pytest

from nextlabel.cli import output
from service_fixtures import PATIENCE_S


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Also from work that cannot say how far it is."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr(output, "SAY_S", 0.01)
    said = ""

    def waited_for(words: str) -> None:
        nonlocal said
        until = time.monotonic() + PATIENCE_S
        while words not in said:
            said += capsys.readouterr().err
            assert time.monotonic() < until
            time.sleep(0.01)

    with output.working("Searching") as progress:
        waited_for(" s so far\n")
        progress(0.25)
        waited_for("Searching: 25% after ")
        progress(0.5)
        waited_for("Searching: 50% after ")
