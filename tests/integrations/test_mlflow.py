"""``nextlabel mlflow``: what it refuses, and against a real MLflow server, which ``make test-mlflow`` installs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks.live.mlflow import run as played
from benchmarks.live.mlflow_server import PASSWORD, MLflowServer
from benchmarks.live.server import free_port

from nextlabel.application.service import Campaign
from nextlabel.cli.app import run
from nextlabel.integrations.mlflow import MLflow


@pytest.fixture
def db(tmp_path: Path) -> str:
    url = str(tmp_path / "labels.db")
    Campaign.create(url, [], id="support", budget=20, labels=["bad", "good"], policy="index").close()
    return url


@pytest.mark.parametrize(
    ("change", "code", "sentence"),
    [
        ({"--url": "localhost"}, 2, "--url 'localhost' is not the address of a server."),
        ({"--assessment": " "}, 2, "--assessment ' ' is not a text of 1 to 250 characters."),
        ({"--every": "0"}, 2, "--every"),
        ({"ID": "other"}, 2, "there is no campaign 'other'"),
        ({}, 1, "does not answer"),
    ],
)
def test_what_is_refused(
    db: str, capsys: pytest.CaptureFixture[str], change: dict[str, str], code: int, sentence: str
) -> None:
    given = {"--url": f"http://127.0.0.1:{free_port()}", "--experiment": "answers", "--db": db, **change}
    id = given.pop("ID", "support")
    assert run(["mlflow", id, *(word for pair in given.items() for word in pair)]) == code
    said = capsys.readouterr()
    assert sentence in said.err and not said.out


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MLflowServer]:
    made = MLflowServer(tmp_path_factory.mktemp("mlflow"), auth=True)
    made.start()
    yield made
    made.kill()


def round_of(server: MLflowServer, db: str, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    words = ["mlflow", "support", "--url", server.url, "--token", f"admin:{PASSWORD}", "--experiment", "answers"]
    assert run([*words, "--db", db, "--assessment", "quality", "--json", *more]) == 0
    return dict(json.loads(capsys.readouterr().out))


def assessments(server: MLflowServer) -> dict[str, list[tuple[str, str, Any, str | None]]]:
    """By question: kind of source, source, value, rationale."""
    with MLflow(server.url, f"admin:{PASSWORD}") as mlflow:
        return {
            json.loads(trace["request_preview"])["question"]: sorted(
                (
                    one["source"]["source_type"], one["source"]["source_id"],
                    (one.get("feedback") or one.get("expectation"))["value"], one.get("rationale"),
                )
                for one in trace.get("assessments") or ()
            )
            for trace in mlflow.traces(mlflow.experiment("answers"))
        }  # fmt: skip


@pytest.mark.mlflow
def test_traces_come_in_and_labels_go_back_as_they_change(
    server: MLflowServer, db: str, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "One" + " more" * 1000
    server.log("answers", [("One", {"text": long}), ("Two", "plain")])
    refused = ["mlflow", "support", "--url", server.url, "--experiment", "answers", "--db", db]
    assert run(refused) == 2 and "does not accept the token" in capsys.readouterr().err
    assert run([*refused, "--experiment", "none", "--token", f"admin:{PASSWORD}"]) == 2
    assert "there is no experiment 'none'" in capsys.readouterr().err
    first = round_of(server, db, capsys)
    assert (first["tasks"], first["written"]) == (2, 0)
    with Campaign.open(db, "support") as campaign:
        texts = {one.task: one.payload for one in campaign.results()}
        assert list(texts.values()) == [
            {"request": {"question": "One"}, "response": {"text": long}},  # MLflow's preview has 1,000 characters
            {"request": {"question": "Two"}, "response": "plain"},
        ]
        lease = campaign.ask("ann")
        one = texts[lease.task]["request"]["question"]
        campaign.tell(lease, "good", comment="it is complete")
        assert round_of(server, db, capsys)["written"] == 2
        agreed = ("CODE", "nextlabel:support", "good", None)
        assert assessments(server)[one] == [agreed, ("HUMAN", "ann", "good", "it is complete")]
        again = round_of(server, db, capsys)
        assert (again["tasks"], again["written"], again["withdrawn"], again["same"]) == (0, 0, 0, 2)

        campaign.undo(lease)  # and says something else
        campaign.tell(campaign.ask("ann"), "bad")
        trace = next(key for key, text in texts.items() if text["request"]["question"] == one)
        theirs = {"source": {"source_type": "HUMAN", "source_id": "ann"}, "feedback": {"value": "their own"}}
        address = f"{server.url}/api/3.0/mlflow/traces/{trace}/assessments"
        body = {"assessment": {"assessment_name": "quality", "trace_id": trace, **theirs}}
        httpx.post(address, json=body, auth=("admin", PASSWORD)).raise_for_status()
        assert round_of(server, db, capsys)["withdrawn"] == 2
        assert [found[1:] for found in assessments(server)[one]] == [
            ("nextlabel:support", "bad", None), ("ann", "bad", None), ("ann", "their own", None),
        ]  # fmt: skip

        server.log("answers", [("Three", "new")])
        assert round_of(server, db, capsys)["tasks"] == 1
        campaign.drop_labels("ann")
        round_of(server, db, capsys)
        assert assessments(server) == {"One": [], "Two": [], "Three": []} | {one: [("HUMAN", "ann", "their own", None)]}


@pytest.mark.mlflow
def test_labels_are_equal_on_both_sides_after_kills_of_both_servers(tmp_path: Path) -> None:
    found = played(tmp_path, items=20, budget=60, workers=16, most_labels=3)
    assert found["labels"] == 60 and not any(list(found.values())[3:]), found
