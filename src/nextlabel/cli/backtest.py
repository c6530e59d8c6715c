"""``nextlabel backtest``: your own recorded labels replayed under each policy."""

from __future__ import annotations

from typing import Any, Literal

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import TimedLabelFlags, label_source
from nextlabel.cli.output import report_reading, working
from nextlabel.errors import InputError
from nextlabel.reporting.report import Report

#: What flags about the learnt prior go with.
LEARNT = ("a learnt prior, without --prior", lambda typed: typed["prior"] is None)


@opt.verb(out=True, page=True)
def backtest(
    context: typer.Context,
    columns: TimedLabelFlags,
    engine: opt.EngineFlags,
    labels: str = opt.LABELS,
    gold: str | None = opt.flag("FILE", "The truth: task, label. Default: what all labels of a task say together."),
    answer: opt.Answer = opt.ANSWER,
    scale: str | None = opt.SCALE,
    range_: str | None = opt.RANGE,
    features: str | None = opt.FEATURES,
    policy: list[str] | None = opt.flag(
        "NAME",
        "A policy, or your own as module:Class; repeatable; with --features also activelab. Default: "
        "crowd, crowd-uncertainty, index; without a column of workers index, okg, okg-pending, "
        "ucb1-tuned, uncertainty, uniform.",
    ),
    labels_per_task: list[float] | None = opt.positive(
        "X", "3", "A budget, as labels per task; repeatable. Default: 2, 3, 4, 5."
    ),
    budget: list[int] | None = opt.whole("U", 1, "2400", "A budget, as labels in all; repeatable."),
    replay: Literal["task-first", "worker-first", "timed"] = opt.flag(
        None,
        "With workers: a policy names a task and its next label comes; or a worker comes and is "
        "given a task of their own; or workers come and hand in when they did.",
        "task-first",
    ),
    turn_away: bool = opt.switch("With worker-first or timed: workers may be turned away."),
    pilot_tasks: int | None = opt.whole(
        "N",
        2,
        "50",
        "Tasks held out to learn the prior of counting policies from. Default: 50, with workers none.",
        needs=LEARNT,
    ),
    method: Literal["moments", "ml", "mixture"] = opt.flag(
        None, "How the prior is learnt from them.", "moments", needs=LEARNT
    ),
    prior: str | None = opt.flag("A,B", "The prior of a task, instead of a learnt one."),
    threshold: float | None = opt.number(
        "D",
        "For counting policies: the truth of a task is 1 if its theta is above D. Default: 0.5, "
        "unless the gold of held-out tasks clearly says otherwise.",
        "0.5",
    ),
    arrival_rate: float | None = opt.positive("R", "0.1", "Workers per unit of time."),
    completion_rate: float | None = opt.positive("MU", "0.4", "A label takes a time of 1/MU on average."),
    rho: float | None = opt.number(
        "RHO", "Instead of the rates: R / MU, the labels in flight. Default: 0, labels at once.", "25"
    ),
    order: Literal["random", "file", "reversed"] = opt.flag(
        None, "The order in which a task's labels arrive.", "random"
    ),
    tied_answer: Literal["half", "positive", "negative"] = opt.flag(
        None, "What a task counts as when its labels are tied: half right, 1, or 0.", "half"
    ),
    readout: list[str] | None = opt.flag(
        "NAME",
        "workers, majority, posterior, dawid-skene or, with --features, crowdlab; repeatable. "
        "Default: workers, majority; for counting policies alone posterior, majority.",
    ),
    replications: int | None = opt.whole(
        "N", 2, "20", "Replays of each policy. Default: 4 to 10 by the labels, without workers 200."
    ),
    seed: int = opt.SEED,
) -> Report:
    """Replay recorded labels under each policy: accuracy by budget, the ceiling, and labels saved."""
    if labels_per_task and budget:
        raise InputError("--labels-per-task and --budget both set the budgets.", "Give one of them.")
    if answer != "choice":
        opt.refuse_idle(context, [name for name in context.params if name not in OF_ALL], "--answer choice")
        with working(f"Reading {labels}"):
            from nextlabel.simulation.answers import read_recorded, replay_report

            source = label_source(context, labels, columns.db)
            data, *reports = read_recorded(source, gold, answer, scale, range_, columns.names, columns.duplicates)
        report_reading(*reports)
        items, most = len(data.truth), len(data.labels.task)
        wanted = budget or sorted({min(round(items * x), most) for x in labels_per_task or (2.0, 3.0, 4.0, 5.0)})
        with working("Replaying") as progress:
            return replay_report(lambda _: data, wanted, replications or 8, seed, progress, f"{labels} replayed")
    opt.refuse_idle(context, ["scale", "range_"], "--answer rating or number")
    where, rates = engine.made(), _rates(arrival_rate, completion_rate, rho)
    belief = None if prior is None else _prior(prior)
    with working(f"Reading {labels}"):
        table = columns.read(labels, context)
        truth, known_of = columns.gold(gold, table), columns.features(features)
    read = report_reading(table.report, truth, known_of)
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
            threshold=threshold,
            replications=replications,
            seed=seed,
            options=BacktestOptions(
                pilot_tasks, method, *rates, order, tied_answer, readout or None, replay, turn_away
            ),
            engine=where,
            progress=progress,
        )
    from nextlabel.backtesting.report import backtest_report

    return backtest_report(found, read)


#: Parameters that have an effect whatever the answers are.
OF_ALL = frozenset({
    "labels", "gold", "answer", "scale", "range_", "labels_per_task", "budget", "replications", "seed", "task_column",
    "worker_column", "label_column", "duplicates", "db", "out", "report", "as_json", "jobs",
})  # fmt: skip


def _rates(arrival: float | None, completion: float | None, in_flight: float | None) -> tuple[float, float]:
    """Arrival and completion rate; by default labels come back at once."""
    from nextlabel.simulation.replay import ARRIVALS, AT_ONCE_RATE

    if in_flight is not None and (arrival is not None or completion is not None):
        raise InputError("--rho is the ratio of the two rates.", "Give it, or the rates, not both.")
    if in_flight is not None and not 0 <= in_flight < float("inf"):
        raise InputError(f"labels in flight is {in_flight:g}, which is not a number from 0.", "Give --rho 25.")
    if arrival is not None and completion is not None:
        return arrival, completion
    if arrival is not None or completion is not None:
        raise InputError("one rate without the other says nothing.", "Give --arrival-rate and --completion-rate.")
    return (in_flight, 1.0) if in_flight else (ARRIVALS, AT_ONCE_RATE)


def _prior(text: str) -> Any:
    from nextlabel.model.tables import prior_from

    given = opt.parse_prior(text)
    if isinstance(given, list) and len(given) != 2:
        raise InputError(f"prior {text!r} has {len(given)} numbers.", "A replay has two answers: --prior 1,1.")
    return prior_from(given)
