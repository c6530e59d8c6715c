"""Flags and commands: a flag is declared once, and a command says what it has done by what it returns.

Options that several commands share are here: one name has one meaning, one help text and one check. Texts typed after a
flag are read as numbers, lists and matrices; every refusal says what was given and what is allowed. Only the form is
checked here; ranges are checked by Problem.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_type_hints

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


class Flag(OptionInfo):
    """One option of a command, whose name is that of its parameter.

    ``read`` makes its value of the flag's name and what was typed; ``needs`` says what it has an effect with: another
    flag (``--pilot``), values of one (``--engine dask``), or words and what checks all that was typed. A help that
    begins with a small letter is told what it needs.
    """

    def __init__(
        self, metavar: str | None, help: str, *, read: Read | None = None, needs: Needs | None = None, **rest: Any
    ) -> None:
        super().__init__(default=..., metavar=metavar, help=help, **rest)
        self.read, self.needs = read, needs

    def named(self, parameter: str, default: Any) -> Self:
        """The option of a parameter."""
        self.param_decls = self.param_decls or ("--" + parameter.strip("_").replace("_", "-"),)
        self.show_default = default not in (None, "") and "Default: " not in str(self.help)
        if isinstance(self.needs, str) and str(self.help)[:1].islower():
            self.help = f"With {self.needs}: {self.help}"
        if (read := self.read) is not None:
            self.parser = lambda typed: read(self.flag, str(typed))
        return self

    @property
    def flag(self) -> str:
        """The name as it is typed."""
        return str((self.param_decls or "-")[0])

    @property
    def words(self) -> str:
        """The name without dashes."""
        return self.flag.strip("-").replace("-", " ")

    def has_effect(self, typed: Mapping[str, Any]) -> bool:
        """Whether what it needs was typed."""
        if not isinstance(self.needs, str):
            return self.needs is None or bool(self.needs[1](typed))
        flag, _, values = self.needs.partition(" ")
        value = typed[flag.strip("-").replace("-", "_")]
        return str(value) in re.split(", | or ", values) if values else bool(value)

    @property
    def company(self) -> str:
        """What it needs, in words."""
        return self.needs if isinstance(self.needs, str) else self.needs[0] if self.needs else ""


def whole(metavar: str, least: int, example: str, help: str, **rest: Any) -> Flag:
    """An option that takes a whole number of at least ``least``."""

    def read(flag: str, typed: str) -> int:
        return parse_whole(flag, typed, least, f"Give a whole number of at least {least}, e.g. {flag} {example}.")

    return Flag(metavar, help, read=read, **rest)


def positive(metavar: str, example: str, help: str, **rest: Any) -> Flag:
    """An option that takes a number above 0."""

    def read(flag: str, typed: str) -> float:
        hint = f"Give a number above 0, e.g. {flag} {example}."
        found = float(parse_number(flag, typed, hint))
        if not 0 < found < float("inf"):
            raise InputError(f"{flag} is {found:g}, which is not a positive number.", hint)
        return found

    return Flag(metavar, help, read=read, **rest)


def number(metavar: str, help: str, example: str = "", **rest: Any) -> Flag:
    """An option that takes any number."""

    def read(flag: str, typed: str) -> float:
        return parse_number(flag, typed, f"Give e.g. {flag} {example}." if example else "Give a number.")

    return Flag(metavar, help, read=read, **rest)


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

    Its flags are the parameters; a parameter whose type is a class of flags stands for all of them, ``**typed`` for
    those of ``settings``. Flags without effect are refused before it runs. ``--json`` prints what it returns as JSON;
    with ``out`` there is ``--out``, a folder for its files, and with ``page`` ``--report``.
    """

    def make(function: Callable[..., Any]) -> Command:
        groups: dict[str, tuple[Any, list[str]]] = {}
        parameters: dict[str, tuple[Any, Any]] = {}
        for one in inspect.signature(function).parameters.values():
            if one.name == "typed":
                parameters |= {name: (hint, None) for name, hint in (settings or {}).items()}
                continue
            hint = eval(one.annotation, function.__globals__)
            if is_dataclass(hint):
                hints = get_type_hints(hint, include_extras=True)
                parameters |= {field.name: (hints[field.name], field.default) for field in fields(hint)}
                groups[one.name] = hint, list(hints)
            else:
                parameters[one.name] = hint, one.default
        wants_context = parameters.pop("context", None) is not None
        parameters |= {"out": (Out, None)} if out else {}
        parameters |= {"report": (Page, None)} if page else {}
        answers = inspect.signature(function).return_annotation != "None"
        parameters |= {"as_json": (Json, False)} if answers else {}
        flags = {
            name: flag.named(name, default) for name, (hint, default) in parameters.items() for flag in _flag(hint)
        }

        def command(context: typer.Context, **typed: Any) -> None:
            for name, flag in flags.items():
                if flag.needs is not None and given(context, name) and not flag.has_effect(typed):
                    refuse_idle(context, [name], flag.company)
            where = {"out": typed.pop("out") if out else None, "page": typed.pop("report") if page else None}
            as_json = answers and typed.pop("as_json")
            check_outputs(**where)
            for name, (group, names) in groups.items():
                typed[name] = group(**{one: typed.pop(one) for one in names})
            said = function(**({"context": context} if wants_context else {}), **typed)
            if said is not None:
                deliver(said, context, as_json=as_json, **where)

        kind = inspect.Parameter.KEYWORD_ONLY
        named = [
            inspect.Parameter(name, kind, annotation=hint, default=default)
            for name, (hint, default) in parameters.items()
        ]
        first = inspect.Parameter("context", kind, annotation=typer.Context)
        vars(command)["__signature__"] = inspect.Signature([first, *named])
        command.__name__, command.__doc__, command.__module__ = function.__name__, function.__doc__, function.__module__
        command.__annotations__ = {one.name: one.annotation for one in [first, *named]}
        return command

    return make


def _flag(hint: Any) -> list[Flag]:
    return [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Flag)]


SEED_HELP = (
    "Seed of every random draw. The same seed and version give the same digits, on another CPU as far as they are "
    "printed."
)

#: Of one default everywhere; the digits do not depend on it.
JOBS = 2
Json = Annotated[bool, Flag(None, "Print one JSON object on stdout and nothing else there.", param_decls=("--json",))]
Seed = Annotated[int, whole("S", 0, "0", SEED_HELP)]
JOBS_HELP = "Cores of this machine to use; the digits do not depend on it."
Jobs = Annotated[int, whole("N", 1, "2", JOBS_HELP)]
Out = Annotated[str | None, Flag("DIR", "Write tables and figures to this folder.")]
Page = Annotated[str | None, Flag("FILE", "Write one self-contained HTML page.")]

Prices = Annotated[
    Literal["scalar", "per-arrival"],
    Flag(None, "The bound uses one price for all labels, or one for each arrival."),
]

Cap = Annotated[int | None, whole("N", 1, "10", "Labels of one task that are modelled in full. Default: chosen.")]

Flight = Annotated[
    int | None,
    whole("N", 1, "5", "Labels of one task in flight at once that are modelled. Default: chosen."),
]  # fmt: skip

Labels = Annotated[
    str,
    typer.Argument(
        metavar="LABELS", help="Recorded labels, one row per label: CSV, Parquet or Label Studio JSON; or campaign:ID."
    ),
]
TaskColumn = Annotated[str, Flag("NAME", "The column with the tasks.")]
WorkerColumn = Annotated[str, Flag("NAME", "The column with the workers.")]
LabelColumn = Annotated[str, Flag("NAME", "The column with the labels.")]

AssignedColumn = Annotated[
    str,
    Flag("NAME", "The column with the time at which a task was given out."),
]

SubmittedColumn = Annotated[
    str,
    Flag("NAME", "The column with the time at which the label came in."),
]

Duplicates = Annotated[
    Literal["first", "keep"],
    Flag(None, "Of a worker's labels for one task, count the first or keep all."),
]

Positive = Annotated[str | None, Flag("LABEL", "The label that counts as 1, if the labels are not 0 and 1.")]

FeaturesFile = Annotated[
    str | None,
    Flag(
        "FILE",
        "What is known of items beside labels: a table with a column task and columns of numbers or texts, or NAME.npy "
        "with NAME.txt.",
    ),
]

Db = Annotated[
    str,
    Flag("URL", "A SQLite file, or postgresql://user@host/database.", envvar="NEXTLABEL_DB"),
]
DB = "nextlabel.db"

Host = Annotated[
    str | None, Flag("ADDRESS", "Address to listen on; 0.0.0.0 admits other machines. Default: 127.0.0.1.")
]
Port = Annotated[int | None, whole("N", 0, "8000", "Port to listen on. Default: 8000.")]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    Flag(None, "The least severity that is logged. Default: info."),
]
PUBLIC_URL = ("URL", "The address that links begin with. Default: the one that serve listens on.")
PublicUrl = Annotated[str | None, Flag(*PUBLIC_URL)]

AnswerKind = Annotated[
    Literal["choice", "rating", "number", "multi", "pair"],
    Flag(None, "What labels are: one of some names, steps of a scale, numbers, any of some, or the better of two."),
]
Scale = Annotated[str | None, Flag("LOW..HIGH", "With --answer rating: the ends of the scale. Default: 1..5.")]
Range = Annotated[str | None, Flag("LOW..HIGH", "With --answer number: the range that workers were given.")]


@dataclass
class EngineFlags:
    """Where to run."""

    jobs: Annotated[int, whole("N", 1, "2", JOBS_HELP, needs="--engine local")] = JOBS
    engine: Annotated[
        Literal["local", "dask"], Flag(None, "Where to run: this machine, or an existing Dask cluster.")
    ] = "local"
    scheduler: Annotated[str | None, Flag("ADDRESS", "the scheduler, e.g. tcp://HOST:8786.", needs="--engine dask")] = (
        None
    )

    def made(self) -> Engine:
        """The engine that they say."""
        from nextlabel.simulation.engine import Engine

        return Engine(self.engine, self.jobs, self.scheduler)
