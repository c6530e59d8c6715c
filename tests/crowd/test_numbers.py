"""Numbers and ratings from workers who differ: recorded sets and drawn crowds against the plain mean, and the doors."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.number_crowds import SETS, margins

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.crowd.numbers import NumberLabels, fit_numbers

Table = dict[str, list[object]]


def crowd(
    seed: int,
    *,
    tasks: int = 150,
    workers: int = 30,
    each: int = 5,
    spam: int = 0,
    spread: tuple[float, ...] = (6, 12, 30),
) -> tuple[np.ndarray, Table]:
    """Numbers around the truth, of workers with biases and spreads; the first ``spam`` answer at random."""
    rng = np.random.default_rng(seed)
    truth = 50 + 20 * rng.standard_normal(tasks)
    bias, sd = 8 * rng.standard_normal(workers), rng.choice(spread, workers)
    task = np.repeat(np.arange(tasks), each)
    worker = np.concatenate([rng.choice(workers, each, replace=False) for _ in range(tasks)])
    said = truth[task] + bias[worker] + sd[worker] * rng.standard_normal(len(task))
    said = np.where(worker < spam, rng.uniform(0, 100, len(task)), np.clip(said, 0, 100))
    return truth, {
        "task": [f"t{x}" for x in task], "worker": [f"w{j}" for j in worker], "label": [round(v, 6) for v in said],
    }  # fmt: skip


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("each", [4, 6])
def test_recorded_numbers_come_nearer_to_gold_than_their_mean(name: str, each: int, data: Path) -> None:
    """Correlation with the gold of six experts over 20 orders, against that of the plain mean."""
    assert np.mean(margins(data / "affect" / name, each, orders=20)) > 0.015


@pytest.mark.parametrize("spam", [0, 9])
def test_drawn_crowds(spam: int) -> None:
    """Nearer to the truth than the mean, by more where some answer at random; the standard deviations are honest."""
    for seed in range(3):
        truth, rows = crowd(seed, spam=spam)
        found = nl.learn_numbers(rows, nl.results.Number(0, 100))
        error, plain = (np.sqrt(np.mean((one - truth) ** 2)) for one in (found.values, found.means))
        assert error < 0.85 * plain
        assert 0.85 < (np.abs(found.fit.estimate - truth) < 1.96 * found.fit.sd).mean() <= 1.0
        noise = {one.name for one in found.workers if "noise" in one.flags}
        assert len(noise & {f"w{j}" for j in range(spam)}) >= spam // 3
        assert len(noise - {f"w{j}" for j in range(spam)}) <= 1


def test_who_answers_the_wrong_way_round_is_used() -> None:
    truth, rows = crowd(5, spread=(8,))
    turned = {
        **rows,
        "label": [
            100 - float(str(v)) if w in ("w0", "w1") else v for v, w in zip(rows["label"], rows["worker"], strict=True)
        ],
    }
    found = nl.learn_numbers(turned)
    assert {one.name for one in found.workers if "against the grain" in one.flags} == {"w0", "w1"}
    assert np.corrcoef(found.values, truth)[0, 1] > np.corrcoef(found.means, truth)[0, 1] + 0.01


@pytest.mark.parametrize(("factor", "shift"), [(0.01, 0.0), (1000.0, 0.0), (-1.0, 0.0), (1.0, 500.0)])
def test_units_do_not_matter(factor: float, shift: float) -> None:
    _, rows = crowd(2)
    plain = nl.learn_numbers(rows).fit
    other = nl.learn_numbers({**rows, "label": [factor * float(str(v)) + shift for v in rows["label"]]}).fit
    assert other.estimate == pytest.approx(factor * plain.estimate + shift, rel=1e-3, abs=1e-3 * abs(factor))


@pytest.mark.parametrize("said", [0.0, 3.1, 98.5, 97.25])
def test_labels_that_are_all_the_same_are_read_out_as_they_are(said: float) -> None:
    task, worker = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    fit = fit_numbers(NumberLabels(task, worker, np.full(9, said), 3, 3), nl.results.Number(0, 100))
    assert fit.power == 1.0 and fit.estimate == pytest.approx([said] * 3)


def test_a_rating_minimises_its_loss() -> None:
    """Under drawn beliefs no step has a smaller expected loss than the one that is read out."""
    rng = np.random.default_rng(0)
    beliefs = rng.dirichlet(np.full(7, 0.5), 300)
    for loss, power in (("squared", 2), ("absolute", 1)):
        rating = nl.results.Rating(-3, 3, loss)
        best = rating.best(beliefs)
        at = np.array([[p @ np.abs(rating.steps - s) ** power for s in rating.steps] for p in beliefs])
        assert at[np.arange(300), best] == pytest.approx(at.min(axis=1), abs=1e-12)
    sums = nl.results.Rating(1, 5).beliefs(np.array([-4.0, 3.1, 9.0]), np.array([0.5, 1.0, 0.0]))
    assert sums.sum(axis=1) == pytest.approx(1.0) and sums[0, 0] == sums[2, 4] == 1.0


def test_ratings_come_nearer_than_the_rounded_mean() -> None:
    truth, rows = crowd(3, spam=8)
    steps = np.clip(np.rint(np.array(rows["label"], dtype=float) / 25) + 1, 1, 5).astype(int)
    found = nl.learn_numbers({**rows, "label": steps.tolist()}, nl.results.Rating(1, 5))
    known = np.clip(np.rint(truth / 25) + 1, 1, 5)
    assert np.mean((found.values - known) ** 2) < 0.8 * np.mean((np.rint(found.means) - known) ** 2)
    assert set(found.values) <= {1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    truth, rows = crowd(0, tasks=60)
    columns = list(zip(*rows.values(), strict=True))
    Path("labels.csv").write_text(
        "task,worker,label\n" + "".join(f"{x},{w},{float(str(y)):.0f}\n" for x, w, y in columns)
    )
    Path("gold.csv").write_text("task,label\n" + "".join(f"t{x},{v:.2f}\n" for x, v in enumerate(truth)))
    Path("words.csv").write_text("task,worker,label\na,ann,good\na,bob,bad\n")
    return tmp_path


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["workers", "labels.csv", "--answer", "number", "--range", "0..100", "--gold", "gold.csv"]
    assert run([*words, "--json", "--save", "results.csv", "--out", "out", "--report", "page.html"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["gold"]["rmse"] < answer["gold"]["mean_rmse"] and answer["agreement"]["level"] == "interval"
    with Path("results.csv").open() as stream:
        saved = list(csv.DictReader(stream))
    assert len(saved) == 60 and float(saved[0]["label"]) == answer["tasks"][0]["label"]
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "agreement.csv",
        "tasks.csv",
        "workers.csv",
        "workers.png",
    ]
    assert "data:image/png" in Path("page.html").read_text()
    assert run(["workers", "labels.csv", "--answer", "rating", "--scale", "0..100"]) == 2
    assert "2 to 26 steps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["labels.csv", "--answer", "number", "--range", "0..50"], "outside the range 0..50"),
        (["labels.csv", "--answer", "number", "--range", "9"], "'9' is not a range"),
        (["labels.csv", "--answer", "number", "--range", "9..1"], "from 9 to 1"),
        (["labels.csv", "--answer", "number", "--scale", "1..5"], "scale only has an effect with answer rating"),
        (["labels.csv", "--answer", "number", "--budget", "50"], "--budget only has an effect with --answer choice"),
        (["words.csv", "--answer", "number"], "'bad' is no number"),
        (["labels.csv", "--answer", "rating"], "outside the scale 1..5"),
    ],
)
def test_bad_input(words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workers", *words, "--save", "results.csv"]) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not Path("results.csv").exists()


def test_one_worker_who_guesses_does_not_bend_the_scale() -> None:
    """Of sixty items four know the number within 4 and the fifth guesses: in 14 of 40 draws that looked like a bend."""
    bent = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = rng.uniform(0, 100, 60)
        said = [np.clip(truth + 4.0 * rng.normal(size=60), 0, 100) for _ in range(4)] + [rng.uniform(0, 100, 60)]
        labels = NumberLabels(np.tile(np.arange(60), 5), np.repeat(np.arange(5), 60), np.concatenate(said), 60, 5)
        fit = fit_numbers(labels, nl.results.Number(0.0, 100.0))
        bent.append(fit.power != 1.0)
        assert bent[-1] or np.sqrt(((fit.estimate - truth) ** 2).mean()) < 3.0
    assert sum(bent) <= 3
