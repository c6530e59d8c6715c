"""``nextlabel audit``: the accuracy of labels, with an interval that holds whatever the model."""

from __future__ import annotations

from nextlabel.cli.options import LABEL_COLUMN, TASK_COLUMN, argument, number, verb
from nextlabel.cli.output import say, tabled, working
from nextlabel.reporting.report import Report


@verb()
def audit(
    results: str = argument(
        "RESULTS", "One row per task: task, label, probability; as campaign export and workers --save write it."
    ),
    audited: str = argument("AUDITED", "The truth about tasks drawn at random: task, label."),
    level: float = number("L", "Chance that the interval holds the truth. Default: 0.95.", "0.95", default=0.95),
    task_column: str = TASK_COLUMN,
    label_column: str = LABEL_COLUMN,
) -> Report:
    """Correct the accuracy that a method expects by an audit of randomly chosen tasks."""
    columns = {"task": task_column, "label": label_column}
    with working(f"Reading {results}"):
        from nextlabel.crowd.audit import audit as run_audit
        from nextlabel.files.labels import read_results

        found = run_audit(read_results(results, **columns), audited, level=level, **columns)
    for report in found.read:
        for sentence in report["sentences"]:
            say(sentence)
    fields = {name: getattr(found, name) for name in found.__slots__} | {"sentences": found.sentences()}
    rows = [
        ("accuracy, corrected by the audit", f"{found.accuracy:.4f}"),
        (f"{found.level:.0%} interval ({found.method})", f"{found.low:.4f} to {found.high:.4f}"),
        ("audited labels that are right", f"{found.right:,} of {found.audited:,}"),
        ("expected by the method, all tasks", f"{found.expected:.4f}"),
        ("expected by the method, audited tasks", f"{found.expected_audited:.4f}"),
    ]
    return tabled(f"Audit of {results}", ("", ""), rows, "\n".join(found.sentences()), fields)
