"""Flags and commands: a flag is declared once, and a command says what it has done by what it returns.

Options that several commands share are here: one name has one meaning, one help text, one check and one default. Texts
typed after a flag are read as numbers, lists and matrices; every refusal says what was given and what is allowed. Only
the form is checked here; ranges are checked by Problem.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import typer
from typer.models import OptionInfo

from nextlabel.cli.output import check_outputs, deliver
from nextlabel.errors import InputError, ProblemError

if TYPE_CHECKING:
    from nextlabel.simulation.engine import Engine

Number = int | float
#: What makes a value of a flag's name and what was typed after it.
Read = Callable[[str, str], Any]
Needs = str | tuple[str, Callable[[Mapping[str, Any]], Any]]


def parse_number(name: str, text: str, hint: str, kind: str = "number") -> Number:
    """``text`` as an int where it is written as one, else as a float."""
    for read in (int, float):
        with suppress(ValueError):
            found: Number = read(text)
            return found
    raise ProblemError(f"{name} is {text!r}, which is not a {kind}.", hint)


def parse_positive(name: str, text: str, hint: str) -> float:
    """``text`` as a number above 0."""
    found = float(parse_number(name, text, hint))
    if not 0 < found < float("inf"):
        raise InputError(f"{name} is {found:g}, which is not a positive number.", hint)
    return found


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
    if "{" not in text and "[" not in text:
        with suppress(ValueError):
            weights = [float(part) for part in text.split(",")]
            if len(weights) > 1:
                return weights
        raise ProblemError(f"prior {text!r} is not a pair of numbers.", hint)
    # A line of a problem file, the value in it, or the same value as JSON.
    value = (text.partition("=")[2] if re.match(r"\s*prior\s*=", text) else text).strip()
    for wrapped, read in ((f"prior = {value}", tomllib.loads), (f'{{"prior": {value}}}', json.loads)):
        with suppress(ValueError):  # what both readers raise
            found: Any = read(wrapped)["prior"]
            if isinstance(found, dict | list):
                return found
    raise ProblemError(f"prior {text!r} cannot be read as a table.", hint)


def parse_rate(text: str) -> Number | list[list[float]]:
    """One rate, or ``start:rate`` pieces with commas between them."""
    hint = "Give workers per unit of time, e.g. --arrival-rate 0.1, or pieces with their starts: 0:2,16:0.2."
    if ":" not in text:
        return parse_number("arrival rate", text, hint)
    with suppress(ValueError):
        return [[float(start), float(rate)] for start, rate in (piece.split(":") for piece in text.split(","))]
    raise ProblemError(f"arrival rate {text!r} is not a list of starts and rates.", hint)


class Flag(OptionInfo):
    """One option of a command, whose name is that of its parameter.

    ``read`` makes its value of the flag's name and what was typed; ``needs`` says what it has an effect with: another
    flag (``--pilot``), values of one (``--engine dask``), or words and what checks all that was typed. A help that
    begins with a small letter is told what it needs.
    """

    def __init__(
        self, metavar: str | None, help: str, default: Any = None, *, read: Read | None = None,
        needs: Needs | None = None, **rest: Any,
    ) -> None:  # fmt: skip
        super().__init__(default=default, metavar=metavar, help=help, **rest)
        self.read, self.needs = read, needs

    def name(self, parameter: str) -> None:
        """Make it the option of a parameter."""
        self.param_decls = self.param_decls or ("--" + parameter.strip("_").replace("_", "-"),)
        self.show_default = self.default not in (None, "", ...) and "Default: " not in str(self.help)
        if isinstance(self.needs, str) and str(self.help)[:1].islower():
            self.help = f"With {self.needs}: {self.help}"
        if (read := self.read) is not None:
            self.parser = lambda typed: read(self.flag, str(typed))

    @property
    def flag(self) -> str:
        """The name as it is typed."""
        return str((self.param_decls or "-")[0])

    def has_effect(self, typed: Mapping[str, Any]) -> bool:
        """Whether what it needs was typed."""
        if not isinstance(self.needs, str):
            return self.needs is None or bool(self.needs[1](typed))
        flag, _, values = self.needs.partition(" ")
        value = typed[flag.strip("-").replace("-", "_")]
        return str(value) in re.split(", | or ", values) if values else bool(value)


def flag(metavar: str | None, help: str, default: Any = None, **rest: Any) -> Any:
    """An option that takes a text, or one of some values; ... is no default."""
    return Flag(metavar, help, default, **rest)


def switch(help: str, **rest: Any) -> Any:
    """An option that is given or not."""
    return Flag(None, help, False, **rest)


def argument(metavar: str, help: str, default: Any = ...) -> Any:
    """What is typed without a flag."""
    return typer.Argument(default, metavar=metavar, help=help)


def whole(metavar: str, least: int, example: str, help: str, default: Any = None, **rest: Any) -> Any:
    """An option that takes a whole number of at least ``least``."""
    hint = f"Give a whole number of at least {least}, e.g. {{}} {example}."
    return Flag(
        metavar, help, default, read=lambda flag, typed: parse_whole(flag, typed, least, hint.format(flag)), **rest
    )


def positive(metavar: str, example: str, help: str, default: Any = None, **rest: Any) -> Any:
    """An option that takes a number above 0."""
    hint = f"Give a number above 0, e.g. {{}} {example}."
    return Flag(metavar, help, default, read=lambda flag, typed: parse_positive(flag, typed, hint.format(flag)), **rest)


def number(metavar: str, help: str, example: str = "", default: Any = None, **rest: Any) -> Any:
    """An option that takes any number."""
    hint = f"Give e.g. {{}} {example}." if example else "Give a number."
    return Flag(metavar, help, default, read=lambda flag, typed: parse_number(flag, typed, hint.format(flag)), **rest)


def given(context: typer.Context, name: str) -> bool:
    """Whether the option was typed by the user."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_idle(context: typer.Context, names: Iterable[str], needs: str) -> None:
    """Refuse an option that would change nothing; ``needs`` says what it goes with."""
    for parameter in context.command.params:
        if parameter.name in names and given(context, parameter.name):
            raise InputError(f"{parameter.opts[0]} only has an effect with {needs}.", "Add that, or leave it out.")


Command = Callable[..., None]


def verb(
    *, out: bool = False, page: bool = False, settings: Mapping[str, Any] | None = None
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function that returns what it has to say, if it does: a ``Report`` or ``Said``.

    Its flags are the defaults of the parameters; a parameter whose type is a class of flags stands for all of them,
    ``**typed`` for ``settings`` (types and flags by name). Flags without effect are refused before it runs. ``--json``
    prints what it returns as JSON; with ``out`` there is ``--out``, a folder for its files, and with ``page``
    ``--report``.
    """

    def make(function: Callable[..., Any]) -> Command:
        groups: dict[str, Any] = {}
        parameters: dict[str, tuple[Any, Any]] = {}
        signature = inspect.signature(function)
        for one in signature.parameters.values():
            hint = eval(one.annotation, function.__globals__)
            if one.name == "typed":
                parameters |= settings or {}
            elif is_dataclass(hint):
                groups[one.name], hints = hint, get_type_hints(hint)
                for field in fields(hint):
                    parameters[field.name] = hints[field.name], field.metadata.get("flag", field.default)
            else:
                parameters[one.name] = hint, one.default
        wants_context = parameters.pop("context", None) is not None
        answers = signature.return_annotation != "None"
        extra = {"out": (out, str | None, OUT), "report": (page, str | None, PAGE), "as_json": (answers, bool, JSON)}
        parameters |= {name: (hint, option) for name, (there, hint, option) in extra.items() if there}
        flags = {name: option for name, (_, option) in parameters.items() if isinstance(option, Flag)}
        for name, option in flags.items():
            option.name(name)

        def command(context: typer.Context, **typed: Any) -> None:
            for name, option in flags.items():
                if option.needs is not None and given(context, name) and not option.has_effect(typed):
                    refuse_idle(context, [name], option.needs if isinstance(option.needs, str) else option.needs[0])
            where = {"out": typed.pop("out") if out else None, "page": typed.pop("report") if page else None}
            as_json = answers and typed.pop("as_json")
            check_outputs(**where)
            for name, group in groups.items():
                typed[name] = group(**{field.name: typed.pop(field.name) for field in fields(group)})
            said = function(**({"context": context} if wants_context else {}), **typed)
            if said is not None:
                deliver(said, context, as_json=as_json, **where)

        kind = inspect.Parameter.KEYWORD_ONLY
        named = [
            inspect.Parameter(name, kind, annotation=hint, default=option)
            for name, (hint, option) in ({"context": (typer.Context, inspect.Parameter.empty)} | parameters).items()
        ]
        vars(command)["__signature__"] = inspect.Signature(named)
        command.__name__, command.__doc__, command.__module__ = function.__name__, function.__doc__, function.__module__
        command.__annotations__ = {one.name: one.annotation for one in named}
        return command

    return make


SEED_HELP = (
    "Seed of every random draw. The same seed and version give the same digits, on another CPU as far as they are "
    "printed."
)
JOBS_HELP = "Cores of this machine to use; the digits do not depend on it."
JSON = switch("Print one JSON object on stdout and nothing else there.", param_decls=("--json",))
SEED = whole("S", 0, "0", SEED_HELP, 0)
#: Of one default everywhere.
JOBS = whole("N", 1, "2", JOBS_HELP, 2)
OUT = flag("DIR", "Write tables and figures to this folder.")
PAGE = flag("FILE", "Write one self-contained HTML page.")
PRICES = flag(None, "The bound uses one price for all labels, or one for each arrival.", "scalar")
Prices = Literal["scalar", "per-arrival"]
CAP = whole("N", 1, "10", "Labels of one task that are modelled in full. Default: chosen.")
FLIGHT = whole("N", 1, "5", "Labels of one task in flight at once that are modelled. Default: chosen.")
LABELS = argument("LABELS", "Recorded labels, one row per label: CSV, Parquet or Label Studio JSON; or campaign:ID.")
TASK_COLUMN = flag("NAME", "The column with the tasks.", "task")
WORKER_COLUMN = flag("NAME", "The column with the workers.", "worker")
LABEL_COLUMN = flag("NAME", "The column with the labels.", "label")
ASSIGNED_COLUMN = flag("NAME", "The column with the time at which a task was given out.", "assigned_at")
SUBMITTED_COLUMN = flag("NAME", "The column with the time at which the label came in.", "submitted_at")
DUPLICATES = flag(None, "Of a worker's labels for one task, count the first or keep all.", "first")
POSITIVE = flag("LABEL", "The label that counts as 1, if the labels are not 0 and 1.")
FEATURES = flag(
    "FILE",
    "What is known of items beside labels: a table with a column task and columns of numbers or texts, or NAME.npy "
    "with NAME.txt.",
)
DB = flag("URL", "A SQLite file, or postgresql://user@host/database.", "nextlabel.db", envvar="NEXTLABEL_DB")
HOST = flag("ADDRESS", "Address to listen on; 0.0.0.0 admits other machines. Default: 127.0.0.1.")
PORT = whole("N", 0, "8000", "Port to listen on. Default: 8000.")
LOG_LEVEL = flag(None, "The least severity that is logged. Default: info.")
LogLevel = Literal["debug", "info", "warning", "error"]
PUBLIC_URL = ("URL", "The address that links begin with. Default: the one that serve listens on.")
ANSWER = flag(
    None, "What labels are: one of some names, steps of a scale, numbers, any of some, or the better of two.", "choice"
)
Answer = Literal["choice", "rating", "number", "multi", "pair"]
SCALE = flag("LOW..HIGH", "With --answer rating: the ends of the scale. Default: 1..5.")
RANGE = flag("LOW..HIGH", "With --answer number: the range that workers were given.")


@dataclass
class EngineFlags:
    """Where to run."""

    jobs: int = whole("N", 1, "2", JOBS_HELP, 2, needs="--engine local")
    engine: Literal["local", "dask"] = flag(None, "Where to run: this machine, or an existing Dask cluster.", "local")
    scheduler: str | None = flag("ADDRESS", "the scheduler, e.g. tcp://HOST:8786.", needs="--engine dask")

    def made(self) -> Engine:
        """The engine that they say."""
        from nextlabel.simulation.engine import Engine

        return Engine(self.engine, self.jobs, self.scheduler)
