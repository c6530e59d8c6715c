"""``nextlabel workers``: who the workers are, and what their labels say together."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import label_source
from nextlabel.cli.output import check_outputs, checked_file, deliver, say, say_read, working
from nextlabel.errors import InputError
from nextlabel.prose import counted


def workers(
    context: typer.Context,
    labels: opt.Labels,
    gold: Annotated[
        str | None,
        opt.text(
            "--gold",
            "FILE",
            "The truth about some tasks: task, label. Tasks drawn at random also tell how many labels are right.",
        ),
    ] = None,
    kind: opt.AnswerKind = "choice",
    scale: opt.Scale = None,
    range_: opt.Range = None,
    loss: Annotated[
        Literal["squared", "absolute"] | None,
        opt.text("--loss", None, "With --answer rating: what the read-out minimises. Default: squared."),
    ] = None,
    top: Annotated[
        int | None, opt.whole("--top", "N", 1, "10", "With --answer pair: only who is among the best N matters next.")
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
    features: opt.FeaturesFile = None,
    save: Annotated[
        str | None, opt.text("--save", "FILE", "Write every task with its label and probability to this CSV file.")
    ] = None,
    out: opt.Out = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Learn how good each worker is, without gold, and what the labels of a task say together."""
    begin = perf_counter()
    if kind != "choice":
        for name in ("budget", "positive_label", "features"):
            opt.refuse_idle(context, [name], "--answer choice")
    if kind == "pair":
        idle = ["gold", "scale", "range_", "loss", "task_column", "worker_column", "label_column", "duplicates", "db"]
        opt.refuse_idle(context, idle, "answers other than pair")
    else:
        opt.refuse_idle(context, ["top"], "--answer pair")
    if budget is None:
        opt.refuse_idle(context, ["arrivals", "seed"], "--budget")
    check_outputs(out, report)
    if kind == "pair":
        _pairs(context, labels or "", top, save, out, report, as_json)
        return
    with working("Starting"):
        from nextlabel.crowd.answers import Number, Rating, answer_type, check_options

        check_options(kind, scale=scale, range=range_, loss=loss)
        answer = answer_type("choice" if kind == "multi" else kind, (), scale, range_, loss)
        scaled = answer if isinstance(answer, Number | Rating) else None
    target = None if save is None else checked_file("--save", save)
    with working(f"Reading {labels}"):
        from nextlabel.files.labels import read_answers, read_gold, read_labels

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
        words = kind in ("rating", "number", "multi")
        known = read_answers(gold, task_column, label_column) if gold is not None and words else None
        truth = None if gold is None or words else read_gold(gold, table, task=task_column, label=label_column)
        known_of = None
        if features is not None:
            from nextlabel.files.features import read_features

            known_of = read_features(features, task=task_column)
    read = say_read(table.report, *(one for one in (truth, known_of) if one is not None))
    if kind == "multi":
        from nextlabel.crowd.questions import learn_labels
        from nextlabel.reporting.numbers import labels_report

        with working(f"Learning from {labels}"):
            several = learn_labels(table, known)
        title = f"{counted(len(several.worker_names), 'worker')} in {labels}"
        _save(list(several.tasks()), target)
        told_of = labels_report(several, title, read, seconds=perf_counter() - begin)
        deliver(told_of, context, out=out, page=report, as_json=as_json)
        return
    if scaled is not None:
        from nextlabel.crowd.agreement import agreement
        from nextlabel.crowd.numbers import learn_numbers
        from nextlabel.reporting.numbers import numbers_report

        with working(f"Learning from {labels}"):
            learnt, alike = learn_numbers(table, scaled), agreement(table, scaled.level)
        title = f"{counted(len(learnt.workers), 'worker')} in {labels}"
        shown = numbers_report(learnt, alike, title, known, read, seconds=perf_counter() - begin)
        _save(list(learnt.tasks()), target)
        deliver(shown, context, out=out, page=report, as_json=as_json)
        return
    with working(f"Learning from {labels}"):
        from nextlabel.crowd.agreement import agreement
        from nextlabel.crowd.learn import learn_crowd

        found, alike = learn_crowd(table, truth, features=known_of), agreement(table)
    bound = None
    if budget is not None:
        with working(f"Bounding {counted(budget, 'more label', 'more labels')}") as progress:
            from nextlabel.solve.crowd.from_labels import bound_from_labels

            bound = bound_from_labels(table, budget, truth, arrivals=arrivals, seed=seed, progress=progress)
    more = [] if bound is None else bound.sentences()
    _save(list(found.tasks()), target)
    from nextlabel.reporting.workers import workers_report

    title = f"{counted(len(found.workers), 'worker')} in {labels}"
    told = {} if bound is None else {"bound": bound.as_dict()}
    shown = workers_report(found, alike, title, more, read, **told, seconds=perf_counter() - begin)
    deliver(shown, context, out=out, page=report, as_json=as_json)


def _pairs(
    context: typer.Context,
    labels: str,
    top: int | None,
    save: str | None,
    out: str | None,
    page: str | None,
    as_json: bool,
) -> None:
    """The order of items, from comparisons."""
    begin = perf_counter()
    target = None if save is None else checked_file("--save", save)
    with working(f"Learning from {labels}"):
        from nextlabel.crowd.pairs import learn_pairs
        from nextlabel.reporting.pairs import pairs_report

        found = learn_pairs(labels)
        shown = pairs_report(found, f"Items of {labels}, the best first", top, seconds=perf_counter() - begin)
    say_read(*found.read)
    _save(list(found.tasks()), target)
    deliver(shown, context, out=out, page=page, as_json=as_json)


def _save(rows: list[dict[str, Any]], target: Path | None) -> None:
    if target is not None:
        from nextlabel.files.write import write_csv

        write_csv(rows, target)
        say(f"{counted(len(rows), 'task')} written to {target}.")
