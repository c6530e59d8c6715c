"""Ids in tables, which the next command needs: whole, however narrow the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

import nextlabel as nl
from nextlabel.cli.app import run


@pytest.mark.parametrize("columns", ["40", "80"])
def test_ids_are_not_cut(
    columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.chdir(tmp_path)
    ids = [f"a_campaign_whose_id_is_rather_long_{k}" for k in range(2)]
    for id in ids:
        with nl.Campaign.create("labels.db", ["a"], id=id, budget=3, policy="uncertainty", labels=["no", "yes"]):
            pass
    assert run(["campaign", "status", "--db", "labels.db"]) == 0
    shown = capsys.readouterr().out
    assert all(id in shown for id in ids), shown
