"""What Label Studio's replies mean, by replies that a real server gave (``recorded/``), and what is refused.

Tests against a real server are in ``test_label_studio_server.py`` (``make test-label-studio``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextlabel.campaign.external_answers import SKIPPED
from nextlabel.cli.app import run
from nextlabel.errors import InputError, NotFoundError
from nextlabel.integrations.label_studio.api import LabelStudio
from nextlabel.integrations.label_studio.bridge import (
    Control,
    answer_of,
    answers_of,
    control_of,
    mark_of,
    prediction_rows,
    tab_data,
    task_table,
    user_of,
    user_of_tab,
    users_in,
)
from nextlabel.integrations.tool import checked_url

RECORDED = Path(__file__).parent / "recorded"
CONTROL = Control("sentiment", "text", ("negative", "positive"))


def recorded(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text())


class Recorded(BaseHTTPRequestHandler):
    """Replies that a real server gave."""

    replies: ClassVar[dict[str, tuple[int, str]]] = {
        "/api/projects/1/": (200, "project"),
        "/api/projects/99/": (404, "no_project"),
    }

    def do_GET(self) -> None:
        status, name = self.replies.get(self.path.partition("?")[0], (404, "no_project"))
        if self.headers["Authorization"] != "Token right":
            status, name = 401, "bad_token"
        body = b"<html>some other server</html>" if self.path == "/api/projects/7/" else b""
        body = body or (RECORDED / f"{name}.json").read_bytes()
        self.send_response(200 if body.startswith(b"<") else status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorded)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def annotation(id: int, *choices: str, user: int = 7, name: str = "sentiment", **more: Any) -> dict[str, Any]:
    return {"id": id, "completed_by": user, "result": _result(choices, name), **more}


def _result(choices: tuple[str, ...], name: str) -> list[dict[str, Any]]:
    part = {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": list(choices)}}
    return [part] if choices else []


def test_the_recorded_project_and_its_annotations_are_read() -> None:
    control = control_of(recorded("project"))
    assert control == CONTROL
    tasks = recorded("tasks")["tasks"]
    labels = [label for task in tasks for label in answers_of(task["annotations"], control).values()]
    assert labels and set(labels) <= {"negative", "positive"}
    assert all(isinstance(user_of(one), int) for task in tasks for one in task["annotations"])
    table = task_table(tasks[0], "http://studio")
    assert table == {"id": str(tasks[0]["id"]), "payload": {"text": tasks[0]["data"]["text"]}}  # without our field
    assert sorted(user_of_tab(tab) or 0 for tab in recorded("tabs")) == list(range(2, 9))
    told = recorded("webhook")["annotation"]
    assert (user_of(told), answer_of(told, control)) == (1, "positive")


def test_an_annotation_is_a_label_if_it_has_one_known_choice() -> None:
    assert answer_of(annotation(1, "positive"), CONTROL) == "positive"
    for other in (
        annotation(1), annotation(1, "positive", "negative"), annotation(1, "neutral"),
        annotation(1, "positive", was_cancelled=True), annotation(1, "positive", name="topic"),
    ):  # fmt: skip
        assert answer_of(other, CONTROL) is SKIPPED
    several = [annotation(3), annotation(2, "negative"), annotation(1, "positive"), annotation(4, "positive", user=8)]
    assert answers_of(several, CONTROL) == {7: "negative", 8: "positive"}  # the newest label, whatever came after it
    assert answers_of([annotation(1, user=7, was_cancelled=True)], CONTROL) == {7: SKIPPED}
    assert user_of({"completed_by": {"id": 5}}) == 5 and user_of({"completed_by": None}) is None


@given(st.sets(st.integers(1, 10**6)))
def test_a_mark_names_its_users(users: set[int]) -> None:
    mark = mark_of(users)
    assert users_in(mark) == users
    assert all((f",{user}," in mark) == (user in users) for user in (*users, 7, 77))


def test_a_tab_is_found_again() -> None:
    assert user_of_tab({"data": tab_data(7, "ann@example.org")}) == 7
    assert users_in(None) == users_in("something else") == frozenset()
    for other in ({}, {"data": {}}, {"data": {"filters": {"items": [{"filter": "filter:tasks:id"}]}}}):
        assert user_of_tab(other) is None


def test_predictions_have_scores_where_all_can_be_probabilities() -> None:
    def task(id: int, *predictions: dict[str, Any]) -> dict[str, Any]:
        return {"id": id, "predictions": list(predictions)}

    def said(id: int, label: str, score: float | None, model: str | None = "m") -> dict[str, Any]:
        return {"id": id, "model_version": model, "score": score, "result": CONTROL.result(label)}

    both = [task(1, said(1, "negative", 0.9), said(2, "positive", 0.8)), task(2, said(3, "negative", 1.0))]
    assert prediction_rows(both, CONTROL) == {
        "m": [
            {"task": "1", "negative": pytest.approx(0.2), "positive": 0.8},
            {"task": "2", "negative": 1.0, "positive": 0.0},
        ]
    }
    bare = [task(1, said(1, "negative", None)), task(2, said(2, "positive", 0.9))]
    assert prediction_rows(bare, CONTROL)["m"] == [
        {"task": "1", "label": "negative"}, {"task": "2", "label": "positive"},
    ]  # fmt: skip
    assert prediction_rows([task(1, said(1, "negative", 0.1, None))], CONTROL) == {
        "label-studio": [{"task": "1", "label": "negative"}]
    }
    assert prediction_rows([task(1, said(1, "negative", 0.9, "nextlabel:label_studio_1"))], CONTROL) == {}  # our own


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('<View><Text name="t" value="$t"/><TextArea name="x" toName="t"/></View>', "has no Choices"),
        ('<View><Choices name="a" toName="t"/><Choices name="b" toName="t"/></View>', "has several Choices: a, b"),
        ('<View><Choices name="a" toName="t" choice="multiple"/></View>', 'choice="multiple"'),
        ('<View><Choices name="a" toName="t" perRegion="true"/></View>', 'perRegion="true"'),
    ],
)
def test_other_interfaces_are_refused(config: str, says: str) -> None:
    names = [part.split('"')[1] for part in config.split("<Choices")[1:]]
    parsed = {name: {"type": "Choices", "to_name": ["t"], "labels": ["no", "yes"]} for name in names}
    with pytest.raises(InputError, match=says):
        control_of({"id": 1, "label_config": config, "parsed_label_config": parsed})


def test_one_of_several_choices_is_named() -> None:
    config = '<View><Choices name="a" toName="t"/><Choices name="b" toName="t"/></View>'
    parsed = {name: {"type": "Choices", "to_name": ["t"], "labels": ["no", "yes"]} for name in "ab"}
    project = {"id": 1, "label_config": config, "parsed_label_config": parsed}
    assert control_of(project, "b") == Control("b", "t", ("no", "yes"))
    with pytest.raises(InputError, match="no Choices called 'c'"):
        control_of(project, "c")


def test_a_task_with_too_much_data_is_its_address() -> None:
    task = {"id": 3, "project": 2, "data": {"text": "x" * 100_000}}
    assert task_table(task, "http://studio")["payload"] == {"task": "http://studio/projects/2/data?task=3"}
    assert task_table({**task, "data": {"nextlabel": ",7,"}}, "http://studio")["payload"].keys() == {"task"}


def test_what_the_server_says_becomes_one_sentence(url: str) -> None:
    with LabelStudio(f"{url}/", "right") as studio:
        assert studio.project(1)["title"]
        with pytest.raises(NotFoundError, match="no project 99"):
            studio.project(99)
        with pytest.raises(InputError, match="is not Label Studio"):
            studio.project(7)
    for bad in ("localhost:8080", "ftp://x", "http://", "http://x?y=1"):
        with pytest.raises(InputError, match="not the address of a server"):
            checked_url(bad)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--token", "wrong", "--project", "1"], "does not accept the token (Invalid token)"),
        (["--token", "right", "--project", "99"], "there is no project 99"),
        (["--token", "", "--project", "1"], "there is no token for Label Studio"),
        (["--token", "right", "--project", "0"], "--project"),
        (["--token", "right", "--project", "1", "--budget", "many"], "--budget"),
        (["--token", "right", "--project", "1", "--control", "topic"], "no Choices called 'topic'"),
        (["--token", "right", "--project", "1"], "the campaign has no budget"),
        (["--token", "right", "--project", "1", "--db", "memory:"], "in memory"),
    ],
)
def test_a_connection_is_refused_in_one_sentence(
    url: str, flags: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    assert run(["label-studio", "connect", "--url", url, "--port", "0", *flags]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []  # nothing was made


def test_an_unreachable_server_is_refused_in_one_sentence(tmp_path: Path, capsys: Any) -> None:
    flags = ["--url", "http://127.0.0.1:1", "--token", "x", "--project", "1", "--budget", "5", "--port", "0"]
    assert run(["label-studio", "connect", *flags, "--db", str(tmp_path / "labels.db")]) == 2
    assert "does not answer" in capsys.readouterr().err


def test_results_need_a_connection(url: str, tmp_path: Path, capsys: Any) -> None:
    db = str(tmp_path / "labels.db")
    assert run(["campaign", "create", "--budget", "5", "--db", db]) == 0
    capsys.readouterr()
    assert run(["label-studio", "push", "--url", url, "--token", "right", "--project", "1", "--db", db]) == 2
    assert "is not connected" in capsys.readouterr().err
