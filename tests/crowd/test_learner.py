"""Labels and features learnt together: ahead of both parts, no echo, nothing from nothing, errors in one sentence."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.errors import NextlabelError
from nextlabel.files.features import read_features

NAMES = [f"t{k}" for k in range(400)]


def crowd(seed: int = 0, answers: int = 3, per_task: int = 2, right: float = 0.65) -> tuple[Any, np.ndarray, Any]:
    """Labels of thirty workers, the truth, and twenty numbers per item around the centre of its truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, answers, len(NAMES))
    centres = rng.normal(size=(answers, 20))
    numbers = rng.normal(size=(len(NAMES), 20)) + 0.5 * centres[truth]
    skill = rng.uniform(right - 0.1, right + 0.1, 30)
    rows: dict[str, list[Any]] = {"task": [], "worker": [], "label": []}
    for x, name in enumerate(NAMES):
        for j in rng.choice(30, per_task, replace=False):
            said = truth[x] if rng.random() < skill[j] else (truth[x] + rng.integers(1, answers)) % answers
            for column, cell in zip(rows, (name, f"w{j}", int(said)), strict=True):
                rows[column].append(cell)
    return rows, truth, numbers * np.geomspace(1e-3, 1e3, 20) + 5.0


def table(numbers: Any, names: list[str] = NAMES) -> dict[str, list[Any]]:
    """As a table with one column for each number."""
    return {"task": names, **{f"f{k}": column.tolist() for k, column in enumerate(numbers.T)}}


def right(found: nl.LearntCrowd, truth: np.ndarray, who: str = "label") -> float:
    said = {row["task"]: row[who] for row in found.tasks()}
    return float(np.mean([said[name] == truth[k] for k, name in enumerate(NAMES) if name in said]))


def test_together_they_are_ahead_of_people_and_of_the_learner() -> None:
    labels, truth, numbers = crowd()
    found = nl.learn_crowd(labels, features=table(numbers))
    alone = nl.learn_crowd(labels)
    assert right(found, truth, "people") == right(alone, truth)
    assert right(found, truth) > right(alone, truth) + 0.1
    assert right(found, truth) > right(found, truth, "learner") + 0.01
    assert abs(found.expected_accuracy - right(found, truth)) < 0.1
    assert found.taught is not None and found.taught.bits > 0.2 and found.taught.with_ < found.taught.without
    assert any("bits about an item" in note for note in found.notes)


def test_items_without_labels_are_answered_and_the_learner_can_be_kept() -> None:
    labels, truth, numbers = crowd(1)
    some = [k for k, name in enumerate(labels["task"]) if int(name[1:]) < 200]
    few = {column: [cells[k] for k in some] for column, cells in labels.items()}
    found = nl.learn_crowd(few, features=table(numbers))
    assert len(found.task_names) == 400 and found.labels_per_task.tolist()[-1] == 0
    assert right(found, truth) > 0.7
    kept = pickle.loads(pickle.dumps(found.learner))
    new = kept.predict({name: row for name, row in zip(NAMES[200:], numbers[200:], strict=True)})
    assert np.mean(np.array(new) == truth[200:]) > 0.6
    assert 0.4 < kept.accuracy < 0.8
    with pytest.raises(NextlabelError, match="taught with 20"):
        kept.predict({"a": [1.0, 2.0]})


@pytest.mark.parametrize("what", ["noise", "constant", "one word each", "missing"])
def test_features_that_say_nothing_change_nothing(what: str) -> None:
    """One word each is the echo: a learner that had seen an item's label would confirm it by its word."""
    labels, _, _ = crowd(2)
    features: Any = {
        "noise": table(np.random.default_rng(0).normal(size=(400, 20))),
        "constant": table(np.full((400, 3), 7.0)),
        "one word each": {"task": NAMES, "text": [f"word{k}" for k in range(400)]},
        "missing": {"task": NAMES, "a": [None] * 400, "b": [""] * 400},
    }[what]
    found, alone = nl.learn_crowd(labels, features=features), nl.learn_crowd(labels)
    np.testing.assert_array_equal(found.predict_proba(), alone.predict_proba())
    assert found.expected == alone.expected and found.learner is None
    assert "say nothing" in found.notes[-1]


def test_half_of_the_features_may_be_missing() -> None:
    labels, truth, numbers = crowd(3)
    half = table(numbers[::2], NAMES[::2])
    assert right(nl.learn_crowd(labels, features=half), truth) > right(nl.learn_crowd(labels), truth) + 0.03
    holes = numbers.copy()
    holes[np.random.default_rng(0).random(holes.shape) < 0.5] = np.nan
    assert right(nl.learn_crowd(labels, features=table(holes)), truth) > right(nl.learn_crowd(labels), truth)


def test_one_label_each_does_not_collapse() -> None:
    labels, truth, numbers = crowd(4, per_task=1)
    found = nl.learn_crowd(labels, features=table(numbers))
    assert right(found, truth) > right(nl.learn_crowd(labels), truth) + 0.1
    assert np.bincount([int(x) for x in found.predict()], minlength=3).min() > 60


def test_known_truths_teach_and_are_judged_as_if_they_were_not_known() -> None:
    labels, truth, numbers = crowd(5)
    gold = {"task": NAMES[:30], "label": truth[:30].tolist()}
    found = nl.learn_crowd(labels, gold, features=table(numbers))
    assert found.audit is not None and found.audit.low <= found.audit.accuracy <= found.audit.high
    assert found.predict()[:30] != nl.learn_crowd(labels).predict()[:30]


def test_texts_and_learners_of_ones_own() -> None:
    labels, truth, _ = crowd(6)
    rng = np.random.default_rng(0)
    words = np.array([f"w{k}" for k in range(60)])
    texts = [" ".join(rng.choice(words[20 * c : 20 * c + 30], 6)) for c in np.minimum(truth, 1)]
    found = nl.learn_crowd(labels, features={"task": NAMES, "text": texts})
    assert right(found, truth) > right(nl.learn_crowd(labels), truth) + 0.02

    class Nearest:
        """The nearest mean, by hand."""

        def fit(self, inputs: np.ndarray, labels: np.ndarray) -> None:
            self.classes_ = np.unique(labels)
            self.means = np.stack([inputs[labels == c].mean(axis=0) for c in self.classes_])

        def predict_proba(self, inputs: np.ndarray) -> np.ndarray:
            odds = np.exp(-0.5 * ((inputs[:, None] - self.means) ** 2).mean(axis=2))
            return odds / odds.sum(axis=1, keepdims=True)

    labels, truth, numbers = crowd(6)
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    own = nl.learn_crowd(labels, features=table(numbers), learner=Nearest())
    assert right(own, truth) > right(nl.learn_crowd(labels), truth) + 0.05
    with pytest.raises(NextlabelError, match="could not be fitted"):
        nl.learn_crowd(labels, features=table(numbers), learner=object())  # type: ignore[arg-type]


def test_every_form_of_features_says_the_same(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    names = NAMES[:5]
    np.save(tmp_path / "v.npy", numbers)
    (tmp_path / "v.txt").write_text("\n".join(names), encoding="utf-8")
    np.savez(tmp_path / "v.npz", task=np.array(names), features=numbers)
    lines = ["task,a,b,c", *(f"{n},{','.join(map(str, row))}" for n, row in zip(names, numbers.tolist(), strict=True))]
    (tmp_path / "v.csv").write_text("\n".join(lines), encoding="utf-8")
    import polars

    polars.DataFrame({"task": names, "v": numbers.tolist()}).write_parquet(tmp_path / "v.parquet")
    by_name = dict(zip(names, numbers, strict=True))
    sources = [*(tmp_path / f"v.{end}" for end in ("npy", "npz", "csv", "parquet")), by_name, by_name.__getitem__]
    for source in sources:
        read = read_features(source, names)
        assert read.tasks == tuple(names)
        np.testing.assert_allclose(read.numbers, numbers, rtol=1e-6)
    again = read_features(read_features({"task": names, "t": ["x y"] * 5, "n": range(5)}).dump())
    assert again.texts == (("x y",) * 5,) and again.numbers.ravel().tolist() == list(range(5))


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({"a": [1.0, 2.0], "b": [1.0]}, "vectors of 1, 2 numbers"),
        ({"task": ["a", "a"], "x": [1, 2]}, "two rows for task 'a'"),
        ({"task": ["a", "b"], "x": ["good", "bad\x00"]}, "text of task 'b'"),
        ({"task": ["a", "b"], "x": [1.0, float("inf")]}, "infinite"),
        ({"task": ["a", ""], "x": [1, 2]}, "row 2 of .* no task"),
        ({"task": ["a"]}, "no column beside"),
        (lambda name: 1 / 0, "callable for features failed"),
    ],
)
def test_bad_features_are_refused_in_one_sentence(features: Any, said: str) -> None:
    with pytest.raises(NextlabelError, match=said):
        read_features(features, ["a", "b"])


def test_workers_with_features_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    labels, _, numbers = crowd(7)
    for name, columns in (("labels.csv", labels), ("items.csv", table(numbers))):
        rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        Path(name).write_text("\n".join(rows), encoding="utf-8")
    assert (
        run(["workers", "labels.csv", "--features", "items.csv", "--save", "results.csv", "--report", "page.html"]) == 0
    )
    assert "the learner of its features alone" in Path("page.html").read_text(encoding="utf-8")
    out, err = capsys.readouterr()
    assert "bits about an item" in " ".join(out.split()) and "features of 400 items read, 20 numbers each" in err
    header = Path("results.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header == "task,label,probability,labels,gold,learner,learner_probability,people,people_probability"
    np.save("v.npy", numbers)
    for bad, said in (("v.npy", "does not say whose"), ("no.csv", "no file"), ("labels.csv", "two rows")):
        assert run(["workers", "labels.csv", "--features", bad]) == 2
        assert said in capsys.readouterr().err
