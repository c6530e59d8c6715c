"""Options of the commands of ``nextlabel label-studio``."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.options import text, whole

Url = Annotated[str, text("--url", "URL", "The address of Label Studio, e.g. http://localhost:8080.")]
Token = Annotated[
    str,
    typer.Option(
        "--token", metavar="TOKEN", envvar="LABEL_STUDIO_API_KEY", show_default=False,
        help="A token of Label Studio: a personal access token or a legacy one.",
    ),
]  # fmt: skip
Project = Annotated[int, whole("--project", "N", 1, "3", "The project's number, which its address shows.")]
ControlName = Annotated[
    str | None,
    text("--control", "NAME", "The Choices that are the labels. Default: the only ones that the project has."),
]
