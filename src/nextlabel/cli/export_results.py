"""Results of a campaign as a file, whole or not at all, or on stdout."""

from __future__ import annotations

import csv
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService


def write_results(campaign_service: CampaignService, id: str, path: Path | None, form: str) -> int:
    """Write every task's result; returns how many."""
    if path is None:
        return _write(campaign_service, id, sys.stdout, form)
    try:
        handle, partial = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}.", "Give a file in a folder that exists.") from None
    try:
        with os.fdopen(handle, "w", newline="", encoding="utf-8") as stream:
            written = _write(campaign_service, id, stream, form)
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    return written


def _write(campaign_service: CampaignService, id: str, stream: IO[str], form: str) -> int:
    written = 0
    names = campaign_service.store.row(id).config.labels
    header = ["task", "label", "probability", "labels", *(f"count_{name}" for name in names), "in_flight", "closed_by",
              "closed_reason"]  # fmt: skip
    table: Any = csv.writer(stream)
    if form == "csv":
        table.writerow(header)
    for result in campaign_service.results(id):
        cells = [result.task, result.label, round(result.probability, 6), result.labels, *result.counts.values(),
                 result.in_flight, result.closed_by, result.closed_reason]  # fmt: skip
        if form == "csv":
            table.writerow(cells)
        else:
            stream.write(json.dumps({**dict(zip(header, cells, strict=True)), "payload": result.payload}) + "\n")
        written += 1
    return written
