"""Known truths judge workers and the model: who fails, who tries on controls alone, who changed, what is withheld."""

from __future__ import annotations

import numpy as np
import pytest

import nextlabel as nl
from labelled_crowds import drawn
from nextlabel.arrays import Ints
from nextlabel.crowd.controls import judge_by_truths
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.skill import AGAINST, AT_CHANCE, FAILS, accuracies, flags_by_worker

HONEST, ITEMS, CONTROLS = 8, 200, 20


def sybils(seed: int, accounts: int, answers: int) -> tuple[CrowdLabels, Ints, Ints]:
    """Honest workers at .85, accounts with one shared wrong answer, controls answered by all; truths and gold."""
    rng = np.random.default_rng(seed)
    people, tasks = HONEST + accounts, ITEMS + CONTROLS
    truth = rng.integers(0, answers, tasks)
    shared = (truth + rng.integers(1, answers, tasks)) % answers
    who = [rng.choice(people, 6, replace=False) for _ in range(ITEMS)] + [np.arange(people)] * CONTROLS
    task, worker = np.repeat(np.arange(tasks), [len(some) for some in who]), np.concatenate(who)
    wrong = (truth[task] + rng.integers(1, answers, len(task))) % answers
    said = np.where(rng.random(len(task)) < 0.85, truth[task], wrong)
    answer = np.where(worker < HONEST, said, shared[task])
    gold = np.where(np.arange(tasks) < ITEMS, -1, truth)
    return CrowdLabels(task, worker, answer, tasks, people, answers), truth, gold


@pytest.mark.parametrize(("accounts", "answers"), [(12, 2), (30, 2), (12, 3), (30, 3)])
def test_a_majority_that_fails_its_controls_is_not_believed(accounts: int, answers: int) -> None:
    for seed in range(3):
        labels, truth, gold = sybils(seed, accounts, answers)
        fit = fit_crowd(labels, gold)
        controls = judge_by_truths(labels, fit, gold)
        flags = flags_by_worker(labels, fit, accuracies(labels, fit)[1], (), controls)
        assert all(FAILS in one for one in flags[HONEST:])
        assert not any(set(one) & {FAILS, AT_CHANCE, AGAINST} for one in flags[:HONEST])
        right = (fit.beliefs.argmax(axis=1) == truth)[gold < 0].mean()
        assert answers > 2 or right >= 0.8  # with a wrong answer to choose, honest labels are all there is to go by
        assert controls.contradiction is not None and controls.contradiction.worse.tolist() == [
            j >= HONEST for j in range(len(flags))
        ]


def everyone(truth: Ints, chances: np.ndarray, rng: np.random.Generator) -> CrowdLabels:
    """Labels of all workers on all tasks, in the order of the tasks; ``chances`` (tasks, workers) to be right."""
    tasks, workers = chances.shape
    said = np.where(rng.random((tasks, workers)) < chances, truth[:, None], 1 - truth[:, None])
    return CrowdLabels(
        np.repeat(np.arange(tasks), workers), np.tile(np.arange(workers), tasks), said.ravel(), tasks, workers, 2
    )


def test_who_tries_on_controls_alone_is_found_and_who_changed() -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 240)
    gold = np.where(np.arange(240) % 8 == 0, truth, -1)
    chances = np.full((240, 7), 0.85)
    chances[:, 5] = np.where(gold >= 0, 0.97, 0.5)
    chances[:, 6] = np.where(np.arange(240) < 120, 0.95, 0.5)
    labels = everyone(truth, chances, rng)
    controls = judge_by_truths(labels, fit_crowd(labels, gold), gold)
    assert controls.only_controls.tolist() == [False] * 5 + [True, False]
    assert controls.changed.tolist() == [False] * 6 + [True]
    assert controls.contradiction is None


def test_the_drift_test_keeps_its_false_alarm_rate() -> None:
    alarms = 0
    for seed in range(60):
        labels, _ = drawn(seed, tasks=150, workers=8, each=4)
        alarms += bool(judge_by_truths(labels, fit_crowd(labels)).changed.any())
    assert alarms <= 3  # at most 1% of the crowds, and chance


def test_truths_that_the_model_was_not_fitted_to_contradict_it() -> None:
    """All agree on wrong answers; what they did on twelve known tasks says so, and on a good crowd says nothing."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 220)
    gold = np.where(np.arange(220) % 20 == 0, truth, -1)
    task, worker = np.repeat(np.arange(220), 9), np.tile(np.arange(9), 220)
    for believed, contradicted in (((truth + rng.integers(1, 3, 220)) % 3, True), (truth, False)):
        said = np.where(rng.random(len(task)) < 0.9, believed[task], rng.integers(0, 3, len(task)))
        labels = CrowdLabels(task, worker, said, 220, 9, 3)
        found = judge_by_truths(labels, fit_crowd(labels), gold).contradiction
        assert (found is not None) == contradicted
        if found is not None:
            assert found.expected > 0.8 and found.right < 0.2
            assert "withheld" in found.sentences()[0] and "drawn at random" in found.sentences()[1]


def test_known_truths_of_all_items_do_not_make_the_labels_right() -> None:
    labels, truth = drawn(3, tasks=120, workers=8, each=3)
    columns = {
        "task": labels.task.tolist(), "worker": [f"w{j}" for j in labels.worker], "label": labels.answer.tolist(),
    }  # fmt: skip
    gold = {"task": list(range(120)), "label": truth.tolist()}
    crowd = nl.learn_crowd(columns, gold)
    assert crowd.audit is not None and crowd.audit.audited == crowd.audit.tasks == 120
    assert crowd.expected_accuracy == crowd.audit.right / 120 < 1.0


def test_ten_answers_and_busy_spammers() -> None:
    """Three of the five busiest workers guess: each is said to be at chance, and nobody else is."""
    rng = np.random.default_rng(0)
    tasks, answers = 700, 10
    truth = rng.integers(0, answers, tasks)
    weight = np.array([12.0] * 5 + [1.0] * 30)
    skill = np.array([0.18, 0.7, 0.07, 0.75, 0.11, *rng.uniform(0.55, 0.85, 30)])
    rows = [(x, j) for x in range(tasks) for j in rng.choice(35, 4, replace=False, p=weight / weight.sum())]
    task, worker = np.array(rows).T
    wrong = (truth[task] + rng.integers(1, answers, len(task))) % answers
    answer = np.where(rng.random(len(task)) < skill[worker], truth[task], wrong)
    labels = CrowdLabels(task, worker, answer, tasks, 35, answers)
    fit = fit_crowd(labels)
    accuracy, balanced = accuracies(labels, fit)
    flags = flags_by_worker(labels, fit, balanced, (), judge_by_truths(labels, fit))
    assert [j for j in range(35) if AT_CHANCE in flags[j]] == [0, 2, 4]
    assert np.abs(accuracy.mean[[0, 2, 4]] - [0.18, 0.07, 0.11]).max() < 0.08
