"""The command line from outside: one line and exit code 2 for bad input, one JSON object for an answer."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nextlabel import Problem, __version__
from nextlabel.cli.app import run
from nextlabel.cli.output import print_json
from nextlabel.cli.problem_options import ProblemFlags
from nextlabel.errors import ProblemError, SolverError
from tolerances import BOUND, EXACT, INDEX

SMALL = ["--tasks", "10", "--budget", "12"]
TINY = ["--tasks", "2", "--budget", "3"]

TWO_CLASSES = """
budget = 4
arrival_rate = 0.5
[[tasks]]
count = 2
prior = [1, 1]
[[tasks]]
count = 1
prior = [3, 1]
threshold = 0.6
"""


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        def refuse(word: str) -> None:
            raise ValueError(f"{word} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


Nextlabel = Callable[..., Answer]


@pytest.fixture
def nextlabel(capsys: pytest.CaptureFixture[str]) -> Nextlabel:
    def call(*arguments: str) -> Answer:
        code = run(list(arguments))
        return Answer(code, *capsys.readouterr())

    return call


def subprocess_call(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from nextlabel.cli.app import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture
def two_classes(tmp_path: Path) -> str:
    path = tmp_path / "two.toml"
    path.write_text(TWO_CLASSES, encoding="utf-8")
    return str(path)


@pytest.fixture
def one_class(tmp_path: Path) -> str:
    path = tmp_path / "one.toml"
    path.write_text(
        "budget = 4\nhorizon = 9.0\n[[tasks]]\ncount = 2\nprior = [3, 1]\nthreshold = 0.6\n", encoding="utf-8"
    )
    return str(path)


def problem_cases() -> Iterator[tuple[list[str], list[str]]]:
    """Arguments that every verb refuses, and words of the refusal: what was given, what is allowed."""
    yield ["--tasks", "10"], ["no budget", "--budget N"]
    yield ["--tasks", "10", "--budget", "12.5"], ["budget is 12.5", "whole number"]
    yield ["--tasks", "10", "--budget", "abc"], ["budget is 'abc'", "whole number"]
    yield ["--tasks", "10", "--budget", "-3"], ["budget is -3", "from 0 to"]
    yield ["--tasks", "10", "--budget", "nan"], ["budget is nan", "whole number"]
    yield ["--tasks", "10", "--budget", "inf"], ["budget is inf", "whole number"]
    yield ["--tasks", "10", "--budget", ""], ["budget is ''", "whole number"]
    yield ["--tasks", "10", "--budget", "1" + "0" * 400], ["budget is too large a number", "from 0 to 1,000,000,000"]
    yield ["--budget", "12"], ["no tasks", "--tasks N"]
    yield ["--tasks", "0", "--budget", "12"], ["number of tasks is 0", "at least one"]
    yield ["--tasks", "-4", "--budget", "12"], ["number of tasks is -4", "at least one"]
    yield ["--tasks", "2.5", "--budget", "12"], ["number of tasks is 2.5", "whole number"]
    yield ["--tasks", "many", "--budget", "12"], ["number of tasks is 'many'", "whole number"]
    for prior in ("0,1", "1,0", "-1,1", "nan,1", "1,inf"):
        yield [*SMALL, "--prior", prior], [f"prior {prior}", "two positive numbers"]
    for prior in ("1", "a,b", "1,2,c", "", "1;2"):
        yield [*SMALL, "--prior", prior], [f"prior {prior!r}", "two positive numbers"]
    for threshold in ("0", "1", "-0.5", "1.5", "nan", "inf"):
        yield [*SMALL, "--threshold", threshold], [f"threshold {threshold}", "between 0 and 1"]
    yield [*SMALL, "--threshold", "half"], ["threshold is 'half'", "between 0 and 1"]
    for name in ("arrival", "completion"):
        for rate in ("-1", "0", "nan", "inf"):
            yield [*SMALL, f"--{name}-rate", rate], [f"{name} rate is {rate}", "positive number"]
        yield [*SMALL, f"--{name}-rate", "fast"], [f"{name} rate is 'fast'", "not a number"]
    for horizon in ("0", "-1", "nan", "-inf"):
        yield [*SMALL, "--horizon", horizon], [f"horizon is {horizon}", "above 0"]
    yield [*SMALL, "--horizon", "soon"], ["horizon is 'soon'", "above 0"]
    yield ["--problem", "nowhere.toml"], ["cannot read nowhere.toml", "No such file"]


USAGE_CASES = [
    (["bounds"], ["'bounds'", "--help"]),
    (["bound", "--tusks", "3"], ["--tusks", "--help"]),
    (["bound", "--tasks"], ["--tasks", "requires an argument"]),
    (["bound", *SMALL, "--prices", "free"], ["'free'", "'scalar', 'per-arrival'"]),
    (["bound", *SMALL, "--charge", "none"], ["'none'", "'arrivals', 'all'"]),
    (["exact", *SMALL, "--policy", "luck"], ["policy 'luck' is not known", "index"]),
    (["exact", *SMALL, "--policy", "indx"], ["did you mean 'index'?"]),
    (["exact", *SMALL, "--policy", "thompson"], ["counts, draws or plans", "Simulate it"]),
    (["exact", *SMALL, "--policy", "index", "--ties", "last"], ["'last'", "'random', 'groups', 'first'"]),
    (["bound", "extra", *SMALL], ["extra", "--help"]),
]

VERB_CASES = [
    (["bound", *SMALL, "--cap", "0"], ["--cap is 0", "less than 1"]),
    (["bound", *SMALL, "--cap", "ten"], ["--cap is 'ten'", "whole number"]),
    (["bound", *SMALL, "--flight", "0"], ["--flight is 0", "less than 1"]),
    (["index", *SMALL, "--cap", "0"], ["--cap is 0", "less than 1"]),
    (["index", *SMALL, "--state", "1,2"], ["--state '1,2'", "three whole numbers"]),
    (["index", *SMALL, "--state", "1,2,x"], ["--state '1,2,x'", "three whole numbers"]),
    (["index", *SMALL, "--state", "1,2,-1"], ["--state '1,2,-1'", "three whole numbers"]),
    (["index", *SMALL, "--state", "1,2,0.5"], ["--state '1,2,0.5'", "three whole numbers"]),
    (["index", *SMALL, "--left", "13"], ["--left is 13", "from 1 to the budget, 12"]),
    (["index", *SMALL, "--left", "0"], ["--left is 0", "at least 1"]),
    (["index", *SMALL, "--left", "all"], ["--left is 'all'", "at least 1"]),
    (["index", "--tasks", "3", "--budget", "0"], ["budget is 0", "--budget 1"]),
    (["index", *SMALL, "--time-left", "3"], ["--time-left 3", "--horizon"]),
    (["index", *SMALL, "--horizon", "9", "--time-left", "10"], ["--time-left is 10", "(0, 9]"]),
    (["index", *SMALL, "--horizon", "9", "--time-left", "0"], ["--time-left is 0", "(0, 9]"]),
    (["index", *SMALL, "--horizon", "9", "--time-left", "nan"], ["--time-left is nan", "(0, 9]"]),
    (["index", *SMALL, "--class", "1"], ["--class is 1", "from 0 to 0"]),
    (["index", *SMALL, "--save", "no/such/folder/table.npz"], ["no/such/folder", "does not exist"]),
    (["index", *SMALL, "--save", "."], ["--save .", "folder"]),
]


def assert_refused(answer: Answer, words: list[str]) -> None:
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert answer.err.endswith(".\n")
    assert answer.err.count("\n") == 1
    for word in words:
        assert word in answer.err


class TestBadInput:
    @pytest.mark.parametrize("verb", ["bound", "exact", "index"])
    @pytest.mark.parametrize(("arguments", "words"), list(problem_cases()))
    def test_problem(self, nextlabel: Nextlabel, verb: str, arguments: list[str], words: list[str]) -> None:
        assert_refused(nextlabel(verb, *arguments, "--json"), words)

    @pytest.mark.parametrize(("arguments", "words"), USAGE_CASES + VERB_CASES)
    def test_verb(self, nextlabel: Nextlabel, arguments: list[str], words: list[str]) -> None:
        assert_refused(nextlabel(*arguments), words)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("bugdet = 3", ["unknown key 'bugdet'", "budget, arrival_rate"]),
            (
                "budget = 3\n[[tasks]]\ncount = 1\ncolour = 'red'",
                ["unknown key 'colour'", "count, sd, prior, threshold"],
            ),
            ("budget = 3\nhorizon = 0\n[[tasks]]\ncount = 1", ["horizon is 0", "above 0"]),
            ("budget = 3.5\n[[tasks]]\ncount = 1", ["budget is 3.5", "whole number"]),
            ("budget = [3\n\n", ["not TOML", "docs/guide.md"]),
        ],
    )
    def test_file(self, nextlabel: Nextlabel, tmp_path: Path, text: str, words: list[str]) -> None:
        path = tmp_path / "bad.toml"
        path.write_text(text, encoding="utf-8")
        assert_refused(nextlabel("bound", "--problem", str(path)), words)

    def test_tasks_with_several_classes(self, nextlabel: Nextlabel, two_classes: str) -> None:
        answer = nextlabel("bound", "--problem", two_classes, "--tasks", "9")
        assert_refused(answer, ["--tasks 9", "2 classes", "Leave --tasks out"])

    def test_too_large_an_exact_problem(self, nextlabel: Nextlabel) -> None:
        assert_refused(nextlabel("exact", "--tasks", "1000", "--budget", "1200"), ["states"])

    def test_nothing_is_written_when_refused(
        self, nextlabel: Nextlabel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        nextlabel("index", *SMALL, "--left", "99", "--save", "table.npz")
        assert list(tmp_path.iterdir()) == []

    def test_as_a_process(self) -> None:
        done = subprocess_call("bound", "--tasks", "10", "--budget", "12.5")
        assert_refused(Answer(done.returncode, done.stdout, done.stderr), ["budget is 12.5"])


class TestFlagsAndFile:
    def test_flags_alone(self) -> None:
        flags = ProblemFlags(tasks="10", budget="12", prior="4, 2", threshold=".6", arrival_rate="2", horizon="inf")
        assert flags.read() == Problem.identical(10, 12, (4, 2), 0.6, arrival_rate=2)

    def test_file_alone(self, one_class: str) -> None:
        assert ProblemFlags(problem=one_class).read() == Problem.identical(2, 4, (3, 1), 0.6, horizon=9)

    def test_every_flag_wins(self, one_class: str) -> None:
        flags = ProblemFlags(
            tasks="5",
            budget="7",
            prior="2,2",
            threshold="0.3",
            arrival_rate="1",
            completion_rate="2",
            horizon="inf",
            problem=one_class,
        )
        assert flags.read() == Problem.identical(5, 7, (2, 2), 0.3, arrival_rate=1, completion_rate=2)

    def test_prior_and_threshold_win_in_every_class(self, two_classes: str) -> None:
        problem = ProblemFlags(prior="2,5", threshold="0.3", problem=two_classes).read()
        assert [(c.count, c.prior.alpha, c.prior.beta, c.threshold) for c in problem.classes] == [
            (2, 2, 5, 0.3),
            (1, 2, 5, 0.3),
        ]

    def test_a_file_without_tasks_takes_them_from_the_flag(self, tmp_path: Path) -> None:
        path = tmp_path / "rates.toml"
        path.write_text("budget = 4\narrival_rate = 2.0\n", encoding="utf-8")
        assert ProblemFlags(tasks="3", problem=str(path)).read() == Problem.identical(3, 4, arrival_rate=2)

    def test_a_flag_repairs_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.toml"
        path.write_text("budget = -4\n[[tasks]]\ncount = 1\n", encoding="utf-8")
        assert ProblemFlags(budget="4", problem=str(path)).read().budget == 4
        with pytest.raises(ProblemError):
            ProblemFlags(problem=str(path)).read()


class TestHelp:
    def test_version(self, nextlabel: Nextlabel) -> None:
        assert nextlabel("--version") == (0, f"nextlabel {__version__}\n", "")

    def test_no_verb_shows_help(self, nextlabel: Nextlabel) -> None:
        answer = nextlabel()
        assert answer.code == 0
        assert "bound" in answer.out

    @pytest.mark.parametrize("verb", ["bound", "exact", "index"])
    def test_help_lists_the_problem_flags(
        self, nextlabel: Nextlabel, verb: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        answer = nextlabel(verb, "--help")
        assert answer.code == 0
        for flag in ("--tasks", "--budget", "--prior", "--threshold", "--arrival-rate", "--completion-rate"):
            assert flag in answer.out
        for flag in ("--horizon", "--problem", "--json"):
            assert flag in answer.out

    def test_help_needs_no_solver(self) -> None:
        code = (
            "import sys; from nextlabel.cli.app import run; run(['bound', '--help']);"
            "sys.exit(any(m in sys.modules for m in ('numpy', 'numba', 'scipy')))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


class TestBound:
    def test_json(self, nextlabel: Nextlabel) -> None:
        answer = nextlabel("bound", *SMALL, "--json")
        assert answer.code == 0
        result = answer.json
        assert result["bound"] == pytest.approx(7.59375, abs=BOUND)
        assert result["bound_per_task"] == pytest.approx(result["bound"] / 10)
        assert result["expected_arrivals"] == pytest.approx(12)
        assert result["certified"] is True
        assert 0 <= result["gap"] <= 1e-4
        assert result["seconds"] >= 0
        assert isinstance(result["price"], float)
        assert "prices" not in result
        assert result["problem"]["horizon"] is None

    def test_json_per_arrival(self, nextlabel: Nextlabel) -> None:
        result = nextlabel("bound", *TINY, "--prices", "per-arrival", "--json").json
        assert len(result["prices"]) == 3
        assert all(price >= 0 for price in result["prices"])
        assert "price" not in result

    def test_charging_absent_workers_is_looser(self, nextlabel: Nextlabel) -> None:
        arguments = ["bound", *SMALL, "--horizon", "30", "--json"]
        fair, paper = nextlabel(*arguments).json, nextlabel(*arguments, "--charge", "all").json
        assert fair["bound"] <= 5.7501
        assert fair["expected_arrivals"] < 12
        assert paper["bound"] > fair["bound"]

    def test_table(self, nextlabel: Nextlabel, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        answer = nextlabel("bound", *SMALL)
        assert answer.code == 0
        assert "If workers are alike, no policy can get more than 7.594 of 10 tasks right in expectation." in answer.out


class TestExact:
    def test_json(self, nextlabel: Nextlabel) -> None:
        result = nextlabel("exact", *TINY, "--json").json
        assert result["value_per_task"] == pytest.approx(result["value"] / 2)
        assert result["states"] > 0
        assert "policy" not in result

    def test_reference_value_and_policy(self, nextlabel: Nextlabel) -> None:
        result = nextlabel("exact", *SMALL, "--policy", "index", "--json").json
        assert result["value"] == pytest.approx(7.5625, abs=EXACT)
        assert result["policy"]["name"] == "index"
        assert result["policy"]["value"] <= result["value"] + EXACT
        assert result["policy"]["value_per_task"] == pytest.approx(result["policy"]["value"] / 10)

    @pytest.mark.parametrize("ties", ["random", "groups", "first"])
    def test_every_tie_rule(self, nextlabel: Nextlabel, ties: str) -> None:
        result = nextlabel("exact", *TINY, "--policy", "index", "--ties", ties, "--json").json
        assert result["policy"]["ties"] == ties
        assert result["policy"]["value"] <= result["value"] + EXACT

    def test_table(self, nextlabel: Nextlabel, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        answer = nextlabel("exact", *TINY, "--policy", "index")
        assert answer.code == 0
        assert "The index policy reaches" in answer.out


class TestIndex:
    def test_json(self, nextlabel: Nextlabel) -> None:
        arguments = ["index", "--tasks", "10", "--budget", "40", "--state", "0,0,0", "--state", "1,1,0", "--json"]
        result = nextlabel(*arguments).json
        assert [(row["a"], row["b"], row["w"]) for row in result["indices"]] == [(0, 0, 0), (1, 1, 0)]
        assert [row["index"] for row in result["indices"]] == pytest.approx([0.25, 0.1875], abs=INDEX)
        assert result["left"] == 40
        assert result["time_left"] is None

    def test_left(self, nextlabel: Nextlabel) -> None:
        result = nextlabel("index", *SMALL, "--state", "0,0,0", "--left", "1", "--json").json
        assert result["indices"][0]["index"] == pytest.approx(0.25, abs=INDEX)

    def test_finite_horizon_and_classes(self, nextlabel: Nextlabel, two_classes: str) -> None:
        arguments = ["index", "--problem", two_classes, "--horizon", "20", "--time-left", "10", "--class", "1"]
        result = nextlabel(*arguments, "--state", "0,0,0", "--json").json
        assert result["class"] == 1
        assert result["time_left"] == 10
        assert math.isfinite(result["indices"][0]["index"])

    def test_check(self, nextlabel: Nextlabel) -> None:
        result = nextlabel("index", *TINY, "--check", "--json").json
        assert result["indexability"]["indexable"] is True
        assert result["indexability"]["prices_checked"] > 0

    def test_save(self, nextlabel: Nextlabel, tmp_path: Path) -> None:
        from nextlabel.results import IndexTable

        path = tmp_path / "table.npz"
        result = nextlabel("index", *TINY, "--save", str(path), "--json").json
        assert result["saved"] == str(path)
        assert list(tmp_path.iterdir()) == [path]
        row = result["indices"][0]
        assert IndexTable.load(path).index(0, (0, 0), 0, 3) == pytest.approx(row["index"])

    def test_table(self, nextlabel: Nextlabel, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        answer = nextlabel("index", *SMALL)
        assert answer.code == 0
        assert "largest index" in answer.out


class TestEndings:
    @pytest.fixture
    def bound_that(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
        import nextlabel.solve.bound as module

        def install(error: BaseException) -> None:
            def fail(*args: Any, **options: Any) -> None:
                raise error

            monkeypatch.setattr(module, "upper_bound", fail)

        return install

    def test_solver_error_is_not_the_users(
        self, nextlabel: Nextlabel, bound_that: Callable[[BaseException], None]
    ) -> None:
        bound_that(SolverError("the search did not end.", "Report it."))
        assert nextlabel("bound", *SMALL) == (1, "", "error: the search did not end. Report it.\n")

    def test_interrupt(self, nextlabel: Nextlabel, bound_that: Callable[[BaseException], None]) -> None:
        bound_that(KeyboardInterrupt())
        answer = nextlabel("bound", *SMALL)
        assert answer.code == 130
        assert answer.out == ""
        assert answer.err.count("\n") == 1

    def test_reader_goes_away(self) -> None:
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-c", "from nextlabel.cli.app import main; main()", "--version"]
        with os.fdopen(write, "w") as pipe:
            done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode in (0, 1, -signal.SIGPIPE)
        assert done.stderr == ""

    def test_json_has_no_infinity(self, capsys: pytest.CaptureFixture[str]) -> None:
        import numpy as np

        print_json({"a": math.inf, "b": np.float64(2.5), "c": np.array([1.0, math.nan]), "d": (1, np.int64(2))})
        out = capsys.readouterr().out
        assert json.loads(out) == {"a": None, "b": 2.5, "c": [1.0, None], "d": [1, 2]}
        assert "Infinity" not in out
