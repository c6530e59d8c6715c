"""``nextlabel backtest``: your own recorded labels replayed under each policy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import label_source
from nextlabel.cli.options import parse_number, parse_prior
from nextlabel.cli.output import check_outputs, deliver, say_read, working
from nextlabel.errors import InputError


def backtest(
    context: typer.Context,
    labels: opt.Labels,
    gold: Annotated[
        str | None,
        opt.text("--gold", "FILE", "The truth: task, label. Default: what all labels of a task say together."),
    ] = None,
    kind: opt.AnswerKind = "choice",
    scale: opt.Scale = None,
    range_: opt.Range = None,
    features: opt.FeaturesFile = None,
    policy: Annotated[
        list[str] | None,
        opt.text(
            "--policy",
            "NAME",
            "A policy, or your own as module:Class; repeatable; with --features also activelab. Default: crowd, "
            "crowd-uncertainty, index; without a column of workers index, okg, okg-pending, ucb1-tuned, uncertainty, "
            "uniform.",
        ),
    ] = None,
    labels_per_task: Annotated[
        list[float] | None,
        opt.positive("--labels-per-task", "X", "3", "A budget, as labels per task; repeatable. Default: 2, 3, 4, 5."),
    ] = None,
    budget: Annotated[
        list[int] | None, opt.whole("--budget", "U", 1, "2400", "A budget, as labels in all; repeatable.")
    ] = None,
    replay: Annotated[
        Literal["task-first", "worker-first", "timed"],
        typer.Option(
            help="With workers: a policy names a task and its next label comes; or a worker comes and is given a task "
            "of their own; or workers come and hand in when they did."
        ),
    ] = "task-first",
    turn_away: Annotated[
        bool, typer.Option("--turn-away", help="With worker-first or timed: workers may be turned away.")
    ] = False,
    pilot_tasks: Annotated[
        int | None,
        opt.whole(
            "--pilot-tasks",
            "N",
            2,
            "50",
            "Tasks held out to learn the prior of counting policies from. Default: 50, with workers none.",
        ),
    ] = None,
    method: Annotated[
        Literal["moments", "ml", "mixture"], typer.Option(help="How the prior is learnt from them.")
    ] = "moments",
    prior: Annotated[str | None, opt.text("--prior", "A,B", "The prior of a task, instead of a learnt one.")] = None,
    threshold: Annotated[
        str | None,
        opt.text(
            "--threshold",
            "D",
            "For counting policies: the truth of a task is 1 if its theta is above D. "
            "Default: 0.5, unless the gold of held-out tasks clearly says otherwise.",
        ),
    ] = None,
    arrival_rate: Annotated[
        float | None, opt.positive("--arrival-rate", "R", "0.1", "Workers per unit of time.")
    ] = None,
    completion_rate: Annotated[
        float | None, opt.positive("--completion-rate", "MU", "0.4", "A label takes a time of 1/MU on average.")
    ] = None,
    rho: Annotated[
        str | None,
        opt.text("--rho", "RHO", "Instead of the rates: R / MU, the labels in flight. Default: 0, labels at once."),
    ] = None,
    order: Annotated[
        Literal["random", "file", "reversed"], typer.Option(help="The order in which a task's labels arrive.")
    ] = "random",
    tied_answer: Annotated[
        Literal["half", "positive", "negative"],
        typer.Option(help="What a task counts as when its labels are tied: half right, 1, or 0."),
    ] = "half",
    readout: Annotated[
        list[str] | None,
        opt.text(
            "--readout",
            "NAME",
            "workers, majority, posterior, dawid-skene or, with --features, crowdlab; repeatable. Default: workers, "
            "majority; for counting policies alone posterior, majority.",
        ),
    ] = None,
    replications: Annotated[
        int | None,
        opt.whole(
            "--replications",
            "N",
            2,
            "20",
            "Replays of each policy. Default: 4 to 10 by the labels, without workers 200.",
        ),
    ] = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = opt.JOBS,
    engine: opt.EngineKind = "local",
    scheduler: opt.Scheduler = None,
    task_column: opt.TaskColumn = "task",
    worker_column: opt.WorkerColumn = "worker",
    label_column: opt.LabelColumn = "label",
    assigned_column: opt.AssignedColumn = "assigned_at",
    submitted_column: opt.SubmittedColumn = "submitted_at",
    positive_label: opt.Positive = None,
    duplicates: opt.Duplicates = "first",
    db: opt.Db = opt.DB,
    out: opt.Out = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Replay recorded labels under each policy: accuracy by budget, the ceiling, and labels saved."""
    if prior is not None:
        opt.refuse_idle(context, ["pilot_tasks", "method"], "a learnt prior, without --prior")
    if labels_per_task and budget:
        raise InputError("--labels-per-task and --budget both set the budgets.", "Give one of them.")
    if kind != "choice":
        opt.refuse_idle(context, [name for name in context.params if name not in OF_ALL], "--answer choice")
        check_outputs(out, report)
        with working(f"Reading {labels}"):
            from nextlabel.simulation.answers import read_recorded

            columns = {"task": task_column, "worker": worker_column, "label": label_column}
            data, *reports = read_recorded(
                label_source(context, labels, db), gold, kind, scale, range_, columns, duplicates
            )
        say_read(*reports)
        items, most = len(data.truth), len(data.labels.task)
        wanted = budget or sorted({min(round(items * x), most) for x in labels_per_task or (2.0, 3.0, 4.0, 5.0)})
        with working("Replaying") as progress:
            from nextlabel.simulation.answers import replay_report

            shown = replay_report(lambda _: data, wanted, replications or 8, seed, progress, f"{labels} replayed")
        deliver(shown, context, out=out, page=report, as_json=as_json)
        return
    opt.refuse_idle(context, ["scale", "range_"], "--answer rating or number")
    cut = None if threshold is None else float(parse_number("threshold", threshold, "Give e.g. --threshold 0.5."))
    where = opt.engine_of(context, engine, jobs, scheduler)
    rates = _rates(arrival_rate, completion_rate, rho)
    check_outputs(out, report)
    belief = None if prior is None else _prior(prior)
    with working(f"Reading {labels}"):
        from nextlabel.files.labels import read_gold, read_labels

        source = label_source(context, labels, db)
        table = read_labels(
            source, task=task_column, worker=worker_column, label=label_column, positive=positive_label,
            duplicates=duplicates, assigned_at=assigned_column, submitted_at=submitted_column,
        )  # fmt: skip
        truth = None if gold is None else read_gold(gold, table, task=task_column, label=label_column)
        known_of = None
        if features is not None:
            from nextlabel.files.features import read_features

            known_of = read_features(features, task=task_column)
    read = say_read(table.report, *(one for one in (truth, known_of) if one is not None))
    with working(f"Replaying {labels}") as progress:
        from nextlabel.backtesting.backtest import BacktestOptions
        from nextlabel.backtesting.backtest import backtest as run_backtest

        found = run_backtest(
            table,
            truth,
            features=known_of,
            policies=policy or None,
            labels_per_task=labels_per_task or None,
            budgets=budget or None,
            prior=belief,
            threshold=cut,
            replications=replications,
            seed=seed,
            options=BacktestOptions(
                pilot_tasks, method, *rates, order, tied_answer, readout or None, replay, turn_away
            ),
            engine=where,
            progress=progress,
        )
    from nextlabel.backtesting.report import backtest_report

    deliver(backtest_report(found, read), context, out=out, page=report, as_json=as_json)


#: Parameters that have an effect whatever the answers are.
OF_ALL = frozenset({
    "labels", "gold", "kind", "scale", "range_", "labels_per_task", "budget", "replications", "seed", "task_column",
    "worker_column", "label_column", "duplicates", "db", "out", "report", "as_json", "jobs",
})  # fmt: skip


def _rates(arrival: float | None, completion: float | None, in_flight: str | None) -> tuple[float, float]:
    """Arrival and completion rate; by default labels come back at once."""
    from nextlabel.simulation.replay import ARRIVALS, AT_ONCE_RATE

    if in_flight is not None:
        if arrival is not None or completion is not None:
            raise InputError("--rho is the ratio of the two rates.", "Give it, or the rates, not both.")
        rho = float(parse_number("labels in flight", in_flight, "Give a number from 0, e.g. --rho 25."))
        if not 0 <= rho < float("inf"):
            raise InputError(f"labels in flight is {rho:g}, which is not a number from 0.", "Give --rho 25.")
        return (ARRIVALS, AT_ONCE_RATE) if rho == 0 else (rho, 1.0)
    if arrival is None and completion is None:
        return ARRIVALS, AT_ONCE_RATE
    if arrival is None or completion is None:
        raise InputError("one rate without the other says nothing.", "Give --arrival-rate and --completion-rate.")
    return arrival, completion


def _prior(text: str) -> Any:
    from nextlabel.problem.tables import prior_from

    given = parse_prior(text)
    if isinstance(given, list) and len(given) != 2:
        raise InputError(f"prior {text!r} has {len(given)} numbers.", "A replay has two answers: --prior 1,1.")
    return prior_from(given)
