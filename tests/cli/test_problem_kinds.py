"""Every kind of prior, reward, cost and rate from the command line: flags, contradictions, and the words printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.cli.problem_options import ProblemFlags
from nextlabel.model.tasks import score_classes
from tolerances import BOUND, EXACT, INDEX

TINY = ["--tasks", "3", "--budget", "4"]
THREE = ["--tasks", "4", "--budget", "6", "--prior", "1,1,1"]


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def words(self) -> str:
        assert self.code == 0, self.err
        return " ".join(self.out.split())


Call = Callable[..., Answer]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return lambda *arguments: Answer(run(list(arguments)), *capsys.readouterr())


def flags(**given: str) -> nl.Problem:
    return ProblemFlags(**({"tasks": "3", "budget": "4"} | given)).read()  # type: ignore[arg-type]


def same(problem: nl.Problem, prior: Any = (1, 1), reward: Any = None, **rest: Any) -> None:
    assert problem == nl.Problem.identical(3, 4, prior, reward=reward, **rest)


@pytest.fixture
def items(tmp_path: Path) -> str:
    path = tmp_path / "items.csv"
    path.write_text("id,probability,other\n1,0.75,0.5\n2,0,0.5\n3,0.75,0.25\n", encoding="utf-8")
    return str(path)


class TestFlags:
    def test_priors(self) -> None:
        same(flags(prior="2,1"), nl.Beta(2, 1))
        same(flags(prior="1,2,1"), nl.priors.Dirichlet((1, 2, 1)))
        same(flags(accuracy="0.8"), nl.priors.OneCoin(0.5, 0.8))
        same(flags(accuracy="0.8", truth="0.2"), nl.priors.OneCoin(0.2, 0.8))

    def test_rewards(self) -> None:
        same(flags(value="10"), reward=nl.rewards.Accuracy(10))
        same(flags(reward="accuracy", value="10"), reward=nl.rewards.Accuracy(10))
        same(flags(reward="squared-error"), reward=nl.rewards.SquaredError())
        same(flags(utility="1,-5; 0,1"), reward=nl.rewards.Utility(((1, -5), (0, 1))))
        same(flags(utility="1,-5;0,1", abstain="0.3"), reward=nl.rewards.Utility(((1, -5), (0, 1)), 0.3))

    def test_campaign(self) -> None:
        same(flags(label_cost="0.02"), label_cost=0.02)
        pieces = ((0, 2), (16, 0.2))
        same(flags(arrival_rate="0:2,16:0.2", horizon="48"), arrival_rate=nl.PiecewiseRate(pieces), horizon=48)
        day = nl.PiecewiseRate(pieces, 24)
        same(flags(arrival_rate="0:2, 16:0.2", arrival_period="24", horizon="48"), arrival_rate=day, horizon=48)

    def test_scores(self, items: str, capsys: pytest.CaptureFixture[str]) -> None:
        problem = ProblemFlags(scores=items, strength="4", budget="5").read()
        assert problem == nl.Problem(score_classes([0.75, 0.001, 0.75], strength=4), 5)
        assert capsys.readouterr().err.startswith("1 of 3 scores was moved to 0.001 or 0.999")
        problem = ProblemFlags(scores=items, score_column="other", accuracy="0.8", budget="5").read()
        assert problem == nl.Problem(score_classes([0.5, 0.5, 0.25], accuracy=0.8), 5)
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 2 and said[0].endswith("3 rows read (CSV, commas, UTF-8).")
        assert said[1] == "Column used: other (score)."


class TestFlagsOverFile:
    @pytest.fixture
    def file(self, tmp_path: Path, items: str) -> Callable[[str], str]:
        def write(text: str) -> str:
            path = tmp_path / "problem.toml"
            path.write_text(f"budget = 4\n{text}", encoding="utf-8")
            return str(path)

        return write

    def test_priors(self, file: Callable[[str], str]) -> None:
        path = file("[[tasks]]\ncount = 3\nprior = [1, 1]\nthreshold = 0.6\n")
        assert ProblemFlags(prior="1,1,1", problem=path).read().classes == (
            nl.TaskClass(3, nl.priors.Dirichlet((1, 1, 1))),
        )
        assert ProblemFlags(accuracy="0.8", problem=path).read().classes == (
            nl.TaskClass(3, nl.priors.OneCoin(0.5, 0.8)),
        )

    def test_known_accuracy_keeps_the_other_half(self, file: Callable[[str], str]) -> None:
        path = file("[[tasks]]\ncount = 3\nprior = {kind = 'one-coin', probability = 0.2, accuracy = 0.7}\n")
        assert ProblemFlags(accuracy="0.8", problem=path).read().classes[0].prior == nl.priors.OneCoin(0.2, 0.8)
        assert ProblemFlags(truth="0.4", problem=path).read().classes[0].prior == nl.priors.OneCoin(0.4, 0.7)

    def test_rewards(self, file: Callable[[str], str]) -> None:
        path = file("[[tasks]]\ncount = 3\nreward = {kind = 'utility', matrix = [[1, 0], [0, 1]], abstain = 0.6}\n")
        matrix = ((1, 0), (0, 1))
        assert ProblemFlags(abstain="0.7", problem=path).read().classes[0].reward == nl.rewards.Utility(matrix, 0.7)
        assert ProblemFlags(value="2", problem=path).read().classes[0].reward == nl.rewards.Accuracy(2)
        assert ProblemFlags(utility="1,1", problem=path).read().classes[0].reward == nl.rewards.Utility(((1, 1),))

    def test_rates(self, file: Callable[[str], str]) -> None:
        rate = "arrival_rate = [[0, 2], [16, 1]]\narrival_period = 24\nhorizon = 48\n"
        path = file(f"{rate}label_cost = 1\n[[tasks]]\ncount = 3\n")
        problem = ProblemFlags(arrival_rate="3", label_cost="0", problem=path).read()
        assert (problem.arrival_rate, problem.label_cost) == (3, 0)
        problem = ProblemFlags(arrival_period="30", problem=path).read()
        assert problem.arrival_rate == nl.PiecewiseRate(((0, 2), (16, 1)), 30)

    def test_scores(self, file: Callable[[str], str], items: str) -> None:
        path = file("[[tasks]]\nscores = {file = 'items.csv', column = 'other', strength = 4}\n")
        expected = score_classes([0.5, 0.5, 0.25], strength=8)
        assert ProblemFlags(strength="8", problem=path).read().classes == expected
        expected = score_classes([0.5, 0.5, 0.25], accuracy=0.8)
        assert ProblemFlags(accuracy="0.8", problem=path).read().classes == expected
        path = file("[[tasks]]\ncount = 3\nprior = [1, 1]\nreward = 'squared-error'\nthreshold = 0.6\n")
        problem = ProblemFlags(scores=items, score_column="other", strength="4", problem=path).read()
        assert problem.classes == score_classes(
            [0.5, 0.5, 0.25], strength=4, threshold=0.6, reward=nl.rewards.SquaredError()
        )


BAD = [
    (["--scores", "FILE", "--strength", "4", "--prior", "1,1"], ["--prior and --scores contradict", "Leave one"]),
    (["--scores", "FILE", "--strength", "4", "--tasks", "3"], ["--tasks and --scores contradict", "one row per task"]),
    (["--scores", "FILE", "--accuracy", "0.8", "--truth", "0.5"], ["--truth and --scores contradict"]),
    (["--scores", "FILE", "--accuracy", "0.8", "--strength", "4"], ["--accuracy and --strength contradict"]),
    (["--scores", "FILE"], ["either a strength or an accuracy", "--strength 4", "--accuracy 0.8"]),
    (["--scores", "FILE", "--strength", "many"], ["strength is 'many'", "--strength 4"]),
    (["--scores", "FILE", "--strength", "0"], ["strength 0 is not a positive number"]),
    (["--scores", "FILE", "--strength", "4", "--score-column", "p"], ["no column 'p'", "id, probability, other"]),
    (["--scores", "nowhere.csv", "--strength", "4"], ["there is no file nowhere.csv"]),
    ([*TINY, "--strength", "4"], ["--strength 4 needs scores", "--scores FILE"]),
    ([*TINY, "--score-column", "p"], ["--score-column p needs scores", "--scores FILE"]),
    ([*TINY, "--prior", "1,1", "--accuracy", "0.8"], ["--prior and --accuracy contradict"]),
    ([*TINY, "--accuracy", "0.8", "--threshold", "0.5"], ["--accuracy and --threshold contradict", "Leave one"]),
    ([*TINY, "--accuracy", "0.3"], ["accuracy 0.3 is outside [0.5, 1]"]),
    ([*TINY, "--accuracy", "good"], ["accuracy is 'good'", "not a number"]),
    ([*TINY, "--truth", "0.3"], ["--truth 0.3 is for workers of known accuracy", "--accuracy 0.8"]),
    ([*TINY, "--accuracy", "0.8", "--truth", "2"], ["probability 2 is outside [0, 1]"]),
    ([*TINY, "--prior", "1,1,1", "--threshold", "0.6"], ["a threshold means nothing", "Dirichlet(1, 1, 1)"]),
    ([*TINY, "--prior", "1,0,1"], ["prior 1,0,1 is not a Dirichlet prior"]),
    ([*TINY, "--utility", "1,0;0,1", "--value", "2"], ["--utility and --value contradict"]),
    ([*TINY, "--utility", "1,0;0,1", "--reward", "accuracy"], ["--utility and --reward contradict"]),
    ([*TINY, "--value", "2", "--reward", "squared-error"], ["--value and --reward squared-error contradict"]),
    ([*TINY, "--reward", "luck"], ["'luck'", "'accuracy', 'squared-error'"]),
    ([*TINY, "--utility", "1,x"], ["utility '1,x' is not a matrix", "one row per decision"]),
    ([*TINY, "--utility", "1,0;1"], ["is not a matrix"]),
    ([*TINY, "--utility", "1,0,0"], ["3 columns for tasks with 2 possible truths"]),
    ([*TINY, "--abstain", "0.3"], ["--abstain 0.3 is for a utility matrix", "--utility"]),
    ([*TINY, "--utility", "1,0;0,1", "--abstain", "no"], ["abstain is 'no'", "not a number"]),
    ([*TINY, "--value", "0"], ["value of a correct task is 0"]),
    ([*TINY, "--label-cost", "-1"], ["label cost -1"]),
    ([*TINY, "--label-cost", "nan"], ["label cost nan"]),
    ([*TINY, "--label-cost", "dear"], ["label cost is 'dear'", "not a number"]),
    ([*TINY, "--arrival-rate", "0:2,16:0.2"], ["needs a finite horizon", "--horizon T"]),
    ([*TINY, "--arrival-rate", "0:2,x:1", "--horizon", "9"], ["arrival rate '0:2,x:1'", "starts and rates"]),
    ([*TINY, "--arrival-rate", "0:2:3", "--horizon", "9"], ["arrival rate '0:2:3'", "starts and rates"]),
    ([*TINY, "--arrival-rate", "1:2,3:4", "--horizon", "9"], ["do not rise from time 0"]),
    ([*TINY, "--arrival-period", "24"], ["--arrival-period 24 needs an arrival rate in pieces"]),
    ([*TINY, "--arrival-rate", "2", "--arrival-period", "24"], ["--arrival-period 24 needs an arrival rate in pieces"]),
]


@pytest.mark.parametrize("verb", ["bound", "simulate"])
@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_refused(call: Call, items: str, verb: str, arguments: list[str], words: list[str]) -> None:
    if "--budget" not in arguments:
        arguments = [*arguments, "--budget", "5"]
    answer = call(verb, *(items if a == "FILE" else a for a in arguments))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    for word in words:
        assert word in answer.err


class TestFileRefused:
    @pytest.fixture
    def scored(self, tmp_path: Path, items: str) -> str:
        path = tmp_path / "problem.toml"
        path.write_text("budget = 4\n[[tasks]]\nscores = {file = 'items.csv', strength = 4}\n", encoding="utf-8")
        return str(path)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--tasks", "3"], "--tasks 3 does not go with the scores"),
            (["--prior", "1,1"], "--prior 1,1 does not go with the scores"),
        ],
    )
    def test_scores(self, call: Call, scored: str, arguments: list[str], words: str) -> None:
        answer = call("bound", "--problem", scored, *arguments)
        assert answer.code == 2
        assert words in answer.err

    def test_scores_for_several_classes(self, call: Call, tmp_path: Path, items: str) -> None:
        path = tmp_path / "two.toml"
        path.write_text("budget = 4\n[[tasks]]\ncount = 1\n[[tasks]]\ncount = 2\n", encoding="utf-8")
        answer = call("bound", "--problem", str(path), "--scores", items, "--strength", "4")
        assert answer.code == 2
        assert "does not say which of 2 classes" in answer.err


class TestThreeAnswers:
    def test_bound_optimum_and_index_policy_by_one_command(self, call: Call) -> None:
        answer = call("exact", *THREE, "--policy", "index", "--json").json
        assert answer["bound"] >= answer["value"] >= answer["policy"]["value"] - EXACT
        assert answer["bound_per_task"] == pytest.approx(answer["bound"] / 4)
        assert answer["problem"]["answers"] == 3
        assert answer["problem"]["priors"] == ["dirichlet"]
        words = call("exact", *THREE, "--policy", "index").words
        assert "4 tasks (prior Dirichlet(1, 1, 1)), 6 labels" in words
        for key in (answer["bound"], answer["value"], answer["policy"]["value"]):
            assert f"{key:.6f}" in words

    def test_two_answers_show_the_bound_too(self, call: Call) -> None:
        answer = call("exact", "--tasks", "10", "--budget", "12", "--policy", "index", "--json").json
        assert answer["bound"] == pytest.approx(7.59375, abs=BOUND)
        assert answer["value"] == pytest.approx(7.5625, abs=EXACT)

    def test_index(self, call: Call) -> None:
        rows = call("index", *THREE, "--state", "0,0,0,0", "--state", "1,0,0,1", "--json").json["indices"]
        assert [(row["counts"], row["w"]) for row in rows] == [([0, 0, 0], 0), ([1, 0, 0], 1)]
        # One label of three answers: the truth's chance goes from 1/3 to E[max theta is the label] = 11/18.
        assert rows[0]["index"] == pytest.approx(11 / 18 - 1 / 3, abs=INDEX)
        words = call("index", *THREE).words
        assert "answer 0 answer 1 answer 2 in flight index" in words

    def test_state_of_the_wrong_length(self, call: Call) -> None:
        answer = call("index", *THREE, "--state", "1,0,0")
        assert answer.code == 2
        assert "each of 3 answers and those in flight, e.g. --state 2,1,0,0." in answer.err

    @pytest.mark.parametrize("policy", ["thompson", "ucb1-tuned", "apt", "lsa"])
    def test_rules_for_two_answers(self, call: Call, policy: str) -> None:
        answer = call("simulate", *THREE, "--replications", "5", "--policy", policy)
        assert (answer.code, answer.out) == (2, "")
        assert f"the policy {policy} knows two answers, and the tasks have 3." in answer.err
        assert answer.err.count("\n") == 1

    def test_simulate(self, call: Call) -> None:
        answer = call("simulate", *THREE, "--replications", "50", "--json").json
        assert [row["name"] for row in answer["policies"]] == ["auto", "okg", "uniform"]
        assert all(row["gap_percent"] > 0 for row in answer["policies"])


KINDS = {
    "known accuracy": (["--accuracy", "0.8"], "truth 1 with probability 0.5, answers right with 0.8", True),
    "value": (["--value", "2"], "2 for a correct task", False),
    "utility": (["--utility", "1,-5;0,1", "--abstain", "0.3"], "utility 1, -5; 0, 1, abstain 0.3", False),
    "squared error": (["--reward", "squared-error"], "squared error of theta", False),
    "money": (["--label-cost", "0.02"], "4 labels at 0.02 each", False),
}


@pytest.mark.parametrize("kind", KINDS)
class TestEveryVerb:
    def test_described_everywhere(self, call: Call, kind: str) -> None:
        arguments, words, counts = KINDS[kind]
        for verb in (["bound"], ["index"], ["exact", "--policy", "index"], ["simulate", "--replications", "5"]):
            said = call(*verb, *TINY, *arguments).words
            assert words in said
            if verb[0] in ("bound", "exact"):
                assert ("right in expectation" in said) == counts
                assert ("net of what its labels cost" in said) == (kind == "money")

    def test_order(self, call: Call, kind: str) -> None:
        answer = call("exact", *TINY, *KINDS[kind][0], "--policy", "index", "--json").json
        assert answer["bound"] + BOUND >= answer["value"] >= answer["policy"]["value"] - EXACT

    def test_one_policy(self, call: Call, kind: str) -> None:
        said = call("simulate", *TINY, *KINDS[kind][0], "--replications", "5", "--policy", "index").words
        assert ("index gets" in said) == KINDS[kind][2]
        assert ("index has a value of" in said) != KINDS[kind][2]


class TestJson:
    def test_problem(self, call: Call) -> None:
        arguments = ["--utility", "1,-5;0,1", "--label-cost", "0.02", "--horizon", "9"]
        fields = call("bound", *TINY, *arguments, "--json").json["problem"]
        assert fields == {
            "tasks": 3,
            "classes": 1,
            "answers": 2,
            "priors": ["beta"],
            "rewards": [{"kind": "utility", "matrix": [[1, -5], [0, 1]]}],
            "budget": 4,
            "label_cost": 0.02,
            "arrival_rate": 0.1,
            "arrival_period": None,
            "completion_rate": 0.4,
            "horizon": 9,
        }

    def test_pieces(self, call: Call) -> None:
        arguments = ["--arrival-rate", "0:2,16:0.2", "--arrival-period", "24", "--horizon", "48"]
        fields = call("bound", *TINY, *arguments, "--json").json["problem"]
        assert (fields["arrival_rate"], fields["arrival_period"]) == ([[0, 2], [16, 0.2]], 24)
        assert "arrival rate 2 from 0, 0.2 from 16, every 24" in call("bound", *TINY, *arguments).words

    def test_scores(self, call: Call, items: str) -> None:
        answer = call("bound", "--scores", items, "--strength", "4", "--budget", "5", "--json")
        assert answer.json["problem"]["classes"] == 2
        assert answer.json["problem"]["tasks"] == 3
        assert answer.err.startswith("1 of 3 scores was moved")


class TestMoney:
    def test_dear_labels_are_not_bought(self, call: Call) -> None:
        answer = call(
            "simulate", *TINY, "--label-cost", "0.3", "--policy", "index", "--replications", "5", "--json"
        ).json
        assert answer["policies"][0]["labels_used"] == 0
        assert answer["policies"][0]["mean_per_task"] == pytest.approx(0.5)
        assert call("bound", *TINY, "--label-cost", "0.3", "--json").json["bound"] == pytest.approx(1.5, abs=BOUND)

    def test_words(self, call: Call) -> None:
        said = call("bound", *TINY, "--label-cost", "0.3").words
        assert "no policy has a value of more than 1.500000 in expectation, net of what its labels cost." in said
        assert "price of a label, on top of its cost" in said
        said = call("index", *TINY, "--label-cost", "0.02").words
        assert "If no index reaches the cost of a label, 0.02, turn the worker away." in said
        said = call("simulate", *TINY, "--label-cost", "0.02", "--replications", "5").words
        assert "Values are net of what the labels cost." in said

    def test_negative_values(self, call: Call) -> None:
        """A bound below 0 is rounded towards what is still a bound."""
        bound = call("bound", *TINY, "--reward", "squared-error", "--json").json["bound"]
        said = call("bound", *TINY, "--reward", "squared-error").words
        shown = float(said.split("a value of more than ")[1].split()[0])
        assert bound < 0
        assert bound <= shown + 1e-12
        assert shown <= bound + 1e-6
