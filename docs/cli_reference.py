"""The reference page of the command line, made from the commands themselves.

``python docs/cli_reference.py > docs/reference/cli.md`` writes the page; a test compares it with the commands.
Options that several commands have with one meaning stand in a table of their own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import typer

from nextlabel.cli.app import EXIT_CODES, app
from nextlabel.cli.campaign import PANEL as SETTINGS_PANEL
from nextlabel.cli.problem_options import PANEL

OPENING = """# Command line

<!-- Made by `python docs/cli_reference.py > docs/reference/cli.md`: do not edit by hand. -->

`nextlabel COMMAND --help` shows the same. Progress and prose go to stderr.
"""
SHARED = "Options of several commands"
PROBLEM = "Options that describe the problem"
#: An option that so many commands have with the same words is described once.
OFTEN = 2


def page() -> str:
    """The whole page as Markdown."""
    every = list(commands(typer.main.get_command(app), "nextlabel"))
    options = [_row(p) for _, command in every for p in command.params if _is_option(p) and not _of_group(p)]
    uses = Counter(tuple(row) for row in options)
    shared = [list(row) for row, many in uses.items() if many >= OFTEN]
    problem = next(
        [_row(p) for p in command.params if _of_problem(p)] for _, command in every if _takes_problem(command)
    )
    takers = ", ".join(f"`{path.removeprefix('nextlabel ')}`" for path, command in every if _takes_problem(command))
    parts = [OPENING, _table(["exit code", "meaning"], [[str(code), text] for code, text in EXIT_CODES.items()])]
    parts += [f"## {SHARED}", _table(["", "meaning"], sorted(shared))]
    parts += [f"## {PROBLEM}", f"Of {takers}. They win over the file of `--problem`.", _table(["", "meaning"], problem)]
    for path, command in every:
        parts += _section(path, command, shared)
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _section(path: str, command: Any, shared: list[list[str]]) -> list[str]:
    """The part of the page on one command."""
    arguments = [p for p in command.params if not _is_option(p)]
    named = [_argument(p) if p.required or _argument(p)[0] == "[" else f"[{_argument(p)}]" for p in arguments]
    parts = [f"## {path}", f"    {' '.join([path, *named, '[OPTIONS]'])}", " ".join(command.help.split())]
    rows = [_row(p) for p in command.params if not _of_group(p)]
    also = sorted(f"`{row[0].strip('`').split()[0]}`" for row in rows if row in shared)
    if _takes_problem(command):
        also.append(f"the [problem](#{PROBLEM.lower().replace(' ', '-')})")
    settings = [f"`{p.opts[0]}`" for p in command.params if _of_settings(p)]
    own = [row for row in rows if row not in shared]
    if own:
        parts.append(_table(["", "meaning"], own))
    if settings:
        parts.append(f"[Settings of the campaign](../settings.md): {', '.join(settings)}.")
    if also:
        parts.append(f"Also {', '.join(also)}.")
    return parts


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below ``command`` with its full name, in the order of the help."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, sub in inner.items():
        yield from commands(sub, f"{path} {name}")


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _of_problem(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == PANEL


def _of_settings(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == SETTINGS_PANEL


def _of_group(parameter: Any) -> bool:
    return _of_problem(parameter) or _of_settings(parameter)


def _takes_problem(command: Any) -> bool:
    return any(_of_problem(parameter) for parameter in command.params)


def _row(parameter: Any) -> list[str]:
    """Name with its value, and meaning with its default, of an option or argument."""
    annotation = parameter.type_descriptor.annotation
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    help, _, default = " ".join((parameter.help or "").split()).partition("Default: ")
    if _is_option(parameter):
        value = "\\|".join(map(str, choices)) or parameter.metavar or ""
        names = "/".join([*parameter.opts, *parameter.secondary_opts])
        name = f"`{names} {value}`" if value else f"`{names}`"
        if not default and parameter.default is not False and parameter.default not in (None, ""):
            default = f"`{parameter.default}`."
        if parameter.required:
            default = "none, it is required."
    else:
        name = f"`{_argument(parameter).strip('[]')}`"
    if parameter.envvar:
        help = f"{help.strip()} Or the environment variable `{parameter.envvar}`."
    return [name, f"{help.strip()} Default: {default}" if default else help.strip()]


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _table(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, ["---"] * len(header), *rows])


if __name__ == "__main__":
    sys.stdout.write(page())
