"""``nextlabel campaign workers``: what each worker did and is owed, how good they are, and how they stand."""

from __future__ import annotations

from dataclasses import asdict

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, print_table
from nextlabel.prose import counted

#: Workers in the table on the screen.
SHOWN = 50


def workers(id: Id, db: Db = DB, as_json: Json = False) -> None:
    """Show each worker's labels, accuracy, pay and standing; 'campaign worker' changes it."""
    with service_at(db) as service:
        found = service.worker_reports.of(id)
    if as_json:
        print_json({"workers": [asdict(one) for one in found]})
        return
    rows = [
        [
            one.worker,
            f"{one.labels:,}" + (f" ({one.dropped:,} dropped)" if one.dropped else ""),
            "-" if one.accuracy is None else f"{one.accuracy:.2f} [{one.accuracy_low:.2f}, {one.accuracy_high:.2f}]",
            "-" if one.agreement is None else f"{one.agreement:.2f}",
            f"{one.amount:,.2f}",
            one.standing,
            ", ".join(one.flags),
        ]
        for one in found[:SHOWN]
    ]
    many = counted(len(found), "worker")
    caption = f"{many}. Accuracy with its 95% interval. All as a file: nextlabel campaign export {id} --rows workers."
    head = ["worker", "labels", "accuracy", "agreement", "amount", "standing", "stands out"]
    print_table(f"Workers of {id}", head, rows, caption)
