"""``nextlabel simulate``: policies side by side on the same arrivals, durations and labels."""

from __future__ import annotations

from datetime import UTC, datetime
from time import perf_counter
from typing import Literal

import typer

from nextlabel.cli.numbers import numbers_report
from nextlabel.cli.options import PRICES, SEED, EngineFlags, Prices, flag, refuse_idle, switch, verb, whole
from nextlabel.cli.output import command_line, say, working
from nextlabel.cli.problem_options import ProblemFlags, describe, problem_fields
from nextlabel.errors import InputError
from nextlabel.reporting.report import Report
from nextlabel.wording import counted

DEFAULT_POLICIES = ("auto", "okg", "uniform")
#: Flags about questions with a choice.
CHOICES = ("prices", "pending", "most_labels", "turn_away", "channels", "engine")
CROWD_POLICIES = ("crowd", "crowd-uncertainty", "uniform")


@verb(out=True)
def simulate(
    flags: ProblemFlags,
    engine: EngineFlags,
    context: typer.Context,
    policy: list[str] | None = flag(
        "NAME",
        "A policy, or your own as module:Class; repeatable. Default: auto, okg, uniform; with "
        "workers who differ crowd, crowd-uncertainty, uniform.",
    ),
    replications: int | None = whole(
        "N", 1, "1000", "Campaigns simulated per policy. Default: 1000; with workers who differ 20, which take longer."
    ),
    seed: int = SEED,
    pending: Literal["wait", "discard"] = flag(
        None, "Labels in flight at the last arrival are waited for, or dropped as in the paper.", "wait"
    ),
    prices: Prices = PRICES,
    most_labels: int | None = whole("N", 1, "64", "Labels that one task can get at most. Default: chosen."),
    turn_away: bool = switch("With workers who differ: a policy may give an arrival nothing."),
    channels: Literal["known", "learnt"] | None = flag(
        None, "With workers who differ: policies know the workers, or learn them as labels come in. Default: known."
    ),
) -> Report:
    """Compare policies on a problem: means, paired differences, and the gap to the bound."""
    started, begin, where = datetime.now(UTC), perf_counter(), engine.made()
    numbers = flags.read_numbers()
    if numbers is not None:
        refuse_idle(context, ["out", *CHOICES], "questions with a choice")
        return numbers_report(numbers, policies=policy or (), replications=replications or 100, seed=seed)
    drawn = flags.read_drawn()
    if drawn is not None:
        refuse_idle(context, ["policy", *CHOICES], "questions with a choice")
        with working("Simulating") as progress:
            from nextlabel.simulation.answers import replay_report

            return replay_report(drawn.draw, [drawn.budget], replications or 8, seed, progress, title=drawn.title)
    problem, read = flags.read_all()
    if problem.workers:
        refuse_idle(context, ["prices", "pending", "most_labels"], "problems without workers")
    else:
        refuse_idle(context, ["turn_away", "channels"], "workers in the problem")
    names = list(policy or (CROWD_POLICIES if problem.workers else DEFAULT_POLICIES))
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"policy {name!r} is given twice.", "Give each policy once.")
    with working("Simulating") as progress:
        from nextlabel.simulation.study import simulate as run_study
        from nextlabel.simulation.study import study_report

        study = run_study(
            problem, names, replications=replications, seed=seed, engine=where, pending=pending, prices=prices,
            most_labels=most_labels, turn_away=turn_away, channels=channels, progress=progress,
        )  # fmt: skip
    told = {"turn_away": turn_away, "channels": channels or "known", "assumes": study.bound.assumes}
    run = {"prices": prices, "seconds": perf_counter() - begin, **(told if problem.workers else {})}
    about = {"command": command_line(context), "started": started, **run, "engine": engine.engine, "jobs": engine.jobs}
    title = f"Simulation of {counted(study.replications, 'replication')}: {describe(problem, study.pending)}"
    if problem.workers:
        away = "may turn workers away" if turn_away else "give every arrival a task"
        knew = f"Policies know how each worker answers and {away}."
        if channels == "learnt":
            knew = "Policies learn the workers as labels come in"
            knew = f"{knew} and {away}; the bound is that of workers who are known."
        say(f"{knew} {study.bound.assumes}")
    capped = [result for result in study.results if result.cap_binds]
    if capped:
        most = max(result.most_labels for result in capped)
        named = ", ".join(result.name for result in capped)
        say(f"warning: {named} gave {most} labels to one task, the most allowed here; raise --most-labels.")
    return study_report(
        study, title, {**run, "problem": problem_fields(problem), "read": read}, {**about, "most_labels": most_labels}
    )
