"""The report of a plan: its figures, tables and answers, what 'right' means in them, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.tables import answers_text
from nextlabel.model.tasks import TaskClass, patterns
from nextlabel.money import Price
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.report import Cells, Report, Table, read_sentences
from nextlabel.reporting.style import BLUE, GREY, INK, RED, drawing, panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Values that differ by less are equal.
ROUNDING = 1e-9
#: Labels whose price nobody said.
FREE = Price(0.0)
#: What the bound takes for granted where nothing is said about workers, and where types of them are given.
ALIKE, OF_TYPES = "workers are alike", "workers are of these types"


@dataclass(frozen=True, slots=True)
class Money:
    """What labels cost, what right tasks earn, and where to stop.

    net(U) = value K index(U) - cost E[labels used with budget U]; with a deadline fewer than U may be used.
    """

    label_cost: float
    value: float
    best_budget: int
    best_net: float
    best_value: float
    #: The policy that turns workers away when no task is worth the cost: labels it buys, its net value.
    stopping_labels: float
    stopping_net: float
    stopping_half_width: float
    #: If workers are alike, no policy with a budget up to the curve's last nets more.
    most_net: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The curve and the answers.

    ``value`` is the simulated value of the ``policy``, but no more than the bound: what the simulation had above it
    (``simulated``) was chance.
    """

    problem: Problem
    budgets: Ints = field(repr=False)
    value: Floats = field(repr=False)
    half_width: Floats = field(repr=False)
    bound: Floats = field(repr=False)
    price: Floats = field(repr=False)
    labels_used: Floats = field(repr=False)
    overlaps: tuple[int, ...]
    overlap: Floats
    #: The share of tasks to get right, if one was given, and the labels with which the policy reaches it, with the ends
    #: of their interval; None if the curve does not get there. No policy reaches it with fewer than ``needed_by_any``.
    target: float | None
    needed: int | None
    needed_low: int | None
    needed_high: int | None
    needed_by_any: int | None
    money: Money | None
    replications: int
    seed: int
    seconds: float
    simulated: Floats = field(repr=False)
    #: The policy that was simulated; what the bound takes for granted, in a few words and in full.
    policy: str = "index"
    model: str = ALIKE
    assumes: str = ""
    #: With workers who differ: what a label of each type is worth beyond the price of a label, at each budget.
    supply_prices: Floats | None = field(default=None, repr=False)
    #: Every so manyth task was simulated, in the order of their scores, with as many labels and workers per task.
    sample: int = 1

    def __str__(self) -> str:
        return plan_report(self).text()

    def _repr_html_(self) -> str:
        return plan_report(self).notebook()

    @property
    def above_bound(self) -> int:
        """Budgets at which the simulation came out above the bound, by more than rounding."""
        return int((self.simulated > self.bound + ROUNDING).sum())

    def value_at(self, budget: float) -> float:
        """The policy's value per task, interpolated."""
        return float(np.interp(budget, self.budgets, self.value))

    def next_labels(self, budget: int, more: int = 100) -> float | None:
        """What ``more`` labels add to ``budget`` under the policy; None if the curve ends before."""
        if budget + more > self.budgets[-1]:
            return None
        return self.problem.tasks * (self.value_at(budget + more) - self.value_at(budget))

    def budget_like(self, overlap: int) -> int | None:
        """The budget at which the policy is as good as that overlap; None if the curve does not get there."""
        value = self.overlap[self.overlaps.index(overlap)]
        return crossing(self.budgets, self.value, float(value))


def crossing(budgets: Ints, values: Floats, target: float) -> int | None:
    """The first budget at which the curve, made monotone and linear in between, reaches the target."""
    rising = np.maximum.accumulate(values)
    if rising[-1] < target:
        return None
    k = int(np.argmax(rising >= target))
    if k == 0:
        return int(budgets[0])
    share = (target - rising[k - 1]) / (rising[k] - rising[k - 1])
    return int(np.ceil(budgets[k - 1] + share * (budgets[k] - budgets[k - 1]) - 1e-9))


def needed_labels(
    budgets: Ints, simulated: Floats, shown: Floats, half_width: Floats, target: float | None, least: int | None
) -> list[int | None]:
    """Where the curve reaches the target at the upper end of its interval, as shown, and at the lower end.

    What is shown is not above the bound; the ``least`` that is proved narrows the interval.
    """
    ends = (simulated + half_width, shown, shown - half_width)
    found = [None if target is None else crossing(budgets, values, target) for values in ends]
    return [None if x is None else max(x, least or 0) for x in found]


#: The price is told as what so many labels buy.
MORE = 100
#: Rows of the curve that are printed.
PRINTED = 12


def curve_rows(plan: Plan) -> list[Row]:
    """One row per budget."""
    K = plan.problem.tasks
    return [
        {
            "budget": int(U),
            "labels_per_task": float(U) / K,
            plan.policy: float(plan.value[k]),
            "half_width": float(plan.half_width[k]),
            "simulated": float(plan.simulated[k]),
            "bound": float(plan.bound[k]),
            "price": float(plan.price[k]),
            f"next_{MORE}_labels": plan.next_labels(int(U), MORE),
            "labels_used": float(plan.labels_used[k]),
        }
        for k, U in enumerate(plan.budgets)
    ]


def overlap_rows(plan: Plan) -> list[Row]:
    """Fixed overlap, and the index's budget for the same value."""
    rows = []
    for m, value in zip(plan.overlaps, plan.overlap, strict=True):
        labels = m * plan.problem.tasks
        like = plan.budget_like(m)
        saved = None if like is None or like > labels else 100.0 * (1.0 - like / labels)
        rows.append(
            {"overlap": m, "labels": labels, "value": float(value), "index_budget": like, "saved_percent": saved}
        )
    return rows


def plan_report(
    plan: Plan,
    title: str = "The curve",
    *,
    learnt: Sequence[str] = (),
    warnings: Sequence[str] = (),
    read: Sequence[Mapping[str, Any]] = (),
    price: Price = FREE,
    **fields: Any,
) -> Report:
    """The report of a plan whose curve has this ``title``; ``learnt`` says where the prior is from."""
    return Report(
        title=f"Plan for {plan.problem.tasks:,} tasks, up to {plan.budgets[-1]:,} labels",
        tables=_tables(plan, title, price),
        sentences=sentences(plan, price),
        heading="Labelling plan",
        lead=f"{plan.problem.tasks:,} tasks. What each budget buys, and where to stop.",
        facts=_facts(plan),
        figures=[
            (
                partial(panel, draw_values, plan),
                "Value of each budget: the policy with its 95% interval, and the bound.",
            ),
            (partial(panel, draw_prices, plan), "What the next labels buy along the curve."),
        ],
        sections={"What this rests on": [*learnt, *read_sentences(read), *assumptions(plan)]},
        warnings=warnings,
        notes=learnt,
        fields={
            "warnings": warnings,
            "policy": plan.policy,
            "assumes": plan.assumes or f"{plan.model.capitalize()}.",
            "right_means": right_means(plan.problem),
            "target": plan.target,
            "budget_needed": plan.needed,
            "budget_needed_low": plan.needed_low,
            "budget_needed_high": plan.needed_high,
            "budget_needed_by_any": plan.needed_by_any,
            "curve": curve_rows(plan),
            "overlap": overlap_rows(plan),
            "workers": supply_rows(plan),
            "budgets_above_bound": plan.above_bound,
            "money": None if plan.money is None else asdict(plan.money),
            "replications": plan.replications,
            "simulated_one_in": plan.sample,
            "seed": plan.seed,
            "seconds": plan.seconds,
            "price": price._asdict() if price.pay else None,
            **fields,
            "read": read,
        },
        files=lambda: {"plan.csv": curve_rows(plan), "plan.png": plan_figure(plan)},
    )  # fmt: skip


def _brief(rows: Cells) -> Cells:
    """About a dozen of the curve's budgets, for outside a page."""
    stride = max(1, -(-len(rows) // PRINTED))
    return [row for k, row in enumerate(rows) if k % stride == 0 or k == len(rows) - 1]


def _tables(plan: Plan, title: str, price: Price) -> list[Table]:
    """The curve, fixed overlaps with what the policy needs for the same value, and types of workers."""
    curve = [row | {"cost": price.of(row["budget"]), "value": row[plan.policy]} for row in curve_rows(plan)]
    supply = [
        row
        | {
            "supply": "as many as wanted" if row["supply"] is None else f"{row['supply']:,.0f}",
            "worth": MORE * row["supply_price"],
        }
        for row in supply_rows(plan)
    ]
    more = [
        (
            "Against the same number of labels for every task",
            {
                "labels per task": "{overlap}", "labels": "{labels:,}", "value": "{value:.4f}",
                f"{plan.policy} policy needs": "{index_budget:,}", "saved": "{saved_percent:.0f}%",
            },
            overlap_rows(plan),
        ),
        (
            "Types of workers, with the most labels",
            {
                "type": "{type}", "workers": "{workers:,}", "answers": "{answers}", "supply": "{supply}",
                f"{MORE} more are worth": "{worth:.2f}",
            },
            supply,
        ),
    ]  # fmt: skip
    columns = {
        "labels": "{budget:,}", **({"cost": "{cost}"} if price.pay else {}), "per task": "{labels_per_task:.2f}",
        f"{plan.policy} policy": "{value:.4f} ±{half_width:.4f}", "bound": "{bound:.4f}",
        f"next {MORE} labels buy": f"{{next_{MORE}_labels:.2f}}",
    }  # fmt: skip
    tables = [Table.of(title, columns, curve, brief=_brief)]
    return tables + [Table.of(*one, brief=lambda _: ()) for one in more if one[2]]


#: A supply whose price is below this is not short.
NOT_SHORT = 1e-7


def supply_rows(plan: Plan) -> list[Row]:
    """One row for each type of workers, at the curve's last budget."""
    if plan.supply_prices is None:
        return []
    horizon = plan.problem.horizon
    return [
        {
            "type": m + 1,
            "workers": worker.count,
            "answers": answers_text(worker),
            "supply": None if np.isinf(worker.labels(horizon)) else worker.labels(horizon),
            "supply_price": float(plan.supply_prices[-1, m]),
        }
        for m, worker in enumerate(plan.problem.workers)
    ]


def right_means(problem: Problem) -> str:
    """What it is to be right, or worth something, under the problem's model."""
    if not problem.is_accuracy:
        return "The value of a task is the reward that it is expected to bring under the model."
    if problem.workers:
        return (
            "'Right' means that the decision is the task's truth, if workers answer as their channels say and "
            "independently of each other given the truth."
        )
    classes = patterns(problem.classes)
    kinds = list(dict.fromkeys(_meaning(entry) for entry in classes))
    return f"'Right' means that the decision {' or, by the kind of task, '.join(kinds)}."


def _meaning(entry: TaskClass) -> str:
    prior: Prior = entry.prior
    if prior.kind == "one-coin":
        return "is the task's truth, if every answer is right with the same probability"
    if prior.thresholded:
        return (
            "is what the crowd would say if it were asked without end: 1 if more than "
            f"{entry.threshold:.4g} of its answers would be 1. Where the whole crowd is wrong, that is not the truth"
        )
    return (
        "is the answer that the crowd would give most often if it were asked without end. Where the whole crowd is "
        "wrong, that is not the truth"
    )


def sentences(plan: Plan, price: Price = FREE) -> list[str]:
    """The answers in words; what labels cost, if they have a ``price``."""
    problem, last, m = plan.problem, int(plan.budgets[-1]), plan.money
    out = [*_target(plan), right_means(problem)]
    if problem.finite:
        value = plan.value[-1]
        reached = f"{value:.4f} of the tasks are right" if problem.is_accuracy else f"a task is worth {value:.4f}"
        out.append(
            f"By the deadline {plan.labels_used[-1]:,.0f} labels are in or out, and {reached} in expectation; if "
            f"{plan.model}, no policy has more than {plan.bound[-1]:.4f}."
        )
    out += [
        f"As good as {row['overlap']} labels for every task ({row['value']:.4f}) with "
        f"{row['saved_percent']:.0f}% fewer labels: {row['index_budget']:,} instead of {row['labels']:,}."
        for row in overlap_rows(plan)
        if row["overlap"] > 1 and (row["saved_percent"] or 0) > 0
    ]
    out += _supply(plan)
    if m is not None:
        stop = "stop at about" if m.best_budget < last else "do not stop before"
        earner = "right task" if problem.is_accuracy else "unit of value"
        out.append(
            f"At {m.label_cost:g} a label and {m.value:g} a {earner}: {stop} {m.best_budget:,} labels, which nets "
            f"{m.best_net:,.2f}; the policy that turns workers away when no task is worth it buys "
            f"{m.stopping_labels:,.0f} and nets {m.stopping_net:,.2f} ± {m.stopping_half_width:,.2f}. If {plan.model}, "
            f"no policy with up to {last:,} labels nets more than {m.most_net:,.2f}."
        )
    if plan.above_bound > 0:
        most, half = float((plan.simulated - plan.bound).max()), float(plan.half_width.max())
        out.append(
            f"At {plan.above_bound} of {len(plan.budgets)} budgets the simulation came out above the bound, by at most "
            f"{most:.1g}, with intervals of ±{half:.1g}: that is chance, and the bound is shown there."
        )
    out += _sample(plan)
    if price.pay:
        costs = [f"{U:,} labels cost {price.of(U)}" for U in (plan.needed, last) if U is not None]
        out.append(
            f"At {price.describe()} a label {' and '.join(costs)}. Answers to control questions are paid beside them, "
            "unless the campaign has gold_in_budget."
        )
    return out


def _target(plan: Plan) -> list[str]:
    """What the target takes."""
    low, high, least = plan.needed_low, plan.needed_high, plan.needed_by_any
    if plan.target is None:
        return []
    if least is None:
        when = " in that time" if plan.problem.finite else ""
        return [f"If {plan.model}, no policy reaches {plan.target:g}, however many labels it buys{when}."]
    if plan.needed is None:
        return [
            f"The {plan.policy} policy does not reach {plan.target:g} with up to {plan.budgets[-1]:,} labels.",
            f"If {plan.model}, no policy needs fewer than {least:,}.",
        ]
    spread = f" (95% interval {low:,} to {high:,})" if low is not None and high is not None else ""
    what = target_in_words(plan)
    return [
        f"{what[:1].upper()}{what[1:]} takes {plan.needed:,} labels with the {plan.policy} policy{spread}.",
        f"If {plan.model}, no policy gets there with fewer than {least:,}.",
    ]


def _supply(plan: Plan) -> list[str]:
    """Which supply is short at the curve's last budget, and what more of it would add to the bound."""
    rows = supply_rows(plan)
    gain = "tasks right" if plan.problem.is_accuracy else "in value"
    short = [
        f"type {row['type']} ({row['answers']}) up to {MORE * row['supply_price']:.2f} {gain}"
        for row in rows
        if row["supply_price"] > NOT_SHORT
    ]
    if not short:
        return [f"With {plan.budgets[-1]:,} labels no type of workers is in short supply."] if rows else []
    return [
        f"With {plan.budgets[-1]:,} labels in all, {MORE} more in the supply of a type would add: {'; '.join(short)}"
        + ("." if len(short) == len(rows) else "; the others nothing.")
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
    problem, more = plan.problem, len(plan.problem.classes) - 1
    endless = "The index is that of a campaign without a deadline, so a policy that knows it may do better."
    return [
        f"{problem.tasks:,} tasks; prior {problem.classes[0].prior.describe()}{f' and {more:,} more' if more else ''}.",
        "Workers of one task answer independently given the task, and each answer costs one label.",
        f"The {plan.policy} policy decides who labels what; labels that come late count when they come"
        + (", if before the deadline." if problem.finite else "."),
        f"Simulated {plan.replications:,} times from seed {plan.seed}; intervals are 95%. The upper bound is proved "
        f"if {plan.model}, not simulated.",
        *_sample(plan),
        *([f"The bound assumes: {plan.assumes}"] if plan.assumes else []),
        *([endless] if problem.finite and plan.policy == "index" else []),
    ]


def target_in_words(plan: Plan) -> str:
    """The target in words."""
    return f"{plan.target:g} of the tasks right" if plan.problem.is_accuracy else f"a value of {plan.target:g} per task"


def _facts(plan: Plan) -> list[tuple[str, str]]:
    """Numbers to look at first, each with what it is."""
    boxes = []
    if plan.needed is not None:
        boxes.append((f"{plan.needed:,}", f"labels for {target_in_words(plan)}, {plan.policy} policy"))
    if plan.needed_by_any is not None:
        boxes.append((f"{plan.needed_by_any:,}", f"labels that any policy needs for it, at least, if {plan.model}"))
    if plan.money is not None:
        stop = "labels, then stop: the next are not worth their cost"
        inside = plan.money.best_budget < plan.budgets[-1]
        boxes.append((f"{plan.money.best_budget:,}", stop if inside else "labels, at least, are worth their cost"))
    if plan.problem.finite:
        value = format(plan.value[-1], ".1%" if plan.problem.is_accuracy else ".4f")
        boxes.append((value, f"reached in time by the {plan.policy} policy"))
    return boxes


def plan_figure(plan: Plan) -> Figure:
    """Value against budget, and what the next labels buy."""
    with drawing(1, 2, figsize=(11.0, 4.4)) as (figure, (left, right)):
        draw_values(left, plan)
        draw_prices(right, plan)
    return figure


def draw_values(axes: Axes, plan: Plan) -> None:
    """Value of the index policy, of fixed overlaps, and the bound, against the budget."""
    K = plan.problem.tasks
    low, high = plan.value - plan.half_width, np.minimum(plan.value + plan.half_width, plan.bound)
    axes.plot(plan.budgets, plan.bound, color=INK, linewidth=1, label=f"bound, if {plan.model}")
    axes.fill_between(plan.budgets, low, high, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(plan.budgets, plan.value, color=BLUE, label=f"{plan.policy} policy")
    shown = [(m, v) for m, v in zip(plan.overlaps, plan.overlap, strict=True) if m * K <= plan.budgets[-1]]
    axes.plot([m * K for m, _ in shown], [v for _, v in shown], "s", color=RED, label="the same number for every task")
    for m, v in shown:
        axes.annotate(f"{m}", (m * K, v), textcoords="offset points", xytext=(5, -11), color=RED)
    if plan.target is not None:
        axes.axhline(plan.target, color=GREY, linewidth=0.8, linestyle="--")
    if plan.target is not None and plan.needed is not None:
        at = (plan.needed, plan.target)
        axes.plot(*at, "o", color=BLUE, markersize=8)
        axes.annotate(f"{plan.needed:,}", at, textcoords="offset points", xytext=(6, -14), color=BLUE)
    what = "share of tasks right" if plan.problem.is_accuracy else "value per task"
    axes.set(xlabel="labels", ylabel=what, title="What a budget buys")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.legend(loc="lower right")


def draw_prices(axes: Axes, plan: Plan) -> None:
    """What the next labels buy, by the index policy and by the bound's price."""
    gain = "tasks" if plan.problem.is_accuracy else "value"
    buys = np.diff(plan.value) * plan.problem.tasks / np.diff(plan.budgets) * MORE
    axes.step(plan.budgets, plan.price * MORE, where="post", color=INK, linewidth=1, label="price of the bound")
    axes.stairs(buys, plan.budgets, color=BLUE, label=f"{plan.policy} policy, simulated")
    if plan.money is not None:
        worth = plan.money.label_cost / plan.money.value * MORE
        axes.axhline(worth, color=RED, linewidth=0.9, linestyle="--", label=f"what they cost, in {gain}")
    does = "get right" if plan.problem.is_accuracy else "add"
    what = f"{gain} that the next {MORE} labels {does}"
    axes.set(xlabel="labels bought before", ylabel=what, ylim=(0, None), title="What the next labels buy")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.legend()
