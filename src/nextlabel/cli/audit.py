"""``nextlabel audit``: the accuracy of labels, with an interval that holds whatever the model."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.options import Json, LabelColumn, TaskColumn, parse_number, text
from nextlabel.cli.output import print_json, print_table, say, working


def audit(
    results: Annotated[
        str,
        typer.Argument(
            metavar="RESULTS",
            help="One row per task: task, label, probability; as campaign export and workers --save write it.",
        ),
    ],
    audited: Annotated[
        str, typer.Argument(metavar="AUDITED", help="The truth about tasks drawn at random: task, label.")
    ],
    level: Annotated[str, text("--level", "L", "Chance that the interval holds the truth. Default: 0.95.")] = "0.95",
    task_column: TaskColumn = "task",
    label_column: LabelColumn = "label",
    as_json: Json = False,
) -> None:
    """Correct the accuracy that a method expects by an audit of randomly chosen tasks."""
    share = float(parse_number("level", level, "Give a number between 0 and 1, e.g. --level 0.95."))
    with working(f"Reading {results}"):
        from nextlabel.crowd.audit import audit as run_audit
        from nextlabel.files.labels import read_results

        found = run_audit(
            read_results(results, task=task_column, label=label_column),
            audited,
            level=share,
            task=task_column,
            label=label_column,
        )
    for report in found.read:
        for sentence in report["sentences"]:
            say(sentence)
    if as_json:
        print_json(
            {name: getattr(found, name) for name in found.__slots__ if name != "read"}
            | {"sentences": found.sentences(), "read": list(found.read)}
        )
        return
    rows = [
        ("accuracy, corrected by the audit", f"{found.accuracy:.4f}"),
        (f"{found.level:.0%} interval ({found.method})", f"{found.low:.4f} to {found.high:.4f}"),
        ("audited labels that are right", f"{found.right:,} of {found.audited:,}"),
        ("expected by the method, all tasks", f"{found.expected:.4f}"),
        ("expected by the method, audited tasks", f"{found.expected_audited:.4f}"),
    ]
    print_table(f"Audit of {results}", ("", ""), rows, "\n".join(found.sentences()))
