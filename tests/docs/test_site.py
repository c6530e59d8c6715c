"""Pages that name parts of the code name all of them, and none that is not there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import nextlabel
from documents import ROOT

DOCS = ROOT / "docs"
PACKAGE = Path(nextlabel.__file__).parent
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
USERS_PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "decisions")


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def test_every_public_name_is_in_the_reference() -> None:
    spaces = [getattr(nextlabel, name) for name in ("priors", "rewards", "policies", "results", "errors")]
    names = {f"{space.__name__}.{name}" for space in spaces for name in dir(space) if name in public(space)}
    names |= {f"nextlabel.{name}" for name in dir(nextlabel) if not isinstance(getattr(nextlabel, name), ModuleType)}
    shown = set(re.findall(r"^::: (nextlabel[.\w]+)$", text("reference/api.md"), flags=re.MULTILINE))
    assert shown == names - {"nextlabel.__version__", "nextlabel.priors.Beta"}


def public(space: ModuleType) -> list[str]:
    """The names of a namespace; of the errors those that derive from its root."""
    if space is nextlabel.errors:
        kinds = {name: one for name, one in vars(space).items() if isinstance(one, type)}
        return [name for name, one in kinds.items() if issubclass(one, nextlabel.errors.NextlabelError)]
    names: list[str] = getattr(space, "__all__", None) or dir(space)
    return [
        name
        for name in names
        if name[0] != "_" and name != "Any" and isinstance(getattr(space, name), type | FunctionType)
    ]


@pytest.mark.parametrize("record", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_short(record: Path) -> None:
    prose = [line for line in record.read_text(encoding="utf-8").splitlines() if not line.startswith(("|", "    "))]
    assert len(" ".join(prose).split()) <= 250


@pytest.mark.parametrize("page", USERS_PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_users_are_not_sent_to_a_decision(page: Path) -> None:
    assert not re.search(r"decisions/|\bdecision \d", page.read_text(encoding="utf-8"))


def test_decisions_that_the_code_names_are_there() -> None:
    numbers = {path.name[:4] for path in DECISIONS}
    for file in sorted(path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")):
        for number in re.findall(r"(?:docs/decisions/|\bdecision )(\d+)", file.read_text(encoding="utf-8")):
            assert number.zfill(4) in numbers, f"{file}: there is no decision {number}"


@pytest.mark.parametrize("dotted", sorted(set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", text("paper.md")))))
def test_the_paper_is_where_its_page_says(dotted: str) -> None:
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        if (PACKAGE / "/".join(parts[:cut])).with_suffix(".py").is_file():
            found: object = import_module(".".join(["nextlabel", *parts[:cut]]))
            for name in parts[cut:]:
                found = getattr(found, name)
            return
    pytest.fail(f"there is no module of {dotted}")


@pytest.mark.parametrize("file", sorted(set(re.findall(r"\b([a-z_/]+/\w+\.py)\b", text("architecture.md")))))
def test_files_of_the_architecture_exist(file: str) -> None:
    assert (PACKAGE / file).is_file() or (ROOT / file).is_file()
