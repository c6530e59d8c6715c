"""Options that several commands share: one name has one meaning, one help text and one check.

A number is read by its option's ``parser``, so that a command gets it checked; every refusal says what was given.

Texts typed after a flag, as numbers, lists and matrices; every refusal says what was given and what is allowed.

Only the form is checked here; ranges are checked by Problem.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.errors import InputError, ProblemError

if TYPE_CHECKING:
    from nextlabel.simulation.engine import Engine

Number = int | float


def parse_number(name: str, text: str, hint: str, kind: str = "number") -> Number:
    """``text`` as an int where it is written as one, else as a float."""
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


def parse_counts(flag: str, text: str | None) -> list[int] | None:
    """One whole number from 1, or several with commas between them."""
    hint = f"Give a whole number, or growing ones with commas between them, e.g. {flag} 200."
    return None if text is None else [parse_whole(flag, part.strip(), 1, hint) for part in text.split(",")]


def parse_prior(text: str) -> list[float] | dict[str, Any]:
    """``a,b``, one weight per answer, or what ``nextlabel prior`` recommends: its line, or the table in it."""
    hint = (
        "Give two positive numbers with a comma between them, e.g. --prior 1,1, one per answer: 1,1,1, or, in quotes, "
        "the line that nextlabel prior prints."
    )
    if "{" in text or "[" in text:
        return _prior_table(text, hint)
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = []
    if len(weights) < 2:
        raise ProblemError(f"prior {text!r} is not a pair of numbers.", hint)
    return weights


def _prior_table(text: str, hint: str) -> list[float] | dict[str, Any]:
    """A line of a problem file, the value in it, or the same value as JSON."""
    value = (text.partition("=")[2] if re.match(r"\s*prior\s*=", text) else text).strip()
    for wrapped, read in ((f"prior = {value}", tomllib.loads), (f'{{"prior": {value}}}', json.loads)):
        try:
            found = read(wrapped)["prior"]
        except ValueError:  # what both readers raise
            continue
        if isinstance(found, dict | list):
            return found
    raise ProblemError(f"prior {text!r} cannot be read as a table.", hint)


def parse_matrix(text: str) -> list[list[float]]:
    """Rows with semicolons between them, numbers with commas between them."""
    try:
        return [[float(cell) for cell in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise ProblemError(
            f"utility {text!r} is not a matrix.",
            'Give one row per decision with one number per truth: --utility "1,-5;0,1".',
        ) from None


def parse_rate(text: str) -> Number | list[list[float]]:
    """One rate, or ``start:rate`` pieces with commas between them."""
    hint = "Give workers per unit of time, e.g. --arrival-rate 0.1, or pieces with their starts: 0:2,16:0.2."
    if ":" not in text:
        return parse_number("arrival rate", text, hint)
    pieces = [piece.split(":") for piece in text.split(",")]
    try:
        return [[float(start), float(rate)] for start, rate in pieces]
    except ValueError:
        raise ProblemError(f"arrival rate {text!r} is not a list of starts and rates.", hint) from None


def text(name: str, metavar: str | None, help: str, **rest: Any) -> Any:
    """An option whose default, if there is one, is named in its help text."""
    return typer.Option(name, metavar=metavar, help=help, show_default=False, **rest)


def whole(name: str, metavar: str, least: int, example: str, help: str, **rest: Any) -> Any:
    """An option that takes a whole number of at least ``least``."""
    hint = f"Give a whole number of at least {least}, e.g. {name} {example}."
    return typer.Option(name, metavar=metavar, parser=_whole_parser(name, least, hint), help=help, **rest)


def positive(name: str, metavar: str, example: str, help: str, **rest: Any) -> Any:
    """An option that takes a number above 0."""
    hint = f"Give a number above 0, e.g. {name} {example}."

    def parse(given: Any) -> float:
        number = float(parse_number(name, str(given), hint))
        if not 0 < number < float("inf"):
            raise InputError(f"{name} is {number:g}, which is not a positive number.", hint)
        return number

    return typer.Option(name, metavar=metavar, parser=parse, help=help, **rest)


def _whole_parser(name: str, least: int, hint: str) -> Callable[[Any], int]:
    return lambda given: parse_whole(name, str(given), least, hint)


def given(context: typer.Context, name: str) -> bool:
    """Whether the option was typed by the user."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def engine_of(context: typer.Context, kind: str, jobs: int, scheduler: str | None) -> Engine:
    """Where to run, by the flags ``EngineKind``, ``Jobs`` and ``Scheduler``."""
    local = kind == "local"
    refuse_idle(context, ["scheduler" if local else "jobs"], f"--engine {'dask' if local else 'local'}")
    from nextlabel.simulation.engine import Engine

    return Engine(kind, jobs, scheduler)


def refuse_idle(context: typer.Context, names: list[str], needs: str) -> None:
    """Refuse an option that would change nothing; ``needs`` says what it goes with."""
    for parameter in context.command.params:
        if parameter.name in names and given(context, parameter.name):
            raise InputError(f"{parameter.opts[0]} only has an effect with {needs}.", "Add that, or leave it out.")


SEED_HELP = (
    "Seed of every random draw. The same seed gives the same digits on the same machine and version, "
    "and on another CPU the same digits as far as they are printed."
)

#: Of one default everywhere; the digits do not depend on it.
JOBS = 2
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Seed = Annotated[int, whole("--seed", "S", 0, "0", SEED_HELP)]
Jobs = Annotated[int, whole("--jobs", "N", 1, "2", "Cores of this machine to use; the digits do not depend on it.")]
EngineKind = Annotated[
    Literal["local", "dask"], typer.Option("--engine", help="Where to run: this machine, or an existing Dask cluster.")
]
Scheduler = Annotated[
    str | None, text("--scheduler", "ADDRESS", "With --engine dask: the scheduler, e.g. tcp://HOST:8786.")
]
Out = Annotated[str | None, text("--out", "DIR", "Write tables and figures to this folder.")]
Report = Annotated[str | None, text("--report", "FILE", "Write one self-contained HTML page.")]

Prices = Annotated[
    Literal["scalar", "per-arrival"],
    typer.Option("--prices", help="The bound uses one price for all labels, or one for each arrival."),
]

Cap = Annotated[
    int | None, whole("--cap", "N", 1, "10", "Labels of one task that are modelled in full. Default: chosen.")
]

Flight = Annotated[
    int | None,
    whole(
        "--flight", "N", 1, "5", "Labels of one task in flight at once that are modelled. Default: chosen.",
        show_default=False,
    ),
]  # fmt: skip

Labels = Annotated[
    str,
    typer.Argument(
        metavar="LABELS", help="Recorded labels, one row per label: CSV, Parquet or Label Studio JSON; or campaign:ID."
    ),
]
TaskColumn = Annotated[str, typer.Option("--task-column", metavar="NAME", help="The column with the tasks.")]
WorkerColumn = Annotated[str, typer.Option("--worker-column", metavar="NAME", help="The column with the workers.")]
LabelColumn = Annotated[str, typer.Option("--label-column", metavar="NAME", help="The column with the labels.")]

AssignedColumn = Annotated[
    str,
    typer.Option("--assigned-column", metavar="NAME", help="The column with the time at which a task was given out."),
]

SubmittedColumn = Annotated[
    str,
    typer.Option("--submitted-column", metavar="NAME", help="The column with the time at which the label came in."),
]

Duplicates = Annotated[
    Literal["first", "keep"],
    typer.Option("--duplicates", help="Of a worker's labels for one task, count the first or keep all."),
]

Positive = Annotated[
    str | None, text("--positive", "LABEL", "The label that counts as 1, if the labels are not 0 and 1.")
]

FeaturesFile = Annotated[
    str | None,
    text(
        "--features",
        "FILE",
        "What is known of items beside labels: a table with a column task and columns of numbers or texts, or NAME.npy "
        "with NAME.txt.",
    ),
]

Db = Annotated[
    str,
    typer.Option(
        "--db", metavar="URL", envvar="NEXTLABEL_DB", help="A SQLite file, or postgresql://user@host/database."
    ),
]
DB = "nextlabel.db"

Host = Annotated[
    str | None, text("--host", "ADDRESS", "Address to listen on; 0.0.0.0 admits other machines. Default: 127.0.0.1.")
]
Port = Annotated[int | None, whole("--port", "N", 0, "8000", "Port to listen on. Default: 8000.")]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    text("--log-level", None, "The least severity that is logged. Default: info."),
]
PublicUrl = Annotated[
    str | None,
    text(
        "--public-url", "URL", "The address that links begin with. Default: the one that serve listens on."
    ),
]  # fmt: skip


AnswerKind = Annotated[
    Literal["choice", "rating", "number", "multi", "pair"],
    typer.Option(
        "--answer",
        help="What labels are: one of some names, steps of a scale, numbers, any of some, or the better of two.",
    ),
]
Scale = Annotated[
    str | None, text("--scale", "LOW..HIGH", "With --answer rating: the ends of the scale. Default: 1..5.")
]
Range = Annotated[str | None, text("--range", "LOW..HIGH", "With --answer number: the range that workers were given.")]
