"""Many kinds of tasks: the heap engine against the group engine, and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextlabel.errors import InputError
from nextlabel.kernels.many import sift
from nextlabel.problem.problem import Problem
from nextlabel.simulate import study as study_module
from nextlabel.simulate.study import simulate


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


@pytest.mark.parametrize("policy", ["okg", "uniform", "uncertainty"])
@pytest.mark.parametrize("pending", ["wait", "discard"])
def test_both_engines_agree(policy: str, pending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    problem = Problem.from_priors([tuple(x) for x in rng.uniform(0.5, 4, (12, 2))], 30, arrival_rate=0.1)
    groups = simulate(problem, [policy], replications=4000, most_labels=12, pending=pending)
    monkeypatch.setattr(study_module, "FEW_CLASSES", 1)
    heap = simulate(problem, [policy], replications=4000, bound=groups.bound, pending=pending)
    one, two = groups.results[0], heap.results[0]
    spread = np.std(one.rewards - two.rewards, ddof=1) / np.sqrt(len(one.rewards)) / problem.tasks
    assert abs(one.per_task.mean - two.per_task.mean) <= 4 * spread + 1e-12
    assert one.labels_used == two.labels_used == 30


def test_hundreds_of_priors_end_to_end() -> None:
    rng = np.random.default_rng(4)
    problem = Problem.from_priors([tuple(x) for x in rng.uniform(0.5, 4, (200, 2))], 500)
    study = simulate(problem, ["index", "okg", "uniform"], replications=200, seed=1)
    index, okg, uniform = (r.per_task.mean for r in study.results)
    assert study.bound.per_task >= index > uniform
    assert study.difference("index", "okg").mean > -3 * study.difference("index", "okg").half_width
    assert okg > uniform
    again = simulate(problem, ["index"], replications=50, seed=1, bound=study.bound)
    assert (again.results[0].rewards == study.results[0].rewards[:50]).all()


def test_rules_that_need_arrivals_left_are_refused() -> None:
    problem = Problem.from_priors([(1 + i / 100, 1) for i in range(100)], 100)
    with pytest.raises(InputError, match="thompson"):
        simulate(problem, ["thompson"], replications=1)
