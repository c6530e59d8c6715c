"""Many kinds of tasks: the heap engine against the group engine, limit indices and score tables against one by one."""

from __future__ import annotations

from functools import partial

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.kernels.events import arrival_after
from nextlabel.kernels.no_delay import least_limit_index, new_workspace
from nextlabel.kernels.ranked_tasks import sift
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass, stack_classes
from nextlabel.policies.base import ClassView, StaticPolicy
from nextlabel.policies.index import Index
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.policies.rollout_arrays import AHEAD
from nextlabel.simulation import study as study_module
from nextlabel.simulation.engine import Engine, run_chunks
from nextlabel.simulation.ranked_tasks import ClassTables, RankedCampaigns, ranked_tables
from nextlabel.simulation.study import simulate
from nextlabel.solve.index import index_table
from tolerances import ROUNDING


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.lists(st.tuples(st.integers(0, 39), st.floats(-5, 5))))
def test_the_heap_keeps_the_largest_key_on_top(start: list[float], moves: list[tuple[int, float]]) -> None:
    key = np.array(start)
    heap = np.argsort(-key)
    place = np.empty_like(heap)
    place[heap] = np.arange(len(key))
    for task, value in moves:
        x = task % len(key)
        key[x] = value
        sift(x, key, heap, place)
        assert key[heap[0]] == key.max()
        assert sorted(heap.tolist()) == list(range(len(key)))
        assert (place[heap] == np.arange(len(key))).all()


def some_priors(count: int, seed: int = 0) -> list[tuple[float, float]]:
    return [(float(a), float(b)) for a, b in np.random.default_rng(seed).uniform(0.4, 5.0, (count, 2))]


@numba.njit(error_model="numpy")
def gittins(
    first: Ints, reward: Floats, prob: Floats, child: Ints, levels: int, S: Floats, labels: Floats, out: Floats
) -> None:
    """out[i] = max over stopping times tau >= 1 of E[R_tau - R_i] / E[tau] on the lattice: the index without delay.

    Dinkelbach's iteration: at price lam the best plan that buys at least one label gives the next lam; it climbs to the
    maximum in a few steps. The last level stops. Nodes of level < ``levels`` are done.
    """
    J = prob.shape[1]
    D = first.shape[0] - 2
    for m in range(min(levels, D)):
        for root in range(first[m], first[m + 1]):
            lam = 0.0
            for _ in range(100):
                for i in range(first[D + 1] - 1, first[m + 1] - 1, -1):
                    S[i] = reward[i]
                    labels[i] = 0.0
                    if i < first[D]:
                        go, bought = -lam, 1.0
                        for j in range(J):
                            go += prob[i, j] * S[child[i, j]]
                            bought += prob[i, j] * labels[child[i, j]]
                        if go > S[i]:
                            S[i] = go
                            labels[i] = bought
                gain, bought = -lam - reward[root], 1.0
                for j in range(J):
                    gain += prob[root, j] * S[child[root, j]]
                    bought += prob[root, j] * labels[child[root, j]]
                if gain <= 1e-15:
                    break
                lam += gain / bought
            out[root] = lam


def index_of_class(entry: TaskClass, depth: int, flight: int) -> Floats:
    """(flight + 1, nodes) one class at a time: ``gittins`` of all nodes, then the least over the outcomes in flight."""
    lattice = entry.lattice(depth + AHEAD)
    index = np.zeros(lattice.nodes)
    work = np.empty((2, lattice.nodes))
    levels = depth + flight + 1
    gittins(lattice.first, lattice.reward, lattice.prob, lattice.child, levels, work[0], work[1], index)
    rows = [index]
    inner = int(lattice.first[lattice.depth])
    for _ in range(flight):
        row = np.zeros(lattice.nodes)
        row[:inner] = rows[-1][lattice.child[:inner]].min(axis=1)
        rows.append(row)
    return np.stack(rows)[:, : int(lattice.first[depth + 1])]


@pytest.mark.parametrize(("answers", "depth", "flight"), [(2, 12, 4), (2, 1, 1), (3, 4, 2)])
def test_limit_indices_are_those_of_each_class(answers: int, depth: int, flight: int) -> None:
    if answers == 2:
        thresholds = np.random.default_rng(1).uniform(0.3, 0.7, 20)
        classes = [TaskClass(1, Beta(*p), float(d)) for p, d in zip(some_priors(20), thresholds, strict=True)]
        classes += [TaskClass(1, Beta(1, 1)), TaskClass(1, Beta(4, 2)), TaskClass(1, Beta(300.0, 0.01))]
    else:
        weights = np.random.default_rng(2).uniform(0.4, 3.0, (3, answers))
        classes = [TaskClass(1, Dirichlet(tuple(map(float, row)))) for row in weights]
    problem = Problem(tuple(classes), depth)
    tasks = ranked_tables(problem, Index())
    scores, facts = tasks.score, tasks.facts
    assert depth == tasks.D
    assert scores.shape[1] == 1 and np.isnan(scores).all()
    lattice = classes[0].lattice(depth + AHEAD)
    first, child = lattice.first, lattice.child
    room, ahead = new_workspace(int(first[-1]), answers), np.zeros(int(first[flight + 1]), dtype=np.int64)
    for c, entry in enumerate(classes):
        wanted = index_of_class(entry, depth, flight)
        for w in range(flight + 1):
            for m in range(depth - w):
                for node in range(int(first[m]), int(first[m + 1])):
                    found = least_limit_index(first, child, facts[c], m, node, w, room, ahead, scores[c, 0])
                    assert found == pytest.approx(wanted[w, node], abs=ROUNDING)


def test_a_campaign_works_out_the_indices_it_meets_and_no_others() -> None:
    problem = Problem.from_priors(some_priors(100), 150)
    tasks = ranked_tables(problem, Index(), most_labels=12)
    scores = tasks.score
    RankedCampaigns(problem, tasks).play(0, 0, 1)
    known = np.isfinite(scores[:, 0])
    assert known[:, 0].all()
    assert known.sum() <= 100 + 5 * 150  # hardly ever are there more than four labels of a task in flight
    for c, entry in enumerate(problem.classes):
        assert scores[c, 0, known[c]] == pytest.approx(index_of_class(entry, 12, 4)[0, known[c]], abs=ROUNDING)


@pytest.mark.parametrize("jobs", [1, 2])
def test_indices_found_by_other_chunks_change_nothing(jobs: int) -> None:
    problem = Problem.from_priors(some_priors(80), 200, arrival_rate=1.0)
    tables = partial(ranked_tables, problem, Index(), most_labels=12)
    together = run_chunks(Engine(jobs=jobs), partial(RankedCampaigns(problem, tables()).play, 0), 40, None)[0]
    for first in (0, 39):
        alone = RankedCampaigns(problem, tables()).play(0, first, 1)[0]
        assert (together[first] == alone[0]).all()


@pytest.mark.parametrize("name", [name for name in POLICIES if isinstance(make_policy(name), StaticPolicy)])
def test_a_forest_is_scored_like_its_classes(name: str) -> None:
    policy = make_policy(name)
    assert isinstance(policy, StaticPolicy)
    thresholds = (0.5, 0.35, 0.6)
    classes = [TaskClass(1, Beta(*p), d) for p, d in zip(some_priors(3), thresholds, strict=True)]
    forest = ClassTables(classes, stack_classes(classes, 6, lumped=False), 6, 3)
    together = forest.by_class(policy.score(forest))
    for entry, scores in zip(classes, together, strict=True):
        assert scores == pytest.approx(policy.score(ClassView(entry, 6, 3)), abs=ROUNDING)


def test_labels_that_cost_more_than_the_index_are_not_bought() -> None:
    priors = some_priors(80)
    for cost, bought in ((0.0, 200), (0.5, 0)):
        problem = Problem.from_priors(priors, 200, label_cost=cost)
        out = RankedCampaigns(problem, ranked_tables(problem, Index(), most_labels=12)).play(0, 0, 1)[0]
        assert out[0, 0, 1] == bought


@given(st.floats(0, 10), st.floats(1e-6, 30))
def test_arrivals_when_the_rate_varies(now: float, amount: float) -> None:
    starts, rates = np.array([0.0, 2.0, 3.0, 6.0]), np.array([1.0, 0.0, 5.0, 0.5])

    def summed(t: float) -> float:
        return float(rates @ np.clip(t - starts, 0.0, np.append(np.diff(starts), np.inf)))

    t = arrival_after(now, amount, starts, rates)
    assert summed(t) - summed(now) == pytest.approx(amount, rel=1e-9)
    assert arrival_after(now, amount, np.zeros(1), np.array([0.25])) == now + amount / 0.25
    assert arrival_after(now, 50.0, starts[:2], rates[:2]) == np.inf


@pytest.mark.parametrize("policy", ["okg", "uniform", "uncertainty", "random", "kg-random", "apt"])
@pytest.mark.parametrize("pending", ["wait", "discard"])
@pytest.mark.no_cover
def test_both_engines_agree(policy: str, pending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    problem = Problem.from_priors([tuple(x) for x in rng.uniform(0.5, 4, (12, 2))], 30, arrival_rate=0.1)
    groups = simulate(problem, [policy], replications=4000, most_labels=12, pending=pending)
    monkeypatch.setattr(study_module, "FEW_CLASSES", 1)
    heap = simulate(problem, [policy], replications=4000, most_labels=12, bound=groups.bound, pending=pending)
    one, two = groups.results[0], heap.results[0]
    spread = np.std(one.rewards - two.rewards, ddof=1) / np.sqrt(len(one.rewards)) / problem.tasks
    assert abs(one.per_task.mean - two.per_task.mean) <= 4 * spread + 1e-12
    assert one.labels_used == two.labels_used == 30


def test_hundreds_of_priors_end_to_end() -> None:
    rng = np.random.default_rng(4)
    problem = Problem.from_priors([tuple(x) for x in rng.uniform(0.5, 4, (200, 2))], 500)
    study = simulate(problem, ["index", "okg", "uniform"], replications=200, seed=1)
    index, okg, uniform = (r.per_task.mean for r in study.results)
    assert study.bound.per_task >= index - study.results[0].per_task.half_width
    assert index > uniform
    assert study.difference("index", "okg").mean > -3 * study.difference("index", "okg").half_width
    assert okg > uniform
    again = simulate(problem, ["index"], replications=50, seed=1, bound=study.bound)
    assert (again.results[0].rewards == study.results[0].rewards[:50]).all()


def test_rules_that_need_arrivals_left_are_refused() -> None:
    problem = Problem.from_priors([(1 + i / 100, 1) for i in range(100)], 100)
    with pytest.raises(InputError, match="thompson"):
        simulate(problem, ["thompson"], replications=1)


@pytest.mark.parametrize("name", ["apt", "lsa"])
def test_untouched_tasks_are_drawn_by_lot(name: str) -> None:
    problem = Problem.from_priors([(1 + i / 100, 1) for i in range(100)], 10, completion_rate=1e7)
    tasks = ranked_tables(problem, make_policy(name))
    scores = tasks.score
    assert np.isfinite(scores).all()
    assert np.all(scores[:, 0, 0] > scores.reshape(100, -1)[:, 1:].max(axis=1))
    out = RankedCampaigns(problem, tasks).play(0, 0, 400)[0][:, 0]
    # Ten of a hundred unlike tasks are labelled: by lot, the value differs between replications.
    assert len(np.unique(np.round(out[:, 0], 9))) > 300


def test_what_the_engine_of_many_kinds_cannot_do_is_refused() -> None:
    problem = Problem.from_priors([(1 + i / 100, 1) for i in range(100)], 100)
    table = index_table(Problem.identical(3, 3))
    for policy in (Index(table), Index(cap=4)):
        with pytest.raises(InputError, match="neither a table nor a cap"):
            simulate(problem, [policy], replications=1)
