"""``nextlabel workers``: who the workers are, and what their labels say together."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Literal

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import LabelFlags
from nextlabel.cli.output import checked_file, report_reading, say, working
from nextlabel.errors import InputError
from nextlabel.files.write import write_csv
from nextlabel.reporting.report import Report
from nextlabel.wording import counted


@opt.verb(out=True, page=True)
def workers(
    context: typer.Context,
    columns: LabelFlags,
    labels: str = opt.LABELS,
    gold: str | None = opt.flag(
        "FILE", "The truth about some tasks: task, label. Tasks drawn at random tell how many labels are right."
    ),
    answer: opt.Answer = opt.ANSWER,
    scale: str | None = opt.SCALE,
    range_: str | None = opt.RANGE,
    loss: Literal["squared", "absolute"] | None = opt.flag(
        None, "With --answer rating: what the read-out minimises. Default: squared."
    ),
    top: int | None = opt.whole("N", 1, "10", "only who is among the best N matters next.", needs="--answer pair"),
    budget: int | None = opt.whole(
        "U", 1, "1000", "Also bound what any rule can do with so many more labels of these workers."
    ),
    arrivals: int | None = opt.whole(
        "N",
        1,
        "2000",
        "workers still to come, of whom some may be turned away. Default: as many as labels.",
        needs="--budget",
    ),
    seed: int = opt.whole("S", 0, "0", opt.SEED_HELP, needs="--budget", default=0),
    features: str | None = opt.FEATURES,
    save: str | None = opt.flag("FILE", "Write every task with its label and probability to this CSV file."),
) -> Report:
    """Learn how good each worker is, without gold, and what the labels of a task say together."""
    begin = perf_counter()
    target = None if save is None else checked_file("--save", save)
    if answer != "choice":
        opt.refuse_idle(context, ["budget", "positive", "features"], "--answer choice")
    if answer == "pair":
        idle = ["gold", "scale", "range_", "loss", "task_column", "worker_column", "label_column", "duplicates", "db"]
        opt.refuse_idle(context, idle, "answers other than pair")
    with working("Starting"):
        from nextlabel.crowd.agreement import agreement
        from nextlabel.crowd.answers import Number, Rating, answer_type, check_options
        from nextlabel.crowd.learn import learn_crowd
        from nextlabel.crowd.numbers import learn_numbers
        from nextlabel.crowd.pairs import learn_pairs
        from nextlabel.crowd.questions import learn_labels
        from nextlabel.files.labels import read_answers
        from nextlabel.reporting.numbers import labels_report, numbers_report, pairs_report
        from nextlabel.reporting.workers import workers_report
        from nextlabel.solve.crowd.from_labels import bound_from_labels

        check_options(answer, scale=scale, range=range_, loss=loss)
        kind = answer_type("choice" if answer == "multi" else answer, (), scale, range_, loss)
    found: Any
    if answer == "pair":
        with working(f"Learning from {labels}"):
            found = learn_pairs(labels)
        report_reading(*found.read)
        report = pairs_report(found, f"Items of {labels}, the best first", top, seconds=perf_counter() - begin)
    else:
        with working(f"Reading {labels}"):
            table = columns.read(labels, context)
            if table.worker is None:
                raise InputError(
                    f"{labels} has no column {columns.worker_column!r}, so nobody knows who gave which label.",
                    "Name the column that holds the worker with --worker-column.",
                )
            words = None if gold is None or answer == "choice" else gold
            known = None if words is None else read_answers(words, columns.task_column, columns.label_column)
            truth, known_of = columns.gold(gold if words is None else None, table), columns.features(features)
        read, notes, bound = report_reading(table.report, truth, known_of), list[str](), dict[str, Any]()
        with working(f"Learning from {labels}"):
            if answer == "multi":
                found = learn_labels(table, known)
            elif isinstance(kind, Number | Rating):
                found = learn_numbers(table, kind)
            else:
                found = learn_crowd(table, truth, features=known_of)
            alike = None if answer == "multi" else agreement(table, *([kind.level] if answer != "choice" else []))
        if budget is not None:
            with working(f"Bounding {counted(budget, 'more label', 'more labels')}") as progress:
                limit = bound_from_labels(table, budget, truth, arrivals=arrivals, seed=seed, progress=progress)
            notes, bound = limit.sentences(), {"bound": limit.as_dict()}
        title = f"{counted(len(found.worker_names if answer == 'multi' else found.workers), 'worker')} in {labels}"
        seconds = perf_counter() - begin
        if alike is None:
            report = labels_report(found, title, read, seconds=seconds)
        elif answer == "choice":
            report = workers_report(found, alike, title, notes, read, **bound, seconds=seconds)
        else:
            report = numbers_report(found, alike, title, known, read, seconds=seconds)
    if target is not None:
        rows = list(found.tasks())
        write_csv(rows, target)
        say(f"{counted(len(rows), 'task')} written to {target}.")
    return report
