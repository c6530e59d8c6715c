"""The bound after the first labels: above the best next label by an exact posterior, and where tasks hang together."""

from __future__ import annotations

import itertools
import json
from math import lgamma
from pathlib import Path

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError

Rows = list[tuple[str, str, int]]
PRIOR = CrowdPrior(np.array([[3.0, 1.0], [1.0, 3.0]]), np.array([2.0, 2.0]))


def as_columns(rows: Rows) -> dict[str, list[object]]:
    return {"task": [r[0] for r in rows], "worker": [r[1] for r in rows], "label": [r[2] for r in rows]}


def joint(rows: Rows, tasks: list[str], prior: CrowdPrior) -> dict[tuple[int, ...], float]:
    """P(labels, truths) for all truths, up to one constant factor; channels and shares integrated out."""
    out = {}
    for z in itertools.product((0, 1), repeat=len(tasks)):
        counts: dict[str, np.ndarray] = {}
        for task, worker, label in rows:
            counts.setdefault(worker, prior.pseudo.copy())[z[tasks.index(task)], label] += 1
        start = sum(lgamma(x) for x in prior.pseudo.ravel()) - sum(lgamma(x) for x in prior.pseudo.sum(axis=1))
        log = sum(
            sum(lgamma(x) for x in table.ravel()) - sum(lgamma(x) for x in table.sum(axis=1)) - start
            for table in counts.values()
        )
        log += sum(lgamma(prior.share[c] + z.count(c)) for c in (0, 1))
        out[z] = float(np.exp(log))
    return out


def right(law: dict[tuple[int, ...], float]) -> float:
    """The number of tasks expected to be right, times the total of ``law``."""
    K = len(next(iter(law)))
    return sum(max(sum(p for z, p in law.items() if z[x] == c) for c in (0, 1)) for x in range(K))


def best_step(rows: Rows, tasks: list[str], prior: CrowdPrior) -> float:
    """The best use of one more label by a worker who comes as often as in the record."""
    total = sum(joint(rows, tasks, prior).values())
    value = 0.0
    for worker in {r[1] for r in rows}:
        share = sum(r[1] == worker for r in rows) / len(rows)
        value += share * max(
            sum(right(joint([*rows, (task, worker, y)], tasks, prior)) for y in (0, 1)) / total for task in tasks
        )
    return value


@pytest.mark.parametrize("seed", range(2))
def test_workers_theorem_7_it_is_above_the_best_next_label(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tasks = ["a", "b", "c"]
    rows: Rows = [(t, w, int(rng.integers(0, 2))) for t in tasks for w in ("ann", "bob", "cy") if rng.random() < 0.8]
    bound = nl.bound_from_labels(as_columns(rows), 1, prior=PRIOR)
    seen = sorted({r[0] for r in rows})
    now = right(joint(rows, seen, PRIOR)) / sum(joint(rows, seen, PRIOR).values())
    assert bound.now * len(seen) == pytest.approx(now, abs=0.05)
    step = best_step(rows, seen, PRIOR)
    assert now < step < bound.value
    assert bound.mean * len(seen) < now + 1.0  # one label, one task


def test_one_label_can_settle_tasks_that_hang_together() -> None:
    """Ann is always right or always wrong, and Bob is known to be right: one label of his settles all of hers."""
    corners = CrowdPrior(np.full((2, 2), 0.02), np.array([5.0, 5.0]))
    rows: Rows = [(f"t{k}", "ann", k % 2) for k in range(10)] + [(f"g{k}", "bob", k % 2) for k in range(6)]
    gold = {"task": [f"g{k}" for k in range(6)], "label": [k % 2 for k in range(6)]}
    bound = nl.bound_from_labels(as_columns(rows), 1, gold, arrivals=20, prior=corners)
    assert bound.now == pytest.approx((0.5 * 10 + 6) / 16, abs=0.06)
    assert bound.per_task > 0.95  # beliefs of the tasks one by one would give (5.5 + 6) / 16


def test_more_labels_and_more_choice_help(labels: Path) -> None:
    few, many = (nl.bound_from_labels(labels, n) for n in (5, 20))
    choice = nl.bound_from_labels(labels, 5, arrivals=50)
    assert few.now == many.now == choice.now
    assert few.now < few.mean < few.per_task < many.per_task <= 1.0
    assert few.mean < choice.mean
    assert "nobody is turned away" in few.assumes and "50 come" in choice.assumes


def test_three_answers() -> None:
    rng = np.random.default_rng(1)
    rows = [
        (f"t{k}", f"w{j}", int(k % 3 if rng.random() < 0.6 else rng.integers(0, 3))) for k in range(9) for j in range(3)
    ]
    bound = nl.bound_from_labels(as_columns(rows), 4)
    assert bound.now < bound.mean <= bound.per_task <= 1.0


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    folder = tmp_path_factory.mktemp("labels")
    labels = folder / "labels.csv"
    rows = [f"t{k},w{j},{k % 2 if rng.random() < 0.7 else 1 - k % 2}" for k in range(14) for j in range(3)]
    labels.write_text("task,worker,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return labels


def test_the_command_says_what_can_still_be_done(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = labels.parent / "page.html"
    assert run(["workers", str(labels), "--budget", "5", "--json", "--report", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)["bound"]
    assert found["crowds"] == 100 and found["confidence"] == 0.95
    assert found["now"] < found["mean"] < found["per_task"] < 1.0
    said = f"With 5 more labels of these workers no rule gets more than {found['per_task']:.2%} of the tasks right"
    assert said in page.read_text(encoding="utf-8")


def test_what_is_refused(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workers", str(labels), "--arrivals", "5"]) == 2
    assert "--arrivals only has an effect with --budget" in capsys.readouterr().err
    assert run(["workers", str(labels), "--budget", "5", "--arrivals", "4"]) == 2
    assert "4 arrivals cannot give 5 labels" in capsys.readouterr().err
    with pytest.raises(InputError, match="budget is 0"):
        nl.bound_from_labels(labels, 0)
