"""``nextlabel annotate`` against a service on a real port, with the examples: a language model's API and a learner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from documents import read_page
from nextlabel.cli.app import run
from nextlabel.client import annotation
from service_fixtures import PATIENCE_S, Service, on_sqlite

EXAMPLES = Path(__file__).parents[2] / "examples" / "annotate"
FRUIT, STONES = ("apple", "pear", "plum"), ("granite", "basalt", "slate")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("annotate")) as running:
        yield running


@pytest.fixture(autouse=True)
def there(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where a user would stand: in the folder of the model, with the token in the environment."""
    monkeypatch.setenv("NEXTLABEL_TOKEN", service.token)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(annotation, "FIRST_WAIT_S", 0.01)
    monkeypatch.chdir(EXAMPLES)
    before = set(sys.modules)
    yield
    for name in {"llm", "learner", "slow_model"} & (set(sys.modules) - before):
        del sys.modules[name]


class ChatApi(BaseHTTPRequestHandler):
    """A server that speaks OpenAI's chat completions: it says what is asked for, but only after some trouble."""

    trouble: ClassVar[list[Any]] = []
    requests: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.requests.append({"path": self.path, "key": self.headers["authorization"], **body})
        text = body["messages"][1]["content"]
        said = "Fruit." if text.split()[0] in FRUIT else " stone "
        status, headers, answer = 200, {}, json.dumps({"choices": [{"message": {"content": said}}]})
        if self.trouble:
            status, headers, answer = self.trouble.pop(0)
        self.send_response(status)
        for name, value in {"content-length": str(len(answer)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def chat_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[ChatApi]]:
    ChatApi.trouble, ChatApi.requests = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), ChatApi)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("LLM_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("LLM_KEY", "k3y")
    monkeypatch.setenv("LLM_LABELS", "stone,fruit")
    yield ChatApi
    server.shutdown()
    thread.join()
    server.server_close()


def campaign_of_words(service: Service, id: str, tasks: int = 12, **settings: Any) -> str:
    given = {"policy": "crowd", "labels": ["stone", "fruit"], "budget": 30, **settings}
    service.campaign(id, tasks=0, **given)
    rows = [{"id": f"t{k}", "text": f"{(STONES, FRUIT)[k % 2][k // 2 % 3]} number {k}"} for k in range(tasks)]
    with service.http() as http:
        assert http.post(f"/campaigns/{id}/tasks", json=rows).status_code == 200
    return id


def annotate(service: Service, id: str, *arguments: str) -> int:
    return run(["annotate", id, "--url", service.url, *arguments])


def test_a_language_model_behind_an_openai_compatible_address(
    service: Service, chat_api: type[ChatApi], capsys: pytest.CaptureFixture[str]
) -> None:
    id = campaign_of_words(service, "llm")
    nonsense = json.dumps({"choices": [{"message": {"content": "I would say it is both."}}]})
    chat_api.trouble += [
        (429, {"retry-after": "0"}, "{}"), (500, {}, "broken"), (200, {}, "not JSON"),
        (200, {}, nonsense), (200, {}, '{"choices": []}'), (503, {}, ""),
    ]  # fmt: skip
    options = ["--column", "text", "--cost", "0.25", "--tries", "8", "--json"]
    assert annotate(service, id, "--model", "llm:label", *options) == 0
    out, _ = capsys.readouterr()
    assert json.loads(out) == {
        "model": "llm", "labels": 12, "ended": "The function has seen every task.", "known": 0, "failed": 0,
        "passed": 0, "charged": 3, "taught": None,
    }  # fmt: skip
    found = {one.task: (one.worker, one.label) for one in service.campaign_service[id].labels()}
    assert found == {f"t{k}": ("model:llm", ("stone", "fruit")[k % 2]) for k in range(12)}
    assert len(chat_api.requests) == 12 + 6
    assert {(one["path"], one["key"]) for one in chat_api.requests} == {("/v1/chat/completions", "Bearer k3y")}
    row = service.campaign_service.store.row(id)
    assert (row.spent, row.reserved) == (3, 0)


def test_the_documented_commands_run_as_they_are_written(
    service: Service, chat_api: type[ChatApi], tmp_path: Path
) -> None:
    page = read_page(EXAMPLES.parents[1] / "docs" / "annotate.md")
    llm, learner = (block.text for block in page.blocks if "cd examples/annotate" in block.text)
    command = tmp_path / "nextlabel"  # the service of this test is at another address than the usual one
    command.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).parent}/nextlabel" "$@" --url {service.url}\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LLM_")}

    def type_in(text: str) -> str:
        given = {"cwd": EXAMPLES.parents[1], "env": {**kept, "PATH": path}, "timeout": PATIENCE_S}
        ran = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False, **given)  # type: ignore[call-overload]
        assert ran.returncode == 0, ran.stderr
        return ran.stderr

    id = campaign_of_words(service, "tone", tasks=2, labels=["negative", "positive"], budget=4)
    chat_api.trouble += [(200, {}, json.dumps({"choices": [{"message": {"content": "Positive."}}]}))] * 2
    assert "2 labels" in type_in(llm.replace("http://127.0.0.1:11434/v1", os.environ["LLM_URL"]))
    assert {one["key"] for one in chat_api.requests} == {None}  # no key, no header
    for worker in ("ann", "bob"):
        while lease := service.campaign_service[id].ask(worker):
            service.campaign_service[lease.campaign].tell(lease.id, "positive")
    assert service.campaign_service.store.row(id).left == 0  # so that the learner's command comes to its end
    assert "learner: taught by 0 labels. The campaign is closed." in type_in(learner)


def test_a_model_that_says_nothing_sensible_is_given_up(
    service: Service, chat_api: type[ChatApi], capsys: pytest.CaptureFixture[str]
) -> None:
    id = campaign_of_words(service, "nonsense")
    chat_api.trouble += [(200, {}, json.dumps({"choices": [{"message": {"content": "perhaps"}}]}))] * 2
    assert annotate(service, id, "--model", "llm:label", "--column", "text", "--tries", "2") == 0
    said = capsys.readouterr().err
    assert "task 't0': the function failed 2 times and was given up: ValueError: the model said 'perhaps'." in said
    assert "model:llm: 11 labels, 1 task given up. The function has seen every task." in said


def test_a_learner_of_scikit_learn_learns_from_people(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    id = campaign_of_words(service, "learner", tasks=40, budget=80)
    with service.http() as http:
        for _ in range(24):
            lease = http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"]
            label = ("stone", "fruit")[int(lease["task"][1:]) % 2]
            assert http.post(f"/leases/{lease['id']}/tell", json={"label": label}).status_code == 200
    people = {one.task for one in service.campaign_service[id].labels()}
    assert len(people) == 24
    assert annotate(service, id, "--model", "learner:learner", "--column", "text", "--once") == 0
    assert "The learner was taught by 24 labels and foretold 40 tasks." in capsys.readouterr().err
    assert service.campaign_service.store.row(id).features


def test_bad_input_is_one_sentence_and_exit_2(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    id = campaign_of_words(service, "bad")
    for arguments, sentence in [
        (["--model", "none_such:label"], "there is no module 'none_such'."),
        (["--model", "llm"], "not of the form module:function."),
        (["--model", "llm:none"], "module 'llm' has no 'none'."),
        (["--model", "llm:label", "--column", "none"], "a task has no column 'none' that workers are shown."),
        (["--model", "learner:learner", "--cost", "1"], "--cost only has an effect with a function"),
        (["--model", "learner:learner", "--as", "x"], "--as only has an effect with a function"),
        (["--model", "llm:label", "--once"], "--once only has an effect with a learner"),
        (["--model", "builtins:len", "--column", "text"], "which is not one of the campaign's labels."),
        (["--model", "llm:label", "--per-minute", "0"], "--per-minute is 0, which is not a positive number."),
    ]:
        assert annotate(service, id, *arguments) == 2, arguments
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("error: ") and sentence in error
    os.environ.pop("NEXTLABEL_TOKEN")
    assert annotate(service, id, "--model", "llm:label") == 2
    assert "there is no token" in capsys.readouterr().err
    assert list(service.campaign_service[id].labels()) == []


def test_a_run_that_is_stopped_keeps_what_it_has_and_holds_nothing(service: Service, tmp_path: Path) -> None:
    id = campaign_of_words(service, "stopped")
    (tmp_path / "slow_model.py").write_text(
        "import pathlib, time\n"
        "def label(payload):\n"
        "    calls = len(pathlib.Path('calls').read_text()) if pathlib.Path('calls').exists() else 0\n"
        "    pathlib.Path('calls').write_text('x' * (calls + 1))\n"
        f"    time.sleep({PATIENCE_S} if calls == 3 else 0)\n"
        "    return 'stone'\n",
        encoding="utf-8",
    )
    command = [
        sys.executable, "-c", "from nextlabel.cli.app import main; main()", "annotate", id, "--url", service.url,
        "--model", "slow_model:label", "--buy",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        begun = time.monotonic()
        while not (tmp_path / "calls").exists() or len((tmp_path / "calls").read_text()) < 4:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < begun + PATIENCE_S
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0, said
    assert "Stopped on request" in said and "model:slow_model: 3 labels" in said
    row = service.campaign_service.store.row(id)
    assert (row.reserved, row.spent) == (0, 3)
    assert len(list(service.campaign_service[id].labels())) == 3
