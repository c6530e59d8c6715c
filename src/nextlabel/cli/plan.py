"""``nextlabel plan``: what a budget buys, what a target needs, where to stop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import label_source
from nextlabel.cli.output import (
    check_outputs,
    command_line,
    print_json,
    print_table,
    say_read,
    working,
    write_folder,
    write_page,
)
from nextlabel.cli.problem_options import ProblemFlags, describe, problem_fields, refuse_contradictions, takes_problem
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.files.open_table import NamedColumns
    from nextlabel.planning.pilot import Pilot
    from nextlabel.planning.result import Plan
    from nextlabel.problem.problem import Problem


@takes_problem
def plan(
    flags: ProblemFlags,
    context: typer.Context,
    target: Annotated[str | None, opt.text("--target", "P", "Share of tasks to get right, e.g. 0.95.")] = None,
    pilot: Annotated[
        str | None,
        opt.text(
            "--pilot", "LABELS", "Learn the prior from these labels: CSV, Parquet, Label Studio JSON or campaign:ID."
        ),
    ] = None,
    db: opt.Db = opt.DB,
    method: Annotated[
        Literal["ml", "moments", "mixture"], typer.Option(help="With --pilot: how the prior is learnt.")
    ] = "ml",
    positive: opt.Positive = None,
    replications: Annotated[
        int | None, opt.whole("--replications", "N", 2, "200", "Campaigns to simulate. Default: by the tasks.")
    ] = None,
    policy: Annotated[
        Literal["index", "auto"] | None,
        typer.Option(
            metavar="NAME", help="The policy to simulate, index or auto. Default: auto with --horizon, else index."
        ),
    ] = None,
    turn_away: Annotated[
        bool, typer.Option("--turn-away", help="With workers who differ: the policy may turn workers away.")
    ] = False,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = opt.JOBS,
    out: opt.Out = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Plan a campaign: what a budget buys, what a target needs, what the next label is worth."""
    if pilot is None:
        opt.refuse_idle(context, ["method", "positive"], "--pilot")
    source = label_source(context, pilot, db)
    learnt = None if pilot is None else _pilot(flags, source, method, positive)
    read = [] if learnt is None else say_read(learnt.report)
    problem, most = _problem(flags, learnt, read)
    value = _value(flags, problem)
    goal = None if target is None else float(opt.parse_number("target", target, "Give a share such as --target 0.9."))
    check_outputs(out, report)
    with working("Planning") as progress:
        from nextlabel.planning.pilot import budget_range
        from nextlabel.planning.plan import plan as make_plan
        from nextlabel.simulation.engine import Engine

        span = None
        if learnt is not None and goal is not None:
            span = budget_range(problem, learnt.learnt, goal, seed)
        found = make_plan(
            replace(problem, label_cost=0.0), target=goal, most=most, label_cost=problem.label_cost or None,
            value=value, replications=replications, seed=seed, turn_away=turn_away, policy=policy,
            engine=Engine(jobs=jobs), progress=progress,
        )  # fmt: skip
    notes = [] if learnt is None else [*learnt.sentences(), *_span(span)]
    warnings = [] if learnt is None else learnt.warnings()
    if out is not None or report is not None:
        from nextlabel.planning.figure import plan_figure, plan_page
        from nextlabel.planning.report import curve_rows

        if out is not None:
            write_folder(out, {"plan.csv": curve_rows(found), "plan.png": plan_figure(found)})
        if report is not None:
            noted = [*notes, *(sentence for one in read for sentence in one["sentences"])]
            write_page(report, lambda: plan_page(found, command_line(context), noted, warnings))
    if as_json:
        about = None if learnt is None else _pilot_fields(learnt, span)
        print_json({"warnings": warnings, **_as_dict(found), "pilot": about, "read": read})
    else:
        _show(found, notes, warnings)


def _pilot(flags: ProblemFlags, source: str | NamedColumns, method: str, positive: str | None) -> Pilot:
    for name, given in (("--prior", flags.prior), ("--accuracy", flags.accuracy), ("--scores", flags.scores)):
        if given is not None:
            raise InputError(f"--pilot and {name} both say what is known about a task.", "Give one of them.")
    with working("Learning from the pilot"):
        from nextlabel.planning.pilot import read_pilot

        return read_pilot(source, method, positive)


def _span(span: tuple[int | None, int | None] | None) -> list[str]:
    """How far the least budget may move because the prior is only learnt."""
    if span is None or span[0] is None:
        return []
    high = "out of reach" if span[1] is None else f"{span[1]:,}"
    return [
        "With the prior anywhere in its 95% range, the least budget of any policy, if workers are alike, is between "
        f"{span[0]:,} and {high}."
    ]


def _pilot_fields(learnt: Pilot, span: tuple[int | None, int | None] | None) -> dict[str, Any]:
    from nextlabel.problem.tables import prior_table

    one = learnt.learnt
    return {
        "tasks": learnt.report.tasks,
        "labels": learnt.report.labels,
        "prior": prior_table(one.prior),
        "standard_errors": one.standard_errors,
        "p_value": one.p_value,
        "budget_needed_by_any_range": None if span is None else list(span),
    }


def _problem(flags: ProblemFlags, learnt: Pilot | None, read: list[dict[str, Any]]) -> tuple[Problem, int | None]:
    """The problem, and the largest budget to look at if one was given.

    ``--value`` is left to the plan's money, so that the curve stays in shares of tasks right.
    """
    if flags.value is not None:
        refuse_contradictions(flags)
        flags = replace(flags, value=None, reward="accuracy")
    if learnt is not None and flags.tasks is None and flags.problem is None:
        flags = replace(flags, tasks=str(learnt.report.tasks))
    given = flags.budget
    if given is None and flags.problem is None:
        flags = replace(flags, budget="1")
    problem = flags.read(read)
    if learnt is not None:
        problem = problem.with_prior(learnt.learnt.prior)
    return problem, problem.budget if given is not None or flags.problem is not None else None


def _value(flags: ProblemFlags, problem: Problem) -> float:
    """What a task that comes out right earns."""
    if flags.value is None:
        return 1.0
    hint = "Give a number above 0, e.g. --value 10."
    value = float(opt.parse_number("value", flags.value, hint))
    if not 0 < value < float("inf"):
        raise InputError(f"value is {value:g}, which is not a positive number.", hint)
    if problem.label_cost == 0:
        raise InputError("--value only has an effect with --label-cost.", "Add that, or leave it out.")
    return value


def _as_dict(found: Plan) -> dict[str, Any]:
    from nextlabel.planning.report import curve_rows, overlap_rows, right_means, supply_rows

    money = found.money
    return {
        "problem": problem_fields(found.problem.with_budget(int(found.budgets[-1]))),
        "policy": found.policy,
        "assumes": found.assumes or f"{found.model.capitalize()}.",
        "right_means": right_means(found.problem),
        "target": found.target,
        "budget_needed": found.needed,
        "budget_needed_low": found.needed_low,
        "budget_needed_high": found.needed_high,
        "budget_needed_by_any": found.needed_by_any,
        "curve": curve_rows(found),
        "overlap": overlap_rows(found),
        "workers": supply_rows(found),
        "budgets_above_bound": found.above_bound,
        "money": None if money is None else {name: getattr(money, name) for name in money.__slots__},
        "replications": found.replications,
        "simulated_one_in": found.sample,
        "seed": found.seed,
        "seconds": found.seconds,
    }


def _show(found: Plan, notes: list[str], warnings: list[str]) -> None:
    from nextlabel.planning.report import printed_curve, sentences

    for one in warnings:
        typer.echo(f"Mind: {one}\n")
    title = f"Plan: {describe(found.problem.with_budget(int(found.budgets[-1])))}"
    print_table(title, *printed_curve(found), "\n".join([*notes, *sentences(found)]))
