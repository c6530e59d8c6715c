"""Plans keep their promises: against simulation of the plan, against the bound, and in the words they use."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelled_crowds import of_ones
from nextlabel.cli.app import run
from nextlabel.errors import InputError, ProblemError
from nextlabel.model.fact import OneCoin
from nextlabel.model.prior_learning import learn_prior
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy, SquaredError
from nextlabel.planning.pilot import budget_range
from nextlabel.planning.plan import plan as make_plan
from nextlabel.planning.plan import plan_bounds, with_ample_budget
from nextlabel.planning.report import curve_rows, overlap_rows, plan_report, right_means, sentences
from nextlabel.policies.rollout_arrays import patient_index
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.curve import bound_curve

#: A miss by more standard errors than this, over all problems, is a defect.
STANDARD_ERRORS = 4.0


def random_case(number: int) -> Problem:
    rng = np.random.default_rng([40, number])
    prior = tuple(np.exp(rng.uniform(-0.7, 1.5, 2)))
    rate = float(np.exp(rng.uniform(-3, 0.5)))
    horizon = float(rng.uniform(30, 200) / rate) if number % 4 == 3 else float("inf")
    return Problem.identical(int(rng.integers(10, 40)), 1, prior, arrival_rate=rate, horizon=horizon)


@pytest.mark.parametrize("number", range(20))
@pytest.mark.no_cover
def test_promised_accuracy_is_what_a_simulation_of_the_plan_gets(number: int) -> None:
    problem = random_case(number)
    plan = make_plan(problem, most=3 * problem.tasks, replications=400, policy="index")
    k = len(plan.budgets) * 2 // 3
    alone = problem.with_budget(int(plan.budgets[k]))
    policy = patient_index(problem.with_budget(3 * problem.tasks))
    patient = upper_bound(replace(alone, horizon=math.inf))  # saves the slow bound of a horizon, which is not needed
    result = simulate(alone, [policy], replications=400, seed=1, bound=patient).results[0]
    error = np.hypot(plan.half_width[k], result.per_task.half_width) / 1.96
    assert abs(plan.value[k] - result.per_task.mean) <= STANDARD_ERRORS * error + 1e-9
    assert np.all(plan.value <= plan.bound + 2.5 * plan.half_width + 1e-9)


def test_both_budgets_for_a_target() -> None:
    plan = make_plan(Problem.identical(500, 1, (2, 1)), target=0.85, replications=200)
    assert plan.needed is not None
    assert plan.needed_by_any is not None
    assert plan.needed_low is not None
    assert plan.needed_high is not None
    assert plan.needed_by_any <= plan.needed_low <= plan.needed <= plan.needed_high
    assert plan.needed <= 1.05 * plan.needed_by_any
    result = simulate(Problem.identical(500, plan.needed_high, (2, 1)), ["index"], replications=400, seed=3).results[0]
    assert result.per_task.mean + result.per_task.half_width >= 0.85


def test_a_target_out_of_reach_in_time_is_called_so() -> None:
    plan = make_plan(Problem.identical(100, 1, horizon=100.0), target=0.9, replications=20, policy="index")
    assert plan.needed is None
    assert plan.needed_by_any is None
    assert "If workers are alike, no policy reaches 0.9, however many labels it buys in that time." in sentences(plan)


def test_fixed_overlap_needs_more() -> None:
    plan = make_plan(Problem.identical(300, 1), most=2100, replications=60)
    for row in overlap_rows(plan):
        if row["overlap"] >= 3:
            assert row["saved_percent"] is not None
            assert 20 < row["saved_percent"] < 80


def test_money_says_where_to_stop() -> None:
    plan = make_plan(Problem.identical(300, 1), most=3000, label_cost=0.02, value=1.0, replications=60)
    money = plan.money
    assert money is not None
    assert 0.8 * money.best_budget < money.stopping_labels < 1.25 * money.best_budget
    assert money.stopping_net <= money.most_net + 2.5 * money.stopping_half_width
    k = int(np.searchsorted(plan.budgets, money.best_budget))
    assert money.best_net == pytest.approx(300 * plan.value[k] - 0.02 * money.best_budget)
    assert money.best_net <= money.most_net + STANDARD_ERRORS / 1.96 * 300 * plan.half_width[k]
    assert f"no policy with up to 3,000 labels nets more than {money.most_net:,.2f}." in " ".join(sentences(plan))
    dear = make_plan(Problem.identical(50, 1), most=300, label_cost=0.6, replications=20).money
    assert dear is not None
    assert dear.best_budget == 0
    assert dear.stopping_labels == 0


def test_money_pays_only_for_labels_that_are_used_before_the_deadline() -> None:
    problem = Problem.identical(30, 1, arrival_rate=0.1, horizon=200.0)  # some 20 workers come
    plan = make_plan(problem, most=80, label_cost=0.02, replications=60, policy="index")
    money = plan.money
    assert money is not None
    assert plan.labels_used[-1] < 30
    assert money.best_net == pytest.approx(float((30 * plan.value - 0.02 * plan.labels_used).max()))
    assert money.best_net > 30 * plan.value[-1] - 0.02 * 30


def test_a_score_that_is_no_probability_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("probability\n" + "\n".join(f"{0.1 + x / 70:.4f}" for x in range(70)) + "\n", encoding="utf-8")
    assert run(["plan", "--scores", str(scores), "--strength", "4"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("error: probability in row 66 of")
    assert "is '1.0143', not a number from 0 to 1." in said.err
    assert said.err.count("error: ") == 1


def test_what_the_next_labels_buy_is_not_told_past_the_end_of_the_curve() -> None:
    plan = make_plan(Problem.identical(60, 1), most=300, replications=20)
    for row in curve_rows(plan):
        if row["budget"] + 100 > 300:
            assert row["next_100_labels"] is None
        else:
            assert row["next_100_labels"] == pytest.approx(
                60 * (np.interp(row["budget"] + 100, plan.budgets, plan.value) - row["index"])
            )


def test_words_and_targets_follow_the_reward() -> None:
    problem = Problem.identical(40, 1, reward=SquaredError(), horizon=4000.0)
    plan = make_plan(problem, target=-0.03, label_cost=0.0001, replications=20, policy="index")
    said = " ".join(sentences(plan))
    assert "right" not in said
    assert "A value of -0.03 per task takes" in said
    assert "a task is worth -0.0" in said
    for target in (-0.2, 0.0, 0.5):
        with pytest.raises(InputError, match=r"and 0\."):
            make_plan(problem, target=target)
    tens = Problem.identical(40, 1, reward=Accuracy(10.0))
    assert make_plan(tens, target=8.5, replications=20).needed is not None
    assert not tens.is_accuracy
    with pytest.raises(InputError, match=r"between 5.*and 10\."):
        make_plan(tens, target=10.0)


def test_zero_is_not_the_same_as_nothing_given(capsys: pytest.CaptureFixture[str]) -> None:
    problem = Problem.identical(10, 1)
    with pytest.raises(ProblemError, match="budget is 0"):
        make_plan(problem, most=0)
    with pytest.raises(ProblemError, match="replications is 0"):
        make_plan(problem, replications=0)
    assert run(["plan", "--tasks", "10", "--budget", "0"]) == 2
    assert "budget is 0" in capsys.readouterr().err


def test_a_curve_is_not_extended_past_what_comes_before_the_deadline() -> None:
    # The bound just reaches the target with all 200 workers, the policy does not.
    problem = Problem.identical(100, 1, horizon=2000.0)
    reach = float(plan_bounds(with_ample_budget(problem)).value(np.array([285]))[0])
    plan = make_plan(problem, target=reach - 1e-5, replications=20, policy="index")
    assert plan.needed_by_any is not None
    assert plan.budgets[-1] <= 200 + 6 * 200**0.5 + 1


def test_price_is_the_slope_of_the_bound() -> None:
    for horizon in (math.inf, 500.0):
        curve = bound_curve(Problem.identical(40, 300, arrival_rate=0.2, horizon=horizon))
        budgets = np.array([10, 30, 60, 90, 100, 110, 120])
        slope = 40 * (curve.value(budgets + 1) - curve.value(budgets))
        assert np.all(slope <= curve.price(budgets) + 1e-9)
        assert np.all(curve.price(budgets) <= 40 * (curve.value(budgets) - curve.value(budgets - 1)) + 1e-9)


@pytest.mark.parametrize("target", [0.3, 0.5, 1.0, 1.5])
def test_targets_that_make_no_sense(target: float) -> None:
    with pytest.raises(InputError, match="target"):
        make_plan(Problem.identical(10, 1), target=target)


def test_the_page_is_whole_and_escapes() -> None:
    plan = make_plan(Problem.identical(40, 1), target=0.8, replications=20)
    page = plan_report(plan).page("nextlabel plan --tasks 40 <script>alert(1)</script>")
    assert page.startswith("<!doctype html>")
    assert "<script>" not in page
    assert "http" not in page
    assert "&lt;script&gt;" in page
    assert page.count("data:image/png;base64,") == 2


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, out = tmp_path / "plan.html", tmp_path / "out"
    words = ["plan", "--tasks", "60", "--prior", "2,1", "--target", "0.85", "--replications", "50", "--json"]
    assert run([*words, "--report", str(report), "--out", str(out)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["budget_needed"] >= answer["budget_needed_by_any"]
    assert answer["problem"]["budget"] == answer["curve"][-1]["budget"]
    assert len(answer["curve"]) > 20
    assert report.read_text(encoding="utf-8").count("<table>") == 2
    assert sorted(p.name for p in out.iterdir()) == ["plan.csv", "plan.png"]


def test_a_pilot_gives_the_prior_and_its_uncertainty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    theta = rng.beta(4, 2, size=150)
    labels = tmp_path / "labels.csv"
    rows = [f"t{x},w{j},{int(rng.random() < theta[x])}" for x in range(150) for j in range(6)]
    labels.write_text("task,worker,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    words = ["plan", "--pilot", str(labels), "--tasks", "40", "--target", "0.9", "--replications", "5", "--json"]
    assert run(words) == 0
    answer = json.loads(capsys.readouterr().out)
    pilot = answer["pilot"]
    assert pilot["tasks"] == 150
    alpha, beta = pilot["prior"]
    assert abs(alpha / (alpha + beta) - 2 / 3) < 0.06
    assert set(pilot["standard_errors"]) == {"alpha", "beta"}
    low, high = pilot["budget_needed_by_any_range"]
    assert high is not None
    assert low <= answer["budget_needed_by_any"] <= high
    assert run(["plan", "--pilot", str(labels), "--prior", "1,1"]) == 2


@pytest.mark.parametrize("answers", ["no yes", "a b c"])
def test_the_first_line_says_how_far_the_labels_lead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answers: str
) -> None:
    """Labels that are clear and wrong of every fifth task lead to four tasks in five, and a target of .97 nowhere."""
    rng, words = np.random.default_rng(1), answers.split()
    truth = rng.integers(len(words), size=200)
    says = np.where(rng.random(200) < 0.2, (truth + 1) % len(words), truth)
    said = np.where(rng.random((200, 6)) < 0.05, rng.integers(len(words), size=(200, 6)), says[:, None])
    labels, gold = tmp_path / "labels.csv", tmp_path / "gold.csv"
    rows = [f"t{x},w{j},{words[said[x, j]]}" for x in range(200) for j in range(6)]
    labels.write_text("task,worker,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    gold.write_text("task,label\n" + "".join(f"t{x},{words[truth[x]]}\n" for x in range(120)), encoding="utf-8")
    called = ["plan", "--pilot", str(labels), "--gold", str(gold), "--tasks", "40", "--replications", "5"]
    assert run([*called, "--target", "0.97", "--budget", "60"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("Mind: However many labels are bought") and "0.97 is out of reach." in first
    assert run([*called, "--target", "0.7", "--budget", "60", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    ceiling = answer["pilot"]["ceiling"]
    assert ceiling["low"] < float((says == truth)[:120].mean()) < ceiling["high"] and ceiling["judged"] == 120
    assert 0.75 < answer["target"] < 0.95  # of what the crowd would say, for 0.7 of the truth
    assert run(["plan", "--gold", str(gold), "--tasks", "40", "--budget", "60"]) == 2


def test_a_target_is_checked_before_the_range_of_a_pilot() -> None:
    learnt = learn_prior(of_ones([4, 5, 1, 0], [5, 5, 5, 5]), "ml")
    with pytest.raises(InputError, match="target"):
        budget_range(Problem.identical(10, 1), learnt, 1.5)


@pytest.mark.parametrize(
    "words",
    [
        ["--tasks", "10", "--target", "0.2"],
        ["--tasks", "10", "--target", "x"],
        ["--tasks", "10", "--label-cost", "-1"],
        ["--tasks", "10", "--value", "2"],
        ["--tasks", "10", "--label-cost", "0.1", "--value", "0"],
        ["--tasks", "10", "--deadline", "5"],
        ["--tasks", "10", "--method", "ml"],
        ["--tasks", "10", "--report", "/nowhere/at/all.html"],
        ["--target", "0.9"],
    ],
)
def test_bad_input(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1


def test_no_policy_is_shown_above_its_bound() -> None:
    # with many tasks the index is as good as at its bound, and a simulation of few campaigns is as often above as below
    plan = make_plan(Problem.identical(2000, 1, (2, 1)), most=6000, label_cost=0.01, replications=20, seed=1)
    assert plan.above_bound > 0
    assert np.all(plan.value <= plan.bound)
    assert np.array_equal(plan.value, np.minimum(plan.simulated, plan.bound))
    assert np.all(plan.simulated <= plan.bound + 4 * plan.half_width + 1e-9)
    rows = curve_rows(plan)
    assert all(row["index"] <= row["bound"] for row in rows)
    assert plan.money is not None
    assert plan.money.best_net <= plan.money.most_net + 1e-9 and plan.money.stopping_net <= plan.money.most_net + 1e-9
    assert "that is chance, and the bound is shown there" in sentences(plan)[-1]


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Problem.identical(10, 1, (1, 1), 0.6), "1 if more than 0.6 of its answers would be 1"),
        (Problem.identical(10, 1, OneCoin(0.5, 0.8)), "is the task's truth, if every answer is right with the same"),
        (Problem.identical(10, 1, (1, 1, 1)), "the answer that the crowd would give most often"),
        (Problem.identical(10, 1, reward=SquaredError()), "The value of a task is the reward"),
    ],
)
def test_a_plan_says_what_right_means(problem: Problem, words: str) -> None:
    plan = make_plan(problem, most=20, replications=2)
    assert words in right_means(problem)
    assert right_means(problem) in sentences(plan)


def test_a_poor_fit_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(4)
    theta = np.where(rng.random(300) < 0.5, 0.95, 0.5)
    labels = tmp_path / "labels.csv"
    rows = [f"t{x},w{j},{int(rng.random() < theta[x])}" for x in range(300) for j in range(9)]
    labels.write_text("task,worker,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    words = ["plan", "--pilot", str(labels), "--budget", "600", "--replications", "5"]
    page = tmp_path / "plan.html"
    assert run([*words, "--report", str(page)]) == 0
    assert capsys.readouterr().out.startswith("Mind: The prior Beta(")
    text = page.read_text(encoding="utf-8")
    assert 0 < text.index("fits the pilot poorly") < text.index("<figure")
    assert run([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "fits the pilot poorly" in answer["warnings"][0] and answer["pilot"]["p_value"] < 0.01
    assert answer["right_means"].startswith("'Right' means") and answer["assumes"] == "Workers are alike."
