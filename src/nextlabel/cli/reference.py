"""The reference page of the command line, made from the commands themselves.

``python -m nextlabel.cli.reference > docs/reference/cli.md`` writes the page; a test compares it with the commands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import typer

from nextlabel.cli.app import EXIT_CODES, app
from nextlabel.cli.problem_options import PANEL

OPENING = """# Command line

<!-- Made by `python -m nextlabel.cli.reference > docs/reference/cli.md`: do not edit by hand. -->

Every command and every option of it, as `nextlabel COMMAND --help` shows them. One name has one meaning wherever it
appears. `--json` prints one JSON object on stdout; progress and prose go to stderr.
"""


def page() -> str:
    """The whole page as Markdown."""
    parts = [OPENING, _table(["exit code", "meaning"], [[str(code), text] for code, text in EXIT_CODES.items()])]
    shared: list[Any] = []
    for path, command in commands(typer.main.get_command(app), "nextlabel"):
        problem = [p for p in command.params if getattr(p, "rich_help_panel", None) == PANEL]
        shared = shared or problem
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = [path, *(_argument(p) if p.required else f"[{_argument(p)}]" for p in arguments), "[OPTIONS]"]
        parts.append(f"## {path}\n\n{' '.join(command.help.split())}\n\n    {' '.join(usage)}")
        if problem:
            parts.append("Takes the [options that describe the problem](#options-that-describe-the-problem), and:")
        own = [p for p in command.params if p not in problem]
        parts.append(_table(["", "value", "default", "meaning"], [_row(p) for p in own]))
    intro = f"Of {', '.join(_takers())}. They win over the file of `--problem`."
    parts += ["## Options that describe the problem", intro]
    parts.append(_table(["", "value", "default", "meaning"], [_row(p) for p in shared]))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below ``command`` with its full name, in the order of the help."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    if command.invoke_without_command and path != "nextlabel":
        yield path, command
    for name, sub in inner.items():
        yield from commands(sub, f"{path} {name}")


def _takers() -> list[str]:
    found = commands(typer.main.get_command(app), "nextlabel")
    return [f"`{path}`" for path, command in found if any(p.name == "problem" for p in command.params)]


def _row(parameter: Any) -> list[str]:
    """Name, value, default and meaning of an option or argument."""
    argument = parameter.param_type_name == "argument"
    name = f"`{_argument(parameter)}`" if argument else " ".join(f"`{one}`" for one in parameter.opts)
    annotation = parameter.type_descriptor.annotation
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    value = ", ".join(f"`{one}`" for one in choices)
    if not choices and parameter.metavar and not argument:
        value = f"`{parameter.metavar}`"
    help, _, default = " ".join((parameter.help or "").split()).partition("Default: ")
    if parameter.required:
        default = "required"
    elif not default and parameter.default is not False and parameter.default not in (None, ""):
        default = f"`{parameter.default}`"
    if parameter.envvar:
        help += f" Or the environment variable `{parameter.envvar}`."
    return [name, value, default.removesuffix("."), help.strip()]


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _table(header: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, rows)])


if __name__ == "__main__":
    sys.stdout.write(page())
