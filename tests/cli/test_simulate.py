"""``nextlabel simulate`` from outside: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from nextlabel.cli.app import run
from nextlabel.policies.registry import POLICIES
from tolerances import BOUND

SMALL = ["simulate", "--tasks", "10", "--budget", "12", "--replications", "300"]
FAST = ["simulate", "--tasks", "3", "--budget", "4", "--replications", "20", "--policy", "okg", "--policy", "uniform"]
PNG = b"\x89PNG\r\n\x1a\n"


class Answer:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        def refuse(word: str) -> None:
            raise ValueError(f"{word} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: Answer(run(list(arguments)), *capsys.readouterr())


class TestJson:
    def test_shape(self, call: Any) -> None:
        result = call(*SMALL, "--json").json
        assert result["bound_per_task"] == pytest.approx(0.759375, abs=BOUND)
        assert [row["name"] for row in result["policies"]] == ["auto", "okg", "uniform"]
        for row in result["policies"]:
            assert {
                "name", "mean_per_task", "half_width", "gap_percent", "gap_half_width", "labels_used", "most_labels",
                "variance_ratio", "seconds",
            } <= set(row)  # fmt: skip
            assert 0.74 < row["mean_per_task"] < 0.77
            assert 0 < row["half_width"] < 0.01
            assert 0 < row["gap_half_width"] < row["gap_percent"] < 2
            assert row["labels_used"] == 12
            assert row["variance_ratio"] > 1
        assert [(row["name"], row["minus"]) for row in result["differences"]] == [
            ("okg", "auto"),
            ("uniform", "auto"),
        ]
        for row, policy in zip(result["differences"], result["policies"][1:], strict=True):
            first = result["policies"][0]["mean_per_task"]
            assert row["mean_per_task"] == pytest.approx(policy["mean_per_task"] - first, abs=1e-12)
            assert row["excludes_zero"] == (abs(row["mean_per_task"]) > row["half_width"])
        assert (result["replications"], result["seed"], result["pending"]) == (300, 0, "wait")
        assert result["problem"]["tasks"] == 10

    def test_only_json_on_stdout(self, call: Any, tmp_path: Path) -> None:
        answer = call(*FAST, "--json", "--out", str(tmp_path / "out"))
        assert answer.code == 0
        assert answer.json["policies"]
        assert "Wrote policies.csv, policies.png, manifest.json" in answer.err

    def test_same_seed_same_digits(self, call: Any) -> None:
        def digits(*more: str) -> list[Any]:
            rows = call(*FAST, "--json", *more).json["policies"]
            return [(row["mean_per_task"], row["gap_percent"]) for row in rows]

        assert digits() == digits("--seed", "0") == digits("--jobs", "3")
        assert digits() != digits("--seed", "1")

    def test_discard_has_no_gap(self, call: Any) -> None:
        result = call(*FAST, "--json", "--pending", "discard").json
        assert result["pending"] == "discard"
        for row in result["policies"]:
            assert row["gap_percent"] is row["gap_half_width"] is row["variance_ratio"] is None

    def test_finite_horizon_has_a_gap_that_varies_less(self, call: Any) -> None:
        result = call(*FAST, "--json", "--horizon", "20").json
        for row in result["policies"]:
            share = 100 / result["bound_per_task"]
            plain = share * (result["bound_per_task"] - row["mean_per_task"])
            assert row["gap_percent"] == pytest.approx(plain, abs=2.5 * share * row["half_width"])
            assert row["gap_half_width"] < share * row["half_width"]
            assert row["variance_ratio"] > 1

    def test_prices(self, call: Any) -> None:
        arguments = [*FAST, "--arrival-rate", "2", "--json", "--prices"]
        scalar, each = call(*arguments, "scalar").json, call(*arguments, "per-arrival").json
        assert (scalar["prices"], each["prices"]) == ("scalar", "per-arrival")
        assert each["bound_per_task"] <= scalar["bound_per_task"] + 1e-9
        for one, two in zip(scalar["policies"], each["policies"], strict=True):
            assert one["mean_per_task"] == two["mean_per_task"]

    def test_one_replication_has_no_interval(self, call: Any) -> None:
        result = call(*FAST, "--json", "--replications", "1").json
        assert all(row["half_width"] is None for row in result["policies"])
        assert result["differences"][0]["excludes_zero"] is False


class TestWords:
    def test_table_and_verdict(self, call: Any) -> None:
        answer = call(*SMALL, "--policy", "index", "--policy", "random")
        assert answer.code == 0
        assert "Bound 0.759375 per task" in answer.out
        assert "Paired differences to index" in answer.out
        assert "index is ahead of random by" in answer.out
        assert "the 95% interval excludes" in " ".join(answer.out.split())
        assert answer.err in ("", "Compiling numerical kernels, once per installation ...\n")

    def test_interval_that_includes_zero(self, call: Any) -> None:
        answer = call(*SMALL, "--replications", "3", "--policy", "uniform", "--policy", "apt")
        words = " ".join(answer.out.split())
        assert "includes zero, so this is no evidence" in words or "did equally well in every replication" in words

    def test_one_policy(self, call: Any) -> None:
        answer = call(*SMALL, "--policy", "okg")
        assert "Paired" not in answer.out
        assert "okg gets 0.75" in " ".join(answer.out.split())

    def test_one_replication(self, call: Any) -> None:
        words = " ".join(call(*FAST, "--replications", "1").out.split())
        assert "one replication gives no interval" in words or "equally well" in words

    def test_discard_says_why_there_is_no_gap(self, call: Any) -> None:
        assert "The bound is for waiting" in call(*FAST, "--pending", "discard").out

    def test_cap_that_binds(self, call: Any) -> None:
        answer = call(*FAST, "--most-labels", "2", "--json")
        assert answer.code == 0
        assert "gave 2 labels to one task, the most allowed here; raise --most-labels." in answer.err
        assert any(row["cap_binds"] for row in answer.json["policies"])
        assert "warning" not in call(*FAST, "--json").err

    def test_help(self, call: Any) -> None:
        words = call("simulate", "--help").out
        for flag in ("--policy", "--replications", "--seed", "--jobs", "--engine", "--scheduler", "--pending"):
            assert flag in words
        for flag in ("--prices", "--most-labels", "--out", "--json", "--tasks", "--problem"):
            assert flag in words


class TestOut:
    def test_files(self, call: Any, tmp_path: Path) -> None:
        folder = tmp_path / "new" / "folder"
        command = [*FAST, "--seed", "3", "--out", str(folder), "--json"]
        printed = call(*command).json
        assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "policies.csv", "policies.png"]
        assert sorted(path.name for path in folder.parent.iterdir()) == ["folder"]
        with (folder / "policies.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row, policy in zip(rows, printed["policies"], strict=True):
            assert row["name"] == policy["name"]
            assert float(row["mean_per_task"]) == policy["mean_per_task"]
            assert float(row["bound_per_task"]) == printed["bound_per_task"]
        assert float(rows[1]["difference_to_first"]) == printed["differences"][0]["mean_per_task"]
        assert (folder / "policies.png").read_bytes().startswith(PNG)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["command"].startswith("nextlabel simulate --tasks 3 --budget 4")
        assert (manifest["seed"], manifest["replications"], manifest["policies"]) == (3, 20, ["okg", "uniform"])
        assert {"nextlabel", "numpy", "scipy", "numba", "joblib", "matplotlib"} <= set(manifest["versions"])
        assert manifest["started"].endswith("+00:00")
        assert manifest["seconds"] > 0
        assert (manifest["problem"]["budget"], "horizon" in manifest["problem"]) == (4, False)

    def test_again_into_the_same_folder(self, call: Any, tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("kept", encoding="utf-8")
        for seed in ("1", "2"):
            assert call(*FAST, "--seed", seed, "--out", str(tmp_path)).code == 0
        assert json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))["seed"] == 2
        assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "kept"
        assert len(list(tmp_path.iterdir())) == 4

    def test_nothing_is_half_written(self, call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import nextlabel.reporting.artifacts as artifacts

        def fail(*arguments: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(artifacts, "save_png", fail)
        answer = call(*FAST, "--out", str(tmp_path / "out"))
        assert (answer.code, answer.out) == (2, "")
        assert "No space left on device" in answer.err
        assert list(tmp_path.iterdir()) == []


BAD = [
    (["--policy", "best"], ["policy 'best' is not known", *sorted(POLICIES)]),
    (["--policy", "okg"], ["policy 'okg' is given twice"]),
    (["--replications", "0"], ["--replications is 0", "less than 1"]),
    (["--replications", "many"], ["--replications is 'many'", "whole number"]),
    (["--replications", "2.5"], ["--replications is '2.5'", "whole number"]),
    (["--replications", "99999999999"], ["replications is too large"]),
    (["--seed", "-1"], ["--seed is -1", "less than 0"]),
    (["--seed", "x"], ["--seed is 'x'", "whole number"]),
    (["--jobs", "0"], ["--jobs is 0", "less than 1"]),
    (["--jobs", "all"], ["--jobs is 'all'", "whole number"]),
    (["--engine", "spark"], ["'spark'", "'local', 'dask'"]),
    (["--engine", "dask"], ["needs a scheduler", "--scheduler"]),
    (["--scheduler", "tcp://127.0.0.1:1"], ["--scheduler only has an effect with --engine dask"]),
    (["--engine", "dask", "--scheduler", "nonsense"], ["no Dask scheduler answers at nonsense"]),
    (["--pending", "drop"], ["'drop'", "'wait', 'discard'"]),
    (["--pending"], ["--pending", "requires an argument"]),
    (["--prices", "free"], ["'free'", "'scalar', 'per-arrival'"]),
    (["--most-labels", "0"], ["--most-labels is 0", "less than 1"]),
    (["--budget", "0"], ["budget is 0", "--budget 1"]),
    (["--budget", "-1"], ["budget is -1"]),
    (["--tasks", "0"], ["number of tasks is 0"]),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input(call: Any, tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    answer = call(*FAST, "--out", str(tmp_path / "out"), *arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    for word in words:
        assert word in answer.err
    assert list(tmp_path.iterdir()) == []


def test_out_that_is_a_file(call: Any, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine", encoding="utf-8")
    for target in (path, path / "below"):
        answer = call(*FAST, "--out", str(target))
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.count("\n") == 1
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_unreachable_scheduler(call: Any) -> None:
    """Waits for the five seconds that a scheduler is given to answer."""
    answer = call(*FAST, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: no Dask scheduler answers at tcp://127.0.0.1:1.")
    assert answer.err.count("\n") == 1


def test_half_width_shrinks(call: Any) -> None:
    few, many = (call(*FAST, "--json", "--replications", n).json["policies"][0]["half_width"] for n in ("400", "6400"))
    assert many * 4 == pytest.approx(few, rel=0.2)
    assert math.isfinite(many)
