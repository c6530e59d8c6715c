"""Where recorded labels come from: a file, or a campaign named as ``campaign:ID``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from nextlabel.cli.options import refuse_idle
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.files.frames import NamedColumns

CAMPAIGN = "campaign:"


def label_source(context: typer.Context, given: str | None, db: str) -> str | NamedColumns:
    """What ``read_labels`` takes: the path that was given, or the labels of the campaign that it names."""
    if given is None or not given.startswith(CAMPAIGN):
        refuse_idle(context, ["db"], "labels of a campaign, campaign:ID")
        return given or ""
    from nextlabel.cli.campaign.common import service_at
    from nextlabel.files.frames import NamedColumns

    id = given.removeprefix(CAMPAIGN)
    with service_at(db) as service:
        service.store.row(id)
        found = list(service.labels(id))
    if not found:
        raise InputError(f"the campaign {id} has no labels yet.", "Come back when workers have answered.")
    return NamedColumns(
        given,
        task=[one.task for one in found],
        worker=[one.worker for one in found],
        label=[one.label for one in found],
        assigned_at=[one.started for one in found],
        submitted_at=[one.submitted for one in found],
    )
