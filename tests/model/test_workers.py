"""Problems with workers who differ: what is read, written and refused."""

from __future__ import annotations

import math
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nextlabel as nl
from nextlabel.model.tables import problem_from_table

FACT = {"kind": "fact", "probability": 0.5}


def table(*workers, **tasks):
    return {"budget": 30, "tasks": [{"count": 10, "prior": FACT, **tasks}], "workers": list(workers)}


@st.composite
def channels(draw, answers):
    rows = []
    for _ in range(answers):
        counts = draw(st.lists(st.integers(0, 50), min_size=answers, max_size=answers).filter(any))
        rows.append(tuple(n / sum(counts) for n in counts))
    return tuple(rows)


@st.composite
def problems(draw):
    answers = draw(st.integers(2, 4))
    workers = []
    for _ in range(draw(st.integers(1, 3))):
        rest = draw(st.sampled_from([{}, {"supply": 7}, {"arrival_rate": 0.25}]))
        rest |= {"count": draw(st.integers(1, 5)), "cost": draw(st.sampled_from([0.0, 0.05]))}
        if draw(st.booleans()):
            prior = [[draw(st.floats(0.1, 9)) for _ in range(answers)] for _ in range(answers)]
            workers.append(nl.WorkerType(prior=prior, **rest))
        elif draw(st.booleans()):
            workers.append(nl.WorkerType.of_accuracy(draw(st.floats(0, 1)), answers, **rest))
        else:
            workers.append(nl.WorkerType(draw(channels(answers)), **rest))
    law = draw(channels(answers))[0]
    return nl.Problem.identical(draw(st.integers(1, 9)), 5, nl.priors.Fact.of(law), workers=tuple(workers))


@given(problems())
def test_round_trip(problem):
    again = problem_from_table(tomllib.loads(nl.problem_to_toml(problem)))
    assert again.workers == problem.workers
    assert again == problem


def test_what_a_table_means():
    problem = problem_from_table(
        table({"accuracy": 0.9, "supply": 5}, {"confusion": [[0.8, 0.2], [0.4, 0.6]], "arrival_rate": 2.0})
    )
    good, coins = problem.workers
    assert good.mean_channel == pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert (good.labels(math.inf), coins.labels(3.0), coins.labels(math.inf)) == (5.0, 6.0, math.inf)
    assert coins.channel == ((0.8, 0.2), (0.4, 0.6))
    unknown = nl.WorkerType(prior=((4, 2), (1, 3)))
    assert unknown.mean_channel == pytest.approx(np.array([[2 / 3, 1 / 3], [0.25, 0.75]]))
    assert unknown.labels(7.0) == math.inf


def test_accuracy_with_three_answers_spreads_the_rest():
    problem = problem_from_table(table({"accuracy": 0.8}, prior={"kind": "fact", "probabilities": [0.2, 0.3, 0.5]}))
    assert problem.workers[0].mean_channel[0] == pytest.approx([0.8, 0.1, 0.1])
    assert problem.answers == 3


def test_a_fact_is_its_probabilities():
    assert nl.priors.Fact(0.3) == nl.priors.Fact.of([0.7, 0.3])
    assert nl.priors.Fact.of((0.25, 0.25, 0.5)).answers == 3


@pytest.mark.parametrize(
    ("workers", "tasks", "message"),
    [
        ([{"confusion": [[0.9, 0.2], [0.1, 0.9]]}], {}, "sum to 1.1"),
        ([{"confusion": [[0.9, 0.1]]}], {}, "not a square table"),
        ([{"confusion": [[1.2, -0.2], [0, 1]]}], {}, r"not all lie in \[0, 1\]"),
        ([{"accuracy": 1.2}], {}, "accuracy 1.2 is outside"),
        ([{"accuracy": 0.9, "supply": 0}], {}, "supply of a type of workers is 0"),
        ([{"accuracy": 0.9, "supply": 1.5}], {}, "not a whole number"),
        ([{"accuracy": 0.9, "supply": 2, "arrival_rate": 1.0}], {}, "both a supply and an arrival rate"),
        ([{"accuracy": 0.9, "arrival_rate": 0}], {}, "not a positive number"),
        ([{"accuracy": 0.9, "count": 0}], {}, "count of a type of workers is 0"),
        ([{"accuracy": 0.9, "cost": -1}], {}, "cost -1"),
        ([{"supply": 3}], {}, "does not say how its workers answer"),
        ([{"accuracy": 0.9, "confusion": [[1, 0], [0, 1]]}], {}, "has accuracy and confusion"),
        ([{"prior": [[4, 0], [2, 4]]}], {}, "not a positive number"),
        ([{"confusion": [[1, 0], [0, 1]]}], {"prior": {"kind": "fact", "probabilities": [0.2, 0.3, 0.5]}}, "2 answers"),
        ([{"accuracy": 0.9}], {"prior": [1, 1]}, r"tasks with the prior Beta\(1, 1\)"),
        ([{"accuracy": 0.9}], {"reward": "squared-error"}, "squared error"),
        ([], {}, "need workers"),
        ([{"accuracy": 0.9}], {"prior": {"kind": "fact"}}, "one of the two"),
        ([{"accuracy": 0.9}], {"prior": {"kind": "fact", "probabilities": [0.5, 0.6]}}, "sum to 1.1"),
        ([{"accuracy": 0.9}], {"prior": {"kind": "fact", "probability": 2}}, "outside"),
    ],
)
def test_refusals(workers, tasks, message):
    with pytest.raises(nl.errors.ProblemError, match=message) as refused:
        problem_from_table(table(*workers, **tasks))
    assert refused.value.hint


def test_unknown_keys_are_named(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(
        'budget = 3\n[[tasks]]\ncount = 2\nprior = {kind = "fact", probability = 0.5}\n[[workers]]\nacuracy = 0.9\n',
        encoding="utf-8",
    )
    with pytest.raises(nl.errors.FileFormatError, match="acuracy"):
        nl.load_problem(path)


@pytest.mark.parametrize("use", [nl.index_table, nl.check_indexability])
def test_what_cannot_use_workers_says_so(use):
    problem = problem_from_table(table({"accuracy": 0.9}))
    with pytest.raises(nl.errors.ProblemError, match="cannot use workers who differ"):
        use(problem)
