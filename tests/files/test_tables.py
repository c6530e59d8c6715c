"""The reader of tables: delimiters, encodings, blank rows, JSON, data frames, bounded memory; and the writer."""

from __future__ import annotations

import csv
import io
import json
import os
import threading
import tracemalloc
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import IO, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nextlabel as nl
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import number
from nextlabel.files.labels import read_labels
from nextlabel.files.tables import (
    BATCH,
    CHUNK,
    LONGEST_LINE,
    LONGEST_VALUE,
    DelimitedTable,
    find_delimiter,
    open_stream,
    read_table,
)
from nextlabel.files.tasks import TaskReader, check_names, guess_columns
from nextlabel.files.write import csv_text, export_text, whole_file, write_csv


def table(data: str | bytes) -> DelimitedTable:
    return DelimitedTable(io.BytesIO(data if isinstance(data, bytes) else data.encode()), "x.csv")


def cells(data: str | bytes) -> list[list[str]]:
    found = table(data)
    return [found.columns, *(row for _, *row in found.rows())]


def tasks(data: str | bytes, format: Any = "csv", **options: Any) -> list[Any]:
    return list(TaskReader(io.BytesIO(data if isinstance(data, bytes) else data.encode()), "x", format, **options))


# --- delimiters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("id;text\n1;Good, really\n2;Bad\n", ";"),
        ("id;score\n1;0,5\n2;0,7\n", ";"),
        ("id;weight, kg\n1;2,5\n", ";"),
        ("id\ttext\n1\ta, b; c\n", "\t"),
        ("id|text\n1|a, b\n", "|"),
        ('text,label\n"a; b; c",1\nd,0\n', ","),
        ("name; first,age,town\nSmith; A,5,X\nLee,6,Y\n", ","),
        ("text\nno delimiter; at all\n", ","),
        ('a;b\n"x\ny;z";2\n', ";"),
    ],
)
def test_the_delimiter_is_the_one_that_makes_rows_like_the_header(text: str, delimiter: str) -> None:
    assert find_delimiter(text, True) == delimiter
    assert table(text).report.delimiter == delimiter if delimiter in text.split("\n")[0] else True


def test_excel_may_name_the_delimiter() -> None:
    assert cells("sep=;\r\na;b,c\r\n1;2,5\r\n") == [["a", "b,c"], ["1", "2,5"]]


def test_a_row_that_is_cut_off_by_the_sample_does_not_count() -> None:
    text = "id;text\n" + "1;some, words, and more\n" * 9000
    assert table(text).report.delimiter == ";" and sum(1 for _ in table(text).rows()) == 9000


# --- encodings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codec", "shown"),
    [
        ("utf-8", "UTF-8"),
        ("utf-8-sig", "UTF-8"),
        ("utf-16", "UTF-16"),
        ("latin-1", "Windows-1252"),
        ("cp1252", "Windows-1252"),
    ],
)
def test_encodings(codec: str, shown: str) -> None:
    found = table("täsk;löbel\r\nä;1\r\n".encode(codec))
    assert found.columns == ["täsk", "löbel"] and [row for _, *row in found.rows()] == [["ä", "1"]]
    assert found.report.encoding == shown
    guessed = shown == "Windows-1252"
    assert any("not UTF-8 and was read as Windows-1252" in one for one in found.report.notes()) == guessed


def test_what_windows_has_no_character_for_is_latin_1() -> None:
    assert table(b"a,b\n\x81,\xe4\n").report.encoding == "Latin-1"
    assert cells("a,b\n“x”,€\n".encode("cp1252"))[1] == ["“x”", "€"]


def test_an_offending_byte_far_into_the_file_and_a_character_across_two_chunks() -> None:
    rows = "a,b\n" + "x,1\n" * (CHUNK // 4)
    assert table(rows.encode() + b"\xe4,1\n").report.encoding == "Windows-1252"
    for shift in range(3):
        assert table(("y" * shift + rows + "ä,1\n" * 9).encode()).report.encoding == "UTF-8"
    with pytest.raises(FileFormatError, match=r"line 2 of x\.csv is longer than"):
        table("a,b\n" + "x" * 2 * LONGEST_LINE)


# --- rows and columns -----------------------------------------------------------------------------


def test_blank_rows_and_empty_columns_are_left_out_and_counted() -> None:
    found = table("\n a , b ,,\n1,2,,\n,,,\n  , \n3,4,\n\n5,6\n,,,,\n")
    rows = [(number, row) for number, *row in found.rows()]
    assert found.columns == ["a", "b"]
    assert rows == [(3, ["1", "2"]), (6, ["3", "4"]), (8, ["5", "6"])]
    assert (found.report.rows, found.report.blank_rows, found.report.empty_columns) == (3, 5, 2)
    assert found.report.notes() == ["5 blank rows left out.", "2 empty columns at the right edge left out."]
    assert [
        (number, row) for number, *row in found.rows()
    ] == rows and found.report.blank_rows == 5  # once more from the start


def test_cells_with_line_breaks_are_one_row() -> None:
    assert cells('a,b\n"x\ny",1\n"he said ""no""",2\n')[1:] == [["x\ny", "1"], ['he said "no"', "2"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.csv is empty"),
        ("\n , \n", "x.csv is empty"),
        ("a,b\n1\n", "row 2 of x.csv has 1 cell and its header 2"),
        ("a,b\n1,2\n\n1,2,3\n", "row 4 of x.csv has 3 cells and its header 2"),
        ('a,b\n1,"2\n', "ends inside a quoted cell"),
        ('a,b\n"1"2,3\n', "line 2 of x.csv cannot be read"),
        ("a,b\n1,\x00\n", "line 2 of x.csv has a null character"),
    ],
)
def test_tables_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message) as caught:
        list(table(text).rows())
    assert caught.value.hint


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=2, max_size=2)))
def test_what_the_writer_writes_the_reader_reads(rows: list[list[str]]) -> None:
    text = csv_text([["first", "second"], *rows])
    assert cells(text) == [["first", "second"], *(row for row in rows if any(cell.strip() for cell in row))]


@pytest.mark.parametrize(
    "cell",
    ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://x")', "＝1+2"],
)
def test_a_spreadsheet_runs_nothing_of_an_export(cell: str) -> None:
    assert cells(export_text([["task", "n"], [cell, 1]]))[1] == [f"'{cell}", "1"]


@pytest.mark.parametrize("cell", ["-1", "+1.5", "-.5e-3", "-", "=", "a=b", "", " x", "é", "{}"])
def test_what_a_spreadsheet_would_not_run_stays_as_it_is(cell: str) -> None:
    assert cells(export_text([["task", "n"], [cell, -0.5]]))[1] == [cell, "-0.5"]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        rows = cells(data)
    except FileFormatError as error:
        assert error.message.endswith(".")
    else:
        assert len({len(row) for row in rows}) == 1


@pytest.mark.parametrize(
    ("text", "value"), [("0.5", 0.5), ("0,5", 0.5), (" -1,25 ", -1.25), ("1e-3", 1e-3), (7, 7.0), ("3", 3.0)]
)
def test_numbers(text: Any, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["1,000,000", "a,5", "1.2,3", "", ","])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError):
        number(text)


# --- data frames ----------------------------------------------------------------------------------

COLUMNS = {"task": ["a", "b", "a"], "worker": ["u", "u", "v"], "label": ["Yes", "no", "yes"]}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_labels_from_frames_are_those_of_the_file(make: Any, tmp_path: Path) -> None:
    found = nl.read_labels(make(COLUMNS))
    write_csv([dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)], tmp_path / "x.csv")
    read = nl.read_labels(tmp_path / "x.csv")
    assert (found.tasks, found.workers, found.labels) == (read.tasks, read.workers, read.labels)
    assert found.label.tolist() == read.label.tolist() == [1, 0, 1]
    assert found.report.table.format == "data frame" and read.report.table.format == "CSV"


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_names_keep_the_type_that_they_came_with(make: Any) -> None:
    """Integers are compared with integer gold, whichever door they take."""
    rng = np.random.default_rng(5)
    truth = rng.integers(1, 4, 40)
    task, worker = np.repeat(np.arange(100, 140), 5), np.tile(np.arange(5), 40)
    label = np.where(rng.random(200) < 0.85, np.repeat(truth, 5), rng.integers(1, 4, 200))
    names = {"task": task, "worker": worker, "label": label}
    frame = make({name: cells.tolist() for name, cells in names.items()})
    table = nl.read_labels(frame)
    assert table.tasks[:2] == (100, 101) and table.workers == (0, 1, 2, 3, 4) and table.labels == (1, 2, 3)
    assert {type(name) for name in (*table.tasks, *table.workers, *table.labels)} == {int}
    crowd = nl.learn_crowd(frame, make({"task": [100, 101], "label": truth[:2].tolist()}))
    assert np.mean(np.array(crowd.predict()) == truth) > 0.9
    text = make({name: cells.astype(str).tolist() for name, cells in names.items()})
    assert crowd.predict(text) == crowd.predict(frame)
    results = list(crowd.tasks())
    assert [row["task"] for row in results] == list(crowd.task_names) == list(range(100, 140))
    audit = nl.audit(crowd, make({"task": [str(k) for k in range(100, 140)], "label": truth.tolist()}))
    assert audit.audited == 38 and audit.right > 34
    gold = make({"task": list(range(100, 140)), "label": truth.tolist()})
    played = nl.backtest(frame, gold, policies=["crowd"], labels_per_task=[3], replications=2)
    assert played.known == 40 and played.ceilings["workers"] > 0.9
    assert played.setting.recorded.tasks[0] == 100


def test_cells_that_read_alike_are_one_name() -> None:
    table = nl.read_labels({"task": [1, "1", 2.0, " 2 "], "label": ["1", 0, True, 1.0]})
    assert table.tasks == (1, 2) and table.labels == (0, "1")
    assert nl.read_labels({"task": ["1", 1], "label": [True, True]}).tasks == ("1",)
    assert nl.read_labels({"task": ["a", "b"], "label": [True, True]}).labels == (False, True)
    positive = nl.read_labels({"task": [1, 2, 3], "label": [3, 4, "5"]}, positive=4)
    assert positive.labels == ("other", 4) and positive.label.tolist() == [0, 1, 0]


def test_a_header_of_40_000_names_is_checked_in_a_moment() -> None:
    names = [f"c{k}" for k in range(40_000)]
    begin = perf_counter()
    with pytest.raises(FileFormatError, match="40,000 columns"):
        check_names(names, "x")
    with pytest.raises(FileFormatError, match="no column 'task'"):
        nl.read_labels({name: ["x"] for name in names})
    assert perf_counter() - begin < 40.0  # a check of every pair took minutes


def test_missing_values_and_numbers_in_frames() -> None:
    frame = pd.DataFrame(
        {
            "task": [1.0, 2.0, None],
            "label": pd.array([1, None, 0], dtype="Int64"),
            "submitted_at": pd.to_datetime(["2026-01-01", None, "2026-01-02"], utc=True),
        }
    )
    found = nl.read_labels(frame)
    assert found.tasks == (1,) and found.label.tolist() == [1]
    assert found.submitted_at is not None and found.submitted_at.tolist() == [1767225600.0]


def test_what_is_no_table() -> None:
    with pytest.raises(InputError, match="labels cannot be read from list"):
        nl.read_labels([1, 2])
    with pytest.raises(FileFormatError, match="differ in length"):
        nl.read_labels({"task": ["a"], "label": [1, 0]})


# --- columns and spellings ------------------------------------------------------------------------


def test_columns_are_guessed_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Item ID;Annotator;Answer;text\na;u;yes;t\nb;u;no;t\n")
    found = read_labels(path)
    assert found.report.table.columns == {"task": "Item ID", "label": "Answer", "worker": "Annotator"}
    assert "Columns used: Item ID (task), Answer (label), Annotator (worker)." in found.report.sentences()
    with pytest.raises(FileFormatError, match="no column 'Task'"):
        read_labels({"x": [1], "label": [1]}, task="Task")
    assert guess_columns(["text", "Key", "Probability"]) == ("Key", "Probability")


def test_spellings_are_one_label_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("task,label\na,Yes\nb,yes\nc, YES \nd,no\ne,No\n")
    for positive in (None, "yes", "YES", " Yes"):
        found = read_labels(path, positive=positive)
        assert found.label.tolist() == [1, 1, 1, 0, 0]
        assert found.report.spellings == {"Yes": ["Yes", "yes", "YES"], "no": ["no", "No"]}
    assert "Yes, yes, YES are spellings of one label, Yes." in found.report.sentences()
    path.write_text("task,label\na,not spam\nb,Not  Spam\nc,SPAM\n")
    assert read_labels(path, positive="spam").labels == ("not spam", "SPAM")


def test_json_lines_and_lists_of_labels(tmp_path: Path) -> None:
    rows = [{"task": "a", "label": 1, "worker": "u"}, {"task": "b", "label": 0}]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "x.json").write_text(json.dumps(rows))
    for name, format in (("x.jsonl", "JSON lines"), ("x.json", "JSON list")):
        found = read_labels(tmp_path / name)
        assert found.label.tolist() == [1, 0] and found.report.blank_workers == 1
        assert found.report.table.format == format


# --- tasks ----------------------------------------------------------------------------------------


def test_tasks_of_every_form(tmp_path: Path) -> None:
    expected = [{"id": "a", "text": "Good, really"}, {"id": "b", "text": "Bad"}]
    columns = [{"id": task["id"], "payload": {"text": task["text"]}} for task in expected]
    assert tasks("id;text\na;Good, really\n\nb;Bad\n;\n") == columns
    assert tasks("id\ttext\na\tGood, really\nb\tBad\n".encode("utf-16")) == columns
    assert tasks("\ufeff" + json.dumps(expected), "json") == expected
    assert tasks("\n\n".join(map(json.dumps, expected)), "jsonl") == expected
    pd.DataFrame(expected).to_parquet(tmp_path / "x.parquet")
    assert tasks((tmp_path / "x.parquet").read_bytes(), "parquet") == columns
    for frame in (pd.DataFrame(expected), pl.DataFrame(expected), pa.Table.from_pylist(expected)):
        assert list(TaskReader(frame, "the data frame")) == columns
        assert list(TaskReader(frame, "the data frame").rows()) == expected
    moments = pl.DataFrame({"id": ["a", None], "at": [datetime(2026, 1, 31, 9, 30), None]})
    assert list(TaskReader(moments, "x")) == [
        {"id": "a", "payload": {"at": "2026-01-31T09:30:00"}},
        {"id": None, "payload": {"at": None}},
    ]
    for form in ("csv", "json", "jsonl"):
        text = {"csv": csv_text([["id", "text"], *([t["id"], t["text"]] for t in expected)])}.get(form)
        body = text if text is not None else json.dumps(expected) if form == "json" else json.dumps(expected[0])
        assert tasks(body, None)[0] == (columns if form == "csv" else expected)[0]  # told by how it starts


def test_scores_priors_and_ids_of_tasks() -> None:
    text = "key;p;prior\na;0,25;[2, 1]\nb; 0.5;\n"
    assert tasks(text, id_column="key", score_column="p") == [
        {"id": "a", "prior": [2, 1], "score": "0.25", "score_column": "p", "payload": {"key": "a", "p": "0,25"}},
        {"id": "b", "score": "0.5", "score_column": "p", "payload": {"key": "b", "p": " 0.5"}},
    ]
    assert tasks("id,score,text\na,0.9,x\n") == [{"id": "a", "payload": {"score": "0.9", "text": "x"}}]  # nobody asked
    with pytest.raises(InputError, match="task 1 has no 'q'"):
        tasks(text, score_column="q")
    for text, message in (("id,text\n", "has no tasks"), ("id,,t\na,b,c\n", "column 2 of x has no name")):
        with pytest.raises(FileFormatError, match=message):
            tasks(text)


def test_a_json_value_that_does_not_end() -> None:
    with pytest.raises(FileFormatError, match="value 1 of x is longer than"):
        tasks('["' + "x" * (LONGEST_VALUE + 100_000), "json")
    with pytest.raises(FileFormatError, match="line 2 of x is longer than"):
        tasks('"a"\n"' + "x" * (LONGEST_VALUE + 10) + '"\n', "jsonl")


class Endless(io.RawIOBase):
    """Rows of a file that is never held: as many as asked for, made when they are read."""

    def __init__(self, header: bytes, row: bytes, count: int, end: bytes = b"") -> None:
        self._parts = (header, row, count, end)
        self.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        assert place == 0 and whence == 0
        self._rest, self._pieces = b"", self._made()
        return 0

    def _made(self) -> Iterator[bytes]:
        header, row, count, end = self._parts
        yield header
        for _ in range(count // 1000):
            yield row * 1000
        yield end

    def readinto(self, buffer: Any) -> int:
        while len(self._rest) < len(buffer) and (piece := next(self._pieces, None)) is not None:
            self._rest += piece
        some, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(some)] = some
        return len(some)


@pytest.mark.parametrize(
    ("format", "parts"),
    [
        ("csv", (b"id,text\n", b'"k","some text, longer"\n', b"")),
        ("jsonl", (b"", b'{"id": "k", "text": "some text"}\n', b"")),
        ("json", (b"[", b'{"id": "k", "text": "some text"},\n', b"1]")),
    ],
)
@pytest.mark.slow
def test_tasks_are_read_in_bounded_memory(format: Any, parts: tuple[bytes, bytes, bytes]) -> None:
    """Four times as many rows take no more memory; what else runs in this process may be counted once, not twice."""
    header, row, end = parts

    def peak(count: int) -> int:
        stream: IO[bytes] = io.BufferedReader(Endless(header, row, count, end))
        tracemalloc.start()
        try:
            assert sum(1 for _ in TaskReader(stream, "x", format)) == count + (format == "json")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = 20_000, 80_000  # about 0.6 and 2.4 MB of text
    assert few > BATCH
    assert any(peak(many) < peak(few) + LONGEST_LINE for _ in range(2))


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"id;text\n1;good\n2;bad\n",))
    writer.start()
    with open_stream(pipe) as stream:
        table = read_table(stream, "pipe")
        assert table.columns == ["id", "text"]
        assert [list(cells) for rows in table.batches() for cells in rows.columns] == [["1", "2"], ["good", "bad"]]
    writer.join()


# --- the writer -----------------------------------------------------------------------------------


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    rows = [{"a": 'x, "y"', "b": None}, {"a": "line\nbreak", "b": 0.5}]
    write_csv(rows, tmp_path / "x.csv")
    lines = io.StringIO((tmp_path / "x.csv").read_text(), newline="")
    assert list(csv.reader(lines)) == [["a", "b"], ['x, "y"', ""], ["line\nbreak", "0.5"]]
    with pytest.raises(RuntimeError), whole_file(tmp_path / "x.csv") as stream:
        stream.write("half")
        raise RuntimeError
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.csv"]
    assert (tmp_path / "x.csv").read_text().startswith("a,b\n")
    with pytest.raises(InputError, match="cannot write"):
        write_csv(rows, tmp_path / "none" / "x.csv")
    write_csv([], tmp_path / "empty.csv")
    assert (tmp_path / "empty.csv").read_text() == "\n"


# --- Parquet that unpacks to far more than it is ---------------------------------------------------


def texts(rows: int, text: str) -> pa.Table:
    """The same text in every row, which is written once."""
    said = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    return pa.table({"id": pa.array([str(k) for k in range(rows)]), "text": said})


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (texts(20_000, "x" * 65_000), None),  # 1.3 GB of 60 KB
        (pa.table({"id": ["a"], "many": [list(range(200_000))]}), None),
        (texts(1_000, "x" * 65_000), 1_000),
    ],
    ids=["texts", "lists", "allowed"],
)
def test_parquet_unpacks_to_so_much_and_no_more(tmp_path: Path, table: pa.Table, rows: int | None) -> None:
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(table, path, compression="zstd")
    if rows is None:
        with open_stream(path) as stream, pytest.raises(FileFormatError, match="unpacks to more than"):
            sum(len(one.numbers) for one in read_table(stream, "x.parquet").batches())
        return
    with open_stream(path) as stream:
        batches = list(read_table(stream, "x.parquet").batches())
    assert sum(len(one.numbers) for one in batches) == rows and batches[0].columns[1][0] == "x" * 65_000
