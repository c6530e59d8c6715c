"""Problem files of every kind: what they mean, what is refused, and that nothing is lost on the way there and back."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nextlabel as nl
from nextlabel.errors import InputError, ProblemError
from nextlabel.model.tables import (
    PRIORS,
    REWARDS,
    prior_from,
    prior_table,
    problem_from_table,
    reward_from,
    reward_table,
)
from nextlabel.model.tasks import score_classes

shares = st.floats(0.01, 0.99)
weights = st.floats(0.01, 1e5)
betas = st.builds(nl.Beta, weights, weights)


@st.composite
def mixtures(draw: st.DrawFn) -> nl.priors.BetaMixture:
    parts = draw(st.lists(betas, min_size=1, max_size=4))
    return nl.priors.BetaMixture(tuple(draw(shares) for _ in parts), tuple(parts))


@st.composite
def histograms(draw: st.DrawFn) -> nl.priors.Histogram:
    edges = sorted(draw(st.lists(st.floats(0, 1), min_size=2, max_size=6, unique=True)))
    return nl.priors.Histogram(tuple(edges), tuple(draw(shares) for _ in edges[1:]))


def dirichlets(answers: int) -> st.SearchStrategy[nl.priors.Dirichlet]:
    return st.builds(nl.priors.Dirichlet, st.tuples(*[weights] * answers))


binary = st.one_of(
    betas,
    mixtures(),
    histograms(),
    st.builds(nl.priors.LogitNormal, st.floats(-50, 50), st.floats(1e-3, 50)),
    st.builds(nl.priors.OneCoin, st.floats(0, 1), st.floats(0.5, 1)),
    dirichlets(2),
)


def rewards(answers: int) -> st.SearchStrategy[Any]:
    rows = st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * answers), min_size=1, max_size=4)
    return st.one_of(
        st.just(nl.rewards.Accuracy()),
        st.builds(nl.rewards.Accuracy, weights),
        st.builds(nl.rewards.Utility, rows.map(tuple), st.none() | st.floats(-10, 10)),
        st.builds(nl.rewards.SquaredError, st.just(1.0) | weights),
    )


@st.composite
def rates(draw: st.DrawFn) -> nl.PiecewiseRate:
    starts = [0.0, *sorted(draw(st.lists(st.floats(0.1, 20), max_size=3, unique=True)))]
    period = draw(st.just(math.inf) | st.floats(20.5, 50))
    return nl.PiecewiseRate(tuple((start, draw(shares)) for start in starts), period)


@st.composite
def problems(draw: st.DrawFn) -> nl.Problem:
    answers = draw(st.integers(2, 4))
    classes = []
    for _ in range(draw(st.integers(1, 3))):
        prior = draw(binary if answers == 2 else dirichlets(answers))
        threshold = draw(shares) if prior.thresholded else 0.5
        classes.append(nl.TaskClass(draw(st.integers(1, 10**6)), prior, threshold, draw(rewards(answers))))
    horizon = draw(st.just(math.inf) | st.floats(1, 100))
    rate = draw(rates() | weights) if math.isfinite(horizon) else draw(weights)
    cost = draw(st.just(0.0) | st.floats(0, 10))
    return nl.Problem(tuple(classes), draw(st.integers(0, 10**9)), rate, draw(weights), horizon, cost)


def settled(problem: nl.Problem) -> nl.Problem:
    """Weights that are made to sum to 1 can move by their last bit when they are made to sum to 1 again."""

    def prior(one: nl.priors.Prior) -> nl.priors.Prior:
        if not isinstance(one, nl.priors.BetaMixture | nl.priors.Histogram):
            return one
        twice = replace(one)
        same = all(math.isclose(a, b, rel_tol=1e-15) for a, b in zip(one.weights, twice.weights, strict=True))
        return twice if same else one

    return replace(problem, classes=tuple(replace(c, prior=prior(c.prior)) for c in problem.classes))


def again(problem: nl.Problem) -> nl.Problem:
    return problem_from_table(tomllib.loads(nl.problem_to_toml(problem)))


class TestRoundTrip:
    @given(problems())
    def test_equal(self, problem: nl.Problem) -> None:
        assert again(problem) == settled(problem)

    def test_through_a_file(self, tmp_path: Path) -> None:
        rate = nl.PiecewiseRate(((0, 2.0), (16, 0.2)), 24)
        problem = nl.Problem.identical(3, 9, (2, 1, 1), reward=nl.rewards.SquaredError(), arrival_rate=rate, horizon=48)
        path = tmp_path / "saved.toml"
        path.write_text(nl.problem_to_toml(problem), encoding="utf-8")
        assert nl.load_problem(path) == problem

    def test_reads_well(self) -> None:
        problem = nl.Problem.identical(3, 9, (2, 0.5), label_cost=0.25)
        assert nl.problem_to_toml(problem).splitlines() == [
            "budget = 9",
            "arrival_rate = 0.1",
            "completion_rate = 0.4",
            "label_cost = 0.25",
            "",
            "[[tasks]]",
            "count = 3",
            "threshold = 0.5",
            "prior = [",
            "    2.0,",
            "    0.5,",
            "]",
        ]

    def test_every_kind_is_written(self) -> None:
        written = [nl.Beta(2, 1), nl.priors.Dirichlet((1, 1)), nl.priors.OneCoin(0.5, 0.8), nl.priors.LogitNormal(0, 1)]
        written += [
            nl.priors.Histogram((0, 1), (1,)),
            nl.priors.BetaMixture((1,), (nl.Beta(1, 1),)),
            nl.priors.Fact(0.3),
        ]
        kinds = {prior.kind for prior in written}
        assert kinds == set(PRIORS) - {"score"}
        for prior in written:
            assert prior_from(prior_table(prior)) == prior
        worth = [nl.rewards.Accuracy(), nl.rewards.Utility(((1, 0), (0, 1))), nl.rewards.SquaredError()]
        assert {reward.kind for reward in worth} == set(REWARDS)
        for reward in worth:
            assert reward_from(reward_table(reward)) == reward


def read(folder: Path, text: str) -> nl.Problem:
    path = folder / "problem.toml"
    path.write_text(text, encoding="utf-8")
    return nl.load_problem(path)


class TestForms:
    @pytest.mark.parametrize(
        ("text", "prior"),
        [
            ("[2, 1]", nl.Beta(2, 1)),
            ("[1, 1, 2]", nl.priors.Dirichlet((1, 1, 2))),
            ('{kind = "beta", alpha = 2, beta = 1}', nl.Beta(2, 1)),
            (
                '{kind = "mixture", weights = [3, 1], betas = [[8, 2], [1, 1]]}',
                nl.priors.BetaMixture((0.75, 0.25), (nl.Beta(8, 2), nl.Beta(1, 1))),
            ),
            (
                '{kind = "histogram", edges = [0, 0.5, 1], weights = [1, 3]}',
                nl.priors.Histogram((0, 0.5, 1), (0.25, 0.75)),
            ),
            ('{kind = "logit-normal", mean = 0.5, sd = 2}', nl.priors.LogitNormal(0.5, 2)),
            ('{kind = "dirichlet", weights = [1, 2]}', nl.priors.Dirichlet((1, 2))),
            ('{kind = "one-coin", probability = 0.25, accuracy = 0.75}', nl.priors.OneCoin(0.25, 0.75)),
            ('{kind = "score", probability = 0.25, strength = 4}', nl.Beta(1, 3)),
        ],
    )
    def test_prior(self, tmp_path: Path, text: str, prior: nl.priors.Prior) -> None:
        problem = read(tmp_path, f"budget = 3\n[[tasks]]\ncount = 2\nprior = {text}\n")
        assert problem.classes == (nl.TaskClass(2, prior),)

    @pytest.mark.parametrize(
        ("text", "reward"),
        [
            ('"accuracy"', nl.rewards.Accuracy()),
            ('"squared-error"', nl.rewards.SquaredError()),
            ('{kind = "accuracy", value = 10}', nl.rewards.Accuracy(10)),
            ('{kind = "utility", matrix = [[1, -5], [0, 1]]}', nl.rewards.Utility(((1, -5), (0, 1)))),
            (
                '{kind = "utility", matrix = [[1, -5], [0, 1]], abstain = 0.3}',
                nl.rewards.Utility(((1, -5), (0, 1)), 0.3),
            ),
            ('{kind = "squared-error", scale = 4}', nl.rewards.SquaredError(4)),
        ],
    )
    def test_reward(self, tmp_path: Path, text: str, reward: Any) -> None:
        problem = read(tmp_path, f"budget = 3\n[[tasks]]\ncount = 2\nreward = {text}\n")
        assert problem.classes == (nl.TaskClass(2, reward=reward),)

    def test_campaign(self, tmp_path: Path) -> None:
        text = "budget = 3\nlabel_cost = 0.02\narrival_rate = [[0, 2.0], [16, 0.2]]\narrival_period = 24\nhorizon = 48"
        problem = read(tmp_path, f"{text}\n[[tasks]]\ncount = 2\n")
        assert problem.label_cost == 0.02
        assert problem.arrival_rate == nl.PiecewiseRate(((0, 2), (16, 0.2)), 24)

    def test_pieces_without_a_period(self, tmp_path: Path) -> None:
        problem = read(tmp_path, "budget = 3\narrival_rate = [[0, 2], [16, 1]]\nhorizon = 48\n[[tasks]]\ncount = 2\n")
        assert problem.arrival_rate == nl.PiecewiseRate(((0, 2), (16, 1)))


class TestScores:
    TEXT = "budget = 3\n[[tasks]]\nthreshold = 0.6\nreward = 'squared-error'\nscores = {file = 'in/items.csv', "

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "items.csv").write_text("id,probability,p2\n1,0.75,0.1\n2,0.25,1.0\n3,0.75,0.1\n", "utf-8")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        return tmp_path

    def test_strength(self, folder: Path) -> None:
        problem = read(folder, self.TEXT + "strength = 4}")
        reward = nl.rewards.SquaredError()
        assert problem == nl.Problem.from_priors([(3, 1), (1, 3), (3, 1)], 3, 0.6, reward)

    def test_column_and_accuracy(self, folder: Path) -> None:
        text = "budget = 3\n[[tasks]]\nscores = {file = 'in/items.csv', column = 'p2', accuracy = 0.8}"
        with pytest.warns(UserWarning, match=r"1 of 3 scores was moved to 0.001 or 0.999"):
            problem = read(folder, text)
        assert problem.classes == score_classes([0.1, 0.999, 0.1], accuracy=0.8)

    def test_beside_other_tasks(self, folder: Path) -> None:
        problem = read(folder, self.TEXT + "strength = 4}\n[[tasks]]\ncount = 5\n")
        assert [c.count for c in problem.classes] == [2, 1, 5]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("{file = 'in/items.csv'}", "either a strength or an accuracy"),
            ("{file = 'in/items.csv', strength = 4, accuracy = 0.8}", "either a strength or an accuracy"),
            ("{file = 'in/items.csv', strength = 0}", "strength 0 is not a positive number"),
            ("{file = 'in/items.csv', strength = '4'}", "strength '4' is not a positive number"),
            ("{file = 'in/items.csv', accuracy = 0.3}", "accuracy 0.3 is outside"),
            ("{file = 'in/items.csv', strenght = 4}", "unknown key 'strenght' in scores. Allowed keys: file, column"),
            ("{file = 'in/items.csv', strength = 4, column = 'p3'}", "no column 'p3'; it has the columns id, prob"),
            ("{file = 'items.csv', strength = 4}", "there is no file"),
            ("{strength = 4}", "scores have no file"),
            ("'items.csv'", "scores have no file"),
        ],
    )
    def test_refused(self, folder: Path, text: str, words: str) -> None:
        with pytest.raises(InputError) as caught:
            read(folder, f"budget = 3\n[[tasks]]\nscores = {text}")
        assert words in str(caught.value)

    @pytest.mark.parametrize("key", ["count = 3", "prior = [1, 1]"])
    def test_contradiction(self, folder: Path, key: str) -> None:
        with pytest.raises(ProblemError, match="with scores has a"):
            read(folder, self.TEXT + f"strength = 4}}\n{key}")


REFUSED = [
    ("prior = {kind = 'gamma'}", "prior kind 'gamma' is not known. Known kinds: beta, mixture"),
    ("prior = {alpha = 1, beta = 1}", "a prior has no kind. Known kinds: beta, mixture"),
    ("prior = {kind = 3}", "prior kind 3 is not known"),
    ("prior = {kind = 'beta', alpha = 1}", "a prior of kind 'beta' has no beta. It needs alpha and beta"),
    (
        "prior = {kind = 'beta', alpha = 1, beta = 1, gamma = 1}",
        "unknown key 'gamma' in a prior of kind 'beta'. Allowed keys: kind, alpha, beta",
    ),
    ("prior = {kind = 'beta', alpha = 'a', beta = 1}", "prior 'a',1 is not a Beta prior"),
    ("prior = {kind = 'mixture', weights = [1], betas = [[1, 1, 1]]}", "are not pairs"),
    ("prior = {kind = 'mixture', weights = [1], betas = 3}", "betas 3 are not a list"),
    ("prior = {kind = 'mixture', weights = [1, 2], betas = [[1, 1]]}", "do not fit 1 components"),
    ("prior = {kind = 'histogram', edges = 1, weights = [1]}", "edges 1 are not a list"),
    ("prior = {kind = 'histogram', edges = [0, 1], weights = [1, 2]}", "do not fit 1 bins"),
    ("prior = {kind = 'logit-normal', mean = 0, sd = 0}", "out of range"),
    ("prior = {kind = 'dirichlet', weights = [1]}", "not a Dirichlet prior"),
    ("prior = {kind = 'one-coin', probability = 0.5, accuracy = 0.2}", "accuracy 0.2 is outside"),
    ("prior = {kind = 'one-coin', probability = 0.5, accuracy = 0.8}\nthreshold = 0.6", "a threshold means nothing"),
    ("prior = {kind = 'score', probability = 1, strength = 4}", "score 1 is outside (0, 1)"),
    ("prior = {kind = 'score', probability = 0.5, strength = -1}", "strength -1 is not a positive number"),
    ("reward = 'speed'", "reward kind 'speed' is not known. Known kinds: accuracy, utility, squared-error"),
    ("reward = 3", "reward 3 is not a reward"),
    ("reward = {kind = 'accuracy', scale = 3}", "unknown key 'scale' in a reward of kind 'accuracy'"),
    ("reward = {kind = 'accuracy', value = 0}", "value of a correct task is 0"),
    ("reward = {kind = 'utility'}", "a reward of kind 'utility' has no matrix"),
    ("reward = {kind = 'utility', matrix = 3}", "not a matrix"),
    ("reward = {kind = 'utility', matrix = [[1, 2, 3]]}", "3 columns for tasks with 2 possible truths"),
    ("reward = {kind = 'utility', matrix = [[1, 0]], abstain = 'no'}", "abstain is 'no'"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, f"budget = 3\n[[tasks]]\ncount = 2\n{text}")
    assert words in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arrival_period = 24", "a period needs an arrival rate in pieces"),
        ("arrival_rate = 2\narrival_period = 24", "a period needs an arrival rate in pieces"),
        ("arrival_rate = []\nhorizon = 9", "do not rise from time 0"),
        ("arrival_rate = [[0, 'fast']]\nhorizon = 9", "not a time and a rate"),
        ("arrival_rate = [[0, 2], [16, 0.2]]", "needs a finite horizon"),
        ("arrival_rate = [[0, 2], [16, 0.2]]\narrival_period = 12\nhorizon = 9", "ends before its last piece"),
        ("label_cost = -1", "label cost -1"),
        ("label_cots = 1", "Allowed keys: budget, arrival_rate, arrival_period, completion_rate, horizon, label_cost"),
    ],
)
def test_campaign_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, f"budget = 3\n{text}\n[[tasks]]\ncount = 2\n")
    assert words in str(caught.value)
