"""``nextlabel campaign audit``: draw random items for an expert, take the answers in, and say what they show."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json, Seed, refuse_idle, text
from nextlabel.cli.output import print_json, say
from nextlabel.cli.output_files import checked_file
from nextlabel.files.write import export_text, whole_file
from nextlabel.prose import counted


def audit(
    context: typer.Context,
    id: Id,
    draw: Annotated[int | None, typer.Option(metavar="N", min=1, help="Draw so many more items at random.")] = None,
    seed: Seed = 0,
    save: Annotated[
        str | None, text("--save", "FILE", "Write the drawn items for the expert: task, label (to fill in), payload.")
    ] = None,
    answers: Annotated[str | None, text("--answers", "FILE", "The expert's answers: task, label.")] = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Audit the results: an expert's answers to items drawn at random correct the expected accuracy.

    The file that --save writes has an empty column label; filled in, it is what --answers reads. The expert should not
    see the campaign's results.
    """
    if draw is None:
        refuse_idle(context, ["seed"], "--draw")
    target = None if save is None else checked_file("--save", save)
    from nextlabel.files.answers import read_answers

    found = None if answers is None else read_answers(answers)
    with service_at(db) as service:
        row = service.store.row(id)
        if draw is not None:
            service.draw_audit(id, draw, seed)
        if found is not None:
            service.answer_audit(id, found)
        items = service.audit_items(id)
        if target is not None:
            import json

            with whole_file(target) as stream:
                lines: list[list[Any]] = [["task", "label", "payload"]]
                lines += [[one.task, one.label, json.dumps(one.payload, ensure_ascii=False)] for one in items]
                stream.write(export_text(lines))
        known = sum(one.label is not None for one in items)
        certificate = service.certificate(id) if known and row.config.knows_workers else None
    if as_json:
        result = None if certificate is None or certificate.audit is None else asdict(certificate.audit)
        print_json({"drawn": len(items), "answered": known, "audit": result})
        return
    say(f"{counted(len(items), 'item')} drawn, {known:,} answered{'' if save is None else f'; written to {save}'}.")
    if certificate is not None and certificate.audit is not None:
        shown = certificate.audit
        sys.stdout.write(
            f"{shown.right} of {shown.audited} audited labels are right: {shown.accuracy:.1%} of all "
            f"items, with a 95% interval from {shown.low:.1%} to {shown.high:.1%}. The model itself expects "
            f"{certificate.now:.1%}.\n"
        )
