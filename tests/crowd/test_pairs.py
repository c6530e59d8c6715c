"""Comparisons by workers who differ: against another program and brute force, and through the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import choix
import numpy as np
import pytest
from benchmarks.pairs import taus
from scipy.special import expit, ndtr

from nextlabel.cli.app import run
from nextlabel.crowd.pairs import Comparisons, fit_pairs, learn_pairs, pair_values


def compared(items: int, many: int, right: list[float], spread: float = 2.0, tie: float = 0.0) -> dict[str, list[str]]:
    """Comparisons of items whose names are in their true order, the best first."""
    rng = np.random.default_rng(7)
    score = np.sort(rng.normal(0, spread, items))[::-1]
    rows: dict[str, list[str]] = {"first": [], "second": [], "worker": [], "label": []}
    for _ in range(many):
        (i, j), k = rng.choice(items, 2, replace=False), int(rng.integers(len(right)))
        d, u, told = score[i] - score[j], rng.random(), rng.random() < right[k]
        ahead = 1 if u < expit(d - tie) else -1 if u > 1 - expit(-d - tie) else 0
        label = {0: "tie", 1: f"i{i:02d}", -1: f"i{j:02d}"}[ahead if told else -ahead]
        for name, cell in zip(rows, (f"i{i:02d}", f"i{j:02d}", f"w{k}", label), strict=True):
            rows[name].append(cell)
    return rows


def test_with_exact_workers_the_order_is_that_of_choix() -> None:
    rows = compared(12, 1500, [1.0, 1.0])
    found = learn_pairs(rows)
    pairs = list(zip(rows["first"], rows["second"], rows["label"], strict=True))
    won = [(int(label[1:]), int((b if label == a else a)[1:])) for a, b, label in pairs]
    theirs = choix.ilsr_pairwise(12, won, alpha=1e-3)
    ours = np.empty(12)
    for name, score in zip(found.item_names, found.fit.score, strict=True):
        ours[int(name[1:])] = score
    assert np.corrcoef(ours, theirs)[0, 1] > 0.995


def test_who_tosses_a_coin_and_who_says_the_opposite_is_found_and_ties_are_no_news_of_them() -> None:
    found = learn_pairs(compared(10, 2000, [0.97, 0.95, 0.5, 0.05], tie=0.6))
    said = {name: one for name, _, one in found.workers()}
    assert said["w0"].low > 0.8 and said["w1"].low > 0.8 and said["w3"].high < 0.2
    assert said["w2"].low < 0.5 < said["w2"].high
    assert found.fit.tie == pytest.approx(0.6, abs=0.2)
    order = found.predict()
    assert sum(a > b for k, a in enumerate(order) for b in order[k + 1 :]) <= 4  # of 45 pairs


def wrong(score: Any, covariance: Any, d: Any) -> float:
    """Pairs in the wrong order that are expected with true differences ``d``."""
    spread = np.diag(covariance)
    sd = np.sqrt(spread[:, None] + spread - 2 * covariance + np.eye(len(score)))
    return float(np.triu(ndtr(-np.abs(d) / sd), 1).sum())


def test_the_value_of_a_pair_is_the_fall_of_the_expected_wrong_order_by_brute_force() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(5, 5))
    score, covariance = rng.normal(size=5), root @ root.T + np.eye(5)
    value = pair_values(score, covariance, 0.7)
    draws = rng.multivariate_normal(score, covariance, 4000, method="cholesky")
    step = 1e-4
    for i, j in ((0, 1), (2, 4)):
        u = covariance[:, i] - covariance[:, j]
        after = covariance - step * np.outer(u, u)
        fall = 0.0
        for draw in draws:
            d = draw[:, None] - draw
            fall += (wrong(score, covariance, d) - wrong(score, after, d)) / step
        n, shrink = u[i] - u[j], 1 / np.sqrt(1 + np.pi * (u[i] - u[j]) / 8)
        e = expit((score[i] - score[j]) * shrink)
        told = (0.7 * shrink * e * (1 - e)) ** 2 / ((0.5 + 0.7 * (e - 0.5)) * (0.5 - 0.7 * (e - 0.5)))
        assert value[i, j] == pytest.approx(told / (1 + told * n) * fall / len(draws), rel=0.05)
    assert np.allclose(value, value.T)


def test_for_the_best_few_pairs_at_the_border_come_first() -> None:
    found = learn_pairs(compared(20, 4000, [1.0], spread=4.0))
    order = {name: rank for rank, name in enumerate(found.predict())}
    assert all(min(order[a], order[b]) < 9 and max(order[a], order[b]) > 1 for a, b in found.next_pairs(5, top=5))


def test_a_coin_teaches_nothing_and_more_comparisons_teach_more() -> None:
    value = pair_values(np.array([0.0, 1.0, 5.0]), np.eye(3), 1.0)
    assert value[0, 1] > value[0, 2]
    assert np.all(pair_values(np.array([0.0, 1.0, 5.0]), np.eye(3), 0.0) < 1e-15)
    few, many = (
        fit_pairs(Comparisons(*np.array([[0, 1] * 3 * n, [1, 2] * 3 * n, [0] * 6 * n, [1, 1, 1, 1, -1, -1] * n]), 3, 1))
        for n in (2, 40)
    )
    assert np.trace(many.covariance) < np.trace(few.covariance)


def test_chosen_pairs_beat_random_ones_where_scores_are_far_apart() -> None:
    found = taus(4.0, "exact", 2)
    assert found["chosen 600"].mean() > found["random 600"].mean() + 0.01


def write(path: Path, rows: dict[str, list[str]]) -> str:
    with path.open("w", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(rows)
        lines.writerows(zip(*rows.values(), strict=True))
    return str(path)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as lines:
        return list(csv.DictReader(lines))


def test_the_command_ranks_a_file_and_says_what_to_compare_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, saved = write(tmp_path / "pairs.csv", compared(8, 400, [0.95, 0.9])), tmp_path / "ranked.csv"
    assert run(["workers", path, "--answer", "pair", "--save", str(saved), "--top", "3", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["item"] for one in said["items"]] == [row["item"] for row in rows_of(saved)]
    assert len(said["next"]) == 10 and {one["worker"] for one in said["workers"]} == {"w0", "w1"}
    assert run(["workers", path, "--answer", "pair"]) == 0
    assert capsys.readouterr().out.count("Compare next: i0") == 1


@pytest.mark.parametrize(
    ("rows", "flags", "sentence"),
    [
        ({"label": ["left"]}, [], "the label 'left' is neither 'a' nor 'b'."),
        ({"second": ["a"]}, [], "item 'a' is compared with itself."),
        ({"worker": [""]}, [], "there are no comparisons of two items."),
        ({"third": ["b"], "second": None}, [], "the comparisons have no column 'second'"),
        ({}, ["--top", "2"], "10 pairs for the best 2 of 2 items cannot be asked for."),
        ({}, ["--gold", "x.csv"], "--gold only has an effect"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: dict[str, Any], flags: list[str], sentence: str
) -> None:
    usual = {"first": ["a"], "second": ["b"], "worker": ["ann"], "label": ["a"]}
    path = write(tmp_path / "pairs.csv", {name: cells for name, cells in (usual | rows).items() if cells is not None})
    assert run(["workers", path, "--answer", "pair", *flags]) == 2
    said = capsys.readouterr()
    assert sentence in said.err and not said.out
