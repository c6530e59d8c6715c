"""``nextlabel campaign status``: the state of campaigns, and the certificate of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nextlabel.cli.campaign.common import fields_of, service_at, state_of
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, print_table, working
from nextlabel.prose import counted, without_passwords

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService


def status(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The campaign's id. Default: all campaigns.")] = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Show the state of all campaigns, or of one with its certificate."""
    with service_at(db) as service:
        if id is not None:
            service.store.row(id)
            with working("Working out the certificate"):
                _show_status(service, id, as_json)
            return
        rows = service.store.campaigns()
    if as_json:
        print_json({"campaigns": [fields_of(row) for row in rows]})
        return
    cells = [
        [
            row.id,
            row.config.name[:30],
            state_of(row),
            f"{row.tasks:,}",
            f"{row.spent:,} of {row.budget:,}",
            f"{row.reserved:,}",
        ]
        for row in rows
    ]
    print_table(
        f"Campaigns in {without_passwords(db)}",
        ["id", "name", "state", "tasks", "labels", "out"],
        cells,
        f"{counted(len(rows), 'campaign')}.",
    )


def _show_status(service: CampaignService, id: str, as_json: bool) -> None:
    from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds

    row = service.store.row(id)
    found = service.certificate(id) if row.tasks else None
    if as_json:
        extra = (
            {} if found is None else {"now": found.now, "upper": found.upper, "gap": found.gap, "price": found.price}
        )
        print_json({**fields_of(row), **extra})
        return
    r, mu = arrival_rate(row), completion_rate(row)
    rows = [
        ["state", state_of(row)],
        ["tasks", f"{row.tasks:,}"],
        ["labels", f"{row.spent:,} of {row.budget:,}, {row.reserved:,} out, {row.left:,} left"],
        ["late, expired, released", f"{row.late:,}, {row.expired:,}, {row.released:,}"],
        ["workers per minute", "not known yet" if r is None else f"{60 * r:.3g}"],
        ["seconds per label", "not known yet" if mu is None else f"{1 / mu:.3g}"],
        ["lease", f"{lease_seconds(row):.0f} s"],
    ]
    caption = "No tasks yet: nextlabel campaign add."
    if found is not None:
        rows.append(["expected now", f"{found.now:.4f}"])
        caption = f"Expected {found.now:.2%} of the tasks right if it stopped now, by what was learnt of the workers."
    if found is not None and found.upper is not None:
        rows += [["at most in the end", f"{found.upper:.4f}"], ["price of the next label", f"{found.price:.4f}"]]
        caption = (
            f"Expected {found.now:.2%} of the tasks right if it stopped now; no way of spending the "
            f"{counted(row.left + row.reserved, 'label')} left can be expected to get past {found.upper:.2%}."
        )
    print_table(f"{row.id} {row.config.name}".strip(), ["", ""], rows, caption)
