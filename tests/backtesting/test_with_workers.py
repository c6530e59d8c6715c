"""Backtests of labels whose givers are known: the default, read-outs by workers, replays, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nextlabel.backtesting.backtest import BacktestOptions, backtest, default_replications
from nextlabel.backtesting.readout import collected_labels, everything, right_by
from nextlabel.backtesting.report import assumptions, backtest_report, sentences, verdicts
from nextlabel.backtesting.result import Backtest
from nextlabel.cli.app import run
from nextlabel.errors import InputError
from nextlabel.files.labels import read_gold, read_labels
from nextlabel.simulation.crowd_replay import votes_of
from nextlabel.simulation.replay import to_recorded

Rows = list[tuple[str, str, str]]


def draw_rows(tasks: int = 60, workers: int = 12, each: int = 7, answers: int = 2, seed: int = 1) -> tuple[Rows, Rows]:
    """Labels of workers who differ, and gold."""
    rng = np.random.default_rng(seed)
    skill = np.linspace(0.45, 0.95, workers)
    truth = rng.integers(0, answers, tasks)
    labels = []
    for x in range(tasks):
        for j in rng.permutation(workers)[:each]:
            wrong = (truth[x] + rng.integers(1, answers)) % answers if answers > 2 else 1 - truth[x]
            labels.append((f"t{x}", f"w{j}", str(truth[x] if rng.random() < skill[j] else wrong)))
    return labels, [(f"t{x}", "", str(truth[x])) for x in range(tasks)]


def write(folder: Path, labels: Rows, gold: Rows) -> tuple[Path, Path]:
    one, two = folder / "labels.csv", folder / "gold.csv"
    one.write_text("task,worker,label\n" + "\n".join(",".join(row) for row in labels) + "\n", encoding="utf-8")
    two.write_text("task,label\n" + "\n".join(f"{t},{y}" for t, _, y in gold) + "\n", encoding="utf-8")
    return one, two


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write(tmp_path_factory.mktemp("crowd"), *draw_rows())


@pytest.fixture(scope="module")
def found(files: tuple[Path, Path]) -> Backtest:
    return backtest(*files, labels_per_task=[2, 4], replications=2)


# --- the default ----------------------------------------------------------------------------------


def test_with_workers_crowd_is_the_default_and_nothing_is_held_out(found: Backtest) -> None:
    assert found.policies == ("crowd", "crowd-uncertainty", "index")
    assert found.readouts == ("workers", "majority")
    assert (found.tasks, found.known, found.pilot.size, found.workers) == (60, 60, 0, 12)
    for name in found.policies:
        for readout in found.readouts:
            for U in (120, 240):
                point = found.find(readout, name, U)
                assert point is not None
                assert 0.5 <= point.accuracy.mean <= 1.0 and point.labels_used == U
    assert {one.budget for one in found.overlaps} == {1, 3, 5, 7}


def test_savings_are_against_majority_and_against_the_same_read_out(found: Backtest) -> None:
    pairs = {(one.readout, one.overlap_readout) for one in found.savings if one.policy == "crowd"}
    assert pairs == {(a, b) for a in found.readouts for b in found.readouts}
    assert {one.overlap for one in found.savings} == {3, 5, 7}
    said = verdicts(found)
    assert [one["readout"] for one in said] == ["workers", "majority"]
    assert all(one["sentence"].startswith(f"Read out by {one['readout']}: crowd ") for one in said)
    assert "read out the same way" in said[0]["sentence"] and "read out the same way" not in said[1]["sentence"]


def test_what_it_rests_on_is_said(found: Backtest) -> None:
    rests = " ".join(assumptions(found))
    assert "from the labels that a rule collected and nothing else; gold only judges" in rests
    assert "cover the order of the labels and which tasks these happened to be" in rests
    assert "from all labels, which favours the rules that use it" in rests
    page = backtest_report(found).page("nextlabel backtest x.csv")
    assert page.count("<img") == 3 and "against a fixed overlap read out by majority" in page


def test_gold_only_judges(files: tuple[Path, Path]) -> None:
    table = read_labels(files[0])
    gold = read_gold(files[1], table)
    some = np.where(np.arange(60) < 30, gold.label, -1)
    points = []
    for truth in (gold.label, some):
        recorded = to_recorded(table, any_answers=True)
        judged = replace(recorded, gold=truth)
        one = backtest(judged, policies=["crowd-uncertainty"], labels_per_task=[3], replications=2)
        points.append(one.find("workers", "crowd-uncertainty", 180))
    # the same labels are bought, the same beliefs held, and fewer tasks judged
    assert points[0] is not None and points[1] is not None
    assert points[0].believed == points[1].believed


def test_without_gold_all_labels_together_are_the_truth(files: tuple[Path, Path]) -> None:
    blind = backtest(files[0], policies=["crowd-uncertainty"], labels_per_task=[7], replications=2)
    assert blind.truth == "consensus"
    assert blind.ceilings["workers"] == 1.0
    assert "read out by workers" in sentences(blind)[-1] and "flatters every rule" in sentences(blind)[-1]


def test_all_labels_are_the_ceiling_whoever_chooses(files: tuple[Path, Path]) -> None:
    every = backtest(*files, policies=["crowd-uncertainty", "uniform"], labels_per_task=[7], replications=2)
    for name in every.policies:
        for readout, ceiling in every.ceilings.items():
            point = every.find(readout, name, 420)
            assert point is not None
            assert point.accuracy.mean == pytest.approx(ceiling, abs=1e-9)


def test_votes_and_ties_of_more_than_two_answers() -> None:
    labels, gold = draw_rows(tasks=5, each=4, answers=3)
    table = read_labels(
        {"task": [r[0] for r in labels], "worker": [r[1] for r in labels], "label": [r[2] for r in labels]}
    )
    truth = read_gold({"task": [r[0] for r in gold], "label": [r[2] for r in gold]}, table)
    recorded = to_recorded(table, truth, any_answers=True)
    drawn, taken = everything(recorded)
    votes = votes_of(collected_labels(recorded, drawn, taken))
    assert votes.sum(axis=1).tolist() == [4.0] * 5
    credit = right_by(votes, recorded.gold, "half")
    for x in range(5):
        best = np.flatnonzero(votes[x] == votes[x].max())
        assert credit[x] == (1.0 / len(best) if recorded.gold[x] in best else 0.0)
    assert collected_labels(recorded, drawn, np.minimum(taken, 2)).task.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.slow
def test_three_answers_go_through_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, gold = write(tmp_path, *draw_rows(tasks=40, each=6, answers=3))
    words = ["--gold", str(gold), "--labels-per-task", "3", "--replications", "2", "--json"]
    assert run(["backtest", str(labels), *words]) == 0
    answer = json.loads(capsys.readouterr().out)
    names = {row["policy"] for row in answer["accuracy"]}
    assert names >= {"crowd", "crowd-uncertainty", "uniform", "overlap 3", "all labels"}
    assert {row["readout"] for row in answer["accuracy"]} == {"workers", "majority"}
    assert [row["readout"] for row in answer["verdicts"]] == ["workers", "majority"]
    assert run(["backtest", str(labels), "--policy", "uniform", "--policy", "random", *words]) == 0
    plain = json.loads(capsys.readouterr().out)["accuracy"]
    assert {row["policy"] for row in plain} >= {"uniform", "random", "overlap 3", "all labels"}
    assert all(row["accuracy"] > 0.5 for row in plain)
    bare = tmp_path / "bare.csv"
    bare.write_text("\n".join(",".join(line.split(",")[::2]) for line in labels.read_text().splitlines()))
    assert run(["backtest", str(bare), "--policy", "uniform", *words]) == 0
    assert {row["readout"] for row in json.loads(capsys.readouterr().out)["accuracy"]} == {"majority"}
    assert run(["backtest", str(labels), "--policy", "index"]) == 2
    assert "the labels have 3 answers, and index knows two" in capsys.readouterr().err


@pytest.mark.slow
def test_worker_first_and_turning_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path, *draw_rows(tasks=20))
    words = ["--gold", str(files[1]), "--labels-per-task", "3", "--replications", "2", "--json"]
    assert run(["backtest", str(files[0]), *words, "--replay", "worker-first", "--turn-away"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["replay"], answer["turn_away"]) == ("worker-first", True)
    assert {row["policy"] for row in answer["accuracy"] if row["asked"]} >= {"crowd", "crowd-uncertainty"}
    assert any("Workers whose label is not worth its price may be turned away" in one for one in answer["assumptions"])


# --- with features --------------------------------------------------------------------------------


def test_features_teach_policies_and_read_outs_that_learn_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, gold = draw_rows(tasks=100, each=3)
    files = write(tmp_path, labels, gold)
    noise = np.random.default_rng(5).normal(size=(100, 3))
    telling = noise + 2.0 * np.array([int(row[2]) for row in gold])[:, None]
    words = ["--gold", str(files[1]), "--labels-per-task", "1.5", "--replications", "2", "--json"]
    words += ["--policy", "crowd-uncertainty", "--policy", "uniform"]
    by_score = ["--policy", "activelab"]
    found = {}
    for name, numbers in (("none", None), ("noise", noise), ("telling", telling)):
        more = []
        if numbers is not None:
            path = tmp_path / f"{name}.csv"
            rows = (f"t{x}," + ",".join(f"{cell:.4f}" for cell in row) for x, row in enumerate(numbers))
            path.write_text("task,a,b,c\n" + "\n".join(rows), encoding="utf-8")
            more = [
                "--features",
                str(path),
                *(w for r in ("workers", "crowdlab", "majority") for w in ("--readout", r)),
                *by_score,
            ]
        assert run(["backtest", str(files[0]), *words, *more]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["features"] == (str(path) if more else None)
        assert any("Learnt from features too" in one for one in answer["assumptions"]) == bool(more)
        found[name] = {
            (row["policy"], row["readout"], row["budget"]): row["accuracy"]
            for row in answer["accuracy"]
            if row["asked"]
        }
    for key, accuracy in found["none"].items():
        assert found["noise"][key] == accuracy
        if key[1] == "majority" and key[0] != "crowd-uncertainty":
            assert found["telling"][key] == accuracy
    for name in ("crowd-uncertainty", "uniform"):
        assert found["telling"][name, "workers", 150] > found["none"][name, "workers", 150] + 0.05
        assert found["telling"][name, "crowdlab", 150] > found["noise"][name, "crowdlab", 150] + 0.05
    assert found["telling"]["activelab", "workers", 150] > found["noise"]["activelab", "workers", 150] + 0.05


# --- few workers, none, and what is refused -------------------------------------------------------


def test_one_worker_works_and_says_what_cannot_be_learnt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(f"t{x}", "ann", str(x % 2)) for x in range(20)]
    labels, gold = write(tmp_path, rows, [(f"t{x}", "", str(x % 2)) for x in range(20)])
    assert run(["backtest", str(labels), "--gold", str(gold), "--replications", "2"]) == 0
    assert "All labels are from one worker: how good that worker is cannot be learnt" in capsys.readouterr().out


def test_without_workers_it_is_said_what_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "\n".join(f"t{x},{(x + k) % 3 % 2}" for x in range(60) for k in range(5))
    path = tmp_path / "labels.csv"
    path.write_text(f"task,label\n{rows}\n", encoding="utf-8")
    assert run(["backtest", str(path), "--policy", "uniform", "--replications", "2"]) == 0
    assert "There is no column of workers, so all of them are taken to be alike" in capsys.readouterr().out
    for words in (["--policy", "crowd"], ["--readout", "workers"], ["--policy", "index", "--readout", "workers"]):
        assert run(["backtest", str(path), *words]) == 2
        assert "needs to know who gave each label, and the labels do not say" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--turn-away"], "nobody can be turned away when tasks are named first"),
        (["--replay", "timed"], "the labels have no times at which they were begun and handed in."),
        (["--replay", "worker-first", "--policy", "index"], "--replay worker-first is for policies that learn workers"),
        (["--replay", "worker-first", "--policy", "crowd", "--policy", "index"], "index does not look at who is there"),
        (["--policy", "crowd", "--rho", "5"], "crowd is not replayed with labels in flight at a given rate"),
        (["--policy", "crowd", "--order", "file"], "crowd is not replayed with the order 'file'"),
        (["--policy", "crowd", "--tied-answer", "negative"], "crowd is not replayed with ties decided as 'negative'"),
        (["--policy", "crowd", "--readout", "posterior"], "crowd has no read-out by posterior"),
        (["--policy", "activelab"], "the policy activelab learns from features of the tasks"),
        (["--features", "ITEMS", "--policy", "activelab", "--replay", "worker-first"], "is not replayed worker-first"),
        (["--readout", "crowdlab"], "the read-out crowdlab learns from features of the tasks"),
        (["--features", "ITEMS", "--policy", "index", "--readout", "majority"], "features are learnt from by crowd"),
        (["--features", "ITEMS", "--replay", "timed"], "--replay timed does not learn from features"),
        (["--features", "ITEMS"], "items.csv has no item that has labels"),
        (["--worker-column", "annotator_name"], "no column 'annotator_name'"),
        (["--gold", "GOLD"], "has no gold for any task that has labels"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], said: str, files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("task,label\nunknown,1\n", encoding="utf-8")
    items = tmp_path / "items.csv"
    items.write_text("task,size\nunknown,1\n", encoding="utf-8")
    given = [{"GOLD": str(other), "ITEMS": str(items)}.get(word, word) for word in words]
    assert run(["backtest", str(files[0]), *given, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.splitlines()[-1].startswith("error: ") and error.count("error: ") == 1
    assert not (tmp_path / "out").exists()


def test_labels_that_all_say_the_same_are_refused() -> None:
    same = {"task": ["a", "a", "b"], "worker": ["x", "y", "x"], "label": [1, 1, 1]}
    with pytest.raises(InputError, match="every label is the same answer"):
        backtest(same)


def test_replications_by_default() -> None:
    assert [default_replications(n) for n in (100, 8_000, 50_000, 1_000_000)] == [10, 10, 4, 4]
    with pytest.raises(InputError, match="replay 'backwards' is not known"):
        BacktestOptions(replay="backwards")


# --- the real set ---------------------------------------------------------------------------------


@pytest.mark.long
def test_temp_needs_half_the_labels_of_overlap_five(data: Path) -> None:
    found = backtest(
        data / "temp" / "labels.csv", data / "temp" / "gold.csv", policies=["crowd"], labels_per_task=[2, 2.5, 3],
        replications=3,
    )  # fmt: skip
    mine = [
        one for one in found.savings if (one.readout, one.overlap, one.overlap_readout) == ("workers", 5, "majority")
    ]
    assert len(mine) == 1 and mine[0].saved is not None
    assert mine[0].saved >= 0.5
