"""Answers by task from a table: what gold and audits are read with."""

from __future__ import annotations

import os

from nextlabel.errors import FileFormatError
from nextlabel.files.labels import read_columns


def read_answers(path: str | os.PathLike[str], task: str = "task", label: str = "label") -> dict[str, str]:
    """The answer of each task in a file; rows without an answer are left out, and two answers to a task refused."""
    found = read_columns(path, {"task": task, "label": label}, gold=True)
    answers: dict[str, str] = {}
    for row in range(len(found.task.codes)):
        if found.task.codes[row] < 0 or found.label.codes[row] < 0:
            continue
        name, said = found.task.names[found.task.codes[row]], found.label.names[found.label.codes[row]]
        if answers.setdefault(name, said) != said:
            raise FileFormatError(f"{path} says two things of task {name[:60]!r}.", "Give each task one answer.")
    return answers
