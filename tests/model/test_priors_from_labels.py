"""Priors learnt from recorded labels: oracles, recovery of known priors, degenerate data, and the command."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import betabinom, dirichlet_multinomial

from labelled_crowds import of_ones, of_padded, padded
from nextlabel.cli.app import run
from nextlabel.errors import InputError
from nextlabel.files.labels import read_labels
from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.mixture import (
    Mixture,
    as_mixture,
    best_mixture,
    climb,
    hessian,
    in_box,
    log_likelihood,
    log_pmf,
    scores,
    to_x,
)
from nextlabel.model.prior_learning import (
    METHODS,
    LearntPrior,
    cells_of,
    compare_priors,
    goodness_of_fit,
    learn_prior,
    recommend,
)
from nextlabel.model.prior_weights import LEAST_WEIGHT, MOST_WEIGHT, LabelCounts, moment_weights
from nextlabel.model.tables import prior_from
from nextlabel.reporting.figures import binned, prior_figure
from studies.study import find_set
from tolerances import DIFFERENCE, EXACT, PRINTED, ROUNDING

#: An estimate is this many of its standard errors from the truth at most: once in 16,000 draws it is not.
ERRORS = 4.0
PNG = b"\x89PNG\r\n\x1a\n"


def drawn(prior: Beta | BetaMixture, tasks: int, labels: list[int], seed: int) -> LabelCounts:
    """Tasks with theta from the prior and a number of labels from ``labels``."""
    rng = np.random.default_rng(seed)
    parts = prior.components if isinstance(prior, BetaMixture) else (prior,)
    kind = rng.choice(len(parts), tasks, p=prior.weights if isinstance(prior, BetaMixture) else None)
    alpha, beta = (np.array([getattr(part, name) for part in parts])[kind] for name in ("alpha", "beta"))
    m = rng.choice(labels, tasks)
    return of_ones(rng.binomial(m, rng.beta(alpha, beta)), m)


def differences(function: Any, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences of a scalar or vector function."""
    return np.stack([(function(x + h) - function(x - h)) / (2 * step) for h in step * np.eye(len(x))], axis=-1)


TWO_KINDS = BetaMixture((0.6, 0.4), (Beta(4, 12), Beta(18, 3)))


# --- counts ---------------------------------------------------------------------------------------


def test_equal_tasks_are_counted_once() -> None:
    counts = of_ones([2, 0, 2, 1, 0], [3, 3, 3, 1, 0])
    assert len(counts) == 4
    assert sorted(zip(counts.ones.tolist(), counts.labels.tolist(), counts.tasks.tolist(), strict=True)) == [
        (0, 3, 1), (1, 1, 1), (2, 3, 2),
    ]  # fmt: skip
    assert counts.totals.tolist() == [5, 5]


def test_a_million_tasks_have_eleven_rows() -> None:
    rng = np.random.default_rng(0)
    counts = of_ones(rng.binomial(10, rng.beta(2, 1, 1_000_000)), 10)
    assert len(counts) == 1_000_000 and len(counts.tasks) == 11
    learnt = learn_prior(counts, "ml", draws=99)
    assert learnt.standard_errors["alpha"] < 0.01
    assert learnt.prior.alpha == pytest.approx(2.0, abs=ERRORS * learnt.standard_errors["alpha"])


def test_counts_of_recorded_labels() -> None:
    labels = np.array([[1, 0, -1], [2, 2, 2], [0, 1, 2]])
    recorded = padded(("a", "b", "c"), labels, np.full(3, -1))
    counts = of_padded(recorded.said, answers=3)
    assert sorted(map(tuple, counts.counts.tolist())) == [(0, 0, 3), (1, 1, 0), (1, 1, 1)]


def test_many_answers_that_make_no_single_key() -> None:
    rows = np.random.default_rng(0).integers(0, 1000, (5, 8))
    counts = LabelCounts.of_counts(np.concatenate([rows, rows[:2]]))
    assert len(counts) == 7 and sorted(counts.tasks.tolist()) == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("ones", "labels", "message"),
    [([3], [2], "below 0"), ([-1], [2], "below 0"), ([0.5], [2], "whole"), ([0], [0], "no task")],
)
def test_impossible_counts_are_refused(ones: list[float], labels: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        of_ones(ones, labels)


# --- oracles --------------------------------------------------------------------------------------


def test_log_likelihood_and_derivatives_against_50_digits() -> None:
    counts = drawn(Beta(2, 1), 40, [1, 3, 10, 40], 0)
    rows = list(zip(counts.ones.tolist(), counts.labels.tolist(), counts.tasks.tolist(), strict=True))

    def total(alpha: Any, beta: Any) -> Any:
        each = (
            c * (mpmath.log(mpmath.binomial(m, a)) + mpmath.log(mpmath.beta(alpha + a, beta + m - a))
                 - mpmath.log(mpmath.beta(alpha, beta)))
            for a, m, c in rows
        )  # fmt: skip
        return mpmath.fsum(each)

    for alpha, beta in ((1.7, 0.6), (0.005, 0.005), (700.0, 299.0)):
        with mpmath.workdps(50):
            exact = total(mpmath.mpf(alpha), mpmath.mpf(beta))
            slope = [mpmath.diff(total, (alpha, beta), n) for n in ((1, 0), (0, 1))]
            bend = [mpmath.diff(total, (alpha, beta), n) for n in ((2, 0), (1, 1), (0, 2))]
        prior = Beta(alpha, beta)
        gradient = counts.tasks @ scores(prior, counts.counts)  # weights are in the order of the answers: beta, alpha
        second = hessian(as_mixture(prior), counts)[::-1, ::-1]
        assert log_likelihood(prior, counts) == pytest.approx(float(exact), rel=EXACT)
        assert gradient[::-1] == pytest.approx([float(x) for x in slope], rel=EXACT, abs=EXACT)
        assert second[np.triu_indices(2)] == pytest.approx([float(x) for x in bend], rel=EXACT, abs=EXACT)


def test_beta_binomial_and_dirichlet_multinomial_of_scipy() -> None:
    counts = drawn(Beta(2, 1), 50, [2, 5], 1)
    prior = Beta(1.3, 0.4)
    each = betabinom.logpmf(counts.ones, counts.labels, prior.alpha, prior.beta)
    assert log_likelihood(prior, counts) == pytest.approx(float(counts.tasks @ each), rel=ROUNDING)
    three = LabelCounts.of_counts(np.random.default_rng(0).multinomial(6, [0.5, 0.3, 0.2], 50))
    weights = np.array([1.5, 0.7, 0.4])
    each = dirichlet_multinomial.logpmf(three.counts, weights, three.labels)
    assert log_likelihood(Dirichlet(tuple(weights)), three) == pytest.approx(float(three.tasks @ each), rel=ROUNDING)


def test_a_dirichlet_of_two_answers_is_the_beta() -> None:
    """The climb knows answers only; SciPy's Dirichlet-multinomial is climbed by another method."""
    counts = drawn(Beta(2.5, 1.2), 400, [3, 8], 2)

    def loss(x: np.ndarray) -> float:
        return -float(counts.tasks @ dirichlet_multinomial.logpmf(counts.counts, np.exp(x), counts.labels)) / 400

    found = np.exp(minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-14}).x)
    prior = learn_prior(counts, "ml", draws=99).prior
    assert (prior.beta, prior.alpha) == pytest.approx(tuple(found), rel=DIFFERENCE)
    assert climb(counts).alpha[0] == pytest.approx([prior.beta, prior.alpha], rel=ROUNDING)


def test_derivatives_of_a_mixture_against_differences() -> None:
    counts = drawn(TWO_KINDS, 100, [4, 9], 3)
    x = np.array([0.5, 0.3, 3, 1.5, 2, 6, 0.7, 0.4])

    def at(x: np.ndarray) -> Mixture:
        return Mixture(np.append(x[:2], 1 - x[0] - x[1]), x[2:].reshape(3, 2))

    mixture = at(x)
    gradient = counts.tasks @ scores(mixture.prior(), counts.counts)
    found = differences(lambda x: log_likelihood(at(x), counts), x)
    assert gradient == pytest.approx(found, rel=DIFFERENCE, abs=DIFFERENCE)
    slope = differences(lambda x: counts.tasks @ scores(at(x).prior(), counts.counts), x)
    assert hessian(mixture, counts) == pytest.approx(slope, rel=DIFFERENCE, abs=1e2 * DIFFERENCE)
    value, gradient = in_box(counts, to_x(mixture), 3)
    assert value == pytest.approx(log_likelihood(mixture, counts), rel=ROUNDING)
    assert gradient == pytest.approx(differences(lambda x: in_box(counts, x, 3)[0], to_x(mixture)), abs=DIFFERENCE)


# --- moments --------------------------------------------------------------------------------------


def test_moments_of_counts_are_those_of_the_shares() -> None:
    rng = np.random.default_rng(5)
    m = rng.integers(2, 9, 60)
    labels = np.where(np.arange(8) < m[:, None], rng.random((60, 8)) < rng.beta(1, 2, 60)[:, None], -1).astype(np.int64)
    share = (labels == 1).sum(axis=1) / m
    mean, noise = share.mean(), np.mean(1.0 / m)
    rho = (share.var(ddof=1) / (mean * (1.0 - mean)) - noise) / (1.0 - noise)
    weights = moment_weights(of_padded(labels))
    assert weights == pytest.approx([(1.0 - mean) * (1.0 / rho - 1.0), mean * (1.0 / rho - 1.0)], rel=ROUNDING)


def test_standard_errors_of_moments_are_those_of_the_jackknife() -> None:
    counts = drawn(Beta(1, 3), 20_000, [2, 4, 7], 6)
    learnt = learn_prior(counts, "moments", draws=99)
    found = []
    for i in range(len(counts.tasks)):
        fewer = LabelCounts(counts.counts, counts.tasks - (np.arange(len(counts.tasks)) == i))
        found.append(moment_weights(fewer))
    off = np.array(found) - counts.tasks @ np.array(found) / 20_000
    jackknife = np.sqrt(counts.tasks @ off**2)
    # the delta method and the jackknife agree to the first order in 1 / tasks
    assert [learnt.standard_errors[n] for n in ("beta", "alpha")] == pytest.approx(jackknife, rel=1e-3)


# --- recovery -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["moments", "ml"])
@pytest.mark.parametrize("prior", [Beta(2, 1.5), Beta(0.4, 0.7), Beta(12, 5)])
def test_known_priors_are_found_within_their_standard_errors(method: str, prior: Beta) -> None:
    far = []
    for seed in range(5):
        learnt = learn_prior(drawn(prior, 1500, [1, 5, 10, 20], seed), method, draws=99)
        assert learnt.converged and learnt.note == ""
        far += [(getattr(learnt.prior, n) - getattr(prior, n)) / learnt.standard_errors[n] for n in ("alpha", "beta")]
    assert np.abs(far).max() < ERRORS
    assert 0.3 < np.sqrt(np.mean(np.square(far))) < 2.0


def test_a_known_dirichlet_is_found_within_its_standard_errors() -> None:
    weights = np.array([2.0, 1.0, 0.5, 3.0])
    for seed in range(3):
        rng = np.random.default_rng(seed)
        m = rng.choice([3, 8, 15], 1000)
        counts = LabelCounts.of_counts(rng.multinomial(m, rng.dirichlet(weights, 1000)))
        values = {}
        for method in ("moments", "ml"):
            learnt = learn_prior(counts, method)
            errors = np.array([learnt.standard_errors[f"alpha{j}"] for j in range(4)])
            assert isinstance(learnt.prior, Dirichlet)
            assert (np.abs(np.array(learnt.prior.weights) - weights) < ERRORS * errors).all()
            assert learnt.p_value is None and learnt.parameters == 4
            values[method] = learnt.log_likelihood
        assert values["ml"] >= values["moments"]


def test_a_known_mixture_is_found_within_its_standard_errors() -> None:
    for seed in range(2):
        learnt = learn_prior(drawn(TWO_KINDS, 3000, [8, 16], seed), "mixture", components=2, draws=99)
        prior = learnt.prior
        assert isinstance(prior, BetaMixture) and learnt.converged and learnt.parameters == 5
        errors = learnt.standard_errors
        assert abs(prior.weights[0] - 0.6) < ERRORS * errors["weight1"]
        for i, (found, true) in enumerate(zip(prior.components, TWO_KINDS.components, strict=True), 1):
            assert abs(found.alpha - true.alpha) < ERRORS * errors[f"alpha{i}"]
            assert abs(found.beta - true.beta) < ERRORS * errors[f"beta{i}"]


# --- likelihood -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_no_method_of_one_beta_is_likelier_than_maximum_likelihood(seed: int) -> None:
    counts = drawn(Beta(1, 2), 100, [2, 6], seed)
    moments, ml = (learn_prior(counts, name, draws=99) for name in ("moments", "ml"))
    assert ml.log_likelihood >= moments.log_likelihood
    for factor in (0.98, 1.02):
        for alpha, beta in ((factor, 1.0), (1.0, factor)):
            near = Beta(ml.prior.alpha * alpha, ml.prior.beta * beta)
            assert log_likelihood(near, counts) < ml.log_likelihood


@pytest.mark.parametrize("seed", range(3))
def test_every_start_leads_to_the_same_maximum(seed: int) -> None:
    counts = drawn(Beta(0.8, 2), 60, [3, 7], seed)
    best = climb(counts).alpha
    rng = np.random.default_rng(seed)
    for _ in range(10):
        found = climb(counts, Mixture(np.ones(1), np.exp(rng.uniform(-3, 5, (1, 2)))))
        assert found.converged
        assert found.alpha == pytest.approx(best, rel=DIFFERENCE)


# --- mixtures -------------------------------------------------------------------------------------


def test_more_components_are_never_less_likely_and_are_in_order() -> None:
    counts = drawn(TWO_KINDS, 200, [10], 8)
    found = [best_mixture(counts, k, 0) for k in (1, 2, 3)]
    values = [one.log_likelihood for one in found]
    assert values == sorted(values)
    for one in found:
        means = [c.alpha / (c.alpha + c.beta) for c in one.prior().components]
        assert means == sorted(means)
    assert best_mixture(counts, 3, 0).prior() == found[2].prior()


def test_a_mixture_of_one_is_the_most_likely_beta() -> None:
    counts = drawn(Beta(2, 1), 200, [4, 10], 9)
    ml, mixed = learn_prior(counts, "ml", draws=99), learn_prior(counts, "mixture", components=1, draws=99)
    assert mixed.prior.components == (ml.prior,) and mixed.prior.weights == (1.0,)
    assert mixed.log_likelihood == pytest.approx(ml.log_likelihood, rel=ROUNDING)
    assert mixed.bic == pytest.approx(ml.bic, rel=ROUNDING)
    assert mixed.standard_errors == pytest.approx(ml.standard_errors, rel=DIFFERENCE)
    assert mixed.p_value == ml.p_value


def test_the_bic_tells_one_kind_from_two() -> None:
    one = compare_priors(drawn(Beta(2, 1.5), 500, [10], 0), draws=99)
    assert len(one.learnt[2].prior.components) == 1
    assert one.use.method == "ml" and "the BIC finds no second kind" in one.why
    two = compare_priors(drawn(TWO_KINDS, 500, [10], 0), draws=99)
    assert len(two.learnt[2].prior.components) == 2
    assert two.use.method == "mixture" and "3 more parameters lower the BIC" in two.why


# --- goodness of fit ------------------------------------------------------------------------------


def test_expected_tasks_are_as_many_as_there_are() -> None:
    counts = drawn(Beta(2, 1), 300, [2, 5, 9], 10)
    cells = cells_of(counts, Beta(2, 1))
    assert len(cells.ones) == 3 + 6 + 10
    for m in (2, 5, 9):
        here = cells.labels == m
        assert cells.expected[here].sum() == pytest.approx(cells.tasks[here].sum())
    assert len(cells) == 300
    at, observed, expected = binned(cells)
    assert len(at) == 11 and observed.sum() == pytest.approx(1.0) and expected.sum() == pytest.approx(1.0)
    chance = np.exp(log_pmf(TWO_KINDS, np.column_stack([10 - np.arange(11), np.arange(11)])))
    assert chance.sum() == pytest.approx(1.0, abs=EXACT)


@pytest.mark.parametrize("method", ["moments", "ml"])
def test_p_values_are_even_where_the_model_holds(method: str) -> None:
    found = []
    for seed in range(80):
        learnt = learn_prior(drawn(Beta(2, 1.5), 300, [10], 100 + seed), method, draws=99)
        found.append(learnt.p_value)
    # 80 even draws: their mean within four standard errors of a half; without the refit it is 0.66
    assert np.mean(found) == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 80))
    assert np.mean(np.array(found) < 0.25) == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 80))


def test_p_values_are_small_where_it_does_not() -> None:
    counts = drawn(TWO_KINDS, 500, [10], 11)
    assert learn_prior(counts, "ml").p_value < 0.01
    mixed = learn_prior(counts, "mixture", components=2)
    assert mixed.p_value > 0.01
    assert learn_prior(counts, "mixture", components=2) == mixed
    assert goodness_of_fit(counts, Beta(1, 1), seed=1, draws=199) == pytest.approx(1 / 200)


# --- what labels leave open -----------------------------------------------------------------------

DEGENERATE = {
    "one task": (([3], [10]), "Only one task has two labels", (2.0, 2.0)),
    "one label each": (([1, 0, 1, 1], [1, 1, 1, 1]), "No task has two labels", (2.0, 2.0)),
    "unanimous": (([5, 5, 0, 0, 5], [5] * 5), "All labels of every task agree", (LEAST_WEIGHT, 5.0)),
    "all ones": (([5] * 20, [5] * 20), "All labels of every task agree", (LEAST_WEIGHT, MOST_WEIGHT)),
    "under-dispersed": (([5] * 30, [10] * 30), "no more than chance", (MOST_WEIGHT, MOST_WEIGHT)),
    "ordinary pairs": (([0, 1, 1, 2, 2], [2] * 5), "", (LEAST_WEIGHT, MOST_WEIGHT)),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_labels_give_a_usable_prior_and_a_sentence(name: str, method: str) -> None:
    (ones, labels), sentence, (low, high) = DEGENERATE[name]
    learnt = learn_prior(of_ones(ones, labels), method, draws=99)
    assert sentence in learnt.note
    parts = learnt.prior.components if isinstance(learnt.prior, BetaMixture) else (learnt.prior,)
    for part in parts:
        assert low * (1 - EXACT) <= part.alpha + part.beta <= high * (1 + EXACT)
    prob, truth = learnt.prior.believe(0.5, 5)
    assert np.isfinite(prob).all() and np.isfinite(truth).all() and (prob > 0).all() and learnt.converged
    assert np.isfinite(learnt.log_likelihood)


def test_an_assumed_prior_has_the_mean_of_the_labels() -> None:
    learnt = learn_prior(of_ones([1] * 29 + [0] * 69, [1] * 98), "ml")
    assert learnt.prior == Beta(0.6, 1.4)
    assert learnt.standard_errors == {} and learnt.p_value is None
    three = learn_prior(LabelCounts.of_counts([[2, 0, 1]]), "ml")
    assert three.prior == Dirichlet((1.5, 0.5, 1.0))


def test_an_answer_that_never_occurs() -> None:
    learnt = learn_prior(LabelCounts.of_counts([[3, 1, 0], [0, 4, 0], [2, 2, 0], [4, 0, 0]]), "ml")
    assert "An answer never occurs" in learnt.note
    assert min(learnt.prior.weights) >= 0.01


def test_on_a_cap_the_mean_still_has_a_standard_error() -> None:
    learnt = learn_prior(of_ones([5] * 30 + [6] * 10, [10] * 40), "ml")
    assert "capped at 999" in learnt.note
    # as for a share of 400 labels
    share = 210 / 400
    assert learnt.standard_errors["alpha"] == pytest.approx(999 * np.sqrt(share * (1 - share) / 400), rel=0.02)


def test_too_many_kinds_for_so_few_labels() -> None:
    counts = drawn(TWO_KINDS, 200, [3], 12)
    learnt = learn_prior(counts, "mixture", components=3, draws=99)
    assert "at most 3 labels cannot tell 3 kinds apart" in learnt.note and learnt.standard_errors == {}
    assert len(learn_prior(counts, "mixture", draws=99).prior.components) == 1


def test_unknown_methods_and_components_are_refused() -> None:
    counts = of_ones([1, 2], [3, 3])
    with pytest.raises(InputError, match="moments, ml, mixture"):
        learn_prior(counts, "bayes")
    with pytest.raises(InputError, match="4 components"):
        learn_prior(counts, "mixture", components=4)
    with pytest.raises(InputError, match="two answers"):
        learn_prior(LabelCounts.of_counts([[1, 1, 1], [2, 0, 1]]), "mixture")


def test_a_poor_fit_is_said_to_be_one() -> None:
    poor = LearntPrior(Beta(1, 1), "ml", -10.0, 2, 10, 20, p_value=0.001)
    assert recommend([poor])[1] == "Use ml: no other method was asked for; even so the fit is poor (p = 0.001)."


# --- the recorded sets ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "alpha", "beta"), [("rte", 1.8866, 1.3738), ("temp", 2.1050, 1.8328)])
def test_real_labels(data: Path, name: str, alpha: float, beta: float) -> None:
    counts = of_padded(find_set(data, name).said)
    found = compare_priors(counts)
    moments, ml, mixed = found.learnt
    assert (ml.prior.alpha, ml.prior.beta) == pytest.approx((alpha, beta), abs=PRINTED)

    def loss(x: np.ndarray) -> float:
        return -float(counts.tasks @ betabinom.logpmf(counts.ones, counts.labels, *np.exp(x))) / len(counts)

    other = np.exp(minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-14}).x)
    assert (ml.prior.alpha, ml.prior.beta) == pytest.approx(tuple(other), rel=DIFFERENCE)
    assert moments.log_likelihood < ml.log_likelihood < mixed.log_likelihood
    # two kinds of tasks, as there are two truths: one Beta has no room for them
    assert len(mixed.prior.components) == 2 and found.use is mixed and ml.p_value == 0.001
    assert [round(c.alpha / (c.alpha + c.beta), 1) for c in mixed.prior.components] == [0.3, 0.8]


# --- the command ----------------------------------------------------------------------------------


class Answer:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: Answer(run(["prior", *map(str, arguments)]), *capsys.readouterr())


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    counts = drawn(Beta(2, 1), 120, [5], 13)
    lines, task = ["task,worker,label"], 0
    for ones, m, tasks in zip(counts.ones, counts.labels, counts.tasks, strict=True):
        for _ in range(tasks):
            task += 1
            lines += [f"t{task},w{i},{int(i < ones)}" for i in range(m)]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "labels.csv"


def test_the_table_and_the_line_for_the_problem_file(call: Any, labels: Path) -> None:
    answer = call(labels)
    assert answer.code == 0 and answer.err.splitlines()[0].endswith(
        "600 rows read (CSV, commas, UTF-8), 600 labels used."
    )
    for word in ("moments", "ml", "mixture", "BIC", "fit p", "Use ml: one Beta does", "120 tasks with 600 labels"):
        assert word in answer.out
    line = answer.out.strip().splitlines()[-1]
    prior = prior_from(tomllib.loads(line)["prior"])
    learnt = learn_prior(LabelCounts.of_labels(read_labels(labels)), "ml")
    assert (prior.alpha, prior.beta) == pytest.approx((learnt.prior.alpha, learnt.prior.beta), rel=1e-5)


def test_json_and_seed(call: Any, labels: Path) -> None:
    answer = call(labels, "--json", "--method", "mixture", "--components", "2", "--seed", "3")
    assert answer.code == 0
    found = json.loads(answer.out)
    assert (found["tasks"], found["labels"], found["use"], found["seed"]) == (120, 600, "mixture", 3)
    row = found["methods"][0]
    assert {"method", "prior", "standard_errors", "log_likelihood", "bic", "p_value", "note", "converged"} <= set(row)
    assert len(row["prior"]["weights"]) == 2 and row["parameters"] == 5
    assert prior_from(tomllib.loads(found["toml"])["prior"]).kind == "mixture"
    again = json.loads(call(labels, "--json", "--method", "mixture", "--components", "2", "--seed", "3").out)
    assert again["methods"] == found["methods"]


def test_a_learnt_mixture_is_a_problem(call: Any, data: Path, tmp_path: Path) -> None:
    """From the labels of TEMP to a bound, by way of the line that is printed."""
    toml = json.loads(call(data / "temp" / "labels.csv", "--json").out)["toml"]
    (tmp_path / "p.toml").write_text(f"budget = 12\n[[tasks]]\ncount = 10\n{toml}\n")
    assert run(["bound", "--problem", str(tmp_path / "p.toml")]) == 0


def test_out_leaves_figure_table_and_manifest(call: Any, labels: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    answer = call(labels, "--out", tmp_path / "out")
    assert answer.code == 0 and "Wrote prior.png, prior.csv, manifest.json" in answer.err
    assert (tmp_path / "out" / "prior.png").read_bytes().startswith(PNG)
    with (tmp_path / "out" / "prior.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 6 and sum(int(row["observed"]) for row in rows) == 120
    assert sum(float(row["expected_ml"]) for row in rows) == pytest.approx(120, abs=PRINTED)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["command"].startswith("nextlabel prior") and manifest["use"] == "ml" and manifest["seed"] == 0


def test_the_figure_of_uneven_tasks_and_a_spike() -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    counts = of_ones([5, 0, 3, 1, 30], [5, 4, 3, 7, 30])
    figure = prior_figure(counts, compare_priors(counts, draws=99).learnt)
    assert len(figure.axes) == 2 and len(figure.axes[0].patches) == 11


def test_what_was_assumed_is_said_on_stderr(call: Any, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("task,worker,label\na,w,1\nb,w,0\n")
    answer = call(tmp_path / "l.csv")
    assert answer.code == 0 and "the labels alone do not determine a prior" in answer.out
    assert answer.err.splitlines()[-1].startswith("moments and ml and mixture: No task has two labels or more")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv"], "there is no file"),
        (["labels.csv", "--task-column", "item"], "it has the columns task, worker, label"),
        (["labels.csv", "--positive", "2"], "the labels are"),
        (["labels.csv", "--seed", "x"], "not a whole number"),
        (["labels.csv", "--method", "bayes"], "'bayes' is not one of"),
        (["labels.csv", "--components", "7"], "'7' is not one of"),
        (["labels.csv", "--out", "labels.csv"], "is not a folder"),
        ([], "missing argument"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    call: Any, labels: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(labels.parent)
    answer = call(*arguments)
    assert answer.code == 2 and answer.out == ""
    assert message in answer.err and len(answer.err.strip().splitlines()) == 1


def test_the_command_learns_any_number_of_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, path = np.random.default_rng(4), tmp_path / "labels.csv"
    rows = [
        f"t{k},w{w},{'abcd'[rng.choice(4, p=p)]}"
        for k in range(60)
        for p in [rng.dirichlet((1, 2, 1, 1))]
        for w in range(5)
    ]
    path.write_text("\n".join(["task,worker,label", *rows]) + "\n")
    assert run(["prior", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_method = {one["method"]: one["prior"] for one in found["methods"]}
    learnt = compare_priors(LabelCounts.of_labels(read_labels(path)))
    assert by_method == {one.method: list(one.prior.weights) for one in learnt.learnt}  # type: ignore[attr-defined]
    assert set(by_method) == {"moments", "ml"} and len(found["shares"]) == 4
    assert run(["prior", str(path)]) == 0
    assert "Dirichlet(" in capsys.readouterr().out
    assert run(["prior", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "--positive" in capsys.readouterr().err and not (tmp_path / "out").exists()
