"""The flags that describe a problem, shared by every verb, and how they meet a problem file: flags win.

Flags are read as text and checked here, so that every refusal says what was given and what is allowed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from nextlabel.errors import ProblemError

if TYPE_CHECKING:
    from nextlabel.problem.problem import Problem

PANEL = "The problem"


def _flag(name: str, metavar: str, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, rich_help_panel=PANEL, show_default=False)


@dataclass(frozen=True, slots=True)
class ProblemFlags:
    """What the user typed about the problem; None where nothing was typed."""

    tasks: Annotated[str | None, _flag("--tasks", "K", "Number of tasks.")] = None
    budget: Annotated[str | None, _flag("--budget", "U", "Number of labels to buy.")] = None
    prior: Annotated[str | None, _flag("--prior", "A,B", "Beta prior of a task. Default 1,1.")] = None
    threshold: Annotated[
        str | None, _flag("--threshold", "D", "A task is positive if its theta is above D. Default 0.5.")
    ] = None
    arrival_rate: Annotated[str | None, _flag("--arrival-rate", "R", "Workers per unit of time. Default 0.1.")] = None
    completion_rate: Annotated[
        str | None, _flag("--completion-rate", "MU", "A label takes 1/MU on average. Default 0.4.")
    ] = None
    horizon: Annotated[
        str | None, _flag("--horizon", "T", "Labels not in by T are lost; inf, the default, waits for all.")
    ] = None
    problem: Annotated[
        str | None, _flag("--problem", "FILE", "Read the problem from a TOML file; flags win over it.")
    ] = None

    def read(self) -> Problem:
        """The checked Problem."""
        from nextlabel.problem.toml import problem_from_table, read_problem_table

        table = {} if self.problem is None else read_problem_table(self.problem)
        self._lay_over(table)
        return problem_from_table(table)

    def _lay_over(self, table: dict[str, Any]) -> None:
        if self.budget is not None:
            hint = "Give the number of labels to buy, e.g. --budget 1200."
            table["budget"] = parse_number("budget", self.budget, hint, "whole number")
        for key, hint in (
            ("arrival_rate", "Give workers per unit of time, e.g. --arrival-rate 0.1."),
            ("completion_rate", "Give labels per worker and unit of time, e.g. --completion-rate 0.4."),
            ("horizon", "Give a time above 0, or inf to wait for every label."),
        ):
            text = getattr(self, key)
            if text is not None:
                table[key] = parse_number(key.replace("_", " "), text, hint)
        entries = table.setdefault("tasks", [])
        if self.tasks is not None:
            if len(entries) > 1:
                raise ProblemError(
                    f"--tasks {self.tasks} does not say which of {len(entries)} classes in {self.problem} is meant.",
                    "Leave --tasks out and edit the counts in the file.",
                )
            hint = "Give at least one task, e.g. --tasks 100."
            count = parse_number("number of tasks", self.tasks, hint, "whole number")
            if entries:
                entries[0]["count"] = count
            else:
                entries.append({"count": count})
        if self.prior is not None:
            prior = list(parse_prior(self.prior))
            for entry in entries:
                entry["prior"] = prior
        if self.threshold is not None:
            threshold = parse_number("threshold", self.threshold, "Give a number between 0 and 1, e.g. 0.5.")
            for entry in entries:
                entry["threshold"] = threshold


def takes_problem(verb: Callable[..., None]) -> Callable[..., None]:
    """Give ``verb``, whose first parameter is a ProblemFlags, every flag of ProblemFlags in its place."""
    names = [field.name for field in fields(ProblemFlags)]
    hints = get_type_hints(ProblemFlags, include_extras=True)
    own_hints = get_type_hints(verb, include_extras=True)
    own = [p.replace(annotation=own_hints[p.name]) for p in list(inspect.signature(verb).parameters.values())[1:]]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hints[name]) for name in names
    ]

    @wraps(verb)
    def command(**arguments: Any) -> None:
        flags = ProblemFlags(**{name: arguments.pop(name) for name in names})
        verb(flags, **arguments)

    parameters = [*shared, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own)]
    vars(command)["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    del command.__wrapped__
    return command


def parse_number(name: str, text: str, hint: str, kind: str = "number") -> int | float:
    """``text`` as an int where it is written as one, else as a float; ranges are checked by the Problem."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ProblemError(f"{name} is {text!r}, which is not a {kind}.", hint) from None


def parse_whole(flag: str, text: str, least: int, hint: str) -> int:
    """``text`` as a whole number of at least ``least``."""
    try:
        number = int(text)
    except ValueError:
        raise ProblemError(f"{flag} is {text!r}, which is not a whole number.", hint) from None
    if number < least:
        raise ProblemError(f"{flag} is {number}, which is less than {least}.", hint)
    return number


def parse_prior(text: str) -> tuple[float, float]:
    """``text`` of the form ``a,b`` as two numbers."""
    hint = "Give two positive numbers with a comma between them, e.g. --prior 1,1."
    parts = text.split(",")
    if len(parts) != 2:
        raise ProblemError(f"prior {text!r} is not a pair of numbers.", hint)
    try:
        return float(parts[0]), float(parts[1])
    except ValueError:
        raise ProblemError(f"prior {text!r} is not a pair of numbers.", hint) from None
