"""The reference page of the command line is the one that the commands make."""

from __future__ import annotations

import re
from pathlib import Path

import typer
from docs.cli_reference import PROBLEM, commands, page

from nextlabel.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python docs/cli_reference.py > docs/reference/cli.md"


def test_every_option_of_every_command_is_on_it() -> None:
    sections = {part.partition("\n")[0]: part for part in page().split("\n## ")}
    for path, command in commands(typer.main.get_command(app), "nextlabel"):
        shown = sections[path] + (sections[PROBLEM] if "the [problem]" in sections[path] else "")
        for parameter in command.params:
            for name in parameter.opts if parameter.param_type_name == "option" else []:
                assert re.search(rf"`{name}[` /]", shown), (path, name)


def test_at_most_36_commands() -> None:
    assert len(list(commands(typer.main.get_command(app), "nextlabel"))) <= 36
