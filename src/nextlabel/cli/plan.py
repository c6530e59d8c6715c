"""``nextlabel plan``: what a budget buys, what a target needs, where to stop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import typer

from nextlabel.campaign.declaration import declared
from nextlabel.cli import options as opt
from nextlabel.cli.database import label_source
from nextlabel.cli.output import report_reading, working
from nextlabel.cli.problem_options import ProblemFlags, describe, problem_fields, refuse_contradictions
from nextlabel.errors import InputError
from nextlabel.money import Price, currency_of
from nextlabel.reporting.report import Report

if TYPE_CHECKING:
    from nextlabel.model.problem import Problem
    from nextlabel.planning.pilot import Pilot


@opt.verb(out=True, page=True)
def plan(
    flags: ProblemFlags,
    context: typer.Context,
    target: float | None = opt.number("P", "Share of tasks to get right, e.g. 0.95.", "0.9"),
    pilot: str | None = opt.flag(
        "LABELS", "Learn the prior from these labels: CSV, Parquet, Label Studio JSON or campaign:ID."
    ),
    db: str = opt.DB,
    method: Literal["ml", "moments", "mixture"] = opt.flag(None, "how the prior is learnt.", "ml", needs="--pilot"),
    positive: str | None = opt.flag(
        "LABEL", "The label that counts as 1, if the labels are not 0 and 1.", needs="--pilot"
    ),
    replications: int | None = opt.whole("N", 2, "200", "Campaigns to simulate. Default: by the tasks."),
    policy: Literal["index", "auto"] | None = opt.flag(
        "NAME", "The policy to simulate, index or auto. Default: auto with --horizon, else index."
    ),
    turn_away: bool = opt.switch("With workers who differ: the policy may turn workers away."),
    at_most_wrong: str | None = opt.flag(
        "EPS", "Plan labels with a guarantee: largest share of wrong ones, e.g. 0.05."
    ),
    sure: str = opt.flag("P", "how sure. Default: 0.95.", "0.95", needs="--at-most-wrong"),
    expert_cost: float = opt.positive(
        "C", "10", "price of an expert's answer, in labels.", needs="--at-most-wrong", default=10.0
    ),
    gold: str | None = opt.flag(
        "FILE", "The truth about some items of the pilot: it says how far labels lead.", needs="--pilot"
    ),
    model_labels: str | None = opt.flag(
        "FILE", "a model's labels (task, label, probability) to start from instead of workers.", needs="--at-most-wrong"
    ),
    pay_per_label: float | None = opt.positive("P", "0.05", str(declared("pay_per_label").description)),
    platform_fee: float | None = opt.positive(
        "F", "0.33", str(declared("platform_fee").description), needs="--pay-per-label"
    ),
    seed: int = opt.SEED,
    jobs: int = opt.JOBS,
) -> Report:
    """Plan a campaign: what a budget buys, what a target needs, what the next label is worth.

    With --pay-per-label the budget may be money, such as --budget '120 EUR'.
    """
    if at_most_wrong is not None:
        return _plan_guarantee(
            flags, context, pilot, db, gold, at_most_wrong, sure, expert_cost, model_labels, replications, seed
        )
    price = Price(pay_per_label or 0.0, platform_fee or 0.0, currency_of(flags.budget) or "")
    if price.currency:
        flags = replace(flags, budget=str(price.labels_for(flags.budget or "")))
    source = label_source(context, pilot, db)
    learnt = None
    if pilot is not None:
        for name, given in (("--prior", flags.prior), ("--accuracy", flags.accuracy), ("--scores", flags.scores)):
            if given is not None:
                raise InputError(f"--pilot and {name} both say what is known about a task.", "Give one of them.")
        with working("Learning from the pilot"):
            from nextlabel.planning.pilot import read_pilot

            threshold = opt.parse_number("--threshold", flags.threshold or "0.5", "Give e.g. 0.5.")
            learnt = read_pilot(source, method, positive, gold, float(threshold))
    read = [] if learnt is None else report_reading(learnt.report, learnt.gold)
    problem, most, more = _problem(flags, learnt)
    read += more
    value = 1.0  # what a task that comes out right earns
    if flags.value is not None:
        value = opt.parse_positive("value", flags.value, "Give a number above 0, e.g. --value 10.")
        if problem.label_cost == 0:
            raise InputError("--value only has an effect with --label-cost.", "Add that, or leave it out.")
    goal = target if target is None or learnt is None else learnt.goal(target)
    if learnt is not None and learnt.ceiling is not None and goal is not None and goal >= 1.0:
        goal = None  # the first line says that it is out of reach
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
    notes, fields = ([], None) if learnt is None else _of_pilot(learnt, span)
    warnings = [] if learnt is None else learnt.warnings(target)
    from nextlabel.planning.report import plan_report

    shown = found.problem.with_budget(int(found.budgets[-1]))
    return plan_report(
        found, f"Plan: {describe(shown)}", learnt=notes, warnings=warnings, read=read, problem=problem_fields(shown),
        price=price, pilot=fields,
    )  # fmt: skip


def _of_pilot(learnt: Pilot, span: tuple[int | None, int | None] | None) -> tuple[list[str], dict[str, Any]]:
    """What the pilot says, and how far the least budget may move because the prior is only learnt."""
    from nextlabel.model.tables import prior_table

    one, said = learnt.learnt, learnt.sentences()
    if span is not None and span[0] is not None:
        most = "out of reach" if span[1] is None else f"{span[1]:,}"
        least = "With the prior anywhere in its 95% range, the least budget of any policy, if workers are alike, is"
        said = [*said, f"{least} between {span[0]:,} and {most}."]
    return said, {
        "tasks": learnt.report.tasks,
        "labels": learnt.report.labels,
        "prior": prior_table(one.prior),
        "standard_errors": one.standard_errors,
        "p_value": one.p_value,
        "ceiling": None if learnt.ceiling is None else learnt.ceiling._asdict(),
        "budget_needed_by_any_range": None if span is None else list(span),
    }


def _problem(flags: ProblemFlags, learnt: Pilot | None) -> tuple[Problem, int | None, list[dict[str, Any]]]:
    """The problem, the largest budget to look at if one was given, and what was read.

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
    problem, read = flags.read_all()
    if learnt is not None:
        problem = problem.with_prior(learnt.learnt.prior)
    return problem, problem.budget if given is not None or flags.problem is not None else None, read


def _plan_guarantee(
    flags: ProblemFlags, context: typer.Context, pilot: str | None, db: str, gold: str | None, at_most_wrong: str,
    sure: str, expert_cost: float, model_labels: str | None, replications: int | None, seed: int,
) -> Report:  # fmt: skip
    """The cheapest way to labels with a guarantee, from a pilot."""
    if pilot is None:
        raise InputError("a plan for a guarantee needs labels of workers.", "Give --pilot labels.csv.")
    opt.refuse_idle(context, ["target", "method", "policy", "turn_away"], "a plan without --at-most-wrong")
    with working("Planning"):
        from nextlabel.crowd.guarantee import checked_share
        from nextlabel.files.labels import read_gold, read_labels, read_results
        from nextlabel.planning.expert import cost_figure, guarantee_tables, plan_guarantee

        checked_share("at_most_wrong", at_most_wrong)
        checked_share("sure", sure)
        table = read_labels(label_source(context, pilot, db))
        truth = None if gold is None else read_gold(gold, table)
        items = None if flags.tasks is None else opt.parse_whole("--tasks", flags.tasks, 1, "Give a whole number.")
        model = None if model_labels is None else read_results(model_labels)
        made = plan_guarantee(
            table, truth, model=model, at_most_wrong=at_most_wrong, sure=sure, expert_cost=expert_cost,
            label_cost=float(flags.label_cost or 1.0), items=items, replications=replications or 20, seed=seed,
        )  # fmt: skip
    read = report_reading(table.report, truth)
    title = f"Ways to at most {float(at_most_wrong):.1%} wrong labels of {made.items:,}"
    return Report(
        title=title, tables=guarantee_tables(made, title),
        figures=[(lambda: cost_figure(made), "The cost of each way against the share of wrong labels allowed.")],
        files=lambda: {"plan.png": cost_figure(made)}, sentences=made.sentences(), heading=title,
        lead=made.sentences()[0], fields=made.as_dict() | {"read": read},
    )  # fmt: skip
