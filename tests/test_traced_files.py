"""How many files of the library a call enters: what somebody has to read who follows it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import nextlabel as nl
from nextlabel.application.table_cache import crowd_compiled
from nextlabel.cli.app import main
from service_fixtures import PATIENCE_S, on_sqlite

SOURCE = str(Path(nl.__file__).parent)


def files_entered(call: Callable[[], Any]) -> set[str]:
    """Files of the library, relative to it, whose functions run in ``call``, in any thread.

    It is called twice, and counted when everything is imported and compiled; kernels that kernels call are not seen.
    """
    call()
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            entered.add(frame.f_code.co_filename[len(SOURCE) + 1 :])

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
    return entered


def test_bound() -> None:
    problem = nl.Problem.identical(tasks=100, budget=300, arrival_rate=1.0, completion_rate=0.4)
    entered = files_entered(lambda: nl.upper_bound(problem))
    assert 5 < len(entered) <= 18, sorted(entered)


def test_bound_with_a_price_for_every_arrival_and_a_deadline() -> None:
    problem = nl.Problem.identical(tasks=5, budget=8, arrival_rate=1.0, completion_rate=0.4, horizon=6.0)
    entered = files_entered(lambda: nl.upper_bound(problem, "per-arrival"))
    assert 5 < len(entered) <= 18, sorted(entered)


def test_bound_from_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["nextlabel", "bound", "--tasks", "100", "--budget", "300"])

    def command() -> None:
        with suppress(SystemExit):
            main()

    entered = files_entered(command)
    assert 10 < len(entered) <= 25, sorted(entered)


def test_ask_over_http(tmp_path: Path) -> None:
    """One ask with the policy crowd on SQLite, in all threads of the service; no refit is due meanwhile.

    Of five asks the one that counts is the one beside which fewest other things happened to run.
    """
    entered: set[str] = set()
    asking = threading.Event()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and asking.is_set() and frame.f_code.co_filename.startswith(SOURCE):
            entered.add(frame.f_code.co_filename[len(SOURCE) + 1 :])

    threading.setprofile(note)
    try:
        with on_sqlite(tmp_path) as service:
            service.campaign("demo", tasks=200, policy="crowd", budget=10_000)
            with service.worker("ann") as worker:
                for _ in range(12):
                    lease = worker.post("/campaigns/demo/ask").json()["lease"]
                    assert worker.post(f"/leases/{lease['id']}/tell", json={"label": "yes"}).status_code == 200
                service.campaign_service.table_cache.refit_later("demo").result(PATIENCE_S)
                crowd_compiled().result(PATIENCE_S)  # else a compilation in the background is counted
                asks = list[set[str]]()
                for _ in range(5):
                    entered.clear()
                    asking.set()
                    lease = worker.post("/campaigns/demo/ask").json()["lease"]
                    asking.clear()
                    asks.append(set(entered))
                    assert worker.post(f"/leases/{lease['id']}/tell", json={"label": "yes"}).status_code == 200
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
    fewest = min(asks, key=len)
    assert 15 < len(fewest) <= 25, sorted(fewest)


def test_backtest(tmp_path: Path) -> None:
    labels, gold = tmp_path / "labels.csv", tmp_path / "gold.csv"
    said = [f"{task},w{(task + k) % 5},{int((task + k) % 4 == 0)}" for task in range(20) for k in range(4)]
    labels.write_text("task,worker,label\n" + "\n".join(said) + "\n")
    gold.write_text("task,label\n" + "\n".join(f"{task},{task % 2}" for task in range(20)) + "\n")
    entered = files_entered(lambda: nl.backtest(labels, gold, labels_per_task=[2], replications=2))
    assert 20 < len(entered) <= 45, sorted(entered)
