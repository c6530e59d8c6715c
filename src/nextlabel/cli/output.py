"""What a command prints and writes: the answer on stdout, progress and prose on stderr, files whole or not at all.

Whether the user has pressed Ctrl-C, also where the interrupt is lost on the way.

LLVM calls back into Python while kernels are compiled, and an exception raised in such a callback goes no further: the
compiler fails later with an error of its own.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import typer

from nextlabel.errors import InputError
from nextlabel.files.write import whole_file
from nextlabel.reporting.artifacts import check_folder, write_files
from nextlabel.reporting.report import Cells, Report, Table
from nextlabel.reporting.style import needs_figures

#: Work that ends sooner than this, in seconds, shows no progress bar.
PATIENCE_S = 0.5
#: Seconds between two lines on work that goes on, where stderr is no terminal but a log.
SAY_S = 10.0
#: Characters of a line of a table where stdout is no terminal.
WIDE = 10_000


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
    """A table, if it has rows, with a title above it and a sentence in plain English below it.

    Names in the first column are whole, for the next command needs them; where stdout is no terminal, all cells are.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, show_header=any(header))
    whole = max((len(row[0]) for row in rows), default=0)
    table.add_column(header[0], min_width=whole if any(header) else None, no_wrap=any(header))
    for name in header[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(title, style="bold", markup=False)
    if rows:
        width = console.width if console.is_terminal else WIDE
        Console(highlight=False, width=width).print(table, crop=False)
    console.print(caption, markup=False)
    console.file.flush()


def say(sentence: str) -> None:
    """A line of prose on stderr."""
    sys.stderr.write(sentence + "\n")


class Said(NamedTuple):
    """What a command has done: as JSON, or in lines on stdout and a sentence on stderr; and its exit code."""

    fields: Mapping[str, Any]
    sentence: str = ""
    text: str = ""
    code: int = 0


def tabled(title: str, header: Sequence[str], rows: Cells, caption: str, fields: Mapping[str, Any]) -> Report:
    """An answer that is one table, with a sentence below it."""
    return Report(title, [Table(title, header, rows)], [caption], fields=fields)


def report_reading(*reports: Any) -> list[dict[str, Any]]:
    """Say on stderr what files held (``files.report``), before it is used; the same for ``read`` of ``--json``."""
    read = [report for report in reports if report is not None]
    for report in read:
        for sentence in report.sentences():
            say(sentence)
    return [report.as_dict() for report in read]


def command_line(context: typer.Context) -> str:
    """The command as it was typed, for reports and manifests."""
    typed = context.obj if isinstance(context.obj, list) else []
    return shlex.join(["nextlabel", *map(str, typed)])


@contextmanager
def working(description: str) -> Iterator[Callable[[float], None]]:
    """Show that work is going on; yields ``progress(fraction)`` for the solvers.

    The bar appears on stderr after PATIENCE_S seconds where stderr is a terminal (or FORCE_COLOR is set), and goes away
    with the work; elsewhere a line says every SAY_S seconds how far it is, or that it goes on.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    begun, ended = time.monotonic(), threading.Event()
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console, transient=True)
    job = bar.add_task(description, total=None)

    def progress(fraction: float) -> None:
        bar.update(job, total=1.0, completed=min(max(fraction, 0.0), 1.0))

    def show() -> None:
        if console.is_terminal:
            if not ended.wait(PATIENCE_S):
                bar.start()
            return
        while not ended.wait(SAY_S):
            one = bar.tasks[0]
            done = "" if one.total is None else f"{one.completed:.0%} after "
            say(f"{description}: {done}{time.monotonic() - begun:.0f} s{'' if done else ' so far'}")

    shown = threading.Thread(target=show, daemon=True)
    shown.start()
    try:
        yield progress
    finally:
        ended.set()
        shown.join()
        if bar.live.is_started:
            bar.stop()


def check_outputs(out: str | None, page: str | None) -> None:
    """Refuse, before any work, a folder or a page that could not be written after it."""
    if out is None and page is None:
        return

    needs_figures()
    if out is not None:
        check_folder(out)
    if page is not None:
        checked_file("--report", page)


def checked_file(flag: str, text: str) -> Path:
    """The path of a file to write, refused before any work if nothing can be written there."""
    path = Path(text)
    if path.is_dir():
        raise InputError(f"{flag} {text} is a folder.", "Give the path of a file.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{flag} {text} is in a folder that does not exist.", "Make the folder first.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise InputError(f"{flag} {text} is in a folder that cannot be written to.", "Give another path.")
    return path


def deliver(
    said: Report | Said, context: typer.Context, *, out: str | None = None, page: str | None = None, as_json: bool
) -> None:
    """What a command says into a folder, onto a page, and to stdout as JSON or for people."""
    if isinstance(said, Said):
        if as_json:
            print_json(said.fields)
        else:
            sys.stdout.write(said.text)
            sys.stdout.flush()
            sys.stderr.write(f"{said.sentence}\n" if said.sentence else "")
        if said.code:
            raise typer.Exit(said.code)
        return
    if out is not None:
        write_files(Path(out), files := said.files())
        say(f"Wrote {', '.join(files)} to {out}.")
    if page is not None:
        with whole_file(page) as stream:
            stream.write(said.page(command_line(context)))
        say(f"Wrote {page}.")
    if as_json:
        print_json(said.fields)
        return
    sys.stdout.write("".join(f"Mind: {one}\n\n" for one in said.warnings))
    sys.stdout.flush()
    for table in said.tables:  # one without a caption has the sentences below it
        if table.brief != ():
            caption = f"{table.caption}\n" if table.caption else "\n".join([*said.notes, *said.sentences])
            print_table(table.title, table.header, table.shown, caption)
    sys.stdout.write("".join(f"{line}\n" for line in said.closing))
    sys.stdout.flush()


@contextmanager
def handling(number: int, handler: Any) -> Iterator[None]:
    """Handle a signal inside the block, in the main thread: signals do not reach others."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(number, handler) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(number, before)


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """The interrupts that have come so far; each of them still raises KeyboardInterrupt."""
    come: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        come.append(number)
        raise KeyboardInterrupt

    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else ignored, or the calling program's
    with handling(signal.SIGINT, note) if ours else nullcontext():
        yield come
