"""One contract for all policies, and the simple ones against their formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import beta as beta_law

from nextlabel.errors import InputError
from nextlabel.kernels.choice import confidence, drawn, score_of, spaced_quantile
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.policies.auto import Auto
from nextlabel.policies.base import ClassView, Policy, ScoreTables, Setting
from nextlabel.policies.overlap import Overlap
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.policies.rollout_arrays import make_policy_arrays
from nextlabel.policies.thompson import quantiles
from nextlabel.simulation.study import simulate
from tolerances import REWARD, ROUNDING

ALL = sorted(POLICIES)
#: Quantiles at levels next to 1, which a float resolves worse than those next to 0.
TAIL = 1e-5
#: They rank by prices of an infinite campaign.
PLANNED = {"lagrangian", "resolve"}
#: Rules that favour positive labels by design.
LOPSIDED = {"ucb1-tuned-literal"}

SAME = Problem.identical(6, 9, arrival_rate=1.0)
MIXED = Problem((TaskClass(3), TaskClass(1, Beta(3, 1.5), 0.6), TaskClass(2, Beta(0.6, 2.2), 0.3)), 9, 1.0, 0.4)
SHORT = Problem((TaskClass(2), TaskClass(1, Beta(2, 1), 0.6)), 4, 1.0, 0.4, 3.0)


#: Re-solving takes its time, so it gets less to do.
FEW = Problem((TaskClass(2), TaskClass(1, Beta(3, 1.5), 0.6)), 4, 1.0, 0.4)


def mixed_for(name: str) -> Problem:
    return FEW if name in PLANNED else MIXED


@cache
def tables_of(name: str, problem: Problem) -> tuple[Setting, list[ScoreTables]]:
    setting = Setting.of(problem)
    return setting, make_policy(name).scores(setting)


def dense(scores: ScoreTables, view: ClassView, n: int) -> np.ndarray:
    """(flight + 1, nodes) scores with n arrivals left, by the kernel's own look-up."""
    shape = scores.static.shape
    rows = np.zeros((0, 0, 1)) if scores.rows is None else scores.rows
    core = np.full(shape, -1, dtype=np.int64) if scores.core is None else scores.core
    column = core.ravel() if len(rows) else np.full(core.size, -1, dtype=np.int64)
    table = [score_of(scores.static.ravel(), rows, column, n, 0, 0.0, s) for s in range(core.size)]
    return np.array(table).reshape(shape)


def possible(view: ClassView) -> np.ndarray:
    """States that can be given one more label."""
    flight = np.arange(view.flight + 1)[:, None]
    return (view.given < view.lattice.depth) & (flight < view.flight)


def mirror(view: ClassView) -> np.ndarray:
    """The node with ones and zeros exchanged, for every node."""
    return view.level * (view.level + 1) // 2 + view.level - view.ones


# --------------------------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize("name", ALL)
class TestContract:
    def test_name_and_words(self, name: str) -> None:
        policy = make_policy(name)
        assert isinstance(policy, Policy)
        assert policy.name == name
        assert policy.in_flight
        assert type(policy).__doc__
        assert policy.tied >= 0

    @pytest.mark.parametrize("problem", [SAME, MIXED, MIXED.with_budget(1)], ids=["same", "mixed", "one label"])
    def test_tables(self, name: str, problem: Problem) -> None:
        setting, scores = tables_of(name, problem)
        assert len(scores) == len(problem.classes)
        for one, view in zip(scores, setting.views, strict=True):
            shape = (setting.flight + 1, view.nodes)
            assert one.static.shape == shape
            assert one.static.dtype == np.float64
            assert (one.rows is None) == (one.core is None)
            if one.rows is not None and one.core is not None:
                assert one.rows.ndim == 3
                assert 1 <= one.rows.shape[0] <= problem.budget
                assert one.rows.shape[2] == 1
                assert one.core.shape == shape
                assert one.core.min() >= -1 and one.core.max() < one.rows.shape[1]
                assert np.isfinite(one.rows).all()
            if one.planned is not None:
                assert one.rows is not None
                assert one.planned.shape == (problem.budget, one.rows.shape[1])
                assert np.all(np.diff(one.planned, axis=0) >= -ROUNDING)
            for n in (1, problem.budget):
                table = dense(one, view, n)[possible(view)]
                assert not np.isnan(table).any()
                assert np.all(view.given[possible(view)][np.isposinf(table)] == 0)
                assert not np.isneginf(table[view.given[possible(view)] == 0]).any()
            if one.facts is not None:
                assert one.facts.shape == (view.nodes, 2)
                assert np.isfinite(one.facts).all()

    def test_tables_are_deterministic(self, name: str) -> None:
        problem = mixed_for(name)
        _, scores = tables_of(name, problem)
        again = make_policy(name).scores(Setting.of(problem))
        for one, two in zip(scores, again, strict=True):
            for part in ("static", "rows", "core", "tau", "planned", "facts", "quantiles"):
                x, y = getattr(one, part), getattr(two, part)
                assert (x is None) == (y is None)
                assert x is None or np.array_equal(x, y)

    def test_same_seed_same_campaigns(self, name: str) -> None:
        problem = mixed_for(name)
        count = 3 if name == "resolve" else 60
        bound = bound_of(problem)
        one, two, other = (
            simulate(problem, [name], replications=count, seed=seed, bound=bound).results[0] for seed in (5, 5, 6)
        )
        assert np.array_equal(one.rewards, two.rewards)
        assert np.array_equal(one.gaps, two.gaps)
        assert not np.array_equal(one.gaps, other.gaps) or not np.array_equal(one.rewards, other.rewards)

    def test_flip_symmetry(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        # Which of its two rules auto takes is found by chance, and draws are not mirrored.
        monkeypatch.setattr(Auto, "is_behind", lambda *_: False)
        if name in LOPSIDED:
            setting, (one,) = tables_of(name, SAME)
            assert one.facts is not None
            assert not np.allclose(one.facts, one.facts[mirror(setting.views[0])])
            return
        budget = 4 if name in PLANNED else 7
        there = Problem((TaskClass(4, Beta(2.5, 0.7), 0.375),), budget, 1.0, 0.4)
        back = Problem((TaskClass(4, Beta(0.7, 2.5), 0.625),), budget, 1.0, 0.4)
        for a, b in ((SAME, SAME), (there, back)):
            setting, (one,) = tables_of(name, a)
            _, (two,) = tables_of(name, b)
            view = setting.views[0]
            flipped = mirror(view)
            possible_now = possible(view)
            for n in {1, 2, a.budget}:
                x, y = dense(one, view, n), dense(two, view, n)[:, flipped]
                assert x[possible_now] == pytest.approx(y[possible_now], abs=SEARCHED.get(name, 1e-12))
            if one.quantiles is not None and one.facts is not None and two.facts is not None:
                assert two.quantiles is not None
                assert one.facts == pytest.approx(two.facts[flipped][:, ::-1], abs=REWARD)
                assert one.quantiles == pytest.approx(1.0 - two.quantiles[flipped][:, ::-1], abs=TAIL)
            elif one.facts is not None and two.facts is not None:
                assert one.facts[:, 0] == pytest.approx(two.facts[flipped, 0], abs=REWARD)
                assert one.facts[:, 1] == pytest.approx(1.0 - two.facts[flipped, 1], abs=REWARD)

    def test_one_label(self, name: str) -> None:
        # Whoever gets it: one task at 3/4, five at 1/2.
        result = simulate(SAME.with_budget(1), [name], replications=3).results[0]
        assert result.rewards == pytest.approx(np.full(3, 5 * 0.5 + 0.75), abs=REWARD)
        assert (result.labels_used, result.most_labels) == (1.0, 1)

    def test_finite_horizon(self, name: str) -> None:
        many = 5 if name == "resolve" else 50
        result = simulate(SHORT, [name], replications=many, bound=bound_of(SHORT)).results[0]
        assert 0 < result.labels_used < 4
        assert result.gap is not None and np.mean(result.gaps) > 0
        assert 0.5 < result.per_task.mean < 1

    def test_beats_nothing_and_not_the_bound(self, name: str) -> None:
        count = 4 if name == "resolve" else 2000
        problem = mixed_for(name)
        result = simulate(problem, [name], replications=count, seed=1, bound=bound_of(problem)).results[0]
        nothing = sum(c.count * c.lattice(1).reward[0] for c in problem.classes)
        assert result.rewards.mean() > nothing
        assert result.gap is not None
        assert result.gap.mean > -result.gap.half_width - 1e-9
        if name != "resolve":
            assert result.per_task.mean <= bound_of(problem).per_task + 2 * result.per_task.half_width


#: PolicyArrays that come out of a search agree to what the search promises.
SEARCHED = {"auto": 2e-6, "index": 2e-6, "lagrangian": 2e-3, "resolve": 2e-3}


@cache
def bound_of(problem: Problem):  # type: ignore[no-untyped-def]
    from nextlabel.solve.bound import upper_bound

    return upper_bound(problem)


def test_unknown_policy_lists_the_known() -> None:
    with pytest.raises(InputError, match="policy 'best' is not known") as refused:
        make_policy("best")
    for name in POLICIES:
        assert name in refused.value.hint


# --------------------------------------------------------------------------------------------------- the formulas


def R(entry: TaskClass, a: int, b: int) -> float:
    below = float(betainc(entry.prior.alpha + a, entry.prior.beta + b, entry.threshold))
    return max(below, 1 - below)


def mean(entry: TaskClass, a: int, b: int) -> float:
    return (entry.prior.alpha + a) / (entry.prior.alpha + entry.prior.beta + a + b)


def lucky(entry: TaskClass, a: int, b: int, w: int) -> float:
    """E[max(R1, R2)] over the outcomes of w labels in flight."""
    if w == 0:
        return max(R(entry, a + 1, b), R(entry, a, b + 1)) - R(entry, a, b)
    p = mean(entry, a, b)
    return p * lucky(entry, a + 1, b, w - 1) + (1 - p) * lucky(entry, a, b + 1, w - 1)


def gain(entry: TaskClass, a: int, b: int, w: int) -> float:
    p = mean(entry, a, b)
    return p * R(entry, a + 1, b) + (1 - p) * R(entry, a, b + 1) - R(entry, a, b)


def off(entry: TaskClass, a: int, b: int) -> float:
    return abs(a / (a + b) - entry.threshold) if a + b else 0.0


FORMULAS: dict[str, Callable[[TaskClass, int, int, int], float]] = {
    "kg": gain,
    "kg-random": gain,
    "okg": lambda c, a, b, w: lucky(c, a, b, 0),
    "okg-idle": lambda c, a, b, w: lucky(c, a, b, 0) if w == 0 else -1 / (1 + lucky(c, a, b, 0)),
    "okg-pending": lucky,
    "uncertainty": lambda c, a, b, w: 0.5 - abs(betainc(c.prior.alpha + a, c.prior.beta + b, c.threshold) - 0.5),
    "uniform": lambda c, a, b, w: -(a + b + w),
    "random": lambda c, a, b, w: 0.0,
    "apt": lambda c, a, b, w: -math.sqrt(a + b + w) * off(c, a, b) if a + b + w else 1.0,
    "lsa": lambda c, a, b, w: -((a + b + w) * off(c, a, b) ** 2 + math.log(a + b + w) / 2) if a + b + w else 1.0,
}


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_scores_are_their_formulas(name: str) -> None:
    setting, scores = tables_of(name, MIXED)
    for one, view in zip(scores, setting.views, strict=True):
        assert one.rows is None
        for w in range(setting.flight):
            for m in range(setting.depth - w):
                for a in range(m + 1):
                    expected = FORMULAS[name](view.entry, a, m - a, w)
                    assert one.static[w, m * (m + 1) // 2 + a] == pytest.approx(expected, abs=1e-12), (a, m - a, w)


def test_every_policy_has_a_formula_or_a_test_of_its_own() -> None:
    solved, counted, own = (
        {"auto", "index", "lagrangian", "resolve"},
        {"ucb1-tuned", "ucb1-tuned-literal"},
        {"thompson", "overlap"},
    )
    assert set(FORMULAS) | solved | counted | own == set(POLICIES)


@pytest.mark.parametrize("name", ["ucb1-tuned", "ucb1-tuned-literal"])
def test_confidence_bound(name: str) -> None:
    setting, scores = tables_of(name, MIXED)
    for one, view in zip(scores, setting.views, strict=True):
        d = view.threshold
        for N, a, b, w in ((1, 1, 0, 0), (2, 1, 1, 0), (7, 3, 2, 1), (8, 0, 4, 3), (5, 0, 0, 2)):
            node, m = (a + b) * (a + b + 1) // 2 + a, a + b + w
            phat = a / (a + b) if a + b else d
            v = phat * (1 - phat) + math.sqrt(2 * math.log(N) / m)
            base = phat if name.endswith("literal") else 1 - 2 * abs(phat - d)
            expected = base + math.sqrt(math.log(N) / m * min(0.25, v))
            assert confidence(one.facts, m, node, math.log(N)) == pytest.approx(expected, abs=1e-12)
        assert confidence(one.facts, 0, 0, math.log(4)) == math.inf


def test_thompson_draws_from_the_posterior() -> None:
    setting, scores = tables_of("thompson", MIXED)
    levels = (np.arange(4000) + 0.5) / 4000
    for one, view in zip(scores, setting.views, strict=True):
        for a, b in ((0, 0), (2, 1), (0, 5)):
            node = (a + b) * (a + b + 1) // 2 + a
            law = beta_law(view.entry.prior.alpha + a, view.entry.prior.beta + b)
            draws = np.array([spaced_quantile(one.quantiles, node, u) for u in levels])
            assert draws == pytest.approx(law.ppf(levels), abs=2e-3)
            assert np.all(np.diff(draws) >= 0)


@pytest.mark.parametrize(("members", "w"), [(1, 0), (5, 0), (1, 2), (4, 1)])
def test_best_of_several_draws(members: int, w: int) -> None:
    """The best of g tasks in a state has the law of the best of g independent draws."""
    problem = Problem((TaskClass(6, Beta(2, 1), 0.6),), 9, 1.0, 0.4)
    setting, _ = tables_of("thompson", problem)
    view, tables = setting.views[0], make_policy_arrays(setting, make_policy("thompson"))
    a, b, size = 1, 1, 4000
    node = (a + b) * (a + b + 1) // 2 + a
    mine = np.array(
        [
            drawn(tables.facts, tables.quantiles, view.lattice.child, w, node, members, np.uint64(77), ell, 0)
            for ell in range(size)
        ]
    )
    rng = np.random.default_rng(1)
    theta = rng.beta(2 + a, 1 + b, (size, members))
    ones = a + rng.binomial(w, theta)
    at = (a + b + w) * (a + b + w + 1) // 2 + ones
    gains = view.gains[at]
    other = (gains[..., 0] + theta * (gains[..., 1] - gains[..., 0])).max(axis=1)
    error = math.hypot(mine.std(), other.std()) / math.sqrt(size)
    assert mine.mean() == pytest.approx(other.mean(), abs=4 * error)
    assert mine.std() == pytest.approx(other.std(), rel=0.1)


class TestOverlap:
    VIEW = Setting.of(Problem.identical(4, 12)).views[0]

    def at(self, policy: Overlap, a: int, b: int, w: int = 0) -> float:
        return float(policy.score(self.VIEW)[w, (a + b) * (a + b + 1) // 2 + a])

    @pytest.mark.parametrize("kind", ["toloka", "appen"])
    def test_tiers(self, kind: str) -> None:
        policy = Overlap(kind, q=0.8, confidence=0.9, least=2, most=8)
        started, still_open, closed = self.at(policy, 1, 0), self.at(policy, 2, 2), self.at(policy, 4, 0)
        assert self.at(policy, 0, 0) > started > still_open > closed
        assert self.at(policy, 4, 4) < self.at(policy, 3, 4)  # closed at ``most`` however unsure
        assert self.at(policy, 2, 2) > self.at(policy, 2, 2, 1) > self.at(policy, 3, 2)  # fewest in flight first

    def test_confidence(self) -> None:
        toloka = Overlap("toloka", q=0.75, confidence=2.0, most=99)
        for a, b in ((1, 1), (3, 1), (2, 5)):
            assert self.at(toloka, a, b) == pytest.approx(100 - 1 / (1 + (1 / 3) ** abs(a - b)), abs=ROUNDING)
        appen = Overlap("appen", confidence=2.0, most=99)
        for a, b in ((1, 1), (3, 1), (2, 5)):
            assert self.at(appen, a, b) == pytest.approx(100 - max(a, b) / (a + b), abs=ROUNDING)


def test_policies_know_what_they_say_of_work_in_flight() -> None:
    for name in POLICIES:
        policy = make_policy(name)
        setting, scores = tables_of(name, SAME)
        table = dense(scores[0], setting.views[0], SAME.budget)[: setting.flight - 1, :3]
        blind = bool(np.all(table == table[0]))
        if scores[0].facts is None:
            assert blind == (policy.in_flight == "nothing"), name


def test_table_of_index_given() -> None:
    from nextlabel.policies.index import Index
    from nextlabel.solve.index import index_table

    table = index_table(SAME, tolerance=1e-6)
    one = simulate(SAME, [Index(table)], replications=50, bound=bound_of(SAME)).results[0]
    two = simulate(SAME, ["index"], replications=50, bound=bound_of(SAME)).results[0]
    assert np.array_equal(one.rewards, two.rewards)


def test_split_class_is_the_same_class() -> None:
    split = replace(SAME, classes=(TaskClass(2), TaskClass(4)))
    for name in sorted(FORMULAS):
        one, two = (simulate(p, [name], replications=2000, bound=bound_of(SAME)).results[0] for p in (SAME, split))
        error = math.hypot(one.per_task.half_width, two.per_task.half_width) / 1.96
        assert one.per_task.mean == pytest.approx(two.per_task.mean, abs=4 * error), name


def test_thompson_learns_from_a_dirichlet_prior_of_two_answers() -> None:
    depth = 8
    beta = quantiles(ClassView(TaskClass(1, Beta(3.0, 1.5)), depth, 2))
    same = quantiles(ClassView(TaskClass(1, Dirichlet((1.5, 3.0))), depth, 2))
    assert (same == beta).all()
    for one, other in zip(Dirichlet((1.5, 3.0)).points(), Beta(3.0, 1.5).points(), strict=True):
        assert (one == other).all()
