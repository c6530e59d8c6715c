"""``nextlabel workers``: who the workers are, and what their labels say together."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import LabelFlags
from nextlabel.cli.output import checked_file, say, say_read, working
from nextlabel.errors import InputError
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.files.labels import Gold, LabelTable
    from nextlabel.reporting.report import Report
    from nextlabel.solve.crowd.from_labels import BoundFromLabels


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
        return _pairs(labels, top, target)
    with working("Starting"):
        from nextlabel.crowd.answers import Number, Rating, answer_type, check_options

        check_options(answer, scale=scale, range=range_, loss=loss)
        kind = answer_type("choice" if answer == "multi" else answer, (), scale, range_, loss)
        scaled = kind if isinstance(kind, Number | Rating) else None
    with working(f"Reading {labels}"):
        from nextlabel.files.labels import read_answers

        table = columns.read(labels, context)
        if table.worker is None:
            raise InputError(
                f"{labels} has no column {columns.worker_column!r}, so nobody knows who gave which label.",
                "Name the column that holds the worker with --worker-column.",
            )
        words = gold is not None and answer != "choice"
        known = read_answers(gold, columns.task_column, columns.label_column) if gold is not None and words else None
        truth, known_of = columns.gold(None if words else gold, table), columns.features(features)
    read = say_read(table.report, truth, known_of)
    found: Any
    with working(f"Learning from {labels}"):
        from nextlabel.crowd.agreement import agreement

        if answer == "multi":
            from nextlabel.crowd.questions import learn_labels
            from nextlabel.reporting.numbers import labels_report

            found = learn_labels(table, known)
            title = f"{counted(len(found.worker_names), 'worker')} in {labels}"
            report = labels_report(found, title, read, seconds=perf_counter() - begin)
        elif scaled is not None:
            from nextlabel.crowd.numbers import learn_numbers
            from nextlabel.reporting.numbers import numbers_report

            found, alike = learn_numbers(table, scaled), agreement(table, scaled.level)
            title = f"{counted(len(found.workers), 'worker')} in {labels}"
            report = numbers_report(found, alike, title, known, read, seconds=perf_counter() - begin)
        else:
            from nextlabel.crowd.learn import learn_crowd
            from nextlabel.reporting.workers import workers_report

            found, alike = learn_crowd(table, truth, features=known_of), agreement(table)
    if answer == "choice":
        bound = None if budget is None else _bound(table, budget, truth, arrivals, seed)
        title = f"{counted(len(found.workers), 'worker')} in {labels}"
        more = {} if bound is None else {"bound": bound.as_dict()}
        notes = [] if bound is None else bound.sentences()
        report = workers_report(found, alike, title, notes, read, **more, seconds=perf_counter() - begin)
    _save(list(found.tasks()), target)
    return report


def _bound(table: LabelTable, budget: int, truth: Gold | None, arrivals: int | None, seed: int) -> BoundFromLabels:
    with working(f"Bounding {counted(budget, 'more label', 'more labels')}") as progress:
        from nextlabel.solve.crowd.from_labels import bound_from_labels

        return bound_from_labels(table, budget, truth, arrivals=arrivals, seed=seed, progress=progress)


def _pairs(labels: str, top: int | None, target: Path | None) -> Report:
    """The order of items, from comparisons."""
    begin = perf_counter()
    with working(f"Learning from {labels}"):
        from nextlabel.crowd.pairs import learn_pairs
        from nextlabel.reporting.pairs import pairs_report

        found = learn_pairs(labels)
        shown = pairs_report(found, f"Items of {labels}, the best first", top, seconds=perf_counter() - begin)
    say_read(*found.read)
    _save(list(found.tasks()), target)
    return shown


def _save(rows: list[dict[str, Any]], target: Path | None) -> None:
    if target is not None:
        from nextlabel.files.write import write_csv

        write_csv(rows, target)
        say(f"{counted(len(rows), 'task')} written to {target}.")
