"""The report's numbers come from the committed results, and its text uses every one of them."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

PAPER = Path(__file__).resolve().parents[2] / "docs" / "paper"


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build_paper", PAPER / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_number_is_used_and_every_citation_is_known(build):
    text = (PAPER / "report.tex").read_text(encoding="utf-8")
    values = build.values()
    assert all(value.strip() for value in values.values())
    assert [name for name in values if not re.search(rf"\\{name}\b", text)] == []
    known = set(re.findall(r"^@\w+\{(\w+),", (PAPER / "report.bib").read_text(encoding="utf-8"), flags=re.MULTILINE))
    cited = {key for keys in re.findall(r"\\cite\{([^}]*)\}", text) for key in keys.split(",")}
    assert cited == known


def test_the_index_of_the_paper_s_first_problem_is_in_its_table(build):
    assert r"10 & $0.4179\pm0.0085$" in build.values()["figonerows"]  # docs/results.md: 0.418 +- 0.009


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="LaTeX is not installed; `make paper` installs it")
def test_the_report_builds(build):
    assert build.main() == 0
    assert (build.OUT / "report.pdf").read_bytes().startswith(b"%PDF")
