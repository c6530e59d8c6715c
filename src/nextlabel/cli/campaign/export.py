"""``nextlabel campaign export``: a campaign's results or labels as a file, whole or not at all, or on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
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
Row = dict[str, Any]


def export(
    context: typer.Context,
    id: Id,
    rows: Annotated[
        Literal["tasks", "labels", "workers"],
        typer.Option(help="One row per task, one for each worker's answer to a task, or one per worker."),
    ] = "tasks",
    unanswered: Annotated[
        bool, typer.Option("--unanswered", help="With --rows labels: also leases without an answer.")
    ] = False,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="With --rows labels: also labels that were dropped.")
    ] = False,
    save: Annotated[str | None, text("--save", "FILE", "Write to this file. Default: stdout.")] = None,
    form: Annotated[Form, typer.Option("--format", help="One CSV row or one JSON object per task or label.")] = "csv",
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Write every task with its label, its probability, its label counts and the event that closed it.

    With --rows labels: who answered what, and when. workers, backtest, prior, rates and plan --pilot read that file,
    or the campaign itself as campaign:ID. With --rows workers: labels, time and amount of each worker, with agreement,
    accuracy and what stands out.
    """
    if as_json and save is None:
        refuse_idle(context, ["form"], "--save, or without --json")
    if rows != "labels":
        refuse_idle(context, ["unanswered", "dropped"], "--rows labels")
    target = None if save is None else checked_file("--save", save)
    with service_at(db) as service:
        if rows == "labels":
            header, found = _labels(service, id, unanswered, dropped)
        else:
            header, found = (
                _workers(service, id)
                if rows == "workers"
                else _results(service, id, "jsonl" if as_json and target is None else form)
            )
        if target is not None:
            with whole_file(target) as stream:
                written = _write(header, found, stream, form)
        elif as_json:
            print_json({rows: list(found)})
            return
        else:
            written = _write(header, found, sys.stdout, form)
    if as_json:
        print_json({"written": written, "file": save})
    else:
        what = counted(written, "lease" if unanswered else rows.removesuffix("s"))
        say(f"{what} written{'' if save is None else f' to {save}'}.")


def _results(service: CampaignService, id: str, form: Form) -> tuple[list[str], Iterator[Row]]:
    """The columns of a file, and one object per task; its payload last, in CSV the columns that it came with."""
    from nextlabel.campaigns.result_table import ResultTable

    table = ResultTable(service, id) if form == "csv" else None
    names = [] if table is None else table.names
    counts = [f"count_{name}" for name in service.store.row(id).config.labels]
    known = ["task", "label", "probability", "labels", *counts, "in_flight", "closed_by", "closed_reason", "control"]
    header = [*known, *names]
    rows = (
        {
            "task": result.task,
            "label": result.label,
            "probability": round(result.probability, 6),
            "labels": result.labels,
            **dict(zip(counts, result.counts.values(), strict=True)),
            "in_flight": result.in_flight,
            "closed_by": result.closed_by,
            "closed_reason": result.closed_reason,
            "control": result.control,
            **({} if table is None else dict(zip(names, table.originals(result), strict=True))),
            **({"payload": result.payload} if table is None else {}),
        }
        for result in service.results(id)
    )
    return header, rows


def _labels(service: CampaignService, id: str, unanswered: bool, dropped: bool) -> tuple[list[str], Iterator[Row]]:
    """The columns of a file, and one object per label."""
    from nextlabel.campaign.given_labels import GivenLabel

    service.store.row(id)
    return [field.name for field in fields(GivenLabel)], (
        asdict(one) for one in service.labels(id, unanswered, dropped)
    )


def _workers(service: CampaignService, id: str) -> tuple[list[str], Iterator[Row]]:
    """The columns of a file, and one object per worker."""
    from nextlabel.campaigns.worker_reports import COLUMNS, cells

    return list(COLUMNS), (dict(zip(COLUMNS, cells(one), strict=True)) for one in service.worker_reports.of(id))


def _write(header: Sequence[str], rows: Iterable[Row], stream: IO[str], form: Form) -> int:
    """Write all rows; return how many."""
    written = 0
    if form == "csv":
        stream.write(export_text([header]))
    for row in rows:
        stream.write(export_text([[row[name] for name in header]]) if form == "csv" else json.dumps(row) + "\n")
        written += 1
    return written
