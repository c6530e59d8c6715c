"""The flags of a campaign's settings, made from their declaration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from nextlabel.campaign.declaration import declared, kind, names, offer
from nextlabel.cli.database import names_of, number_of, text_of
from nextlabel.cli.options import parse_number, parse_prior

PANEL = "Settings of the campaign"
#: What takes a setting away that may be left out.
NONE = "none"

Command = Callable[..., None]


def setting_flags(*, changing: bool = False) -> Callable[[Command], Command]:
    """Replace a command's ``**settings`` by the flags of a campaign's settings, or of those that may change."""

    def add(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        flags = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_flag(name, changing))
            for name in names()
            if offer(name).flag and (offer(name).changeable or not changing)
        ]
        first = next(place for place, one in enumerate(own) if one.name == "db")
        last = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own[first:]]
        command.__signature__ = signature.replace(parameters=[*own[:first], *flags, *last])  # type: ignore[attr-defined]
        return command

    return add


def _flag(name: str, changing: bool) -> Any:
    shown, info = offer(name), declared(name)
    help = str(info.description)
    if not changing and not info.is_required() and info.default and kind(name) is not bool:
        default = ",".join(LABELS) if name == "labels" else f"{info.default:g}" if kind(name) is float else info.default
        help += f" Default: {default}."
    if kind(name) is bool:
        return Annotated[bool | None, typer.Option(shown.flag, help=help, show_default=False, rich_help_panel=PANEL)]
    flag = f"--{name.replace('_', '-')}"
    return Annotated[
        str | None, typer.Option(flag, metavar=shown.flag, help=help, show_default=False, rich_help_panel=PANEL)
    ]


def _kept(name: str) -> bool:
    """Whether a setting always has a value."""
    return kind(name) in (bool, int, float) and declared(name).default is not None


#: What items may be if the command line names no labels.
LABELS = declared("labels").examples[0]  # type: ignore[index]


def typed_settings(typed: Mapping[str, Any], *, changing: bool = False) -> dict[str, Any]:
    """The settings that were typed, as ``CampaignSettings`` takes them."""
    given = {name: value for name, value in typed.items() if value is not None}
    return {name: _read(name, value, changing) for name, value in given.items()}


def _read(name: str, typed: Any, changing: bool) -> Any:
    flag = f"--{name.replace('_', '-')}"
    if changing and typed == NONE and not _kept(name):
        return declared(name).default
    if name == "instructions":
        return text_of(flag, typed)
    if name == "prior":
        return parse_prior(typed)
    if name == "deadline" or kind(name) in (bool, str):
        return typed
    if kind(name) is tuple:
        return names_of(typed)
    if name == "budget":
        return parse_number(flag, typed, "Give a whole number, e.g. --budget 1200.")
    return number_of(flag, typed)
