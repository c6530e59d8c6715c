"""The three journeys of docs/architecture.md: the calls pass through the files that are drawn there."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import nextlabel as nl
from documents import ROOT
from nextlabel.cli.app import run

PACKAGE = str(Path(nl.__file__).parent) + "/"
SECTIONS = re.split(r"^### ", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
LIMITS = (15, 15, 20)


@contextmanager
def traced() -> Iterator[set[str]]:
    """Files of the package in which a function is called meanwhile, relative to it, in any thread."""
    found: set[str] = set()

    def see(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE) and not frame.f_code.co_name.startswith("<"):
            found.add(file.removeprefix(PACKAGE))

    before = sys.getprofile()
    threading.setprofile(see)
    sys.setprofile(see)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def bound() -> None:
    assert run(["bound", "--tasks", "10", "--budget", "12"]) == 0


def ask_and_tell(campaign: nl.Campaign, numbers: Iterator[int]) -> None:
    lease = campaign.ask(worker=f"worker {next(numbers)}")
    assert lease
    campaign.tell(lease.id, label=1)


def backtest() -> None:
    files = ["labels.csv", "--gold", "gold.csv", "--report", "page.html"]
    assert run(["backtest", *files, "--replications", "2", "--jobs", "1", "--policy", "index"]) == 0


@pytest.fixture
def journeys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    monkeypatch.chdir(tmp_path)
    rows = [f"t{task},w{worker},{(task + worker) % 3 % 2}" for task in range(120) for worker in range(7)]
    Path("labels.csv").write_text("task,worker,label\n" + "\n".join(rows), encoding="utf-8")
    Path("gold.csv").write_text("task,label\n" + "\n".join(f"t{t},{t % 2}" for t in range(120)), encoding="utf-8")
    campaign = nl.Campaign.create("sqlite:///labels.db", tasks=[f"task {k}" for k in range(9)], budget=20)
    numbers = count()
    return [bound, lambda: ask_and_tell(campaign, numbers), backtest]


@pytest.mark.parametrize("number", range(3), ids=lambda n: SECTIONS[n].partition(":")[0].lower().replace(" ", "-"))
def test_journey(number: int, journeys: list[Callable[[], None]], capsys: pytest.CaptureFixture[str]) -> None:
    drawn = re.findall(r"^ *([a-z_/]+\.py) ", SECTIONS[number], flags=re.MULTILINE)
    assert 5 < len(drawn) <= LIMITS[number]
    journeys[number]()  # what happens only the first time is not drawn
    with traced() as passed:
        journeys[number]()
    # A compiled kernel leaves no trace: it has to be imported by a file that does.
    seen = "\n".join(Path(PACKAGE, file).read_text(encoding="utf-8") for file in passed)
    for file in drawn:
        module = "nextlabel." + file.removesuffix(".py").replace("/", ".")
        assert file in passed or (file.startswith("kernels/") and f"from {module} import" in seen), file
