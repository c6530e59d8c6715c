"""Workers with intervals and flags, tasks with labels: what is said, and what is not said without proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from labelled_crowds import drawn, recorded
from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.copying import find_copying, tail
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.skill import AT_CHANCE, accuracies, channel_variance, intervals, worth
from nextlabel.errors import FileFormatError, InputError


def columns(labels: CrowdLabels) -> dict[str, list[Any]]:
    return {
        "task": [f"t{x}" for x in labels.task],
        "worker": [f"w{j}" for j in labels.worker],
        "label": [f"a{y}" for y in labels.answer] if labels.answers > 2 else labels.answer.tolist(),
    }


def answered(truth: Ints, accuracies: list[float], seed: int = 0) -> CrowdLabels:
    """Every worker labels every task, with one accuracy each."""
    rng = np.random.default_rng(seed)
    K, W = len(truth), len(accuracies)
    said = np.where(rng.random((K, W)) < np.array(accuracies), truth[:, None], 1 - truth[:, None])
    return CrowdLabels(np.repeat(np.arange(K), W), np.tile(np.arange(W), K), said.ravel(), K, W, 2)


@pytest.mark.parametrize(("answers", "each"), [(2, 3), (2, 6), (3, 4)])
def test_intervals_hold_the_channels_of_drawn_crowds(answers: int, each: int) -> None:
    """Channels drawn from the prior: about 95 of 100 intervals hold them."""
    held: list[Any] = []
    prior = nl.learn_crowd(columns(drawn(0, answers=answers)[0])).fit.prior
    weights = np.full((answers, answers), 2.0 / (answers - 1))
    np.fill_diagonal(weights, 4.0)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        channels = np.array([[rng.dirichlet(row) for row in weights] for _ in range(20)])
        truth = rng.integers(0, answers, 400)
        pairs = np.array([(x, j) for x in range(400) for j in rng.choice(20, each, replace=False)])
        said = np.array([rng.choice(answers, p=channels[j, truth[x]]) for x, j in pairs])
        labels = CrowdLabels(pairs[:, 0], pairs[:, 1], said, 400, 20, answers)
        fit = fit_crowd(labels)
        found = intervals(fit.channels, channel_variance(labels, fit))
        held.append((found.low <= channels) & (channels <= found.high))
        balanced = accuracies(labels, fit)[1]
        mean = np.diagonal(channels, axis1=1, axis2=2).mean(axis=1)
        held.append((balanced.low <= mean) & (mean <= balanced.high))
    assert prior.answers == answers
    assert np.mean(np.concatenate([one.ravel() for one in held])) > 0.9


def test_the_worth_of_a_label_is_one_step_ahead() -> None:
    labels, _ = drawn(2, tasks=30, workers=6, each=3)
    fit = fit_crowd(labels)
    for j, found in enumerate(worth(fit)):
        gains = []
        for p in fit.beliefs:
            after = sum(max(p[c] * fit.channels[j, c, y] for c in range(2)) for y in range(2))
            gains.append(after - max(p))
        assert found == pytest.approx(max(gains), abs=1e-5)


def test_flags_are_those_of_the_workers_who_deserve_them() -> None:
    truth = np.random.default_rng(3).integers(0, 2, 300)
    labels = answered(truth, [0.9, 0.85, 0.8, 0.9, 0.5, 0.15])
    steady = CrowdLabels(np.arange(60), np.full(60, 6), np.ones(60, dtype=np.int64), 300, 7, 2)
    stranger = CrowdLabels(np.arange(3), np.full(3, 7), 1 - truth[:3], 300, 8, 2)
    merged = [np.concatenate(parts) for parts in zip(labels[:3], steady[:3], stranger[:3], strict=True)]
    crowd = nl.learn_crowd(columns(CrowdLabels(*merged, 300, 8, 2)))
    flags = {one.name: one.flags for one in crowd.workers}
    assert [flags[f"w{j}"] for j in range(4)] == [()] * 4
    assert flags["w4"] == ("at chance",)
    assert flags["w5"] == ("against the grain",)
    assert "always the same answer" in flags["w6"]
    assert flags["w7"] == ()  # three labels are nobody yet
    inverted = crowd.by_name["w5"]
    assert inverted.accuracy.high < 0.25
    assert inverted.worth > 5 * crowd.by_name["w4"].worth


@pytest.mark.parametrize("name", ["rte", "temp", "mre"])
def test_nobody_cries_wolf_over_recorded_crowds(data: Path, name: str) -> None:
    """Who is said to be at chance is: by gold, all truths weighing the same."""
    crowd = nl.learn_crowd(data / name / "labels.csv")
    assert crowd.pairs > 500
    assert not crowd.copying
    assert crowd.converged
    labels, gold = recorded(data, name)
    names = nl.read_labels(data / name / "labels.csv").workers
    judged = 0
    for j, worker in enumerate(names):
        mine = [(labels.worker == j) & (gold[labels.task] == truth) for truth in (0, 1)]
        if AT_CHANCE in crowd.by_name[worker].flags and min(m.sum() for m in mine) >= 15:
            judged += 1
            assert np.mean([(labels.answer[m] == truth).mean() for truth, m in enumerate(mine)]) < 0.68
    assert judged >= 3


def test_the_tail_of_agreements_is_at_least_the_binomial_one() -> None:
    rng = np.random.default_rng(0)
    for shared, share in [(10, 0.5), (30, 0.7), (80, 0.9)]:
        chances = np.clip(rng.normal(share, 0.1, shared), 0.01, 0.99)
        draws = (rng.random((20000, shared)) < chances).sum(axis=1)
        for alike in range(int(chances.sum()) + 1, shared + 1):
            bound = tail(np.array([shared]), np.array([float(alike)]), np.array([chances.sum()]))[0]
            assert (draws >= alike).mean() <= bound + 0.01


def with_copier(seed: int, share: float, hard: float = 0.0) -> CrowdLabels:
    """Ten workers of accuracy .75 on 60 tasks; the last copies ``share`` of what the one before says.

    A share ``hard`` of the tasks is answered wrongly by four workers in five.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 60)
    chance = np.where(rng.random(60) < hard, 0.2, 0.75)
    said = np.where(rng.random((60, 10)) < chance[:, None], truth[:, None], 1 - truth[:, None])
    copied = rng.random(60) < share
    said[copied, 9] = said[copied, 8]
    return CrowdLabels(np.repeat(np.arange(60), 10), np.tile(np.arange(10), 60), said.ravel(), 60, 10, 2)


def test_copying_is_found() -> None:
    found = []
    for seed in range(20):
        labels = with_copier(seed, 1.0)
        pairs, looked = find_copying(labels, fit_crowd(labels))
        assert looked == 45
        found.append([one.workers for one in pairs])
    assert sum((8, 9) in pairs for pairs in found) >= 15
    assert all(set(pairs) <= {(8, 9)} for pairs in found)


@pytest.mark.parametrize("hard", [0.0, 0.2])
def test_honest_workers_and_hard_items_raise_no_alarm(hard: float) -> None:
    alarms = 0
    for seed in range(40):
        labels = with_copier(seed, 0.0, hard)
        alarms += bool(find_copying(labels, fit_crowd(labels))[0])
    assert alarms <= 1


def test_labels_may_come_in_any_form(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    labels, truth = drawn(1)
    table = columns(labels)
    rows = zip(*table.values(), strict=True)
    (tmp_path / "labels.csv").write_text("\n".join(["task,worker,label", *(",".join(map(str, row)) for row in rows)]))
    forms: list[Any] = [tmp_path / "labels.csv", str(tmp_path / "labels.csv"), table, pandas.DataFrame(table)]
    forms.append(nl.read_labels(table))
    crowds = [nl.learn_crowd(form) for form in forms]
    for crowd in crowds[1:]:
        np.testing.assert_array_equal(crowd.predict_proba(), crowds[0].predict_proba())
    gold = {"task": ["t0", "t1", "elsewhere"], "label": [int(1 - truth[0]), int(truth[1]), 1]}
    told = nl.learn_crowd(table, gold)
    rows_of = {row["task"]: row for row in told.tasks()}
    assert rows_of["t0"]["label"] == 1 - truth[0]
    assert (rows_of["t0"]["probability"], rows_of["t0"]["gold"]) == (1.0, 1 - truth[0])
    assert rows_of["t2"]["gold"] is None


def test_a_crowd_prints_and_predicts() -> None:
    crowd = nl.learn_crowd(columns(drawn(4, answers=3, tasks=40, workers=15)[0]))
    assert len(crowd.predict()) == 40 and set(crowd.predict()) <= {"a0", "a1", "a2"}
    np.testing.assert_allclose(crowd.predict_proba().sum(axis=1), 1.0)
    lines = str(crowd).splitlines()
    assert lines[0] == "15 workers, 40 tasks, 160 labels"
    assert "and 5 more" in lines
    assert len(repr(crowd)) < 200
    one = crowd.workers[0]
    assert one.sensitivity is None and len(one.confusion) == 3
    assert sum(one.bias) == pytest.approx(0.0, abs=1e-12)
    assert one.labels == max(worker.labels for worker in crowd.workers)


def test_known_workers_tell_about_other_tasks() -> None:
    labels, truth = drawn(6, tasks=400, workers=12)
    table = {name: list(column) for name, column in columns(labels).items()}
    first = [k for k, task in enumerate(table["task"]) if int(task[1:]) < 300]
    rest = [k for k, task in enumerate(table["task"]) if int(task[1:]) >= 300]
    crowd = nl.learn_crowd({name: [column[k] for k in first] for name, column in table.items()})
    others = {name: [column[k] for k in rest] for name, column in table.items()}
    beliefs = crowd.predict_proba(others)
    # Bayes' rule for one task, by hand.
    by_hand = crowd.fit.share.copy()
    for task, worker, label in zip(*others.values(), strict=True):
        if task == others["task"][0]:
            by_hand *= crowd.by_name[worker].channel[:, crowd.answers.index(label)]
    np.testing.assert_allclose(beliefs[0], by_hand / by_hand.sum())
    names = list(dict.fromkeys(others["task"]))
    answers = crowd.predict(pytest.importorskip("pandas").DataFrame(others))
    right = np.mean([answer == truth[int(name[1:])] for name, answer in zip(names, answers, strict=True)])
    known = np.mean([p == truth[int(n[1:])] for n, p in zip(crowd.task_names, crowd.predict(), strict=True)])
    assert right > known - 0.1
    # Somebody nobody knows says something all the same, and less than the best worker.
    best = max(crowd.workers, key=lambda one: one.bits).name
    one, other = ({"task": ["new"], "worker": [who], "label": [1]} for who in (best, "stranger"))
    assert crowd.fit.share[1] < crowd.predict_proba(other)[0, 1] < crowd.predict_proba(one)[0, 1]


def test_answers_that_the_crowd_never_gave_are_refused() -> None:
    crowd = nl.learn_crowd(columns(drawn(1)[0]))
    with pytest.raises(InputError, match="never given the answer maybe; it was learnt from 0, 1"):
        crowd.predict({"task": ["new", "new"], "worker": ["a", "b"], "label": ["maybe", 1]})


def test_bias_has_the_sign_of_the_answer_given_too_often() -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 300)
    yes = np.where(truth[:, None] == 1, rng.random((300, 5)) < 0.95, rng.random((300, 5)) < 0.4).astype(np.int64)
    labels = CrowdLabels(np.repeat(np.arange(300), 5), np.tile(np.arange(5), 300), yes.ravel(), 300, 5, 2)
    for one in nl.learn_crowd(columns(labels)).workers:
        assert one.bias[1] > 0.05
        assert one.sensitivity is not None and one.specificity is not None
        assert one.sensitivity.mean > one.specificity.mean


def test_one_worker_only_works_and_says_what_cannot_be_learnt() -> None:
    alone = {"task": ["a", "b", "c"], "worker": ["ann"] * 3, "label": [1, 0, 1]}
    crowd = nl.learn_crowd(alone)
    assert crowd.predict() == [1, 0, 1]
    assert "one worker" in crowd.notes[0] and "cannot be learnt" in crowd.notes[0]
    told = nl.learn_crowd(alone, {"task": ["a"], "label": [1]})
    assert "1 gold task" in told.notes[0]
    apart = {"task": ["a", "b", "c"], "worker": ["ann", "bob", "cat"], "label": [1, 0, 1]}
    assert "No task has labels of two workers" in nl.learn_crowd(apart).notes[0]


def test_labels_without_a_worker_count_for_their_task() -> None:
    table = {"task": ["a", "a", "a", "b", "b"], "worker": ["ann", None, None, "ann", "bob"], "label": [0, 1, 1, 0, 0]}
    crowd = nl.learn_crowd(table)
    assert crowd.predict() == [1, 0]
    assert [one.name for one in crowd.workers] == ["ann", "bob"]


def test_bad_labels_are_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="no column of workers"):
        nl.learn_crowd({"task": ["a", "b"], "label": [0, 1]})
    with pytest.raises(InputError, match="all of the 2 labels are 1"):
        nl.learn_crowd({"task": ["a", "b"], "worker": ["u", "v"], "label": [1, 1]})
    with pytest.raises(FileFormatError, match="no gold for any task"):
        nl.learn_crowd({"task": ["a", "b"], "worker": ["u", "v"], "label": [1, 0]}, {"task": ["z"], "label": [1]})


def test_a_model_is_one_more_worker() -> None:
    """Labels of a good model make every other worker's judgement, and the tasks, better."""
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 2, 400)
    without = answered(truth, [0.65, 0.65, 0.65])
    together = answered(truth, [0.65, 0.65, 0.65, 0.97])

    def score(beliefs: Floats) -> float:
        return float((beliefs.argmax(axis=1) == truth).mean())

    fit = fit_crowd(together)
    assert score(fit.beliefs) > score(fit_crowd(without).beliefs) + 0.1
    assert fit.channels[3, 1, 1] > 0.8
