"""One file says one thing: to every command, to the HTTP API, to the browser and to Python."""

from __future__ import annotations

import csv
import io
import json
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.service.links import LinkSigner
from nextlabel.web.dashboard.state import UploadedFiles
from service_fixtures import Service, on_sqlite

TASKS, WORKERS = 12, 4
HEADER = ["task", "worker", "label", "assigned_at", "submitted_at", "cömment"]
#: The words for 0 and 1, as people type them.
WORDS = (("no", "No", "NO "), ("yes", "Yes", " YES"))


def rows() -> list[list[str]]:
    """Labels with two second answers, one blank label and comments that hold delimiters and line breaks."""
    out = []
    for i in range(TASKS):
        for j in range(WORKERS):
            label = WORDS[int((i * 7 + j * 5) % 3 > 0)][(i + j) % 3]
            begun = 100 * (WORKERS * i + j)
            out.append([f"t{i}", f"w{j}", label, str(begun), f"{begun + 30 + 7 * j},5", f"gut, „schön“;\nja {i}"])
    again = [["t0", "w0", "no", "9000", "9030", "once more"], ["t1", "w2", "yes", "9100", "9130", "once more"]]
    return [*out, *again, ["t2", "w9", " ", "9200", "9230", "skipped"]]


def text(delimiter: str, blank: bool) -> str:
    """The rows as a spreadsheet writes them; with ``blank`` it adds empty rows and columns."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter)
    more = ["", ""] if blank else []
    writer.writerow([f" {name} " if blank else name for name in HEADER] + more)
    for n, row in enumerate(rows()):
        writer.writerow(row + more)
        if blank and n % 20 == 0:
            writer.writerow([""] * (len(HEADER) + 2))
    for _ in range(5 if blank else 0):
        writer.writerow([""] * (len(HEADER) + 2))
    return stream.getvalue()


#: Name, delimiter, codec, empty rows and columns.
NASTY = [
    ("plain", ",", "utf-8", False),
    ("semicolons", ";", "utf-8", False),
    ("tabs", "\t", "utf-8-sig", False),
    ("utf-16", "\t", "utf-16", True),
    ("windows", ";", "cp1252", False),
    ("spreadsheet", ",", "utf-8-sig", True),
]
WANTED = {"rows": 51, "labels": 48, "tasks": 12, "workers": 4, "blank_labels": 1, "duplicates": 2}
WANTED_BLANK = {True: {"blank_rows": 8, "empty_columns": 2}, False: {"blank_rows": 0, "empty_columns": 0}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture(params=NASTY, ids=[one[0] for one in NASTY])
def nasty(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    _, delimiter, codec, blank = request.param
    path = tmp_path / "labels.csv"
    path.write_bytes(text(delimiter, blank).encode(codec))
    shown = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}.get(codec, "UTF-8")
    return path, {**WANTED_BLANK[blank], "delimiter": delimiter, "encoding": shown}


def test_every_command_counts_the_same_labels(
    nasty: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, form = nasty
    commands = [
        ["prior", str(path), "--method", "moments"],
        ["backtest", str(path), "--prior", "1,1", "--policy", "uniform", "--replications", "2", "--jobs", "1"],
        ["rates", str(path)],
        ["plan", "--pilot", str(path), "--tasks", "4", "--budget", "5", "--replications", "2", "--jobs", "1"],
    ]
    reports = [nl.read_labels(path).report.as_dict()]
    for command in commands:
        assert run([*command, "--json"]) == 0, capsys.readouterr().err
        said = capsys.readouterr()
        (read,) = json.loads(said.out)["read"]
        assert [line for line in said.err.splitlines() if line in read["sentences"]] == read["sentences"]
        reports.append(read)
    for report in reports:
        assert {name: report[name] for name in {**WANTED, **form}} == {**WANTED, **form}
    assert all(report == json.loads(json.dumps(reports[0])) for report in reports[1:])
    assert set(reports[0]["spellings"]) == {"Yes", "no"} and sum(reports[0]["label_counts"].values()) == 48


def test_a_prior_is_learnt_from_the_labels_that_a_backtest_replays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\na,w1,Yes\na,w2,no\na,w1,yes\n\nb,w1,\nb,w2,NO\nc,w1,yes\n")
    for command in (["prior", str(path)], ["backtest", str(path), "--prior", "1,1", "--replications", "2"]):
        more = ["--labels-per-task", "1"] if command[0] == "backtest" else []
        assert run([*command, *more, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert (answer["tasks"], answer["labels"]) == (3, 4)


def test_a_csv_needs_neither_pandas_nor_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text(";", True))
    for name in ("pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    words = ["--prior", "1,1", "--policy", "uniform", "--replications", "2", "--jobs", "1", "--json"]
    for command in (["backtest", str(path), *words], ["prior", str(path), "--json"], ["rates", str(path), "--json"]):
        assert run(command) == 0, capsys.readouterr().err
        assert json.loads(capsys.readouterr().out)["read"][0]["labels"] == 48


@pytest.mark.parametrize("positive", ["yes", "Yes", "YES"])
def test_the_positive_label_is_found_however_it_is_spelt(
    positive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\na,w1,Yes\na,w2,YES\nb,w1,No\nb,w2,no\nc,w1,yes\nc,w2,Yes\n")
    words = ["--positive", positive, "--prior", "1,1", "--replications", "2", "--labels-per-task", "1", "--json"]
    assert run(["backtest", str(path), *words]) == 0
    (read,) = json.loads(capsys.readouterr().out)["read"]
    assert read["label_counts"] == {"No": 2, "Yes": 4}


def test_every_door_takes_the_same_tasks_in(
    nasty: tuple[Path, dict[str, Any]],
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, form = nasty
    monkeypatch.chdir(tmp_path)
    assert run(["campaign", "create", str(path), "--budget", "9", "--id", "mine", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    (read,) = made["read"]
    assert (made["tasks"], read["rows"]) == (51, 51)
    assert {name: read[name] for name in form} == form
    id = service.campaign(f"door_{secrets.token_hex(8)}", tasks=0)
    with service.http() as http:
        body = {"content": path.read_bytes(), "headers": {"Content-Type": "text/csv"}}
        added = http.post(f"/campaigns/{id}/tasks", **body).json()
        payloads = [one["payload"] for one in http.get(f"/campaigns/{id}/results").json()["results"]]
    assert added["tasks"] == 51
    assert [one.replace("the body", str(path)) for one in added["read"]] == read["sentences"]
    with path.open("rb") as file:
        kept = UploadedFiles(LinkSigner(b"x" * 32)).keep(file, "labels.csv")
    assert (kept.rows, kept.columns) == (51, HEADER)
    assert kept.notes[0].removesuffix(".") in read["sentences"][0] and set(kept.notes[1:]) == set(read["sentences"][1:])
    assert [dict(zip(HEADER, cells, strict=True)) for cells in kept.first] == payloads[: len(kept.first)]


def test_tasks_with_semicolons_are_not_one_column(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text("id;text\na;Good, really\nb;Bad\n")
    assert run(["campaign", "create", "tasks.csv", "--budget", "9", "--id", "mine"]) == 0
    with nl.Campaign.open("sqlite:///nextlabel.db", "mine") as campaign:
        assert [(r.task, r.payload) for r in campaign.results()] == [
            ("a", {"text": "Good, really"}),
            ("b", {"text": "Bad"}),
        ]
    id = service.campaign("semicolons", tasks=0)
    with service.http() as http:
        body = {"content": (tmp_path / "tasks.csv").read_bytes(), "headers": {"Content-Type": "text/csv"}}
        assert http.post(f"/campaigns/{id}/tasks", **body).json()["tasks"] == 2
        assert http.get(f"/campaigns/{id}/results").json()["results"][0]["payload"] == {"text": "Good, really"}
