"""Pages escape what they are given, tables line up, and a manifest says on what a run was made."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nextlabel.errors import InputError
from nextlabel.reporting import artifacts
from nextlabel.reporting.artifacts import check_folder, manifest, write_files
from nextlabel.reporting.report import Report, Table

NASTY = "<script>alert('a & b')</script>"


def report() -> Report:
    return Report(
        title=NASTY,
        tables=[Table(NASTY, [NASTY, "x"], [[NASTY, "1.25"], ["a", "10.5"]], NASTY, brief=[["a", "10.5"]])],
        sentences=[NASTY],
        heading=NASTY,
        lead=NASTY,
        facts=[(NASTY, NASTY)],
        sections={NASTY: [NASTY]},
        warnings=[NASTY],
    )


def test_everything_on_a_page_is_escaped() -> None:
    page = report().page(NASTY)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 14  # every place above but the title, the heading twice, and the command
    assert page.startswith("<!doctype html>") and page.endswith("</html>\n")
    assert "1.25" in page and "http" not in page


def test_a_notebook_escapes_and_has_the_brief_rows() -> None:
    shown = report().notebook()
    assert "<script" not in shown and shown.count("&lt;script&gt;") == 4
    assert "10.5" in shown and "1.25" not in shown


def test_the_columns_of_a_report_in_text_line_up() -> None:
    table = Table("", ["name", "x"], [["a", "1.25"], ["longer", "10.5"]])
    text = Report("Title", [table], ["A note."]).text()
    assert text.splitlines() == ["Title", "", "name       x", "------  ----", "a       1.25", "longer  10.5", "A note."]


def test_a_manifest_says_where_its_digits_come_from() -> None:
    found = manifest(command="nextlabel x", seed=3, started=datetime.now(UTC), seconds=1.0, study="exact")
    assert (found["seed"], found["study"], found["command"]) == (3, "exact", "nextlabel x")
    assert found["cpu"] and all(one.split()[0] in ("openblas", "mkl", "blis", "flexiblas") for one in found["blas"])
    assert {"nextlabel", "numpy", "scipy", "numba"} <= set(found["versions"])
    here = Path(__file__).parent
    call = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    if call.returncode == 0:
        assert found["commit"].removesuffix("-dirty") == call.stdout.strip()
    else:
        assert found["commit"] is None
    json.dumps(found)


def test_files_are_written_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.csv": [{"x": 1}], "b.json": {"y": 2}}
    assert [path.name for path in write_files(tmp_path / "out", files)] == ["a.csv", "b.json"]
    assert (tmp_path / "out" / "a.csv").read_text() == "x\n1\n"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artifacts.json, "dumps", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_files(tmp_path / "other", files)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        check_folder(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be written to"):
        check_folder(tmp_path / "file" / "below")
