"""``nextlabel backtest``: your own recorded labels replayed under each policy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli.flag_values import parse_number, parse_prior, parse_whole
from nextlabel.cli.output import JsonFlag, check_outputs, print_json, print_table, say, working
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.arrays import Ints
    from nextlabel.backtest.run import Backtest
    from nextlabel.files.label_table import LabelTable

Text = str | None


def _option(metavar: str, words: str) -> Any:
    return typer.Option(metavar=metavar, help=words, show_default=False)


def backtest(
    context: typer.Context,
    labels: Annotated[str, typer.Argument(metavar="LABELS.csv", help="One label a row: task, worker, label.")],
    gold: Annotated[Text, _option("GOLD.csv", "The truth: task, label. Default: what all labels say together.")] = None,
    policy: Annotated[
        list[str] | None,
        _option("NAME", "A policy; repeatable. Default: index, okg, okg-pending, ucb1-tuned, uncertainty, uniform."),
    ] = None,
    labels_per_task: Annotated[Text, _option("X,...", "Budgets as labels a task. Default: 3,4,5,6.")] = None,
    budget: Annotated[Text, _option("U,...", "Budgets as labels in all.")] = None,
    pilot: Annotated[str, typer.Option(metavar="N", help="Tasks held out for the prior.")] = "50",
    prior: Annotated[Text, _option("A,B", "The prior, instead of a pilot.")] = None,
    threshold: Annotated[Text, _option("D", "Default: learnt from the pilot's gold; 0.5 without.")] = None,
    method: Annotated[Literal["moments", "ml"], typer.Option(help="How the prior is learnt.")] = "moments",
    arrival_rate: Annotated[Text, _option("R", "Workers per unit of time.")] = None,
    completion_rate: Annotated[Text, _option("MU", "Labels per worker and unit of time.")] = None,
    in_flight: Annotated[Text, _option("RHO", "R / MU, labels in flight. Default: 0, labels at once.")] = None,
    order: Annotated[
        Literal["random", "file", "reversed"], typer.Option(help="In which order a task's labels come.")
    ] = "random",
    ties: Annotated[
        Literal["half", "positive", "negative"], typer.Option(help="What a tie counts as: half right, 1 or 0.")
    ] = "half",
    readout: Annotated[
        list[str] | None,
        _option("NAME", "posterior, majority or dawid-skene; repeatable. Default: posterior, majority."),
    ] = None,
    replications: Annotated[str, typer.Option(metavar="N", help="Replays of each policy.")] = "200",
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same digits.")] = "0",
    jobs: Annotated[str, typer.Option(metavar="N", help="Cores of this machine to use.")] = "2",
    task_column: Annotated[str, typer.Option(metavar="NAME", help="The column of the tasks.")] = "task",
    worker_column: Annotated[str, typer.Option(metavar="NAME", help="The column of the workers.")] = "worker",
    label_column: Annotated[str, typer.Option(metavar="NAME", help="The column of the labels.")] = "label",
    positive: Annotated[Text, _option("VALUE", "The label that counts as 1, if labels are not 0 and 1.")] = None,
    duplicates: Annotated[
        Literal["first", "keep"], typer.Option(help="Of a worker's labels for one task the first counts, or all do.")
    ] = "first",
    out: Annotated[Text, _option("DIR", "Write backtest.csv, savings.csv and backtest.png there.")] = None,
    report: Annotated[Text, _option("FILE", "Write one self-contained HTML page.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Replay recorded labels under each policy: accuracy by budget, the ceiling, and labels saved."""
    count = parse_whole("--replications", replications, 2, "Give at least two, e.g. --replications 200.")
    start = parse_whole("--seed", seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    cores = parse_whole("--jobs", jobs, 1, "Give the number of cores to use, e.g. --jobs 2.")
    held = parse_whole("--pilot", pilot, 2, "Give at least two tasks, e.g. --pilot 50.")
    cut = None if threshold is None else float(parse_number("threshold", threshold, "Give e.g. --threshold 0.5."))
    rates = _rates(arrival_rate, completion_rate, in_flight)
    each, budgets = _budgets(labels_per_task, budget)
    check_outputs(out, report)
    with working(f"Replaying {labels}") as progress:
        from nextlabel.backtest.readout import COUNTING
        from nextlabel.backtest.run import POLICIES, BacktestOptions, make_backtest
        from nextlabel.files.gold import read_gold
        from nextlabel.files.labels import read_labels
        from nextlabel.simulation.engine import Engine
        from nextlabel.simulation.from_labels import to_recorded

        belief = None if prior is None else _beta(prior)
        table, said = read_labels(
            labels, task=task_column, worker=worker_column, label=label_column, positive=positive,
            assigned_at=None, submitted_at=None, duplicates=duplicates,
        )  # fmt: skip
        truth = None if gold is None else read_gold(gold, table, task=task_column, label=label_column)
        read = said.sentences() + ([] if truth is None else truth.sentences())
        readouts = readout or list(COUNTING)
        options = BacktestOptions(
            policies=policy or list(POLICIES),
            labels_per_task=each,
            budgets=budgets,
            pilot=held,
            prior=belief,
            method=method,
            threshold=cut,
            arrival_rate=rates[0],
            completion_rate=rates[1],
            order=order,
            ties=ties,
            readouts=readouts,
            replications=count,
            seed=start,
        )
        workers = _workers(table) if "dawid-skene" in readouts else None
        recorded = to_recorded(table, truth)
        found = make_backtest(recorded, options, workers=workers, engine=Engine(jobs=cores), progress=progress)
    typed = context.obj if isinstance(context.obj, list) else []
    _write(found, out, report, shlex.join(["nextlabel", *map(str, typed)]), read)
    if as_json:
        print_json(_as_dict(found, read))
    else:
        for line in read:
            say(line)
        _show(found)


def _rates(arrival: Text, completion: Text, in_flight: Text) -> tuple[float, float]:
    """Arrival and completion rate; labels come back at once unless something else is said."""
    from nextlabel.backtest.tally import ARRIVALS, AT_ONCE_RATE

    if in_flight is not None:
        if arrival is not None or completion is not None:
            raise InputError("--in-flight is the ratio of the two rates.", "Give it, or the rates, not both.")
        rho = float(parse_number("labels in flight", in_flight, "Give a number from 0, e.g. --in-flight 25."))
        if not 0 <= rho < float("inf"):
            raise InputError(f"labels in flight is {rho:g}, which is not a number from 0.", "Give --in-flight 25.")
        return (ARRIVALS, AT_ONCE_RATE) if rho == 0 else (rho, 1.0)
    if arrival is None and completion is None:
        return ARRIVALS, AT_ONCE_RATE
    if arrival is None or completion is None:
        raise InputError("one rate without the other says nothing.", "Give --arrival-rate and --completion-rate.")
    rates = [float(parse_number(name, text, "Give a number above 0, e.g. 0.4.")) for name, text in
             (("arrival rate", arrival), ("completion rate", completion))]  # fmt: skip
    for rate in rates:
        if not 0 < rate < float("inf"):
            raise InputError(f"a rate is {rate:g}, which is not a positive number.", "Give a number above 0, e.g. 0.4.")
    return rates[0], rates[1]


def _budgets(each: Text, budget: Text) -> tuple[list[float] | None, list[int] | None]:
    if each is not None and budget is not None:
        raise InputError("--labels-per-task and --budget are two ways to say the same.", "Give one of them.")
    if each is not None:
        numbers = [float(parse_number("labels per task", part, "Give e.g. --labels-per-task 3,5.")) for part in
                   each.split(",")]  # fmt: skip
        for x in numbers:
            if not 0 < x < float("inf"):
                raise InputError(f"{x:g} labels a task are asked for.", "Give numbers above 0: --labels-per-task 3,5.")
        return numbers, None
    if budget is None:
        return None, None
    return None, [parse_whole("--budget", part, 1, "Give labels in all, e.g. --budget 2400.") for part in
                  budget.split(",")]  # fmt: skip


def _beta(text: str) -> Any:
    from nextlabel.beliefs.beta import Beta

    weights = parse_prior(text)
    if len(weights) != 2:
        raise InputError(f"prior {text!r} has {len(weights)} numbers.", "A replay has two answers: --prior 1,1.")
    return Beta(weights[0], weights[1])


def _workers(table: LabelTable) -> Ints | None:
    """(N, most) who gave each label, as the replay has the labels; a label without a worker has one of its own."""
    from dataclasses import replace

    import numpy as np

    from nextlabel.simulation.from_labels import to_recorded

    if table.worker is None:
        return None
    own = np.arange(len(table)) + len(table.workers)
    return to_recorded(replace(table, label=np.where(table.worker >= 0, table.worker, own))).labels


def _write(found: Backtest, out: Text, report: Text, command: str, read: list[str]) -> None:
    if out is None and report is None:
        return
    from nextlabel.backtest.report import backtest_figure, backtest_page, point_rows, saving_rows
    from nextlabel.reporting.artifacts import write_files

    if out is not None:
        tables = {"backtest.csv": point_rows(found), "savings.csv": saving_rows(found)}
        write_files(Path(out), {**tables, "backtest.png": backtest_figure(found)})
        say(f"Wrote backtest.csv, savings.csv and backtest.png to {out}.")
    if report is not None:
        Path(report).write_text(backtest_page(found, command, read), encoding="utf-8")
        say(f"Wrote {report}.")


def _as_dict(found: Backtest, read: list[str]) -> dict[str, Any]:
    from nextlabel.backtest.report import point_rows, saving_rows
    from nextlabel.backtest.sentences import assumptions, sentences

    stage, pilot = found.stage, found.pilot
    return {
        "tasks": found.tasks,
        "labels": int(stage.recorded.counts.sum()),
        "truth": found.truth,
        "judged": found.known,
        "undecided": found.undecided,
        "pilot": pilot.size,
        "prior": [stage.prior.alpha, stage.prior.beta],
        "prior_from": pilot.prior_from,
        "threshold": stage.threshold,
        "threshold_from": pilot.threshold_from,
        "in_flight": found.rho,
        "order": stage.order,
        "ties": found.ties,
        "ceiling": found.ceilings,
        "accuracy": point_rows(found),
        "savings": saving_rows(found),
        "sentences": sentences(found),
        "assumptions": assumptions(found),
        "read": read,
        "replications": found.replications,
        "seed": stage.seed,
        "seconds": found.seconds,
    }


def _show(found: Backtest) -> None:
    from nextlabel.backtest.report import accuracy_table, overlap_line, saving_table
    from nextlabel.backtest.sentences import assumptions, sentences, strongest

    for readout in found.readouts:
        header, rows = accuracy_table(found, readout)
        print_table(f"Accuracy, read out by {readout}", header, rows, overlap_line(found, readout) + "\n")
    for readout in found.readouts:
        if strongest(found, readout):
            header, rows = saving_table(found, readout)
            title = f"Labels saved at the accuracy of a fixed overlap, read out by {readout}"
            print_table(title, header, rows, "The interval is 95%, over replications.\n")
    typer.echo("\n".join(["", *sentences(found), "", *assumptions(found)]))
