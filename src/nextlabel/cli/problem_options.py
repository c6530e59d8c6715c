"""The flags that describe a problem, shared by the commands that solve one; ``merge_flags`` combines them with a file.

They arrive as text and are checked on the way to a Problem, so that a refusal says what was given and what is allowed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from nextlabel.cli.merge_flags import merge_flags
from nextlabel.cli.options import text
from nextlabel.cli.output import say, say_read

if TYPE_CHECKING:
    from nextlabel.files.report import TableReport
    from nextlabel.problem.problem import Problem

PANEL = "The problem"


def _flag(name: str, metavar: str | None, help: str) -> Any:
    return text(name, metavar, help, rich_help_panel=PANEL)


@dataclass(frozen=True, slots=True)
class ProblemFlags:
    """What the user typed about the problem; None where nothing was typed."""

    tasks: Annotated[str | None, _flag("--tasks", "K", "Number of tasks.")] = None
    budget: Annotated[str | None, _flag("--budget", "U", "Number of labels to buy.")] = None
    prior: Annotated[
        str | None, _flag("--prior", "A,B", "Beta prior of a task, or one Dirichlet weight per answer. Default: 1,1.")
    ] = None
    threshold: Annotated[
        str | None, _flag("--threshold", "D", "The truth of a task is 1 if its theta is above D. Default: 0.5.")
    ] = None
    accuracy: Annotated[
        str | None, _flag("--accuracy", "Q", "Instead of a prior: workers are right with probability Q.")
    ] = None
    truth: Annotated[
        str | None, _flag("--truth", "P", "With --accuracy: probability that the truth is 1. Default: 0.5.")
    ] = None
    scores: Annotated[str | None, _flag("--scores", "FILE", "A CSV file with a model's score for each task.")] = None
    score_column: Annotated[
        str | None, _flag("--score-column", "NAME", "With --scores: the column with them. Default: probability.")
    ] = None
    strength: Annotated[str | None, _flag("--strength", "S", "With --scores: how many labels a score is worth.")] = None
    value: Annotated[str | None, _flag("--value", "V", "What a task that comes out right is worth. Default: 1.")] = None
    utility: Annotated[
        str | None, _flag("--utility", "MATRIX", 'Value of each decision (row) for each truth: "1,-5;0,1".')
    ] = None
    abstain: Annotated[str | None, _flag("--abstain", "V", "With --utility: the value of not deciding.")] = None
    reward: Annotated[
        Literal["accuracy", "squared-error"] | None,
        _flag("--reward", None, "What a finished task is worth. Default: accuracy."),
    ] = None
    label_cost: Annotated[
        str | None, _flag("--label-cost", "C", "What one label costs, in the unit of the value. Default: 0.")
    ] = None
    arrival_rate: Annotated[
        str | None, _flag("--arrival-rate", "R", "Workers per unit of time, or start:rate,start:rate. Default: 0.1.")
    ] = None
    arrival_period: Annotated[
        str | None, _flag("--arrival-period", "P", "With start:rate pieces: the time after which they repeat.")
    ] = None
    completion_rate: Annotated[
        str | None, _flag("--completion-rate", "MU", "A label takes a time of 1/MU on average. Default: 0.4.")
    ] = None
    horizon: Annotated[
        str | None,
        _flag(
            "--horizon", "T", "The campaign ends after a time of T, and labels not in by then are lost. Default: inf."
        ),
    ] = None
    problem: Annotated[
        str | None, _flag("--problem", "FILE", "Read the problem from a TOML file; flags win over it.")
    ] = None

    def read(self, read: list[dict[str, Any]] | None = None) -> Problem:
        """The checked Problem; reports on files of scores are appended to ``read``, for ``--json``."""
        from nextlabel.problem.toml import problem_from_table, read_problem_table

        table = {} if self.problem is None else read_problem_table(self.problem)
        merge_flags(table, self)
        reports: list[TableReport] = []
        problem = problem_from_table(table, say, reports)
        found = say_read(*reports)
        if read is not None:
            read += found
        return problem


def takes_problem(function: Callable[..., None]) -> Callable[..., None]:
    """Replace the first parameter of a command, a ProblemFlags, by one option for each of its fields."""
    names = [field.name for field in fields(ProblemFlags)]
    hints = get_type_hints(ProblemFlags, include_extras=True)
    own_hints = get_type_hints(function, include_extras=True)
    own = [p.replace(annotation=own_hints[p.name]) for p in list(inspect.signature(function).parameters.values())[1:]]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hints[name]) for name in names
    ]

    @wraps(function)
    def command(**arguments: Any) -> None:
        flags = ProblemFlags(**{name: arguments.pop(name) for name in names})
        function(flags, **arguments)

    parameters = [*shared, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own)]
    vars(command)["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    del command.__wrapped__
    return command
