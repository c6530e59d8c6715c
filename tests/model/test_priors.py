"""Priors, lattices and rewards beyond Beta: against closed forms, independent quadrature and each other."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_expit, logit

from exact_tasks import DIGITS, ExactTask
from nextlabel.errors import ProblemError
from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.density import Histogram, LogitNormal
from nextlabel.model.dirichlet import RELATIVE_ERROR, Dirichlet
from nextlabel.model.fact import OneCoin
from nextlabel.model.lattice import make_lattice, stack_lattices
from nextlabel.model.prior import Prior
from nextlabel.model.rewards import Accuracy, SquaredError, Utility
from nextlabel.model.simplex import counts_of_node, deepest, node_of_counts, nodes_of, simplex
from tolerances import ROUNDING

weights = st.floats(0.05, 30.0)
KINDS: list[Prior] = [
    Beta(2, 1),
    BetaMixture((0.6, 0.4), (Beta(8, 2), Beta(1, 1.5))),
    Histogram((0, 0.2, 0.7, 1), (0.2, 0.3, 0.5)),
    LogitNormal(0.4, 1.3),
    OneCoin(0.4, 0.7),
    OneCoin(0.4, 1.0),
    Dirichlet((1, 1, 1)),
    Dirichlet((0.5, 2, 1, 4)),
]


# The lattice


@pytest.mark.parametrize("answers", [2, 3, 4, 6])
def test_children_have_one_more_label(answers: int) -> None:
    depth = 6
    first, child, counts = simplex(answers, depth)
    assert first[-1] == nodes_of(answers, depth) == len(counts)
    for m in range(depth):
        for node in range(first[m], first[m + 1]):
            for j in range(answers):
                more = counts[node].copy()
                more[j] += 1
                assert counts[child[node, j]].tolist() == more.tolist()
    assert len({tuple(row) for row in counts.tolist()}) == len(counts)


def test_two_answers_are_the_triangle() -> None:
    first, _, counts = simplex(2, 9)
    for m in range(10):
        assert counts[first[m] : first[m + 1], 1].tolist() == list(range(m + 1))


@given(st.lists(st.integers(0, 5), min_size=2, max_size=4))
def test_states_are_found_again(counts: list[int]) -> None:
    assert counts_of_node(len(counts), node_of_counts(counts)) == tuple(counts)


def test_large_alphabets_get_shallow_lattices() -> None:
    assert deepest(2) >= 1000
    assert nodes_of(10, deepest(10)) <= 150_000 < nodes_of(10, deepest(10) + 1)


# Every prior


@pytest.mark.parametrize("prior", KINDS, ids=lambda p: p.describe())
def test_beliefs_are_martingales(prior: Prior) -> None:
    first, child, _ = simplex(prior.answers, 9)
    prob, truth = prior.believe(0.5, 9)
    assert np.abs(prob.sum(axis=1) - 1).max() < ROUNDING
    assert np.abs(truth.sum(axis=1) - 1).max() < ROUNDING
    inner = slice(0, int(first[9]))
    after = np.einsum("nj,njq->nq", prob[inner], truth[child[inner]])
    possible = _possible(prior, 9)[inner]
    assert np.abs(after - truth[inner])[possible].max() < ROUNDING


@pytest.mark.parametrize("prior", KINDS, ids=lambda p: p.describe())
def test_labels_are_exchangeable(prior: Prior) -> None:
    """P(j then k) = P(k then j)."""
    first, child, _ = simplex(prior.answers, 6)
    prob, _ = prior.believe(0.5, 6)
    for node in range(int(first[5])):
        for j, k in product(range(prior.answers), repeat=2):
            one = prob[node, j] * prob[child[node, j], k]
            other = prob[node, k] * prob[child[node, k], j]
            if _possible(prior, 6)[node]:
                assert abs(one - other) < ROUNDING


@pytest.mark.parametrize("prior", KINDS, ids=lambda p: p.describe())
def test_several_priors_of_one_kind_are_each_on_their_own(prior: Prior) -> None:
    other = {"beta": Beta(5, 0.5), "one-coin": OneCoin(0.9, 0.8)}.get(prior.kind, prior)
    prob, truth = type(prior).believe_all([prior, other], np.array([0.5, 0.3]), 7)
    for b, (one, d) in enumerate([(prior, 0.5), (other, 0.3)]):
        own_prob, own_truth = one.believe(d, 7)
        assert np.abs(prob[b] - own_prob).max() < ROUNDING
        assert np.abs(truth[b] - own_truth).max() < ROUNDING


def _possible(prior: Prior, depth: int) -> np.ndarray:
    _, _, counts = simplex(prior.answers, depth)
    if isinstance(prior, OneCoin) and prior.accuracy == 1.0:
        return np.asarray((counts > 0).sum(axis=1) < 2)
    return np.ones(len(counts), dtype=bool)


# Special cases


@given(weights, weights)
def test_dirichlet_with_two_answers_is_beta(a: float, b: float) -> None:
    prob, truth = Dirichlet((b, a)).believe(0.5, 12)
    beta_prob, beta_truth = Beta(a, b).believe(0.5, 12)
    assert np.abs(prob - beta_prob).max() < ROUNDING
    assert np.abs(truth - beta_truth).max() < ROUNDING


@pytest.mark.parametrize("w", [(1, 1), (0.05, 0.05), (300, 280)])
def test_dirichlet_with_two_answers_is_beta_after_many_labels(w: tuple[float, float]) -> None:
    _, truth = Dirichlet(w).believe(0.5, 300)
    _, beta_truth = Beta(w[1], w[0]).believe(0.5, 300)
    assert np.abs(truth - beta_truth).max() < ROUNDING


@pytest.mark.parametrize(
    "weights",
    [(0.5, 0.7, 2.0), (1.0, 1.0, 90.0), (100.0, 101.0, 99.0, 60.0), (1e4, 1.0001e4, 0.99e4), (1e5, 1.0001e5, 1.0002e5)],
)
def test_dirichlet_against_fifty_digits(weights: tuple[float, ...]) -> None:
    """Twelve digits of every probability, also of 1e-27 and with weights of 10^5, and no fewer after more labels."""
    start = (0,) * len(weights)
    digits = DIGITS if max(weights) < 1000 else 25
    with mpmath.workdps(digits):
        known = ExactTask(Dirichlet(weights), 0.5, Accuracy()).beliefs(0)
        exact = [known.weight(start, q) for q in range(len(weights))]
        assert abs(mpmath.fsum(exact) - 1) < 10.0 ** (5 - digits)
        for depth in (0, 3, 12):
            truth = Dirichlet(weights).believe(0.5, depth)[1][0]
            assert max(abs(mpmath.mpf(float(x)) / e - 1) for x, e in zip(truth, exact, strict=True)) < RELATIVE_ERROR


def test_dirichlet_against_fractions() -> None:
    """Whole weights: P(theta_0 is the largest) by the order of exponentials' sums, in exact fractions.

    For gammas of whole shape, P(G_a > G_b and G_a > G_c) is a polynomial identity; here by inclusion and exclusion
    of negative multinomial chances: G_b < G_a iff b events of kind b come before a events of kind a.
    """
    _, truth = Dirichlet((1, 1, 1)).believe(0.5, 5)
    for counts in [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 1, 1), (0, 2, 3), (2, 2, 1)]:
        node = node_of_counts(counts)
        for q in range(3):
            assert truth[node, q] == pytest.approx(float(_largest_in_fractions(counts, q)), abs=1e-13)


def _largest_in_fractions(counts: tuple[int, ...], q: int) -> Fraction:
    """Gamma q is the largest: all others' events are through before its own. Race of three Poisson streams."""
    need = tuple(c + 1 for c in counts)

    def chance(left: tuple[int, ...]) -> Fraction:
        if left[q] == 0:
            return Fraction(all(left[j] == 0 for j in range(3) if j != q))
        total = Fraction(0)
        for j in range(3):
            after = list(left)
            after[j] = max(after[j] - 1, 0)
            if tuple(after) != left:
                total += chance(tuple(after))
        idle = sum(1 for j in range(3) if j != q and left[j] == 0)
        return total / (3 - idle)

    return chance(need)


def test_a_mixture_of_one_is_its_component() -> None:
    for d in (0.5, 0.3):
        prob, truth = BetaMixture((2.0,), (Beta(3, 2),)).believe(d, 20)
        beta_prob, beta_truth = Beta(3, 2).believe(d, 20)
        assert np.abs(prob - beta_prob).max() < ROUNDING
        assert np.abs(truth - beta_truth).max() < ROUNDING


def test_a_weight_of_nought_drops_the_component() -> None:
    assert BetaMixture((1.0, 0.0), (Beta(3, 2), Beta(1, 1))) == BetaMixture((1.0,), (Beta(3, 2),))


@pytest.mark.parametrize("depth", [3, 40, 200])
def test_a_flat_histogram_is_the_uniform_prior(depth: int) -> None:
    prob, truth = Histogram((0, 0.1, 0.6, 1), (0.1, 0.5, 0.4)).believe(0.35, depth)
    beta_prob, beta_truth = Beta(1, 1).believe(0.35, depth)
    assert np.abs(prob - beta_prob).max() < ROUNDING
    assert np.abs(truth - beta_truth).max() < ROUNDING


@pytest.mark.parametrize("counts", [(0, 0), (3, 1), (12, 0), (30, 34), (0, 64)])
@pytest.mark.parametrize(("mean", "sd"), [(0.4, 1.3), (-2.0, 0.2), (0.0, 4.0)])
def test_logit_normal_against_adaptive_quadrature(mean: float, sd: float, counts: tuple[int, int]) -> None:
    a, b = counts
    d = 0.6
    prob, truth = LogitNormal(mean, sd).believe(d, 64)
    grid = np.linspace(mean - 12 * sd, mean + 12 * sd, 4001)
    shift = max(_log_likelihood(z, a, b, mean, sd) for z in grid)
    edges = sorted(
        {float(grid[0]), float(grid[-1]), float(np.clip(logit(d), grid[0], grid[-1])), *grid[::100].tolist()}
    )

    def piece(lo: float, hi: float, more: int) -> float:
        def integrand(z: float) -> float:
            return float(np.exp(_log_likelihood(z, a + more, b, mean, sd) - shift))

        return float(quad(integrand, lo, hi, epsabs=1e-16, epsrel=1e-12)[0])

    pieces = list(pairwise(edges))
    mass = np.array([piece(lo, hi, 0) for lo, hi in pieces])
    above = np.array([lo >= logit(d) - 1e-12 for lo, _ in pieces])
    ones = sum(piece(lo, hi, 1) for lo, hi in pieces)
    node = node_of_counts(counts)
    assert truth[node, 1] == pytest.approx(mass[above].sum() / mass.sum(), abs=1e-11)
    assert prob[node, 1] == pytest.approx(ones / mass.sum(), abs=1e-11)


def _log_likelihood(z: float, a: int, b: int, mean: float, sd: float) -> float:
    return float(a * log_expit(z) + b * log_expit(-z) - 0.5 * ((z - mean) / sd) ** 2)


@given(st.floats(0.02, 0.98), st.floats(0.5, 0.99), st.integers(0, 6), st.integers(0, 6))
def test_one_coin_is_bayes_rule(pi: float, q: float, a: int, b: int) -> None:
    prob, truth = OneCoin(pi, q).believe(0.5, 12)
    yes, no = pi * q**a * (1 - q) ** b, (1 - pi) * q**b * (1 - q) ** a
    node = node_of_counts((a, b))
    assert truth[node, 1] == pytest.approx(yes / (yes + no), abs=1e-12)
    assert prob[node, 1] == pytest.approx((yes * q + no * (1 - q)) / (yes + no), abs=1e-12)


def test_certain_workers_tell_at_once() -> None:
    lattice = make_lattice(OneCoin(0.3, 1.0), 0.5, 4)
    assert lattice.reward[:3].tolist() == [0.7, 1.0, 1.0]
    certain = make_lattice(OneCoin(1.0, 0.8), 0.5, 4)
    assert np.all(certain.reward == 1.0)


# Rewards


@pytest.mark.parametrize("prior", KINDS, ids=lambda p: p.describe())
@pytest.mark.parametrize("reward", [Accuracy(), Accuracy(7.0), SquaredError(), SquaredError(3.0)])
def test_no_label_hurts_and_none_beats_the_ceiling(prior: Prior, reward: Accuracy | SquaredError) -> None:
    lattice = make_lattice(prior, 0.5, 7, reward)
    assert lattice.nodes == nodes_of(prior.answers, 7)
    inner = int(lattice.first[7])
    after = (lattice.prob[:inner] * lattice.reward[lattice.child[:inner]]).sum(axis=1)
    possible = _possible(prior, 7)[:inner]
    assert np.all((after - lattice.reward[:inner])[possible] >= -ROUNDING)
    assert np.all(lattice.ceiling - lattice.reward >= -ROUNDING)


def test_utility_of_right_answers_is_accuracy() -> None:
    plain = make_lattice(Dirichlet((1, 2, 3)), 0.5, 6)
    matrix = tuple(tuple(float(a == q) for q in range(3)) for a in range(3))
    same = make_lattice(Dirichlet((1, 2, 3)), 0.5, 6, Utility(matrix))
    assert np.abs(plain.reward - same.reward).max() < ROUNDING
    assert np.abs(plain.ceiling - same.ceiling).max() < ROUNDING


def test_utility_and_abstention_by_hand() -> None:
    """A miss (truth 1, said 0) costs 5, a false alarm 1, abstaining gives 0.3 whatever the truth."""
    lattice = make_lattice(OneCoin(0.5, 0.8), 0.5, 2, Utility(((1, -5), (-1, 1)), abstain=0.3))
    assert lattice.reward[0] == pytest.approx(0.3)  # -2, 0 or 0.3
    assert lattice.reward[node_of_counts((1, 0))] == pytest.approx(0.8 - 0.2)
    assert lattice.reward[node_of_counts((0, 2))] == pytest.approx(max((0.64 - 5 * 0.04) / 0.68, 0.3))
    assert lattice.ceiling[0] == pytest.approx(1.0)


@given(weights, weights)
def test_squared_error_is_the_variance_of_beta(a: float, b: float) -> None:
    lattice = make_lattice(Beta(a, b), 0.5, 5, SquaredError())
    for ones, zeros in [(0, 0), (2, 1), (0, 5), (5, 0)]:
        x, y = a + ones, b + zeros
        variance = x * y / ((x + y) ** 2 * (x + y + 1))
        assert lattice.reward[node_of_counts((ones, zeros))] == pytest.approx(-variance, abs=1e-13)


def test_mixed_kinds_and_rewards_keep_their_order() -> None:
    priors: list[Prior] = [OneCoin(0.5, 0.7), Beta(1, 1), OneCoin(0.2, 0.9), Beta(2, 1), Beta(1, 1)]
    rewards = [Accuracy(), Accuracy(), Accuracy(2.0), SquaredError(), Utility(((1, 0), (0, 2)))]
    stack = stack_lattices(priors, [0.5] * 5, rewards, 6)
    for b, (prior, reward) in enumerate(zip(priors, rewards, strict=True)):
        own = make_lattice(prior, 0.5, 6, reward)
        assert np.abs(stack.reward[b] - own.reward).max() < ROUNDING
        assert np.abs(stack.prob[b] - own.prob).max() < ROUNDING
        assert np.abs(stack.ceiling[b] - own.ceiling).max() < ROUNDING


# Refusals


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Dirichlet((1,)), "Dirichlet"),
        (lambda: Dirichlet((1, 0, 1)), "Dirichlet"),
        (lambda: BetaMixture((0.5,), (Beta(1, 1), Beta(2, 1))), "weights"),
        (lambda: BetaMixture((-1, 2), (Beta(1, 1), Beta(2, 1))), "weights"),
        (lambda: Histogram((0, 0.5), (1, 1)), "bins"),
        (lambda: Histogram((0.5, 0.2), (1,)), "rise"),
        (lambda: LogitNormal(0, 0), "logit-normal"),
        (lambda: OneCoin(1.2, 0.8), "probability"),
        (lambda: OneCoin(0.5, 0.3), "accuracy"),
        (lambda: Accuracy(0), "value"),
        (lambda: Utility(((1, 0), (1,))), "matrix"),
        (lambda: Utility(()), "matrix"),
        (lambda: SquaredError(float("nan")), "scale"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(make: object, words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        make()  # type: ignore[operator]


def test_the_counts_of_a_node_need_no_lattice():
    counts = (3, 0, 5, 9, 0, 0, 1, 2, 7, 4)  # ten answers: lattices end at 15 labels
    assert counts_of_node(10, node_of_counts(counts)) == counts
