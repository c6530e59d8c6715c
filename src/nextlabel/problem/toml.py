"""Problems as TOML files: reading, which refuses anything it does not understand, and writing."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.files.tables import TableSummary
from nextlabel.problem.problem import PiecewiseRate, Problem
from nextlabel.problem.tables import (
    WORKER_KEYS,
    known_keys,
    prior_from,
    prior_table,
    reward_from,
    reward_table,
    worker_table,
    worker_type,
)
from nextlabel.problem.tasks import DEFAULT_COLUMN, TaskClass, read_scores, score_classes

PROBLEM_KEYS = (
    "budget",
    "arrival_rate",
    "arrival_period",
    "completion_rate",
    "horizon",
    "label_cost",
    "tasks",
    "workers",
    "question",
)
TASK_KEYS = ("count", "sd", "prior", "threshold", "reward", "scores")
SCORE_KEYS = ("file", "column", "strength", "accuracy")

#: Is called with a sentence about a change to the input.
Say = Callable[[str], None]


def load_problem(path: str | Path) -> Problem:
    """Read and check a TOML problem file."""
    return problem_from_table(read_problem_table(path))


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
        raise FileFormatError(f"{path} is not TOML: {error}.", "See docs/guide.md for an example.") from error
    known_keys(table, PROBLEM_KEYS, str(path))
    kind = table["question"].get("answer") if isinstance(table.get("question"), dict) else table.get("question")
    if kind not in (None, "choice", "number"):
        raise FileFormatError(
            f"the answer to the question in {path} is {kind!r}.", 'Write answer = "number" or "choice".'
        )
    tasks = table.get("tasks", [])
    if not isinstance(tasks, list) or not all(isinstance(t, dict) for t in tasks):
        raise FileFormatError(f"'tasks' in {path} is not an array of tables.", "Write [[tasks]] above each class.")
    for entry in tasks:
        known_keys(entry, TASK_KEYS, f"[[tasks]] of {path}")
        scores = entry.get("scores")
        if isinstance(scores, dict) and isinstance(scores.get("file"), str):
            scores["file"] = str(path.parent / scores["file"])
    workers = table.get("workers", [])
    if not isinstance(workers, list) or not all(isinstance(w, dict) for w in workers):
        raise FileFormatError(f"'workers' in {path} is not an array of tables.", "Write [[workers]] above each type.")
    for entry in workers:
        known_keys(entry, WORKER_KEYS, f"[[workers]] of {path}")
    return table


def is_number(table: dict[str, Any]) -> bool:
    """Whether the problem asks for numbers (``solve.numbers``)."""
    return bool(table.get("question", {}).get("answer") == "number")


def problem_from_table(
    table: dict[str, Any], say: Say = warnings.warn, reports: list[TableSummary] | None = None
) -> Problem:
    """The Problem that a table of known keys describes.

    ``say`` is called for scores that were moved; ``reports`` takes up what was met in each file of scores.
    """
    if is_number(table):
        raise ProblemError(
            "the question is for numbers, which this command cannot plan.", "Use bound, exact or simulate."
        )
    if any("sd" in entry for name in ("tasks", "workers") for entry in table.get(name, [])):
        raise ProblemError("sd is for numbers.", 'Write [question] with answer = "number", or leave sd out.')
    if "budget" not in table:
        raise ProblemError("the problem has no budget.", "Give --budget N or budget = N in the file.")
    notes: list[str] = []
    read = [] if reports is None else reports
    parts = [task_classes(entry, notes.append, read) for entry in table.get("tasks", [])]
    classes = parts[0] if len(parts) == 1 else tuple(one for part in parts for one in part)
    rest: dict[str, Any] = {k: table[k] for k in ("completion_rate", "horizon", "label_cost") if k in table}
    rate = _rate(table)
    if rate is not None:
        rest["arrival_rate"] = rate
    answers = classes[0].answers if classes else 2
    workers = tuple(worker_type(entry, answers) for entry in table.get("workers", []))
    problem = Problem(classes, table["budget"], workers=workers, **rest)
    for note in notes:
        say(note)
    return problem


def task_classes(entry: dict[str, Any], say: Say, reports: list[TableSummary]) -> Sequence[TaskClass]:
    """One [[tasks]] table: a class, or one for each different score of a file."""
    threshold, reward = entry.get("threshold", 0.5), reward_from(entry.get("reward", "accuracy"))
    if "scores" not in entry:
        if "count" not in entry:
            raise ProblemError("a [[tasks]] table has no count.", "Add e.g. count = 50.")
        return (TaskClass(entry["count"], prior_from(entry.get("prior", [1, 1])), threshold, reward),)
    for key in ("count", "prior"):
        if key in entry:
            raise ProblemError(
                f"a [[tasks]] table with scores has a {key} too.", f"Leave {key} out: the scores are the priors."
            )
    scores = entry["scores"]
    if not isinstance(scores, dict) or not isinstance(scores.get("file"), str):
        raise ProblemError("scores have no file.", 'Write e.g. scores = {file = "items.csv", strength = 4}.')
    known_keys(scores, SCORE_KEYS, "scores")
    read = read_scores(scores["file"], str(scores.get("column", DEFAULT_COLUMN)))
    reports.append(read.report)
    if read.moved:
        say(read.note(scores["file"]))
    return score_classes(
        read.values,
        strength=scores.get("strength"),
        accuracy=scores.get("accuracy"),
        threshold=threshold,
        reward=reward,
    )


def problem_to_toml(problem: Problem) -> str:
    """The text of a file from which ``load_problem`` makes the same problem, to the last digit."""
    import tomli_w

    rate = problem.arrival_rate
    table: dict[str, Any] = {"budget": problem.budget, "arrival_rate": rate}
    if isinstance(rate, PiecewiseRate):
        table["arrival_rate"] = [list(piece) for piece in rate.pieces]
        if rate.period < float("inf"):
            table["arrival_period"] = rate.period
    table["completion_rate"] = problem.completion_rate
    if problem.finite:
        table["horizon"] = problem.horizon
    if problem.label_cost > 0:
        table["label_cost"] = problem.label_cost
    table["tasks"] = [_task_table(entry) for entry in problem.classes]
    if problem.workers:
        table["workers"] = [worker_table(entry) for entry in problem.workers]
    return tomli_w.dumps(table)


def _task_table(entry: TaskClass) -> dict[str, Any]:
    table: dict[str, Any] = {"count": entry.count}
    if entry.prior.thresholded:
        table["threshold"] = entry.threshold
    table["prior"] = prior_table(entry.prior)
    reward = reward_table(entry.reward)
    return table if reward == "accuracy" else {**table, "reward": reward}


def _rate(table: dict[str, Any]) -> Any:
    """The arrival rate as Problem takes it; None if there is none."""
    rate = table.get("arrival_rate")
    if isinstance(rate, list):
        period = {"period": table["arrival_period"]} if "arrival_period" in table else {}
        return PiecewiseRate(tuple(rate), **period)
    if "arrival_period" in table:
        raise ProblemError(
            "a period needs an arrival rate in pieces.", "Write e.g. arrival_rate = [[0, 2.0], [16, 0.2]]."
        )
    return rate
