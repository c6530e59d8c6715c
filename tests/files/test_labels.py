"""Files of labels: every form, what is counted and left out, errors that say what to do, and a million rows."""

from __future__ import annotations

import builtins
import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelled_crowds import of_ones
from nextlabel.errors import FileFormatError, InputError, TooLargeError
from nextlabel.files.labels import Gold, LabelSummary, LabelTable, read_gold, read_labels, second_answers
from nextlabel.model.prior_weights import LabelCounts
from nextlabel.model.rates import estimate_rates
from nextlabel.simulation import replay as convert
from nextlabel.simulation.replay import to_recorded


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def both(source: Any, **options: Any) -> tuple[LabelTable, LabelSummary]:
    table = read_labels(source, **options)
    return table, table.report


def read(path: Path, text: str, **options: Any) -> tuple[LabelTable, LabelSummary]:
    return both(write(path / "labels.csv", text), **options)


def rows(table: LabelTable) -> list[tuple[str, str, str]]:
    """The table in words again."""
    assert table.worker is not None
    workers = (*table.workers, "")
    columns = zip(table.task, table.worker, table.label, strict=True)
    return [(table.tasks[t], workers[w], table.labels[y]) for t, w, y in columns]


SMALL = "task,worker,label\na,w1,1\nb,w1,0\na,w2,0\nb,w2,0\na,w3,1\n"
IN_WORDS = [("a", "w1", "1"), ("b", "w1", "0"), ("a", "w2", "0"), ("b", "w2", "0"), ("a", "w3", "1")]


# --- forms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, text",
    [
        ("x.csv", SMALL),
        ("x.CSV", SMALL),
        ("x.tsv", SMALL.replace(",", "\t")),
        ("x.csv", SMALL.replace(",", ";")),
        ("x.csv", "\ufeff" + SMALL),
        ("x.csv", SMALL.replace("\n", "\r\n")),
        ("x.csv", SMALL.replace("task,worker,label", " Task , WORKER,Label ")),
        ("x.csv", SMALL.replace("a,w2,0", ' a ," w2",0.0\n')),
        ("x.csv", SMALL.rstrip("\n")),
    ],
)
def test_text_files_of_every_dialect_are_the_same_table(tmp_path: Path, name: str, text: str) -> None:
    table, report = both(write(tmp_path / name, text))
    assert rows(table) == IN_WORDS
    assert (report.rows, report.labels, report.tasks, report.workers) == (5, 5, 2, 3)
    assert (report.least, report.mean, report.most, report.ties) == (2, 2.5, 3, 0)


def test_packed_files_and_columns_by_name(tmp_path: Path) -> None:
    text = "id,text,who,answer\n" + "".join(
        f'{task},"a text, with\nlines",{worker},{label}\n' for task, worker, label in IN_WORDS
    )
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    table, _ = both(path, task="id", worker="who", label="answer")
    assert rows(table) == IN_WORDS


@pytest.mark.parametrize("kind", [str, int, float, bool, "category"])
def test_parquet_of_every_type(tmp_path: Path, kind: Any) -> None:
    frame = pd.DataFrame(IN_WORDS, columns=["task", "worker", "label"])
    frame["task"] = frame["task"].map({"a": 10, "b": 20})
    frame["label"] = frame["label"].astype(int).astype(kind)
    frame.to_parquet(tmp_path / "x.parquet")
    table, report = both(tmp_path / "x.parquet")
    assert table.tasks == (10, 20) and {type(task) for task in table.tasks} == {int}
    assert [int(y) for y in table.label] == [1, 0, 0, 0, 1]
    assert table.labels == {bool: (False, True), str: ("0", "1")}.get(kind, (0, 1))
    assert {type(label) for label in table.labels} == {kind if kind in (bool, str) else int}
    assert report.labels == 5


def test_parquet_with_missing_cells(tmp_path: Path) -> None:
    frame = pd.DataFrame({"task": [1.0, None, 2.0], "worker": ["u", "u", None], "label": [1.0, 0.0, None]})
    frame.to_parquet(tmp_path / "x.parquet")
    table, report = both(tmp_path / "x.parquet")
    assert rows(table) == [(1, "u", 1)]
    assert (report.blank_labels, report.blank_tasks, report.tasks_without_labels) == (1, 1, 1)


def test_real_labels_against_a_plain_loop(data: Path) -> None:
    for name, facts in (("rte", (8000, 800, 164, 65)), ("temp", (4620, 462, 76, 17))):
        table, report = both(data / name / "labels.csv")
        assert (report.labels, report.tasks, report.workers, report.ties) == facts
        assert (report.blank_labels, report.duplicates) == (0, 0)
        gold = read_gold(data / name / "gold.csv", table)
        assert (gold.known, gold.unknown_tasks) == (report.tasks, 0)
        recorded = to_recorded(table, gold)
        with (data / name / "labels.csv").open(newline="") as stream:
            given: dict[str, list[int]] = {}
            for row in csv.DictReader(stream):
                given.setdefault(row["task"], []).append(int(row["label"]))
        assert recorded.tasks == tuple(given) and recorded.said.tolist() == list(given.values())
        with (data / name / "gold.csv").open(newline="") as stream:
            truth = {row["task"]: int(row["label"]) for row in csv.DictReader(stream)}
        assert dict(zip(recorded.tasks, recorded.gold.tolist(), strict=True)) == truth


# --- Label Studio ---------------------------------------------------------------------------------


def annotation(by: Any, choice: str | list[str] | None, number: int = 1, **fields: Any) -> dict[str, Any]:
    """An annotation as Label Studio 1.x exports it."""
    ticked = [choice] if isinstance(choice, str) else choice
    result = [
        {
            "value": {"choices": ticked},
            "id": f"Dx_{number}",
            "from_name": "sentiment",
            "to_name": "text",
            "type": "choices",
            "origin": "manual",
        }
    ]
    return {
        "id": number,
        "completed_by": by,
        "result": result if ticked else [],
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": f"2026-03-09T22:16:{number:02d}.500000Z",
        "updated_at": "2026-03-10T09:00:00.000000Z",
        "draft_created_at": None,
        "lead_time": 4.25,
        "prediction": {},
        "result_count": 1,
        "unique_id": f"6ad2e3f4-0000-4000-8000-{number:012d}",
        "import_id": None,
        "last_action": None,
        "task": 1,
        "project": 83,
        "updated_by": 1,
        "parent_prediction": None,
        "parent_annotation": None,
        "last_created_by": None,
        **fields,
    }


def export(path: Path, *tasks: list[dict[str, Any]], **fields: Any) -> Path:
    found = [
        {
            "id": 100 + i,
            "annotations": given,
            "file_upload": "0-reviews.csv",
            "drafts": [],
            "predictions": [{"result": [], "model_version": "m1"}],
            "data": {"text": "I like it", "item": f"item-{i}"},
            "meta": {},
            "created_at": "2026-03-09T21:52:49.513742Z",
            "updated_at": "2026-03-09T22:16:08.746926Z",
            "inner_id": i + 1,
            "total_annotations": len(given),
            "cancelled_annotations": 0,
            "project": 83,
            **fields,
        }
        for i, given in enumerate(tasks)
    ]
    return write(path / "export.json", json.dumps(found))


def test_label_studio_export(tmp_path: Path) -> None:
    person = {"id": 7, "email": "ann@example.com", "first_name": "", "last_name": ""}
    path = export(
        tmp_path,
        [annotation(3, "Positive", 1), annotation(person, "Negative", 2), annotation(9, "Positive", 3, lead_time=None)],
        [annotation(3, None, 4, was_cancelled=True), annotation(7, "Negative", 5)],
        [annotation(3, "Positive", 6, ground_truth=True)],
    )
    table, report = both(path, positive="Positive")
    found = [(100, 3, "Positive"), (100, 7, "Negative"), (100, 9, "Positive"), (101, 7, "Negative")]
    assert rows(table) == found
    assert (report.rows, report.blank_labels, report.gold_marks, report.labels) == (5, 1, 1, 4)
    assert table.submitted_at is not None and table.assigned_at is not None
    moment = pd.Timestamp("2026-03-09T22:16:01.5Z").timestamp()
    assert table.submitted_at == pytest.approx([moment, moment + 1, moment + 2, moment + 4], abs=1e-5)
    assert table.submitted_at - table.assigned_at == pytest.approx([4.25, 4.25, np.nan, 4.25], abs=1e-5, nan_ok=True)
    named, _ = both(path, positive="Positive", task="item", label="sentiment", assigned_at=None, worker=None)
    assert named.tasks == ("item-0", "item-1")
    assert named.assigned_at is None and named.worker is None and named.submitted_at is not None


def test_label_studio_gold_is_what_is_marked_as_ground_truth(tmp_path: Path) -> None:
    path = export(
        tmp_path,
        [annotation(3, "yes", 1), annotation(1, "no", 2, ground_truth=True)],
        [annotation(3, "yes", 3)],
    )
    table, _ = both(path)
    gold = read_gold(path, table)
    assert list(gold.label) == [0, -1]


def test_label_studio_ratings_many_choices_and_many_questions(tmp_path: Path) -> None:
    stars = [{"from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": k}} for k in (4, 2, 5)]
    table, _ = both(export(tmp_path, [annotation(k, None, k, result=[one]) for k, one in enumerate(stars)]))
    assert table.labels == (2, 4, 5) and list(table.label) == [1, 0, 2]

    many = export(tmp_path, [annotation(1, ["Spam", "Rude"], 1), annotation(2, ["Rude"], 2)])
    with pytest.raises(FileFormatError, match=r"more than one answer to 'sentiment': Spam, Rude.*--positive"):
        read_labels(many)
    table, _ = both(many, positive="Spam")
    assert list(table.label) == [1, 0]

    two = [annotation(1, "yes", 1)["result"][0], {**stars[0]}]
    asked = export(tmp_path, [annotation(1, None, 1, result=two)])
    with pytest.raises(FileFormatError, match=r"more than one question: sentiment, stars.*--label-column"):
        read_labels(asked)
    assert read_labels(asked, label="sentiment").labels == ("no", "yes")
    with pytest.raises(FileFormatError, match="no question 'mood'"):
        read_labels(asked, label="mood")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is empty"),
        ("{", "is not a JSON list"),
        ("[{", "value 1 of .* is not JSON"),
        ('{"a": 1}', "is not a JSON list"),
        ("[1, 2]", "value 1 of .* is not a JSON object"),
        ("[]", "list without rows"),
        ('[{"text": "a", "stars": 1}]', "no column 'task'; it has the columns text, stars"),
        ('[1, {"id": 1, "annotations": []}]', "value 1 of .* is not a JSON object"),
        ('[{"id": 1, "annotation_id": 3, "annotator": 1, "sentiment": "Positive"}]', "JSON-MIN"),
        ('[{"id": 1, "annotations": 3}]', "annotations of task 1 are no list"),
        ('[{"id": 1, "annotations": []}]', "no annotation of a worker"),
        ('[{"id": 1, "annotations": [{"result": [{"type": "brushlabels"}]}]}]', "of the kind brushlabels"),
        ('[{"id": 1, "annotations": [{"was_cancelled": true, "result": []}]}]', "has no results"),
    ],
)
def test_json_that_is_no_export(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message) as caught:
        read_labels(write(tmp_path / "x.json", text))
    assert caught.value.hint


# --- what is counted and left out -----------------------------------------------------------------


def test_blank_cells_are_counted_and_left_out(tmp_path: Path) -> None:
    text = "task,worker,label\na,w1,1\na,w2,\na,w3,  \nb,w1,NaN\n,w1,1\na,,0\na,,0\nc,w1,null\n"
    table, report = read(tmp_path, text)
    assert rows(table) == [("a", "w1", "1"), ("a", "", "0"), ("a", "", "0")]
    assert (report.rows, report.blank_labels, report.blank_tasks, report.labels) == (8, 4, 1, 3)
    assert (report.blank_workers, report.tasks_without_labels, report.duplicates) == (2, 2, 0)
    said = " ".join(report.sentences())
    for part in (
        "4 rows without a label",
        "1 row without a task",
        "2 tasks have no label",
        "2 labels without a worker",
    ):
        assert part in said


def test_the_first_answer_counts(tmp_path: Path) -> None:
    text = "task,worker,label\na,w1,1\na,w2,0\na,w1,0\nb,w1,0\na,w1,1\n"
    table, report = read(tmp_path, text)
    assert rows(table) == [("a", "w1", "1"), ("a", "w2", "0"), ("b", "w1", "0")]
    assert (report.duplicates, report.duplicates_differ, report.labels, report.ties) == (2, 1, 3, 1)
    assert "the first in the file counts" in " ".join(report.sentences())
    kept, report = read(tmp_path, text, duplicates="keep")
    assert len(kept) == 5 and report.duplicates == 2
    assert "all are kept" in " ".join(report.sentences())


def test_the_first_answer_is_the_one_that_came_first(tmp_path: Path) -> None:
    text = "task,worker,label,submitted_at\na,w1,1,2026-01-02T00:00:00Z\na,w1,0,2026-01-01T00:00:00Z\n"
    table, report = read(tmp_path, text)
    assert rows(table) == [("a", "w1", "0")]
    assert report.by_time and "the first by the time of submission" in " ".join(report.sentences())
    blank, report = read(tmp_path, text.replace("2026-01-01T00:00:00Z", ""))
    assert rows(blank) == [("a", "w1", "1")] and not report.by_time


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3), st.integers(0, 5)), min_size=1, max_size=30))
def test_second_answers_against_a_plain_loop(given_rows: list[tuple[int, int, int]]) -> None:
    task, worker, time = (np.array(column, dtype=np.int64) for column in zip(*given_rows, strict=True))
    for times in (None, time.astype(float)):
        again, first = second_answers(task, worker, times)
        order = sorted(range(len(task)), key=lambda i: (0 if times is None else times[i], i))
        seen: dict[tuple[int, int], int] = {}
        for i in order:
            expected = i if worker[i] < 0 else seen.setdefault((int(task[i]), int(worker[i])), i)
            assert first[i] == expected and again[i] == (expected != i)


def test_without_workers_duplicates_cannot_be_told(tmp_path: Path) -> None:
    table, report = read(tmp_path, "task,label\na,1\na,1\n")
    assert len(table) == 2 and table.worker is None and not report.workers_known
    assert "no column of workers" in " ".join(report.sentences())
    ignored, _ = read(tmp_path, SMALL, worker=None)
    assert ignored.worker is None


def test_ties_with_many_answers() -> None:
    def table(task: list[int], label: list[int]) -> LabelTable:
        names = tuple("abc")
        return LabelTable(np.array(task), None, np.array(label), names[: max(task) + 1], (), names)

    assert table([0, 0, 0, 1, 1, 2], [0, 1, 2, 2, 2, 0]).ties() == 1
    assert table([0, 0, 0, 0, 0], [0, 1, 2, 1, 2]).ties() == 1
    assert table([0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 2, 2]).ties() == 0


def test_the_report_reads_as_english(data: Path) -> None:
    _, report = both(data / "rte" / "labels.csv")
    assert report.sentences()[0].endswith("labels.csv: 8,000 rows read (CSV, commas, UTF-8), 8,000 labels used.")
    assert report.sentences()[1:5] == [
        "Columns used: task, label, worker.",
        "164 workers.",
        "800 tasks; labels per task: 10 each.",
        "Labels: 0 (3,419), 1 (4,581).",
    ]
    assert report.sentences()[5].startswith("65 tasks are tied under majority vote: ties are kept as they are")


# --- words for labels -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, positive, names, codes",
    [
        (["0", "1"], None, ("0", "1"), [0, 1]),
        (["1.0", "0.0"], None, ("0", "1"), [1, 0]),
        (["True", "FALSE", "true"], None, ("false", "true"), [1, 0, 1]),
        (["Yes", "no"], None, ("no", "yes"), [1, 0]),
        (["yes", "0"], None, ("0", "1"), [1, 0]),
        (["1", "1"], None, ("0", "1"), [1, 1]),
        (["cat", "dog"], "cat", ("dog", "cat"), [1, 0]),
        (["cat", "dog", "cow"], "cow", ("other", "cow"), [0, 0, 1]),
        (["0", "1"], "0", ("1", "0"), [1, 0]),
        (["2.0", "1.0"], "2", ("1", "2"), [1, 0]),
        (["dog", "cat"], None, ("cat", "dog"), [1, 0]),
        (["2", "1"], None, ("1", "2"), [1, 0]),
        (["dog", "cat", "cow"], None, ("cat", "cow", "dog"), [2, 0, 1]),
        (["10", "9", "-1"], None, ("-1", "9", "10"), [2, 1, 0]),
        (["yes", "no", "maybe"], None, ("maybe", "no", "yes"), [2, 1, 0]),
    ],
)
def test_words_for_labels(
    tmp_path: Path, words: list[str], positive: str | None, names: tuple[str, ...], codes: list[int]
) -> None:
    text = "task,label\n" + "".join(f"t{i},{word}\n" for i, word in enumerate(words))
    table, report = read(tmp_path, text, positive=positive)
    assert table.labels == names and list(table.label) == codes
    assert list(report.label_counts) == list(names)


def test_words_that_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no label in .* is 'cow'; the labels are") as caught:
        read(tmp_path, "task,label\na,cat\nb,dog\n", positive="cow")
    assert caught.value.hint == "Name the one that counts as 1, e.g. --positive dog."
    with pytest.raises(InputError, match=r"every label in .* is 'cat'") as caught:
        read(tmp_path, "task,label\na,cat\nb,cat\n")
    assert "--positive cat" in caught.value.hint
    assert any("dog counts as 1" in said for said in read(tmp_path, "task,label\na,dog\nb,cat\n")[1].sentences())


# --- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cells",
    [
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:30.250Z"],
        ["2026-01-01 00:00:00", "2026-01-01 00:00:30.250"],
        ["2026-01-01 00:00:00+00:00", "2026-01-01 01:00:30.250+01:00"],
        ["2026-01-01T00:00Z", "2026-01-01 01:00:30.25+0100"],
        ["1767225600", "1767225630.25"],
        ["1767225600000", "1767225630250"],
        ["1767225600000000", "1767225630250000"],
    ],
)
def test_times_of_every_spelling(tmp_path: Path, cells: list[str]) -> None:
    text = "task,label,assigned_at\n" + "".join(f"a,1,{cell}\n" for cell in [*cells, ""])
    table, report = read(tmp_path, text)
    expected = [1767225600.0, 1767225630.25, np.nan]
    assert table.assigned_at == pytest.approx(expected, abs=1e-4, nan_ok=True)
    assert report.assigned_known == 2 and table.submitted_at is None


def test_times_in_parquet_and_by_name(tmp_path: Path) -> None:
    moments = pd.to_datetime([1767225600.0, None, 1767225660.5], unit="s")
    for kind in ("datetime64[s]", "datetime64[ms]", "datetime64[ns]"):
        frame = pd.DataFrame({"task": list("abc"), "label": [1, 0, 1], "begun": moments})
        frame["begun"] = frame["begun"].astype(kind)
        frame["done"] = frame["begun"].dt.tz_localize("Europe/Rome") + pd.Timedelta(1, "h")
        frame.to_parquet(tmp_path / "x.parquet")
        table, _ = both(tmp_path / "x.parquet", assigned_at="begun", submitted_at="done")
        assert table.assigned_at is not None and table.submitted_at is not None
        assert table.submitted_at - table.assigned_at == pytest.approx([0, np.nan, 0], nan_ok=True)


def test_a_time_that_is_none(tmp_path: Path) -> None:
    table, report = read(tmp_path, "task,label,assigned_at\na,1,2026-01-01\nb,1,yesterday\n")
    assert len(table) == 2 and table.assigned_at is None and report.assigned_known == 0
    assert "Times are not used: column 'assigned_at'" in " ".join(report.sentences())
    with pytest.raises(InputError, match=r"'assigned_at' of .* holds 'yesterday', which is not a time"):
        estimate_rates(table)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is empty"),
        ("task,worker,label", "a header and no rows"),
        ("task,worker,label\n", "a header and no rows"),
        ("task,worker,label\na,w1,\n", "1 rows and not one label"),
        ("task,who,what\na,w1,1\n", "no column 'label'; it has the columns task, who, what"),
        ("task,Label,LABEL\na,1,1\n", "more than one column 'Label'"),
        ("task,worker,label\na,w1,1\nb,w1\n", "row 3 of .* has 2 cells and its header 3"),
        ("task,worker,label\na,w1,1\nb,w1,1,1\n", "row 3 of .* has 4 cells and its header 3"),
        ('task,worker,label\na,w1,"1\nb,w1,1\n', "ends inside a quoted cell"),
        ('task,worker,label\na,w1,"1\nb"\n', "runs over several lines"),
        ('task,worker,label\na,"w1" x,1\n', "line 2 of .* cannot be read"),
    ],
)
def test_text_files_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message) as caught:
        read(tmp_path, text)
    assert caught.value.hint and "\n" not in str(caught.value)


def test_a_column_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    for role, flag in (("worker", "--worker-column"), ("submitted_at", "--submitted-column")):
        with pytest.raises(FileFormatError, match=f"no column 'x'.*{flag}"):
            read(tmp_path, SMALL, **{role: "x"})


def test_files_that_are_not_what_they_should_be(tmp_path: Path) -> None:
    for name, content, message in (
        ("x.csv", "task,label\nä,1\n".encode() + "ö,1\n".encode("latin-1"), "line 3 of .* is not UTF-8"),
        ("x.csv", SMALL.encode("utf-16-le"), "line 1 of .* has a null character"),
        ("x.csv", b"\xff\xfea", "line 1 of .* is not UTF-16"),
        ("x.csv", b"task,label\n" + bytes(97 for _ in range(3_000_000)), "longer than"),
        ("x.csv.gz", gzip.compress(SMALL.encode())[:-9], "cannot be unpacked"),
        ("x.parquet", SMALL.encode(), "cannot be read as Parquet"),
        ("x.json", "[ä]".encode("latin-1"), "not UTF-8"),
        ("x.xlsx", b"PK\x03\x04", "cannot be read as a workbook"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileFormatError, match=message) as caught:
            read_labels(tmp_path / name)
        assert caught.value.hint
    with pytest.raises(FileFormatError, match="there is no file"):
        read_labels(tmp_path / "none.csv")
    with pytest.raises(FileFormatError, match="is a folder"):
        read_labels(tmp_path)
    with pytest.raises(InputError, match="duplicates 'last' is not known"):
        read_labels(tmp_path / "x.csv", duplicates="last")  # type: ignore[arg-type]


def test_parquet_with_columns_that_are_no_words(tmp_path: Path) -> None:
    pd.DataFrame({"task": ["a"], "label": [[1, 2]]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(FileFormatError, match=r"'label' of .* holds lists or tables"):
        read_labels(tmp_path / "x.parquet")


def test_csv_needs_no_extra_and_parquet_says_how_to_get_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pd.DataFrame({"task": ["a"], "label": [1]}).to_parquet(tmp_path / "x.parquet")
    path = write(tmp_path / "x.csv", SMALL)
    real = builtins.__import__

    def missing(name: str, *rest: Any, **named: Any) -> Any:
        if name.split(".")[0] in ("pyarrow", "pandas"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert len(read_labels(path)) == 5
    with pytest.raises(InputError, match=r"pip install 'nextlabel\[data\]'"):
        read_labels(tmp_path / "x.parquet")


# --- gold, replay, counts -------------------------------------------------------------------------


def test_gold_in_the_words_of_the_labels(tmp_path: Path) -> None:
    table, _ = read(tmp_path, "task,label\na,cat\nb,dog\nc,cow\n", positive="cat")
    path = write(tmp_path / "gold.csv", "id,truth\nb,bird\na,cat\nz,cat\na,cat\nc,\n")
    gold = read_gold(path, table, task="id", label="truth")
    assert list(gold.label) == [1, 0, -1]
    assert (gold.table.rows, gold.known, gold.unknown_tasks, gold.blank) == (5, 2, 1, 1)
    said = " ".join(gold.sentences())
    assert "gold for 2 of 3 tasks" in said and "Gold for 1 task without labels left out" in said
    yes, _ = read(tmp_path, "task,label\na,yes\nb,no\n")
    assert list(read_gold(write(tmp_path / "g.csv", "task,label\na,True\nb,0\n"), yes).label) == [1, 0]


def test_gold_that_does_not_belong(tmp_path: Path) -> None:
    table, _ = read(tmp_path, SMALL)
    with pytest.raises(FileFormatError, match=r"no gold for any task.*first task is 'x', that of the labels is 'a'"):
        read_gold(write(tmp_path / "g.csv", "task,label\nx,1\n"), table)
    with pytest.raises(FileFormatError, match="says two things of task 'a'"):
        read_gold(write(tmp_path / "g.csv", "task,label\na,0\nb,1\na,1\n"), table)
    with pytest.raises(InputError, match="gold label 'maybe', which no worker gave"):
        read_gold(write(tmp_path / "g.csv", "task,label\na,maybe\n"), table)


def test_a_replay_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = "task,worker,label,submitted_at\na,1,1,30\nb,1,0,10\na,2,0,20\na,3,0,10\n"
    table, _ = read(tmp_path, text)
    gold = Gold(np.array([1, -1]), 1)
    recorded = to_recorded(table, gold)
    assert recorded.tasks == ("a", "b") and list(recorded.counts) == [3, 1] and list(recorded.gold) == [1, -1]
    assert recorded.said.tolist() == [[1, 0, 0], [0, -1, -1]]
    assert list(to_recorded(table).gold) == [-1, -1]


def test_tables_that_cannot_be_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = read(tmp_path, "task,label\na,x\nb,y\nc,z\n")
    with pytest.raises(InputError, match=r"x, y, z; a replay has two.*--positive"):
        to_recorded(table)
    counts = LabelCounts.of_labels(table)
    assert counts.answers == 3 and len(counts) == 3
    two, _ = read(tmp_path, SMALL)
    monkeypatch.setattr(convert, "MOST_CELLS", 5)
    with pytest.raises(TooLargeError, match="a task has 3 labels"):
        to_recorded(two)


# --- size -----------------------------------------------------------------------------------------


def big(tmp_path: Path, count: int) -> None:
    """Labels at random, read back and compared with what was written."""
    rng = np.random.default_rng(count)
    N, W = count // 10, 500
    task, worker, label = rng.integers(0, N, count), rng.integers(0, W, count), rng.integers(0, 2, count)
    label[::1000] = -1
    lines = [f"t{t},w{w},{'' if y < 0 else y}\n" for t, w, y in zip(task, worker, label, strict=True)]
    write(tmp_path / "big.csv", "task,worker,label\n" + "".join(lines))
    table, report = both(tmp_path / "big.csv")
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    frame = frame[frame.label >= 0]
    once = frame.drop_duplicates(["task", "worker"])
    assert (report.rows, report.blank_labels) == (count, count // 1000)
    assert report.duplicates == len(frame) - len(once) > 0
    assert np.array_equal(table.label, once.label)
    assert [table.tasks[i] for i in table.task[:1000]] == [f"t{t}" for t in once.task[:1000]]
    ones, labels = (getattr(once.groupby("task").label, how)() for how in ("sum", "count"))
    assert report.ties == int((2 * ones == labels).sum())
    expected, found = of_ones(ones, labels), LabelCounts.of_labels(table)
    assert np.array_equal(found.counts, expected.counts) and np.array_equal(found.tasks, expected.tasks)
    recorded = to_recorded(table)
    assert int((recorded.said >= 0).sum()) == len(once)
    assert np.array_equal((recorded.said == 1).sum(axis=1), once.groupby("task", sort=False).label.sum())


def test_many_rows(tmp_path: Path) -> None:
    big(tmp_path, 200_000)


@pytest.mark.slow
def test_a_million_rows(tmp_path: Path) -> None:
    big(tmp_path, 1_000_000)


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        ("rating", [{"rating": 4}, {"rating": 2}], [4, 2]),
        ("number", [{"number": 7.5}, {"number": -3}], [7.5, -3]),
        ("taxonomy", [{"taxonomy": [["animal"]]}, {"taxonomy": [["plant"]]}], ["animal", "plant"]),
        ("pairwise", [{"selected": "left"}, {"selected": "right"}], ["left", "right"]),
    ],
)
def test_label_studios_other_answers_are_labels(
    kind: str, values: list[dict[str, object]], said: list[object], tmp_path: Path
) -> None:
    entries = [
        {
            "id": n,
            "annotations": [
                {
                    "id": n,
                    "completed_by": 1,
                    "result": [{"type": kind, "from_name": "q", "to_name": "t", "value": value}],
                }
            ],
        }
        for n, value in enumerate(values)
    ]
    (tmp_path / "export.json").write_text(json.dumps(entries))
    table = read_labels(tmp_path / "export.json")
    assert [table.labels[k] for k in table.label] == said
    if kind == "taxonomy":
        entries[0]["annotations"][0]["result"][0]["value"]["taxonomy"] = [["animal", "dog"]]  # type: ignore[index]
        (tmp_path / "export.json").write_text(json.dumps(entries))
        with pytest.raises(FileFormatError, match="several levels"):
            read_labels(tmp_path / "export.json")
