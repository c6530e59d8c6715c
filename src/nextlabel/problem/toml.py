"""Read a Problem from a TOML file, refusing anything that is not understood."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from nextlabel.beliefs.beta import Beta
from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.problem.problem import Problem, TaskClass

PROBLEM_KEYS = ("budget", "arrival_rate", "completion_rate", "horizon", "tasks")
TASK_KEYS = ("count", "prior", "threshold")


def read_problem_table(path: str | Path) -> dict[str, Any]:
    """The file as a table with known keys only; nothing is checked beyond their names."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileFormatError(f"cannot read {path}: {reason}.", "Give the path of a TOML problem file.") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not UTF-8 text.", "Save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{path} is not TOML: {error}.", "See the README for an example.") from error
    _known(table, PROBLEM_KEYS, str(path))
    tasks = table.get("tasks", [])
    if not isinstance(tasks, list) or not all(isinstance(t, dict) for t in tasks):
        raise FileFormatError(f"'tasks' in {path} is not an array of tables.", "Write [[tasks]] above each class.")
    for entry in tasks:
        _known(entry, TASK_KEYS, f"[[tasks]] of {path}")
    return table


def task_class(entry: dict[str, Any]) -> TaskClass:
    """One [[tasks]] table as a TaskClass."""
    if "count" not in entry:
        raise ProblemError("a [[tasks]] table has no count.", "Add e.g. count = 50.")
    prior = entry.get("prior", [1, 1])
    if not (
        isinstance(prior, list)
        and len(prior) == 2
        and all(isinstance(x, int | float) and not isinstance(x, bool) for x in prior)
    ):
        raise ProblemError(f"prior {prior!r} is not a pair of numbers.", "Write e.g. prior = [1, 1].")
    return TaskClass(entry["count"], Beta(*prior), entry.get("threshold", 0.5))


def problem_from_table(table: dict[str, Any]) -> Problem:
    """The Problem that a table of known keys describes."""
    if "budget" not in table:
        raise ProblemError("the problem has no budget.", "Give --budget N or budget = N in the file.")
    rates = {key: table[key] for key in ("arrival_rate", "completion_rate", "horizon") if key in table}
    return Problem(tuple(task_class(entry) for entry in table.get("tasks", [])), table["budget"], **rates)


def load_problem(path: str | Path) -> Problem:
    """Read and check a TOML problem file."""
    return problem_from_table(read_problem_table(path))


def _known(table: dict[str, Any], allowed: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(table) - set(allowed))
    if unknown:
        raise FileFormatError(f"unknown key {unknown[0]!r} in {where}.", f"Allowed keys: {', '.join(allowed)}.")
