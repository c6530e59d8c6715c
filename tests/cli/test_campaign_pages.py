"""``nextlabel campaign`` on what workers see, on its name, and on a campaign's end."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from nextlabel.application.service import Campaign
from nextlabel.cli.app import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text("id,text,city\na,Great kettle,Bern\nb,It broke,Rome\n")
    (tmp_path / "rules.md").write_text("\ufeff# Rules\n\nBe *kind*.\n", encoding="utf-8")
    return tmp_path


def create(*more: str) -> int:
    return run(["campaign", "create", "tasks.csv", "--id", "mine", "--budget", "9", "--policy", "okg-pending", *more])


def test_instructions_and_changes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create("--instructions", "rules.md", "--display-names", "Bad,Good") == 0
    with Campaign.open("nextlabel.db") as campaign:
        settings = campaign.status().settings
        assert settings.instructions == "# Rules\n\nBe *kind*." and settings.shown_labels == ("Bad", "Good")
    change = ["campaign", "change", "mine"]
    assert run([*change, "--question", "Is it?", "--instructions", "none", "--language", "de", "--show", "city"]) == 0
    assert run([*change, "--display-names", "none"]) == 0
    assert run(["campaign", "change", "mine", "--name", "Kettles"]) == 0
    with Campaign.open("nextlabel.db") as campaign:
        settings = campaign.status().settings
        assert (settings.question, settings.instructions, settings.language) == ("Is it?", "", "de")
        assert (settings.show, settings.display_names, settings.name) == (("city",), None, "Kettles")
    capsys.readouterr()
    for wrong, says in (
        (["--show", "citty"], "'citty'"),
        (["--language", "xx"], "'xx'"),
        (["--instructions", "missing.md"], "missing.md"),
        (["--display-names", "one"], "2 labels"),
        ([], "nothing says what to change"),
    ):
        assert run([*change, *wrong]) == 2
        assert says in capsys.readouterr().err
    (folder / "bad.md").write_bytes(b"\xff\xfe\x00")
    assert run([*change, "--instructions", "bad.md"]) == 2


def test_deleting_asks_first(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert create() == 0
    capsys.readouterr()
    delete = ["campaign", "delete", "mine"]
    assert run(delete) == 2  # nobody there to be asked
    assert "--yes" in capsys.readouterr().err

    def typed(text: str) -> None:
        terminal = StringIO(text)
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stdin", terminal)

    typed("yours\n")
    assert run(delete) == 2
    assert "nothing was deleted" in capsys.readouterr().err
    typed("mine\n")
    assert run(delete) == 0
    assert "2 tasks" in capsys.readouterr().err
    assert run([*delete, "--yes"]) == 2
    assert "was deleted" in capsys.readouterr().err
    assert create() == 2
    assert "not given twice" in capsys.readouterr().err
    assert run(["campaign", "create", "tasks.csv", "--id", "next", "--budget", "3", "--policy", "okg-pending"]) == 0
    capsys.readouterr()
    assert run(["campaign", "delete", "next", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["deleted"] is True
