"""``nextlabel plan``: what a budget buys, what a target needs, where to stop."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli.flag_values import parse_number, parse_whole
from nextlabel.cli.output import JsonFlag, check_outputs, print_json, print_table, say, say_read, working
from nextlabel.cli.problem_options import ProblemFlags, takes_problem
from nextlabel.cli.problem_text import describe, problem_fields
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.planning.pilot import Pilot
    from nextlabel.planning.plan import Plan
    from nextlabel.problem.problem import Problem

#: Rows of the curve that are printed.
SHOWN = 12


@takes_problem
def plan(
    flags: ProblemFlags,
    context: typer.Context,
    target: Annotated[
        str | None, typer.Option(metavar="P", help="Share of tasks to get right, e.g. 0.95.", show_default=False)
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(metavar="T", help="Labels not in by T are lost: the horizon.", show_default=False)
    ] = None,
    pilot: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS", help="Learn the prior from these labels (CSV, Parquet, Label Studio).", show_default=False
        ),
    ] = None,
    pilot_method: Annotated[Literal["ml", "moments", "mixture"], typer.Option(help="How to learn it.")] = "ml",
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The pilot's label that counts as 1.", show_default=False)
    ] = None,
    cost_per_label: Annotated[
        str | None, typer.Option(metavar="C", help="Money: what a label costs.", show_default=False)
    ] = None,
    value_per_correct: Annotated[str, typer.Option(metavar="V", help="Money: what a right task earns.")] = "1",
    replications: Annotated[
        str | None, typer.Option(metavar="N", help="Campaigns to simulate. Default: enough.", show_default=False)
    ] = None,
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same digits.")] = "0",
    jobs: Annotated[str, typer.Option(metavar="N", help="Cores of this machine to use.")] = "2",
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write plan.csv and plan.png there.", show_default=False)
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write one self-contained HTML page.", show_default=False)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Plan a campaign: what a budget buys, what a target needs, what the next label is worth."""
    learnt = None if pilot is None else _pilot(flags, pilot, pilot_method, positive)
    read = [] if learnt is None else say_read(learnt.report)
    problem, most = _problem(flags, deadline, learnt)
    goal = None if target is None else float(parse_number("target", target, "Give a share such as --target 0.9."))
    cost = None
    if cost_per_label is not None:
        cost = _positive("cost per label", cost_per_label)
    value = _positive("value per correct task", value_per_correct)
    count = None
    if replications is not None:
        count = parse_whole("--replications", replications, 2, "Give at least two, e.g. --replications 200.")
    start = parse_whole("--seed", seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    cores = parse_whole("--jobs", jobs, 1, "Give the number of cores to use, e.g. --jobs 2.")
    check_outputs(out, report)
    with working("Planning") as progress:
        from nextlabel.planning.pilot import budget_range
        from nextlabel.planning.plan import make_plan
        from nextlabel.simulation.engine import Engine

        span = None
        if learnt is not None and goal is not None:
            span = budget_range(problem, learnt.learnt, goal, start)
        found = make_plan(
            problem, target=goal, most=most, cost_per_label=cost, value_per_correct=value, replications=count,
            seed=start, engine=Engine(jobs=cores), progress=progress,
        )  # fmt: skip
    typed = context.obj if isinstance(context.obj, list) else []
    said = [] if learnt is None else [*learnt.sentences(), *_span(span)]
    _write(found, out, report, shlex.join(["nextlabel", *map(str, typed)]), [*said, *_notes(read)])
    if as_json:
        print_json({**_as_dict(found), "pilot": None if learnt is None else _pilot_fields(learnt, span), "read": read})
    else:
        _show(found, said)


def _pilot(flags: ProblemFlags, path: str, method: str, positive: str | None) -> Pilot:
    for name, given in (("--prior", flags.prior), ("--accuracy", flags.accuracy), ("--scores", flags.scores)):
        if given is not None:
            raise InputError(f"--pilot and {name} both say what is known of a task.", "Give one of them.")
    with working(f"Learning from {path}"):
        from nextlabel.planning.pilot import read_pilot

        return read_pilot(path, method, positive)


def _span(span: tuple[int | None, int | None] | None) -> list[str]:
    """How far the least budget may move because the prior is only learnt."""
    if span is None or span[0] is None:
        return []
    high = "out of reach" if span[1] is None else f"{span[1]:,}"
    return [
        f"With the prior anywhere in its 95% range, the least budget of any policy is between {span[0]:,} and {high}."
    ]


def _notes(read: list[dict[str, Any]]) -> list[str]:
    return [sentence for one in read for sentence in one["sentences"]]


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


def _problem(flags: ProblemFlags, deadline: str | None, learnt: Pilot | None) -> tuple[Problem, int | None]:
    """The problem, and the largest budget to look at if one was given."""
    if flags.label_cost is not None:
        raise InputError("--label-cost is for bound and simulate.", "Give --cost-per-label, and --value-per-correct.")
    if deadline is not None:
        if flags.horizon is not None:
            raise InputError("--deadline and --horizon are the same.", "Give one of them.")
        flags = replace(flags, horizon=deadline)
    if learnt is not None and flags.tasks is None and flags.problem is None:
        flags = replace(flags, tasks=str(learnt.report.tasks))
    given = flags.budget
    if given is None and flags.problem is None:
        flags = replace(flags, budget="1")
    problem = flags.read()
    if learnt is not None:
        problem = problem.with_prior(learnt.learnt.prior)
    return problem, problem.budget if given is not None or flags.problem is not None else None


def _positive(name: str, text: str) -> float:
    number = float(parse_number(name, text, "Give a number above 0, e.g. 0.05."))
    if not 0 < number < float("inf"):
        raise InputError(f"{name} is {number:g}, which is not a positive number.", "Give a number above 0, e.g. 0.05.")
    return number


def _write(found: Plan, out: str | None, report: str | None, command: str, said: list[str]) -> None:
    if out is None and report is None:
        return
    from nextlabel.planning.report import curve_rows, plan_figure, plan_page
    from nextlabel.reporting.artifacts import write_files

    if out is not None:
        write_files(Path(out), {"plan.csv": curve_rows(found), "plan.png": plan_figure(found)})
        say(f"Wrote plan.csv and plan.png to {out}.")
    if report is not None:
        Path(report).write_text(plan_page(found, command, said), encoding="utf-8")
        say(f"Wrote {report}.")


def _as_dict(found: Plan) -> dict[str, Any]:
    from nextlabel.planning.report import curve_rows, overlap_rows

    money = found.money
    return {
        "problem": problem_fields(found.problem.with_budget(int(found.budgets[-1]))),
        "target": found.target,
        "budget_needed": found.needed,
        "budget_needed_low": found.needed_low,
        "budget_needed_high": found.needed_high,
        "budget_needed_by_any": found.needed_by_any,
        "curve": curve_rows(found),
        "overlap": overlap_rows(found),
        "money": None if money is None else {name: getattr(money, name) for name in money.__slots__},
        "replications": found.replications,
        "seed": found.seed,
        "seconds": found.seconds,
    }


def _show(found: Plan, said: list[str]) -> None:
    from nextlabel.planning.report import MORE, curve_rows, sentences, shown

    rows = curve_rows(found)
    stride = max(1, -(-len(rows) // SHOWN))
    some = [row for k, row in enumerate(rows) if k % stride == 0 or k == len(rows) - 1]
    print_table(
        f"Plan: {describe(found.problem.with_budget(int(found.budgets[-1])))}",
        ["labels", "per task", "index policy", "no policy above", f"next {MORE} labels buy"],
        [
            [
                f"{row['budget']:,}", f"{row['labels_per_task']:.2f}", f"{row['index']:.4f} ±{row['half_width']:.4f}",
                f"{row['bound']:.4f}", shown(row[f"next_{MORE}_labels"]),
            ]
            for row in some
        ],
        "\n".join([*said, *sentences(found)]),
    )  # fmt: skip
