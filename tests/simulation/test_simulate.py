"""Simulated means against exact values, the martingale gap against exact gaps, and the same digits on every engine."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.errors import InputError
from nextlabel.model.beta import Beta
from nextlabel.model.estimate import Estimate
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.policies.base import Setting
from nextlabel.policies.exact_value import policy_value
from nextlabel.policies.index import Index
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.study import PolicyResult, Study, simulate
from nextlabel.solve.bound import Bound, upper_bound
from nextlabel.solve.exact import exact_value
from strategies import random_problem
from tolerances import EXACT

#: Chance is fixed by the seed: a miss by more standard errors than this is a defect.
STANDARD_ERRORS = 4.0
#: Rules that are one table whatever the arrivals left.
STATIC = [
    "okg",
    "okg-idle",
    "okg-pending",
    "kg",
    "kg-random",
    "apt",
    "lsa",
    "uncertainty",
    "uniform",
    "random",
    "overlap",
]
#: METHODS' small table: tasks, budget, arrival rate, optimum, index, okg; totals.
SMALL = [
    (2, 5, 0.1, 1.603916, 1.603191, 1.598851),
    (2, 5, 1.0, 1.585758, 1.582909, 1.571915),
    (3, 4, 0.1, 2.250000, 2.250000, 2.246641),
    (3, 6, 1.0, 2.342366, 2.335372, 2.306015),
]


def paper(tasks: int, budget: int, r: float = 0.1, horizon: float = math.inf) -> Problem:
    return Problem.identical(tasks, budget, arrival_rate=r, completion_rate=0.4, horizon=horizon)


def exact_of(problem: Problem, name: str, *, pending: str = "wait", most: int | None = None) -> float:
    """The exact value of a table policy, its tie rule and its cap written into the index."""
    policy, setting = make_policy(name), Setting.of(problem)
    scores = policy.scores(setting)
    nodes = sum(view.nodes for view in setting.views)
    cap = problem.budget if most is None else most

    @cache
    def table(c: int, n: int) -> np.ndarray:
        one, view = scores[c], setting.views[c]
        out = np.nan_to_num(one.static, posinf=1e3).copy()
        if one.rows is not None and one.core is not None:
            row = one.rows[min(n, len(one.rows)) - 1, :, 0]
            out = np.where(one.core >= 0, row[one.core], out)
        if not policy.random_ties:
            start = sum(v.nodes for v in setting.views[:c])
            out = out - 1e-7 * (np.arange(view.flight + 1)[:, None] * nodes + start + np.arange(view.nodes))
        return np.where(view.given >= cap, -1e6, out)

    return policy_value(problem, lambda c, n, tau: table(c, n), pending=pending).value


def standard_error(estimate: Estimate) -> float:
    return estimate.half_width / 1.959963984540054


def assert_agrees(result: PolicyResult, tasks: int, exact: float) -> None:
    error = standard_error(result.per_task) * tasks
    assert result.per_task.mean * tasks == pytest.approx(exact, abs=STANDARD_ERRORS * error + EXACT), result.name


def assert_gap_agrees(result: PolicyResult, study: Study, exact: float) -> None:
    assert result.gap is not None
    tasks = study.problem.tasks
    error = STANDARD_ERRORS * standard_error(result.gap) * tasks + 1e-8
    assert result.gap.mean * tasks == pytest.approx(study.bound.value - exact, abs=error), result.name


# -------------------------------------------------------------------------------------------------- exact values


@pytest.mark.parametrize(("tasks", "budget", "r", "optimum", "index", "okg"), SMALL)
def test_small_table(tasks: int, budget: int, r: float, optimum: float, index: float, okg: float) -> None:
    problem = paper(tasks, budget, r)
    study = simulate(problem, ["index", "okg"], replications=40_000, seed=1)
    assert exact_of(problem, "index") == pytest.approx(index, abs=6e-7)
    for result, exact in zip(study.results, (index, okg), strict=True):
        assert_agrees(result, tasks, exact)
        assert_gap_agrees(result, study, exact_of(problem, result.name))
        assert result.per_task.mean * tasks <= optimum + 4 * tasks * result.per_task.half_width
        assert result.labels_used == budget


def test_index_at_ten_tasks() -> None:
    problem = paper(10, 12)
    assert exact_of(problem, "index") / 10 == pytest.approx(0.75625, abs=EXACT)
    study = simulate(problem, ["index"], replications=40_000, seed=2)
    assert_agrees(study.results[0], 10, 7.5625)
    assert_gap_agrees(study.results[0], study, 7.5625)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(k, marks=pytest.mark.long) for k in range(6, 12))])
def test_static_policies_on_random_problems(seed: int) -> None:
    problem = random_problem(np.random.default_rng([21, seed]), tasks=4, budget=5)
    pending = "discard" if seed % 3 == 0 else "wait"
    study = simulate(problem, STATIC, replications=20_000, seed=seed, pending=pending)
    for result in study.results:
        exact = exact_of(problem, result.name, pending=pending)
        assert_agrees(result, problem.tasks, exact)
        assert exact <= study.bound.value + 1e-8
        if pending == "wait":
            assert_gap_agrees(result, study, exact)
        else:
            assert result.gap is None


@pytest.mark.parametrize("seed", range(6))
def test_index_on_random_problems(seed: int) -> None:
    problem = random_problem(np.random.default_rng([22, seed]), tasks=4, budget=5)
    study = simulate(problem, ["index"], replications=20_000, seed=seed)
    exact = exact_of(problem, "index")
    assert_agrees(study.results[0], problem.tasks, exact)
    assert_gap_agrees(study.results[0], study, exact)


@pytest.mark.parametrize("seed", range(4))
def test_finite_horizon_on_random_problems(seed: int) -> None:
    problem = random_problem(np.random.default_rng([23, seed]), tasks=3, budget=4, horizon=True)
    study = simulate(problem, ["okg", "uniform", "kg", "okg-pending"], replications=20_000, seed=seed)
    for result in study.results:
        assert_agrees(result, problem.tasks, exact_of(problem, result.name))


def test_index_with_finite_horizon() -> None:
    problem = paper(3, 4, 1.0, 6.0)
    table = nl.index_table(problem, tolerance=1e-5)
    study = simulate(problem, [Index(table)], replications=40_000, seed=3)
    assert_agrees(study.results[0], 3, policy_value(problem, table.policy_index).value)


@pytest.mark.parametrize("name", sorted({*POLICIES} - {"resolve"}))
def test_no_policy_beats_the_optimum(name: str) -> None:
    problem = paper(3, 6, 1.0)
    optimum = exact_value(problem).value
    result = simulate(problem, [name], replications=10_000, seed=4, bound=bound_at(problem)).results[0]
    assert result.per_task.mean * 3 <= optimum + 4 * 3 * standard_error(result.per_task)
    assert result.gap is not None
    assert bound_at(problem).value - result.gap.mean * 3 <= optimum + 4 * 3 * standard_error(result.gap)


def test_resolve_does_not_beat_the_optimum() -> None:
    problem = paper(2, 3, 1.0)
    result = simulate(problem, ["resolve"], replications=8, seed=4, bound=bound_at(problem)).results[0]
    assert result.gap is not None
    assert (
        bound_at(problem).value - result.gap.mean * 2 <= exact_value(problem).value + 1e-6 + 8 * result.gap.half_width
    )


@cache
def bound_at(problem: Problem, prices: str = "scalar") -> Bound:
    return upper_bound(problem, prices)


# ------------------------------------------------------------------------------------------- the martingale estimate


@pytest.mark.parametrize("seed", range(5))
def test_gap_to_the_bound_with_a_price_for_each_arrival(seed: int) -> None:
    problem = random_problem(np.random.default_rng([24, seed]), tasks=3, budget=5)
    study = simulate(problem, ["okg", "uniform", "random"], replications=10_000, seed=seed, prices="per-arrival")
    assert study.bound.prices is not None
    for result in study.results:
        assert_gap_agrees(result, study, exact_of(problem, result.name))


@pytest.mark.parametrize(("most", "r"), [(2, 0.3), (3, 0.3), (3, 5.0), (2, 5.0)])
@pytest.mark.parametrize("prices", ["scalar", "per-arrival"])
def test_gap_with_a_cap_smaller_than_needed(most: int, prices: str, r: float) -> None:
    problem = Problem((TaskClass(2), TaskClass(1, Beta(2, 1), 0.6)), 6, r, 0.4)
    study = simulate(
        problem, ["okg", "uncertainty", "kg"], replications=20_000, seed=5, prices=prices, most_labels=most
    )
    for result in study.results:
        exact = exact_of(problem, result.name, most=most)
        assert_agrees(result, 3, exact)
        assert_gap_agrees(result, study, exact)
        assert result.most_labels == most
        assert result.cap_binds


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_gap_with_a_bound_that_models_few_labels(cap: int) -> None:
    problem = paper(3, 6, 1.0)
    bound = upper_bound(problem, cap=cap)
    study = simulate(problem, ["okg", "uniform"], replications=20_000, seed=6, bound=bound)
    for result in study.results:
        assert_gap_agrees(result, study, exact_of(problem, result.name))


def test_mean_and_gap_add_up_to_the_bound() -> None:
    for problem, names in (
        (paper(100, 120), ["index", "okg", "uniform"]),
        (paper(100, 300, 10.0), ["okg", "okg-pending", "uniform"]),
        (Problem((TaskClass(40), TaskClass(30, Beta(4, 2))), 100), ["okg", "uniform", "thompson"]),
    ):
        study = simulate(problem, names, replications=400, seed=7)
        for result in study.results:
            assert result.gap is not None and result.variance_ratio is not None
            error = math.hypot(standard_error(result.gap), standard_error(result.per_task))
            total = result.per_task.mean + result.gap.mean
            assert total == pytest.approx(study.bound.per_task, abs=STANDARD_ERRORS * error)
            assert result.gap.mean >= -STANDARD_ERRORS * standard_error(result.gap)
            assert result.variance_ratio > 1


def test_many_digits_from_few_runs() -> None:
    study = simulate(paper(480, 960), ["index"], replications=400, seed=8)
    gap = study.results[0].gap
    assert gap is not None
    assert standard_error(gap) * 480 < 0.01
    assert 0.02 < gap.mean * 480 < 0.06  # near 0.035 when labels come at once


# ----------------------------------------------------------------------------------------------- published numbers


def test_published_stop_rule() -> None:
    wait, discard = (
        simulate(paper(10, 12), ["index"], replications=20_000, seed=9, pending=p).results[0].per_task
        for p in ("wait", "discard")
    )
    assert 0.7480 < discard.mean < 0.7495
    assert wait.mean == pytest.approx(0.7563, abs=1e-3)


def test_many_labels_in_flight() -> None:
    problem = paper(100, 300, 10.0)
    index_policy = Index(nl.index_table(problem, cap=8, tolerance=1e-4))
    study = simulate(problem, [index_policy, "okg", "uniform"], replications=1000, seed=10)
    index, okg, uniform = (result.per_task for result in study.results)
    assert index.mean == pytest.approx(0.8344, abs=2e-3)
    assert okg.mean == pytest.approx(0.8078, abs=2e-3)  # 12 labels a task at most give 0.8096
    assert uniform.mean == pytest.approx(0.8123, abs=2e-3)
    behind = study.difference("okg", "uniform")
    assert behind.mean + behind.half_width < 0


# ----------------------------------------------------------------------------------------------------- estimates


def test_differences_are_paired() -> None:
    study = simulate(paper(20, 30), ["index", "okg"], replications=500, seed=11)
    there, back = study.difference("index", "okg"), study.difference("okg", "index")
    assert (there.mean, there.half_width) == (-back.mean, back.half_width)
    a, b = study.result("index"), study.result("okg")
    assert there.mean == pytest.approx(a.per_task.mean - b.per_task.mean, abs=1e-12)
    assert there.half_width < math.hypot(a.per_task.half_width, b.per_task.half_width)
    with pytest.raises(InputError, match="policy 'kg' is not in this study"):
        study.result("kg")


def test_estimate() -> None:
    sample = np.array([1.0, 2.0, 3.0, 4.0])
    estimate = Estimate.of(sample, 2.0)
    assert estimate.mean == 1.25
    assert estimate.half_width == pytest.approx(1.959964 * sample.std(ddof=1) / 2 / 2)
    assert math.isnan(Estimate.of(np.array([1.0])).half_width)


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    simulate(paper(4, 5), ["okg", "uniform"], replications=50, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: simulate(paper(2, 3), ["okg"], replications=0), "replications is 0"),
    (lambda: simulate(paper(2, 3), ["okg"], replications=2.5), "replications is 2.5"),  # type: ignore[arg-type]
    (lambda: simulate(paper(2, 3), ["okg"], seed=-1), "seed is -1"),
    (lambda: simulate(paper(2, 0), ["okg"]), "budget is 0"),
    (lambda: simulate(paper(2, 3), ["best"]), "policy 'best' is not known"),
    (lambda: simulate(paper(2, 3), ["okg"], pending="drop"), "pending 'drop'"),
    (lambda: simulate(paper(2, 3), ["okg"], prices="free"), "prices 'free'"),
    (lambda: Engine("spark"), "engine 'spark' is not known"),
    (lambda: Engine("dask"), "needs a scheduler"),
    (lambda: Engine(jobs=0), "jobs is 0"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_refusals(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


# ------------------------------------------------------------------------------------------- engines, and the names

PROBLEM = Problem((TaskClass(5), TaskClass(4, Beta(2, 1), 0.6)), 18, 1.0, 0.4)
NAMES = ["index", "okg", "thompson", "ucb1-tuned"]


def digits(engine: Engine | None) -> list[tuple[bytes, bytes]]:
    study = simulate(PROBLEM, NAMES, replications=101, seed=12, engine=engine, bound=bound_at(PROBLEM))
    return [(result.rewards.tobytes(), result.gaps.tobytes()) for result in study.results]


def test_same_digits_for_any_number_of_jobs() -> None:
    once = digits(None)
    for jobs in (1, 2, 3):
        assert digits(Engine(jobs=jobs)) == once


@pytest.mark.slow
def test_same_digits_on_a_dask_cluster() -> None:
    """Two real worker processes; starting them takes most of the time."""
    from distributed import LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("default")  # the cluster's own affairs: what must hold is asserted below
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            there = digits(Engine("dask", scheduler=cluster.scheduler_address))
            assert len(cluster.workers) == 2
    assert there == digits(None)


@pytest.mark.slow
def test_cluster_without_workers() -> None:
    from distributed import LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with (
            LocalCluster(n_workers=0, dashboard_address=None) as cluster,
            pytest.raises(InputError, match="has no workers"),
        ):
            digits(Engine("dask", scheduler=cluster.scheduler_address))


def test_names_whatever_is_imported_first() -> None:
    after = (
        "import nextlabel as nl; "
        "assert nl.simulate(nl.Problem.identical(2, 2), [nl.policies.OKG()], replications=2).seed == 0"
    )
    for before in ("", "import nextlabel.simulation.engine; "):
        subprocess.run([sys.executable, "-W", "error", "-c", before + after], check=True)
    assert isinstance(
        nl.simulate(paper(2, 3), [nl.policies.IndexPolicy(), nl.policies.make_policy("okg")], replications=2),
        nl.results.Study,
    )
    assert all(getattr(nl, name) is not None for name in dir(nl))
    assert nl.policies.IndexPolicy is Index


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_study_as_a_data_frame(library: Literal["pandas", "polars", "pyarrow"]) -> None:
    study = nl.simulate(nl.Problem.identical(5, 8), ["index", "uniform"], replications=5, seed=1)
    frame = study.frame(library)
    columns = {name: list(map(str, frame[name])) if library == "pyarrow" else list(frame[name]) for name in ("name",)}
    assert columns["name"] == ["index", "uniform"]
    names = list(frame.column_names if library == "pyarrow" else frame.columns)
    assert {"mean_per_task", "bound_per_task", "difference_to_first"} <= set(names) and len(frame) == 2
