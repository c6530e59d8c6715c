"""``nextlabel campaign export``: the results of a campaign as a file, whole or not at all, or on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json, refuse_idle, text
from nextlabel.cli.output import print_json, say
from nextlabel.cli.output_files import checked_file
from nextlabel.files.write import export_text, whole_file
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

Form = Literal["csv", "jsonl"]


def export(
    context: typer.Context,
    id: Id,
    save: Annotated[str | None, text("--save", "FILE", "Write to this file. Default: stdout.")] = None,
    form: Annotated[Form, typer.Option("--format", help="One CSV row or one JSON object per task.")] = "csv",
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Write every task with its label, its probability, its label counts and the event that closed it."""
    if as_json and save is None:
        refuse_idle(context, ["form"], "--save, or without --json")
    target = None if save is None else checked_file("--save", save)
    with service_at(db) as service:
        service.store.row(id)
        if target is not None:
            with whole_file(target) as stream:
                written = _write(service, id, stream, form)
        elif as_json:
            print_json({"tasks": list(_results(service, id))})
            return
        else:
            written = _write(service, id, sys.stdout, form)
    if as_json:
        print_json({"written": written, "file": save})
    else:
        say(f"{counted(written, 'task')} written{'' if save is None else f' to {save}'}.")


def _results(service: CampaignService, id: str) -> Iterator[dict[str, Any]]:
    """One object per task; its payload last."""
    for result in service.results(id):
        yield {
            "task": result.task,
            "label": result.label,
            "probability": round(result.probability, 6),
            "labels": result.labels,
            **{f"count_{name}": count for name, count in result.counts.items()},
            "in_flight": result.in_flight,
            "closed_by": result.closed_by,
            "closed_reason": result.closed_reason,
            "payload": result.payload,
        }


def _write(service: CampaignService, id: str, stream: IO[str], form: Form) -> int:
    """Write one row per task; return how many."""
    written = 0
    counts = (f"count_{name}" for name in service.store.row(id).config.labels)
    header = ["task", "label", "probability", "labels", *counts, "in_flight", "closed_by", "closed_reason"]
    if form == "csv":
        stream.write(export_text([header]))
    for row in _results(service, id):
        stream.write(export_text([[row[name] for name in header]]) if form == "csv" else json.dumps(row) + "\n")
        written += 1
    return written
