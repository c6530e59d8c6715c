"""``nextlabel prolific`` and ``nextlabel mturk`` from the command line, on real files."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.cli.app import run
from nextlabel.store.sql import open_store

URL = ["--public-url", "https://labels.example.org"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text("id,text\na,Great kettle\nb,It broke\n")
    settings = [
        "--pay-per-label",
        "0.5",
        "--most-labels-per-worker",
        "2",
        "--completion-code",
        "C1A2",
        "--policy",
        "kg",
    ]
    assert run(["campaign", "create", "tasks.csv", "--id", "mine", "--budget", "9", *settings]) == 0
    service = CampaignService(open_store("nextlabel.db"))
    for platform, worker in (("prolific", "p1"), ("mturk", "A1")):
        service.visits.begin("mine", f"{platform}:{worker}", platform, f"visit-{worker}", "study")  # type: ignore[arg-type]
        lease = service["mine"].ask(f"{platform}:{worker}")
        assert lease
        service[lease.campaign].tell(lease.id, "yes")
    service.close()
    capsys.readouterr()
    return tmp_path


def test_prolific(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["platform", "study", "prolific", "mine", *URL]) == 0
    shown = capsys.readouterr()
    lines = dict(line.split("\t") for line in shown.out.splitlines())
    assert lines["study"].startswith("https://labels.example.org/j/j3.") and shown.err == ""
    assert lines["study"].endswith("&SESSION_ID={{%SESSION_ID%}}") and lines["code"] == "C1A2"
    assert lines["webhook"] == "https://labels.example.org/api/v1/hooks/prolific"
    assert run(["platform", "statuses", "prolific", "mine"]) == 0
    assert capsys.readouterr().out == "visit-p1\tprolific:p1\t-\n"
    assert run(["platform", "bonus", "prolific", "mine"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "" and "1 worker with labels is not in the list: Prolific has said nothing" in shown.err
    (folder / "export.csv").write_text("Submission id,Participant id,Status\nvisit-p1,p1,APPROVED\nx,y,APPROVED\n")
    assert run(["platform", "statuses", "prolific", "mine", "export.csv"]) == 0
    assert capsys.readouterr().err == "2 submissions read: 1 kept.\n"
    (folder / "export.csv").write_text("Submission id,Participant id,Status\nvisit-p1,p1,REJECTED\nx,y,APPROVED\n")
    assert run(["platform", "bonus", "prolific", "mine", "--platform-reward", "0.10", "--save", "bonuses.csv"]) == 0
    assert (folder / "bonuses.csv").read_text() == "p1,0.40\n"
    assert capsys.readouterr().err == "1 bonus with a total of 0.40, written to bonuses.csv.\n"
    assert run(["platform", "statuses", "prolific", "mine", "export.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["effects"] == {"rejected": 1} and found["submissions"][0]["status"] == "REJECTED"
    assert run(["platform", "bonus", "prolific", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"bonuses": [], "total": 0, "file": None}


def test_mturk(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["platform", "study", "mturk", "mine", "--height", "800", *URL]) == 0
    shown = capsys.readouterr()
    address, height = (child.text for child in ElementTree.fromstring(shown.out.encode()))
    assert address is not None and address.startswith("https://labels.example.org/f/j3.") and height == "800"
    assert shown.err == ""
    assert run(["platform", "bonus", "mturk", "mine"]) == 0
    assert capsys.readouterr().out == "WorkerId,AssignmentId,BonusAmount,Reason\nA1,visit-A1,0.50,Labels in mine\n"


def test_what_is_missing_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["campaign", "change", "mine", "--completion-code", "none", "--most-labels-per-worker", "none"]) == 0
    capsys.readouterr()
    assert run(["platform", "study", "prolific", "mine", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == 3  # no limit, no code, this machine only
    assert run(["platform", "study", "mturk", "mine"]) == 0
    assert capsys.readouterr().err.count("warning: ") == 2  # no limit, no https
    for command, message in (
        (["platform", "study", "mturk", "mine", "--height", "99999"], "height"),
        (["platform", "study", "mturk", "mine", "--height", "1.5"], "whole number"),
        (["platform", "study", "mturk", "nobody"], "no campaign"),
        (["platform", "bonus", "prolific", "mine", "--platform-reward", "much"], "--platform-reward"),
        (["platform", "statuses", "prolific", "mine", "tasks.csv"], "no column 'Submission id'"),
        (["platform", "statuses", "prolific", "mine", "nothing.csv"], "no file"),
        (["campaign", "change", "mine", "--completion-code", "a b"], "completion code"),
    ):
        assert run(command) == 2
        assert message in capsys.readouterr().err
