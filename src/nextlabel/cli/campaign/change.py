"""``nextlabel campaign change``: other settings, while the campaign runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nextlabel.campaign.declaration import declared
from nextlabel.cli.campaign.common import Id, names_of, number_of, service_at, show_change, text_of
from nextlabel.cli.options import DB, Db, Json
from nextlabel.errors import InputError

#: What takes a setting away that may be left out.
NONE = "none"


def _option(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, show_default=False)


def change(
    id: Id,
    question: Annotated[str | None, _option("TEXT", declared("question").help)] = None,
    display_names: Annotated[
        str | None, _option("A,B", f"{declared('display_names').help} none: the labels themselves.")
    ] = None,
    instructions: Annotated[str | None, _option("FILE.md", f"{declared('instructions').help} none: no more.")] = None,
    language: Annotated[
        str | None, _option("CODE", "Language of the workers' page; none to follow each worker's browser.")
    ] = None,
    show: Annotated[
        str | None,
        _option("A,B", "Columns that workers are shown, or * for all; none for all but those that look personal."),
    ] = None,
    pay_per_label: Annotated[str | None, _option("P", declared("pay_per_label").help)] = None,
    most_labels_per_worker: Annotated[
        str | None, _option("N", "Most labels that one worker may give; none for no limit.")
    ] = None,
    completion_code: Annotated[
        str | None, _option("CODE", f"{declared('completion_code').help} none: no code.")
    ] = None,
    turn_away: Annotated[
        bool | None, typer.Option("--turn-away/--serve-all", help=declared("turn_away").help, show_default=False)
    ] = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Change settings while the campaign runs; budget, deadline and name have commands of their own.

    Workers see other texts with their next task.
    """
    values: dict[str, Any] = {}
    if question is not None:
        values["question"] = question
    if display_names is not None:
        values["display_names"] = None if display_names == NONE else names_of(display_names)
    if instructions is not None:
        values["instructions"] = "" if instructions == NONE else text_of("--instructions", instructions)
    if language is not None:
        values["language"] = None if language == NONE else language
    if show is not None:
        values["show"] = None if show == NONE else names_of(show)
    if pay_per_label is not None:
        values["pay_per_label"] = number_of("--pay-per-label", pay_per_label)
    if most_labels_per_worker is not None:
        none = most_labels_per_worker == NONE
        values["most_labels_per_worker"] = (
            None if none else number_of("--most-labels-per-worker", most_labels_per_worker)
        )
    if completion_code is not None:
        values["completion_code"] = "" if completion_code == NONE else completion_code
    if turn_away is not None:
        values["turn_away"] = turn_away
    if not values:
        raise InputError("nothing says what to change.", "Give e.g. --question or --pay-per-label.")
    with service_at(db) as service:
        row = service.change(id, values)
    show_change(row, f"{id} is changed.", as_json)
