"""Alpha and kappas against the packages that the field trusts, their intervals, and their doors."""

from __future__ import annotations

import json
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

import nextlabel as nl
from nextlabel.cli.app import run


def labels(
    seed: int, tasks: int = 60, workers: int = 6, right: float = 0.6
) -> tuple[np.ndarray, dict[str, list[object]]]:
    """A matrix of labels with holes (nan), whose answers are 1, 2, 5 and 9, and the same as a table."""
    rng = np.random.default_rng(seed)
    truth = rng.choice([1.0, 2.0, 5.0, 9.0], tasks)
    said = np.where(rng.random((workers, tasks)) < right, truth, rng.choice([1.0, 2.0, 5.0, 9.0], (workers, tasks)))
    said[rng.random((workers, tasks)) < 0.3] = np.nan
    j, x = np.nonzero(np.isfinite(said))
    rows = {"task": [f"t{k}" for k in x], "worker": [f"w{k}" for k in j], "label": [f"{v:g}" for v in said[j, x]]}
    return said, rows


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_alpha_is_krippendorffs(level: str, seed: int) -> None:
    said, rows = labels(seed)
    found = nl.agreement(rows, level)
    assert found.alpha is not None
    assert found.alpha.mean == pytest.approx(krippendorff.alpha(said, level_of_measurement=level), abs=1e-9)
    assert found.alpha.low < found.alpha.mean < found.alpha.high


@pytest.mark.parametrize("seed", range(4))
def test_kappa_is_cohens_for_every_pair(seed: int) -> None:
    said, rows = labels(seed)
    found = nl.agreement(rows)
    assert len(found.pairs) == 15
    for one, other, shared, kappa in found.pairs:
        both = np.isfinite(said[int(one[1:])]) & np.isfinite(said[int(other[1:])])
        mine, yours = (said[int(name[1:]), both].astype(int) for name in (one, other))
        assert shared == both.sum()
        assert kappa == pytest.approx(cohen_kappa_score(mine, yours), abs=1e-9)
    weights = [shared for _, _, shared, _ in found.pairs]
    assert found.cohen is not None
    assert found.cohen.mean == pytest.approx(np.average([kappa for *_, kappa in found.pairs], weights=weights))


def test_kappa_is_fleiss() -> None:
    """The example of Fleiss (1971) as Wikipedia has it: 10 subjects, 14 raters, kappa 0.210."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    rows = [(x, c) for x, row in enumerate(counts) for c, many in enumerate(row) for _ in range(many)]
    task, label = (list(column) for column in zip(*rows, strict=True))
    found = nl.agreement({"task": task, "label": label})
    assert found.fleiss is not None
    assert found.fleiss.mean == pytest.approx(0.20993, abs=1e-5)
    assert found.by_item[0] == 1.0 and found.by_item[1] == pytest.approx(0.253, abs=1e-3)


def test_intervals_cover() -> None:
    """Over drawn sets of 60 items the 95% intervals hold the value of the whole population 90 to 99 times of 100."""
    much = nl.agreement(labels(99, tasks=20_000)[1])
    for name in ("alpha", "fleiss", "cohen"):
        true = getattr(much, name).mean
        held = [getattr(nl.agreement(labels(seed)[1]), name) for seed in range(100)]
        assert 88 <= sum(one.low <= true <= one.high for one in held) <= 100, name


def test_blocks_of_many_items_say_the_same() -> None:
    """Above 1,000 items blocks are drawn: the widths fall with the root of the number of items."""
    few, many = (nl.agreement(labels(5, tasks=n)[1], "ordinal").alpha for n in (1_000, 16_000))
    assert few is not None and many is not None
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize(
    ("rows", "said"),
    [([("a", "x", 1), ("b", "y", 0)], "no item has labels"), ([("a", "x", 1), ("a", "y", 1)], "labels are the same")],
)
def test_what_cannot_be_said(rows: list[tuple[str, str, int]], said: str) -> None:
    table = dict(zip(["task", "worker", "label"], zip(*rows, strict=True), strict=True))
    found = nl.agreement(table)
    assert found.alpha is None and said in found.sentences()[0]


def test_words_have_no_distance() -> None:
    with pytest.raises(nl.errors.InputError, match="'no' is no number"):
        nl.agreement({"task": [1, 1], "worker": ["a", "b"], "label": ["yes", "no"]}, "interval")


def test_the_command_and_a_campaign_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _, rows = labels(1, tasks=20, workers=4, right=0.8)
    told = [(x, w, int(y in ("5", "9"))) for x, w, y in zip(*rows.values(), strict=True)]
    Path("labels.csv").write_text("task,worker,label\n" + "".join(f"{x},{w},{y}\n" for x, w, y in told))
    assert run(["workers", "labels.csv", "--json", "--report", "page.html"]) == 0
    answer = json.loads(capsys.readouterr().out)["agreement"]
    assert "Krippendorff" in Path("page.html").read_text()
    names = sorted({x for x, _, _ in told})
    with nl.Campaign.create(
        "sqlite:///c.db", id="c", tasks=[{"text": x} for x in names], budget=100, policy="uniform"
    ) as made:
        keys = dict(zip(names, [one.task for one in made.results()], strict=True))
        for x, w, y in told:
            made.set_answer(w, keys[x], y)
        live = made.agreement()
    for name in ("alpha", "fleiss"):  # the items come in another order, so that the ends of intervals differ a little
        assert live[name]["mean"] == pytest.approx(answer[name]["mean"])
    assert run(["campaign", "workers", "c", "--db", "sqlite:///c.db"]) == 0
    assert f"alpha (nominal) {answer['alpha']['mean']:.3f}" in " ".join(capsys.readouterr().out.split())
