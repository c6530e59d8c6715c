"""What a command prints: the answer on stdout, as one JSON object or as a table; progress and prose on stderr."""

from __future__ import annotations

import json
import math
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import typer

#: Work that ends sooner than this, in seconds, shows no progress bar.
PATIENCE_S = 0.5


def print_json(answer: Mapping[str, Any]) -> None:
    """One JSON object and a line end; an infinite number is written as null."""
    sys.stdout.write(json.dumps(_plain(answer), indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    """``value`` in the types of JSON."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> None:
    """A table, if it has rows, with a title above it and a sentence in plain English below it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, show_header=any(header))
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(title, style="bold", markup=False)
    if rows:
        console.print(table)
    console.print(caption, markup=False)
    console.file.flush()


def say(sentence: str) -> None:
    """A line of prose on stderr."""
    sys.stderr.write(sentence + "\n")


class Report(Protocol):
    """What was met while a file was read (``files.report``)."""

    def sentences(self) -> list[str]:
        """In plain English."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        ...


def say_read(*reports: Report) -> list[dict[str, Any]]:
    """Say on stderr what files held, before it is used; the same for ``read`` of ``--json``."""
    for report in reports:
        for sentence in report.sentences():
            say(sentence)
    return [report.as_dict() for report in reports]


def command_line(context: typer.Context) -> str:
    """The command as it was typed, for reports and manifests."""
    typed = context.obj if isinstance(context.obj, list) else []
    return shlex.join(["nextlabel", *map(str, typed)])


@contextmanager
def working(description: str) -> Iterator[Callable[[float], None]]:
    """Show that work is going on; yields ``progress(fraction)`` for the solvers.

    The bar appears on stderr after PATIENCE_S seconds, only where stderr is a terminal (or FORCE_COLOR is set), and
    goes away with the work. The first compilation of the kernels is always announced.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from nextlabel.kernels.jit import announce_compilation

    console = Console(stderr=True, highlight=False)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    job = bar.add_task(description, total=None)

    def progress(fraction: float) -> None:
        bar.update(job, total=1.0, completed=min(max(fraction, 0.0), 1.0))

    def announce() -> None:
        console.print("Compiling numerical kernels, once per installation ...")

    timer = threading.Timer(PATIENCE_S, bar.start)
    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        with announce_compilation(announce):
            yield progress
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
        if bar.live.is_started:
            bar.stop()
