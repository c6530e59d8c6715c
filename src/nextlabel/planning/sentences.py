"""A plan in sentences: the answers, and what they rest on."""

from __future__ import annotations

from nextlabel.planning.meaning import right_means
from nextlabel.planning.result import Plan
from nextlabel.planning.supply import supply_sentences
from nextlabel.planning.tables import overlap_rows


def sentences(plan: Plan) -> list[str]:
    """The answers in words."""
    out, name = [], policy_name(plan)
    if plan.target is not None:
        if plan.needed_by_any is None:
            out.append(
                f"If {plan.model}, no policy reaches {plan.target:g}, however many labels it buys{_in_time(plan)}."
            )
        elif plan.needed is None:
            out.append(f"The {name} does not reach {plan.target:g} with up to {plan.budgets[-1]:,} labels.")
            out.append(f"If {plan.model}, no policy needs fewer than {plan.needed_by_any:,}.")
        else:
            low, high = plan.needed_low, plan.needed_high
            spread = f" (95% interval {low:,} to {high:,})" if low is not None and high is not None else ""
            what = target_in_words(plan)
            out.append(f"{what[:1].upper()}{what[1:]} takes {plan.needed:,} labels with the {name}{spread}.")
            out.append(f"If {plan.model}, no policy gets there with fewer than {plan.needed_by_any:,}.")
    out.append(right_means(plan.problem))
    if plan.problem.finite:
        value, most = plan.index[-1], plan.bound[-1]
        reached = f"{value:.4f} of the tasks are right" if plan.problem.is_accuracy else f"a task is worth {value:.4f}"
        out.append(
            f"By the deadline {plan.labels_used[-1]:,.0f} labels are in or out, and {reached} in expectation; if "
            f"{plan.model}, no policy has more than {most:.4f}."
        )
    for row in overlap_rows(plan):
        if row["saved_percent"] is not None and row["saved_percent"] > 0 and row["overlap"] > 1:
            out.append(
                f"As good as {row['overlap']} labels for every task ({row['value']:.4f}) with "
                f"{row['saved_percent']:.0f}% fewer labels: {row['index_budget']:,} instead of {row['labels']:,}."
            )
    return out + supply_sentences(plan) + _money(plan) + _chance(plan) + _sample(plan)


def policy_name(plan: Plan) -> str:
    """The policy that was simulated, in words."""
    return f"{plan.policy} policy"


def _money(plan: Plan) -> list[str]:
    if plan.money is None:
        return []
    m = plan.money
    stop = "stop at about" if m.best_budget < plan.budgets[-1] else "do not stop before"
    return [
        f"At {m.label_cost:g} a label and {m.value:g} a {_unit(plan)}: {stop} "
        f"{m.best_budget:,} labels, which nets {m.best_net:,.2f}; the policy that turns workers away when no "
        f"task is worth it buys "
        f"{m.stopping_labels:,.0f} and nets {m.stopping_net:,.2f} ± {m.stopping_half_width:,.2f}. If {plan.model}, "
        f"no policy with up to {plan.budgets[-1]:,} labels nets more than {m.most_net:,.2f}."
    ]


def _chance(plan: Plan) -> list[str]:
    if plan.above_bound == 0:
        return []
    most = float((plan.simulated - plan.bound).max())
    return [
        f"At {plan.above_bound} of {len(plan.budgets)} budgets the simulation came out above the bound, by at most "
        f"{most:.1g}, with intervals of ±{float(plan.half_width.max()):.1g}: that is chance, and the bound is shown "
        "there."
    ]


def _sample(plan: Plan) -> list[str]:
    if plan.sample == 1:
        return []
    return [
        f"One in {plan.sample} tasks was simulated, evenly over their priors, with as many labels and workers per "
        "task; the bound is that of all tasks."
    ]


def assumptions(plan: Plan) -> list[str]:
    """What the numbers rest on."""
    problem = plan.problem
    more = len(problem.classes) - 1
    out = [
        f"{problem.tasks:,} tasks; prior {problem.classes[0].prior.describe()}{f' and {more:,} more' if more else ''}.",
        "Workers of one task answer independently given the task, and each answer costs one label.",
        f"The {policy_name(plan)} decides who labels what; labels that come late count when they come"
        + (", if before the deadline." if problem.finite else "."),
        f"Simulated {plan.replications:,} times from seed {plan.seed}; intervals are 95%. The upper bound is proved "
        f"if {plan.model}, not simulated.",
    ]
    out += _sample(plan)
    if plan.assumes:
        out.append(f"The bound assumes: {plan.assumes}")
    if problem.finite and plan.policy == "index":
        out.append("The index is that of a campaign without a deadline, so a policy that knows it may do better.")
    return out


def target_in_words(plan: Plan) -> str:
    """The target in words."""
    return f"{plan.target:g} of the tasks right" if plan.problem.is_accuracy else f"a value of {plan.target:g} per task"


def _unit(plan: Plan) -> str:
    """What earns money."""
    return "right task" if plan.problem.is_accuracy else "unit of value"


def _in_time(plan: Plan) -> str:
    return " in that time" if plan.problem.finite else ""
