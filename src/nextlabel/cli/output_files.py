"""Files that a command leaves behind: checked before the work, and written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nextlabel.cli.output import say
from nextlabel.errors import InputError
from nextlabel.files.write import whole_file


def check_outputs(out: str | None, report: str | None = None) -> None:
    """Refuse, before any work, a folder or a page that could not be written after it."""
    if out is None and report is None:
        return
    from nextlabel.reporting.artifacts import check_folder
    from nextlabel.reporting.style import needs_figures

    needs_figures()
    if out is not None:
        check_folder(out)
    if report is not None:
        checked_file("--report", report)


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


def write_folder(out: str, files: Mapping[str, Any]) -> None:
    """Tables and figures by file name, all of them or none."""
    from nextlabel.reporting.artifacts import write_files

    write_files(Path(out), files)
    say(f"Wrote {', '.join(files)} to {out}.")


def write_page(report: str, page: Callable[[], str]) -> None:
    """One HTML page."""
    with whole_file(report) as stream:
        stream.write(page())
    say(f"Wrote {report}.")
