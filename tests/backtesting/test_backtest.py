"""Backtests: exact against direct counting, the replay's own digits, savings, read-outs, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from labelled_crowds import padded
from nextlabel.backtesting.backtest import BacktestOptions, backtest
from nextlabel.backtesting.pilot import hold_out
from nextlabel.backtesting.readout import COUNTING, decisions, everything, right_by, scores_of, winners
from nextlabel.backtesting.report import (
    assumptions,
    backtest_report,
    headline,
    point_rows,
    sentences,
    verdicts,
)
from nextlabel.backtesting.result import Backtest
from nextlabel.cli.app import run
from nextlabel.errors import InputError
from nextlabel.model.beta import Beta
from nextlabel.simulation.replay import CrowdRecord, ReplaySetup, credits, labels_at, replay_overlaps
from studies.fig2 import replay
from studies.study import find_set


@pytest.fixture(scope="module")
def rte(data: Path) -> CrowdRecord:
    return find_set(data, "rte")


@pytest.fixture(scope="module")
def on_rte(rte: CrowdRecord) -> Backtest:
    counting = ["index", "okg", "okg-pending", "ucb1-tuned", "uncertainty", "uniform"]
    return backtest(rte, policies=counting, replications=12)


def crowd(tasks: int = 60, most: int = 7, seed: int = 1, *, uneven: bool = False) -> CrowdRecord:
    rng = np.random.default_rng(seed)
    theta = rng.beta(2.0, 1.5, tasks)
    labels = (rng.random((tasks, most)) < theta[:, None]).astype(np.int64)
    counts = rng.integers(2, most + 1, tasks) if uneven else np.full(tasks, most)
    labels[np.arange(most)[None, :] >= counts[:, None]] = -1
    return padded(tuple(f"t{x}" for x in range(tasks)), labels, (theta > 0.5).astype(np.int64))


def write(path: Path, recorded: CrowdRecord, *, more: str = "") -> Path:
    rows = [
        f"{name},w{j},{recorded.said[i, j]}"
        for i, name in enumerate(recorded.tasks)
        for j in range(int(recorded.counts[i]))
    ]
    path.write_text("task,worker,label\n" + "\n".join(rows) + "\n" + more, encoding="utf-8")
    return path


def write_gold(path: Path, recorded: CrowdRecord) -> Path:
    rows = [f"{name},{recorded.gold[i]}" for i, name in enumerate(recorded.tasks)]
    path.write_text("task,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


# --- exactness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["file", "reversed"])
def test_overlap_is_what_counting_by_hand_gives(order: str) -> None:
    recorded = crowd(uneven=True)
    found = backtest(
        recorded, policies=["uniform"], prior=Beta(1, 1), replications=2, options=BacktestOptions(order=order)
    )
    for one in found.overlaps:
        right, used = 0.0, 0
        for i in range(len(recorded.gold)):
            m = int(recorded.counts[i])
            own = recorded.said[i, :m][:: 1 if order == "file" else -1][: one.budget]
            used += len(own)
            ones, zeros = int(own.sum()), int((1 - own).sum())
            right += 0.5 if ones == zeros else float((ones > zeros) == recorded.gold[i])
        # with Beta(1, 1) and 1/2 the posterior is the vote count
        assert one.accuracy.mean == pytest.approx(right / len(recorded.gold), abs=1e-12)
        assert one.labels_used == used


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("ties", ["half", "positive"])
def test_curves_are_those_of_the_replay(uneven: bool, ties: str) -> None:
    recorded = crowd(uneven=uneven)
    budgets, names = [70, 150, 200], ["okg", "ucb1-tuned", "uncertainty", "uniform"]
    rates = {"arrival_rate": 2.0, "completion_rate": 1.0}
    found = backtest(
        recorded,
        policies=names,
        budgets=budgets,
        prior=Beta(2, 1.5),
        threshold=0.55,
        replications=6,
        options=BacktestOptions(ties=ties, **rates),
    )
    setup = ReplaySetup(recorded, prior=Beta(2, 1.5), threshold=0.55, **rates)
    other = replay(setup, names, budget=budgets, ties=ties, replications=6)
    for one in other:
        point = found.find("posterior", one.name, one.budget)
        assert point is not None
        assert point.accuracy.mean == pytest.approx(one.accuracy.mean, abs=1e-12)
        assert point.labels_used == one.labels_used


def test_uniform_with_k_labels_a_task_is_overlap_k() -> None:
    found = backtest(crowd(), policies=["uniform"], labels_per_task=[3, 5], prior=Beta(2, 1), replications=10)
    for readout in ("posterior", "majority"):
        for k in (3, 5):
            point = found.find(readout, "uniform", k * found.tasks)
            fixed = next(one for one in found.overlaps if (one.readout, one.budget) == (readout, k))
            assert point is not None
            assert point.accuracy.mean == pytest.approx(fixed.accuracy.mean, abs=1e-12)


def test_all_labels_are_the_ceiling() -> None:
    recorded = crowd(uneven=True)
    total = int(recorded.counts.sum())
    found = backtest(recorded, policies=["index", "okg"], budgets=[total], prior=Beta(2, 1.5), replications=3)
    for name in ("index", "okg"):
        for readout, ceiling in found.ceilings.items():
            point = found.find(readout, name, total)
            assert point is not None
            assert point.accuracy.mean == pytest.approx(ceiling, abs=1e-12)


def test_ties_and_read_outs() -> None:
    majority = decisions("majority", Beta(5, 1), 0.5, 2)
    assert majority.tolist() == [-1, 0, 1, 0, -1, 1]
    assert decisions("posterior", Beta(5, 1), 0.5, 2).tolist()[4] == 1
    assert credits(np.array([-1]), "half").tolist() == [[0.5, 0.5]]
    assert credits(np.array([-1]), "positive").tolist() == [[0.0, 1.0]]
    assert credits(np.array([-1, 1]), "negative").tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_drawn_labels_are_those_that_were_counted() -> None:
    recorded = crowd(uneven=True)
    found = backtest(recorded, policies=["uniform"], prior=Beta(1, 1), replications=2)
    nodes = (found.setting.depth + 1) * (found.setting.depth + 2) // 2
    here = np.eye(nodes)[:, :, None].repeat(2, axis=2)  # a table for each end: 1 there, whatever the truth
    played = replay_overlaps(found.setting, [1, 3], 2, here, keep=2)
    for rep in range(2):
        order = found.setting.drawn(rep)
        for b, k in enumerate((1, 3)):
            taken = labels_at(played.ends[rep, b])
            assert (taken == np.minimum(recorded.counts, k)).all()
            ones = [recorded.said[i, order[i, : taken[i]]].sum() for i in range(len(recorded.gold))]
            ends = np.bincount(taken * (taken + 1) // 2 + np.array(ones), minlength=nodes)
            assert played.worth[rep, b] == pytest.approx(ends / len(recorded.gold))


# --- the RTE set ----------------------------------------------------------------------------------


def test_rte_numbers(on_rte: Backtest) -> None:
    assert on_rte.tasks == 750
    # the pilot's best cut is 0.55, but fifty tasks do not clearly say so
    assert (on_rte.setting.threshold, on_rte.pilot.best_cut) == (0.5, pytest.approx(0.55))
    assert isinstance(on_rte.setting.prior, Beta)
    assert (on_rte.setting.prior.alpha, on_rte.setting.prior.beta) == pytest.approx((1.7838, 1.4595), abs=1e-3)
    some = [one.saved for one in on_rte.savings if (one.policy, one.overlap) == ("okg", 5)]
    assert len(some) == len(on_rte.readouts) ** 2
    assert all(saved is not None and 0.0 < saved < 0.5 for saved in some)
    assert on_rte.ceilings["majority"] == pytest.approx(0.896, abs=0.003)


def test_the_threshold_of_the_paper_is_still_there_for_those_who_ask(rte: CrowdRecord) -> None:
    found = backtest(rte, policies=["index"], threshold=0.55, labels_per_task=[5], replications=12)
    # docs/results.md, another program over the same draws
    point = found.find("posterior", "index", 5 * 750)
    assert point is not None
    assert point.accuracy.mean == pytest.approx(0.900, abs=0.004)


def test_rte_words(on_rte: Backtest) -> None:
    said = sentences(on_rte)
    assert said[0].startswith(
        "Read out by posterior: index has the accuracy of 5 labels for every task by majority (0.8"
    )
    assert "fewer labels" in said[0] and "read out the same way" in said[0]
    assert [one["readout"] for one in verdicts(on_rte)] == ["posterior", "majority"]
    assert [one.overlap for one in headline(on_rte)] == [5, 7]
    rests = " ".join(assumptions(on_rte))
    assert "random order" in rests and "ties count half" in rests and "does not clearly say otherwise" in rests
    assert "which tasks these happened to be" in rests
    assert sum(row["asked"] for row in point_rows(on_rte)) == 2 * (6 * 4 + 4 + 1)
    assert {one.overlap for one in on_rte.savings} == {3, 5, 7}
    page = backtest_report(on_rte, [{"sentences": ["x.csv: 1 row read."]}]).page("nextlabel backtest x.csv")
    assert page.count("<img") == 3 and 'src="http' not in page and "nextlabel backtest x.csv" in page


def test_nobody_is_told_to_try_what_they_gave(rte: CrowdRecord) -> None:
    for threshold in (0.5, 0.9):
        found = backtest(rte, policies=["uniform"], threshold=threshold, labels_per_task=[3], replications=3)
        assert "try --threshold" not in " ".join(sentences(found)).lower()


def test_a_simpler_rule_that_is_ahead_is_named_with_a_reason(rte: CrowdRecord) -> None:
    found = backtest(rte, policies=["index", "overlap"], threshold=0.45, labels_per_task=[3, 5], replications=20)
    said = " ".join(sentences(found))
    assert "overlap is ahead of index: at 3 labels per task by" in said
    assert "What may explain it" in said and "threshold 0.45 is not this crowd's" in said


@pytest.mark.slow
def test_with_many_labels_in_flight_the_index_is_ahead_of_plain_okg(rte: CrowdRecord) -> None:
    many = BacktestOptions(arrival_rate=25.0, completion_rate=1.0)
    found = backtest(rte, policies=["index", "okg"], replications=40, options=many)
    for each in (3, 4, 5, 6):
        okg = found.find("posterior", "okg", each * 750)
        assert okg is not None and okg.minus_index is not None
        assert okg.minus_index.mean + okg.minus_index.half_width < 0


# --- without gold, without room -------------------------------------------------------------------


def test_without_gold_all_labels_together_are_the_truth() -> None:
    recorded = crowd(tasks=80, most=6)
    blind = padded(recorded.tasks, recorded.said, np.full(80, -1))
    found = backtest(blind, policies=["okg"], prior=Beta(1, 1), replications=5)
    tied = int(((recorded.said == 1).sum(axis=1) * 2 == 6).sum())
    assert (found.truth, found.undecided, found.known) == ("consensus", tied, 80 - tied)
    assert found.ceilings["posterior"] == 1.0
    assert "flatters every rule" in " ".join(sentences(found))
    assert found.setting.threshold == 0.5


def test_three_labels_a_task_leave_no_room() -> None:
    found = backtest(crowd(most=3), policies=["index"], prior=Beta(2, 1.5), replications=3)
    assert any(one.startswith("No room: all tasks have 3 labels or fewer") for one in sentences(found))
    assert {one.budget for one in found.points if one.asked} == {120, 180}


def test_the_pilot_is_not_replayed_and_gold_may_be_partial() -> None:
    recorded = crowd(tasks=100)
    some = padded(recorded.tasks, recorded.said, np.where(np.arange(100) < 60, recorded.gold, -1))
    found = backtest(some, policies=["okg"], replications=3, options=BacktestOptions(pilot=20))
    assert (found.tasks, found.known, found.pilot.size) == (80, 40, 20)


# --- Dawid-Skene ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_dawid_skene_reads_the_labels_that_were_collected() -> None:
    plain = crowd(tasks=40)
    recorded = padded(plain.tasks, plain.said, plain.gold, np.tile(np.arange(7), (40, 1)))
    both = BacktestOptions(readouts=["posterior", "dawid-skene"])
    found = backtest(
        recorded, policies=["okg"], labels_per_task=[3, 7], prior=Beta(2, 1.5), replications=3, options=both
    )
    end = found.find("dawid-skene", "okg", 7 * 40)
    assert end is not None
    assert end.accuracy.mean == pytest.approx(found.ceilings["dawid-skene"])
    assert found.find("dawid-skene", "okg", 3 * 40) is not None


def test_without_crowdkit_the_read_out_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "crowdkit.aggregation", None)
    with pytest.raises(InputError, match=r"nextlabel\[crowdkit\]"):
        backtest(crowd(), prior=Beta(1, 1), options=BacktestOptions(readouts=["dawid-skene"]))


# --- the command ----------------------------------------------------------------------------------


def test_command_writes_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = crowd(tasks=90)
    more = "t0,w0,1\nt0,w0,0\n"  # the same worker again
    labels = write(tmp_path / "labels.csv", recorded, more=more)
    gold = write_gold(tmp_path / "gold.csv", recorded)
    options = ["--policy", "index", "--policy", "uniform", "--replications", "3", "--pilot-tasks", "30"]
    written = ["--out", str(tmp_path / "out"), "--report", str(tmp_path / "page.html")]
    assert run(["backtest", str(labels), "--gold", str(gold), *options, *written, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["tasks"], answer["pilot"], answer["order"], answer["ties"]) == (60, 30, "random", "half")
    assert any("2 labels by a worker who had labelled the task before" in one for one in answer["read"][0]["sentences"])
    assert {row["policy"] for row in answer["accuracy"]} >= {"index", "uniform", "overlap 5", "all labels"}
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["backtest.csv", "backtest.png", "savings.csv"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "had labelled the task before" in page and "nextlabel backtest" in page
    assert run(["backtest", str(labels), *options, "--order", "file", "--tied-answer", "negative"]) == 0
    shown = capsys.readouterr().out
    assert "in the order of the file; ties are decided as 0" in shown and "flatters every rule" in shown


def test_the_same_seed_gives_the_same_digits_whatever_the_jobs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    labels = write(tmp_path / "labels.csv", crowd(tasks=40))
    found = []
    for jobs in ("1", "2"):
        options = ["--prior", "2,1", "--policy", "okg", "--replications", "9", "--jobs", jobs, "--json"]
        assert run(["backtest", str(labels), *options]) == 0
        answer = json.loads(capsys.readouterr().out)
        found.append((answer["accuracy"], answer["savings"]))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pilot-tasks", "60"], "60 tasks are to be held out"),
        (["--pilot-tasks", "1"], "--pilot-tasks is 1, which is less than 2"),
        (["--policy", "nobody"], "policy 'nobody' is not known"),
        (["--policy", "okg", "--policy", "okg"], "policy 'okg' is given twice"),
        (["--policy", "resolve"], "resolve cannot be replayed"),
        (["--labels-per-task", "9"], "(9 per task) is asked for"),
        (["--labels-per-task", "three"], "--labels-per-task is 'three'"),
        (["--labels-per-task", "3", "--budget", "100"], "both set the budgets"),
        (["--budget", "0"], "--budget is 0"),
        (["--rho", "-1"], "labels in flight is -1"),
        (["--rho", "2", "--arrival-rate", "1"], "ratio of the two rates"),
        (["--arrival-rate", "1"], "one rate without the other"),
        (["--readout", "guess"], "read-out 'guess' is not known"),
        (["--prior", "1,2,3"], "has 3 numbers"),
        (["--threshold", "1.5"], "threshold 1.5 is outside (0, 1)"),
        (["--replications", "1"], "less than 2"),
        (["--label-column", "answer"], "no column 'answer'"),
        (["--gold", "nowhere.csv"], "there is no file nowhere.csv"),
        (["--report", "/no/such/folder/x.html"], "does not exist"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = write(tmp_path / "labels.csv", crowd(tasks=55))
    assert run(["backtest", str(labels), *options]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.splitlines()[-1].startswith("error: ") and error.count("error: ") == 1


@pytest.mark.long
def test_a_million_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = crowd(tasks=100_000, most=10)
    labels = write(tmp_path / "labels.csv", recorded)
    gold = write_gold(tmp_path / "gold.csv", recorded)
    rules = [word for name in ("index", "okg", "uniform") for word in ("--policy", name)]
    options = [*rules, "--labels-per-task", "5", "--replications", "2", "--json"]
    assert run(["backtest", str(labels), "--gold", str(gold), *options]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == 99_950


def test_accuracy_with_all_labels() -> None:
    recorded = crowd(uneven=True)
    votes, posterior = (scores_of(name, ReplaySetup(recorded), *everything(recorded)) for name in COUNTING)
    said = winners(votes)
    assert (said == winners(posterior)).all()
    by_hand = np.where(said < 0, 0.5, said == recorded.gold).mean()
    assert right_by(votes, recorded.gold, "half").mean() == pytest.approx(by_hand)


def test_a_policy_that_is_solved_for_each_budget_is_paired_with_the_index() -> None:
    found = backtest(
        crowd(tasks=20), policies=["index", "lagrangian"], labels_per_task=[2, 3], prior=Beta(2, 1.5), replications=3
    )
    mine = [one for one in found.points if one.policy == "lagrangian"]
    assert {one.budget for one in mine} == {40, 60}
    assert all(one.minus_index is not None for one in mine)


def test_one_task_is_not_many() -> None:
    labels = np.array([[1, 0, 1], [0, 0, 1]])
    recorded = padded(("a", "b"), labels, np.array([1, -1]))
    with pytest.raises(InputError, match=r"^2 tasks are to be held out for the prior, and 1 task with gold is there\."):
        hold_out(recorded, 2, None, None, "moments", 0)
