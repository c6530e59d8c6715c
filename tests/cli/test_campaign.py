"""``nextlabel campaign`` and ``nextlabel serve`` from the command line, on real files."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from benchmarks.live.server import free_port

from nextlabel.application.service import Campaign
from nextlabel.campaign.records import AccessToken
from nextlabel.cli.app import run
from nextlabel.store.sql import open_store

TASKS = "id,text,p\na,Great kettle,0.9\nb,It broke,0.2\nc,Well well,0.5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text(TASKS)
    return tmp_path


def create(*more: str) -> int:
    return run(["campaign", "create", "tasks.csv", "--id", "mine", "--budget", "9", "--score-column", "p", *more])


def test_create_and_label_and_export(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create("--labels", "bad,good", "--question", "Is it good?", "--policy", "okg-pending") == 0
    assert capsys.readouterr().out == "mine\n"
    with Campaign.open("nextlabel.db") as campaign:
        assert campaign.id == "mine" and campaign.status().settings.question == "Is it good?"
        for worker in ("ann", "bob"):
            for _ in range(3):
                lease = campaign.ask(worker)
                assert lease and set(lease.payload) == {"text"}
                campaign.tell(lease.id, "good" if lease.task == "a" else "bad")
    assert run(["campaign", "export", "mine", "--save", "labels.csv"]) == 0
    rows = {row["task"]: row for row in csv.DictReader((folder / "labels.csv").read_text().splitlines())}
    assert [rows[k]["label"] for k in "abc"] == ["good", "bad", "bad"]
    assert rows["a"]["labels"] == "2" and rows["a"]["count_good"] == "2"
    capsys.readouterr()
    assert run(["campaign", "export", "mine", "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["payload"] == {"text": "Great kettle", "p": "0.9"}


def test_the_labels_of_a_campaign_are_read_by_every_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create("--labels", "bad,good", "--policy", "okg-pending") == 0
    with Campaign.open("nextlabel.db") as campaign:
        for worker in ("ann", "bob", "cat"):
            for _ in range(3):
                lease = campaign.ask(worker)
                assert lease
                if (worker, lease.task) == ("cat", "c"):
                    campaign.release(lease.id)
                else:
                    campaign.tell(lease.id, "good" if lease.task == "a" or worker == "cat" else "bad")
    assert run(["campaign", "export", "mine", "--rows", "labels", "--save", "labels.csv"]) == 0
    assert "8 labels written to labels.csv" in capsys.readouterr().err
    rows = list(csv.DictReader((folder / "labels.csv").read_text().splitlines()))
    assert list(rows[0]) == [
        "task",
        "worker",
        "label",
        "started",
        "submitted",
        "state",
        "counted",
        "dropped",
        "comment",
    ]
    assert {row["state"] for row in rows} == {"labelled"} and all(row["started"] <= row["submitted"] for row in rows)
    assert run(["campaign", "export", "mine", "--rows", "labels", "--unanswered", "--json"]) == 0
    every = json.loads(capsys.readouterr().out)["labels"]
    assert [row["label"] for row in every if row["state"] == "released"] == [None] and len(every) == 9
    for words in (["workers"], ["prior", "--method", "moments"], ["rates"]):
        answers = []
        for source in ("labels.csv", "campaign:mine"):
            assert run([*words, source, "--json"]) == 0
            answers.append(json.loads(capsys.readouterr().out))
        assert answers[0].pop("read")[0]["labels"] == answers[1].pop("read")[0]["labels"] == 8
        for answer in answers:
            answer.pop("seconds", None)
        assert answers[0] == answers[1]
    assert (
        run(["backtest", "campaign:mine", "--policy", "uniform", "--prior", "1,1", "--replications", "2", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["read"][0]["sentences"][0].startswith("campaign:mine: 8 rows")
    assert run(["plan", "--pilot", "campaign:mine", "--tasks", "5", "--replications", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pilot"]["labels"] == 8


def test_labels_of_no_campaign_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create() == 0
    for words, said in (
        (["workers", "campaign:other"], "other"),
        (["workers", "campaign:mine"], "has no labels yet"),
        (["workers", "tasks.csv", "--db", "nextlabel.db"], "--db only has an effect with"),
        (["campaign", "export", "mine", "--unanswered"], "--unanswered only has an effect with --rows labels"),
    ):
        assert run(words) == 2
        assert said in capsys.readouterr().err


def test_status_and_steering(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create("--policy", "index") == 0
    for words, said in (
        (["change", "mine", "--pause"], "mine is paused"),
        (["change", "mine", "--resume"], "mine is open"),
        (["change", "mine", "--budget", "+3"], "may buy 12 labels"),
        (["change", "mine", "--budget", "20"], "may buy 20 labels"),
        (["change", "mine", "--deadline", "2099-01-01T00:00:00Z"], "mine is open"),
        (["change", "mine", "--deadline", "none"], "mine is open"),
        (["verify", "mine", "--repair"], "Every row follows from them"),
    ):
        assert run(["campaign", *words]) == 0
        assert said in capsys.readouterr().err
    assert run(["campaign", "status", "mine", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["tasks"], status["budget"], status["state"]) == (3, 20, "open")
    assert status["now"] < status["upper"] <= 1.0
    assert run(["campaign", "status", "mine"]) == 0
    assert "can be expected to get past" in " ".join(capsys.readouterr().out.split())
    assert run(["campaign", "status"]) == 0
    assert "0 of 20" in capsys.readouterr().out
    assert run(["campaign", "export", "mine", "--rows", "events", "--format", "jsonl", "--after", "2"]) == 0
    kinds = [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["paused", "resumed", "changed", "changed", "changed", "changed"]
    assert run(["campaign", "links", "mine", "ann", "--json"]) == 0
    assert "/w/" in json.loads(capsys.readouterr().out)["workers"]["ann"]


def test_create_again_is_the_same_campaign(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create() == create() == 0
    with Campaign.open("nextlabel.db") as campaign:
        assert campaign.status().tasks == 3
    assert run(["campaign", "create", "tasks.csv", "--id", "mine", "--budget", "8", "--score-column", "p"]) == 2
    assert "other settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "tasks.csv"], "has no budget"),
        (["create", "tasks.csv", "--budget", "many"], "not a number"),
        (["create", "tasks.csv", "--budget", "0"], "budget 0 is not a whole number of at least 1 and at most"),
        (["create", "none.csv", "--budget", "5"], "there is no file none.csv"),
        (["create", "tasks.csv", "--budget", "5", "--labels", "one"], "should have at least 2 items"),
        (["create", "tasks.csv", "--budget", "5", "--policy", "best"], "policy 'best' is not known"),
        (["create", "tasks.csv", "--budget", "5", "--policy", "lagrangian"], "plans for one budget"),
        (["create", "tasks.csv", "--budget", "5", "--deadline", "soon"], "is not a time"),
        (["create", "tasks.csv", "--budget", "5", "--score-column", "q"], "has no 'q'"),
        (["create", "bad.csv", "--budget", "5", "--score-column", "p"], "task 2: score '9'"),
        (["create", "head.csv", "--budget", "5"], "head.csv has no tasks"),
        (["create", "empty.csv", "--budget", "5"], "empty.csv is empty"),
        (["create", "tasks.csv", "--budget", "5", "--id", "A B"], "is not allowed"),
        (["create", "tasks.csv", "--budget", "5", "--prior", "1,1,1"], "has 3 answers"),
        (["status", "none"], "there is no campaign 'none'"),
        (["change", "none", "--budget", "5"], "there is no campaign 'none'"),
        (["status", "--db", "no/folder/x.db"], "does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.csv").write_text("id,text,p\na,x,0.5\nb,y,9\n")
    (folder / "head.csv").write_text("id,text\n")
    (folder / "empty.csv").write_text("")
    open_store("nextlabel.db").close()  # makes the database
    assert run(["token", "create", "--json"]) == 0 and json.loads(capsys.readouterr().out)["token"]
    assert run(["campaign", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert run(["campaign", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"campaigns": []}


def test_serve_writes_no_token_into_a_log_and_ends_with_ctrl_c(folder: Path) -> None:
    port = free_port()

    def served() -> tuple[int, str]:
        command = [sys.executable, "-c", "from nextlabel.cli.app import main; main()", "serve", "--port", str(port)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as reply:
                    assert reply.status == 200
                break
            except OSError:
                time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
        return process.returncode, said

    code, first = served()
    assert code == 0 and "make one with nextlabel token create" in first and "nl_" not in first and "ended." in first
    code, second = served()
    assert code == 0 and "nl_" not in second


def test_another_token(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from nextlabel.service.access import hashed
    from nextlabel.store.sql import SqlStore

    assert run(["token", "create"]) == 2 and "no database" in capsys.readouterr().err
    assert not any(folder.glob("nextlabel.db*"))
    assert run(["campaign", "create", "--budget", "5"]) == 0
    capsys.readouterr()
    assert run(["token", "create"]) == run(["token", "create", "--replace"]) == 0
    first, second = capsys.readouterr().out.split()
    store = SqlStore("nextlabel.db")
    assert first != second and [token.hash for token in store.records.find(AccessToken)] == [hashed(second)]
    store.close()


def test_serve_refuses_a_port_that_is_taken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert run(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot be listened on" in capsys.readouterr().err
    assert not (folder / "nextlabel.db").exists()


def test_workers_are_blocked_dropped_and_paid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create("--labels", "bad,good", "--policy", "okg-pending", "--pay-per-label", "0.5") == 0
    with Campaign.open("nextlabel.db") as campaign:
        for worker in ("ann", "eve"):
            lease = campaign.ask(worker)
            assert lease
            campaign.tell(lease, "good")
    assert run(["campaign", "change", "mine", "--most-labels-per-worker", "1"]) == 0
    assert run(["campaign", "workers", "mine", "block", "eve", "--reason", "guesses"]) == 0
    assert "eve is blocked." in capsys.readouterr().err
    assert run(["campaign", "workers", "mine", "drop-labels", "eve"]) == 0
    assert "1 label of eve dropped; they stay spent." in capsys.readouterr().err
    assert run(["campaign", "export", "mine", "--rows", "workers"]) == 0
    rows = {row["worker"]: row for row in csv.DictReader(capsys.readouterr().out.splitlines())}
    assert (rows["eve"]["standing"], rows["eve"]["dropped"], rows["eve"]["amount"]) == ("blocked", "1", "0.5")
    with Campaign.open("nextlabel.db") as campaign:
        assert [campaign.ask(worker).reason for worker in ("ann", "eve")] == ["quota_reached", "worker_blocked"]  # type: ignore[union-attr]
    assert run(["campaign", "workers", "mine", "restore-labels", "eve", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"worker": "eve", "restored": 1, "left": 0}
    assert run(["campaign", "workers", "mine"]) == 0
    assert "blocked" in capsys.readouterr().out
    assert run(["campaign", "workers", "mine", "pause", "bob"]) == 2
    assert run(["campaign", "change", "mine"]) == 2


def test_workers_are_turned_away_if_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create("--turn-away") == 0
    assert run(["campaign", "change", "mine", "--serve-all"]) == 0
    with Campaign.open("nextlabel.db") as campaign:
        assert campaign.status().settings.turn_away is False
    assert run(["campaign", "change", "mine", "--turn-away"]) == 0
    with Campaign.open("nextlabel.db") as campaign:
        assert campaign.status().settings.turn_away is True
    capsys.readouterr()
    assert run(["campaign", "create", "--id", "other", "--budget", "5", "--policy", "index", "--turn-away"]) == 2
    assert "policy 'index' takes workers to be alike and cannot tell whom to turn away." in capsys.readouterr().err


def test_known_answers_from_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "known.csv").write_text("id,text,truth\na,Great kettle,good\nb,It broke,\nc,Well well,\n")
    create = ["campaign", "create", "known.csv", "--id", "k", "--budget", "6", "--labels", "bad,good"]
    assert run([*create, "--policy", "okg-pending", "--gold-column", "truth"]) == 0
    (folder / "more.csv").write_text("task,label\na,bad\nb,bad\n")
    assert run(["campaign", "add", "k", "--gold", "more.csv"]) == 0
    assert "2 answers new or corrected; k has 2 control questions." in capsys.readouterr().err
    with Campaign.open("nextlabel.db") as campaign:
        while lease := campaign.ask("ann"):
            assert set(lease.payload) == {"text"}
            campaign.tell(lease, "bad")
        assert campaign.status().spent == 1
    assert run(["campaign", "export", "k"]) == 0
    rows = {row["task"]: row for row in csv.DictReader(capsys.readouterr().out.splitlines())}
    assert [(rows[key]["label"], rows[key]["control"]) for key in "abc"] == [
        ("bad", "True"), ("bad", "True"), ("bad", "False"),
    ]  # fmt: skip
    (folder / "wrong.csv").write_text("task,label\na,bad\na,good\n")
    assert run(["campaign", "add", "k", "--gold", "wrong.csv"]) == 2
