"""The flags that describe a problem, shared by every verb; ``merge_flags`` says how they meet a problem file.

Flags are read as text and checked here, so that every refusal says what was given and what is allowed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from nextlabel.cli.merge_flags import merge_flags
from nextlabel.cli.output import say

if TYPE_CHECKING:
    from nextlabel.problem.problem import Problem

PANEL = "The problem"


def _flag(name: str, metavar: str | None, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, rich_help_panel=PANEL, show_default=False)


@dataclass(frozen=True, slots=True)
class ProblemFlags:
    """What the user typed about the problem; None where nothing was typed."""

    tasks: Annotated[str | None, _flag("--tasks", "K", "Number of tasks.")] = None
    budget: Annotated[str | None, _flag("--budget", "U", "Number of labels to buy.")] = None
    prior: Annotated[
        str | None, _flag("--prior", "A,B", "Beta prior of a task, or a Dirichlet weight each answer. Default 1,1.")
    ] = None
    threshold: Annotated[
        str | None, _flag("--threshold", "D", "A task is positive if its theta is above D. Default 0.5.")
    ] = None
    accuracy: Annotated[
        str | None, _flag("--accuracy", "Q", "Instead of a prior: workers who are right with probability Q.")
    ] = None
    truth: Annotated[
        str | None, _flag("--truth", "P", "With --accuracy: probability that the truth is 1. Default 0.5.")
    ] = None
    scores: Annotated[str | None, _flag("--scores", "FILE", "A CSV file with a model's score for each task.")] = None
    score_column: Annotated[
        str | None, _flag("--score-column", "NAME", "The column of the scores. Default probability.")
    ] = None
    strength: Annotated[str | None, _flag("--strength", "S", "How many labels a score is worth.")] = None
    value: Annotated[str | None, _flag("--value", "V", "Value of a task that comes out right. Default 1.")] = None
    utility: Annotated[
        str | None, _flag("--utility", "MATRIX", 'Value of each decision (row) for each truth: "1,-5;0,1".')
    ] = None
    abstain: Annotated[str | None, _flag("--abstain", "V", "With --utility: value of not deciding.")] = None
    reward: Annotated[
        Literal["accuracy", "squared-error"] | None, _flag("--reward", None, "What a finished task is worth.")
    ] = None
    label_cost: Annotated[
        str | None, _flag("--label-cost", "C", "What a label costs, in the unit of the value. Default 0.")
    ] = None
    arrival_rate: Annotated[
        str | None, _flag("--arrival-rate", "R", "Workers per unit of time, or start:rate,start:rate. Default 0.1.")
    ] = None
    arrival_period: Annotated[
        str | None, _flag("--arrival-period", "P", "Time after which such rates start again.")
    ] = None
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
        merge_flags(table, self)
        return problem_from_table(table, say)


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
