"""``nextlabel workers``: who the workers are, and what their labels say together."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import label_source
from nextlabel.cli.output import (
    check_outputs,
    checked_file,
    command_line,
    print_json,
    print_table,
    say,
    say_read,
    working,
    write_folder,
    write_page,
)
from nextlabel.errors import InputError
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.crowd.learn import LearntCrowd

#: Workers in the table on the screen: those with the most labels, and those who are flagged.
SHOWN = 20


def workers(
    context: typer.Context,
    labels: opt.Labels,
    gold: Annotated[
        str | None, opt.text("--gold", "FILE", "The truth about some tasks: task, label. It is not needed.")
    ] = None,
    task_column: opt.TaskColumn = "task",
    worker_column: opt.WorkerColumn = "worker",
    label_column: opt.LabelColumn = "label",
    positive_label: opt.Positive = None,
    duplicates: opt.Duplicates = "first",
    budget: Annotated[
        int | None,
        opt.whole(
            "--budget", "U", 1, "1000", "Also bound what any rule can do with so many more labels of these workers."
        ),
    ] = None,
    arrivals: Annotated[
        int | None,
        opt.whole(
            "--arrivals",
            "N",
            1,
            "2000",
            "With --budget: workers still to come, of whom some may be turned away. Default: as many as labels.",
        ),
    ] = None,
    seed: opt.Seed = 0,
    db: opt.Db = opt.DB,
    save: Annotated[
        str | None, opt.text("--save", "FILE", "Write every task with its label and probability to this CSV file.")
    ] = None,
    out: opt.Out = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Learn how good each worker is, without gold, and what the labels of a task say together."""
    begin = perf_counter()
    if budget is None:
        opt.refuse_idle(context, ["arrivals", "seed"], "--budget")
    check_outputs(out, report)
    target = None if save is None else checked_file("--save", save)
    with working(f"Reading {labels}"):
        from nextlabel.files.gold import read_gold
        from nextlabel.files.labels import read_labels

        source = label_source(context, labels, db)
        table = read_labels(
            source, task=task_column, worker=worker_column, label=label_column, positive=positive_label,
            duplicates=duplicates,
        )  # fmt: skip
        if table.worker is None:
            raise InputError(
                f"{labels} has no column {worker_column!r}, so nobody knows who gave which label.",
                "Name the column that holds the worker with --worker-column.",
            )
        truth = None if gold is None else read_gold(gold, table, task=task_column, label=label_column)
    read = say_read(table.report, *([] if truth is None else [truth]))
    with working(f"Learning from {labels}"):
        from nextlabel.crowd.learn import learn_crowd

        found = learn_crowd(table, truth)
    bound = None
    if budget is not None:
        with working(f"Bounding {counted(budget, 'more label', 'more labels')}") as progress:
            from nextlabel.solve.crowd.from_labels import bound_from_labels

            bound = bound_from_labels(table, budget, truth, arrivals=arrivals, seed=seed, progress=progress)
    more = [] if bound is None else bound.sentences()
    if target is not None:
        from nextlabel.files.write import write_csv

        write_csv(list(found.tasks()), target)
        say(f"{counted(len(found.task_names), 'task')} written to {save}.")
    if out is not None or report is not None:
        from nextlabel.reporting.workers_page import worker_rows, workers_figure, workers_page

        if out is not None:
            files = {"workers.csv": worker_rows(found), "tasks.csv": list(found.tasks())}
            write_folder(out, {**files, "workers.png": workers_figure(found)})
        if report is not None:
            sentences = [sentence for one in read for sentence in one["sentences"]]
            write_page(report, lambda: workers_page(found, command_line(context), sentences, more))
    if as_json:
        rows = {"workers": [one.as_dict() for one in found.workers], "tasks": list(found.tasks())}
        told = {} if bound is None else {"bound": bound.as_dict()}
        print_json({**_summary(found), **told, **rows, "read": read, "seconds": perf_counter() - begin})
    else:
        _show(labels, found, more)


def _summary(found: LearntCrowd) -> dict[str, Any]:
    return {
        "labels": int(found.labels_per_task.sum()),
        "answers": list(found.answers),
        "share": found.fit.share.tolist(),
        "crowd": found.fit.prior.pseudo.tolist(),
        "expected_accuracy": found.expected_accuracy,
        "copying": [
            {
                "workers": list(one.workers),
                "shared": one.shared,
                "alike": one.alike,
                "excused": one.excused,
                "p_value": one.p_value,
            }
            for one in found.copying
        ],
        "pairs_looked_at": found.pairs,
        "evidence": found.evidence,
        "converged": found.converged,
        "iterations": found.fit.iterations,
        "notes": list(found.notes),
    }


def _show(path: str, found: LearntCrowd, more: Sequence[str]) -> None:
    from nextlabel.reporting.workers_page import sentences, worker_table

    shown = [k for k, one in enumerate(found.workers) if k < SHOWN or one.flags]
    header, rows = worker_table(found, shown, wide=False)
    title = f"{counted(len(found.workers), 'worker')} in {path}"
    left = len(found.workers) - len(shown)
    rest = f"{counted(left, 'worker')} more with fewer labels, not flagged: --json, --out and --report show all.\n"
    print_table(title, header, rows, _joined([rest if left else "", *sentences(found), *more]))


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(line for line in lines if line)
