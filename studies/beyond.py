"""Past the paper's model: what it buys to know that tasks are mixed, labels with three answers, and money.

``mixture``  half the tasks are easy, half are coin flips, and none can be told beforehand: the index policy that knows
             this prior against the index policy of the one Beta with the same mean and variance; and the same two where
             half the tasks are easy yes and half easy no, which one Beta cannot say at all.
``answers``  three answers, Dirichlet(1, 1, 1): policies and the bound against labels per task.
``money``    a correct task is worth 1: net value against the cost of a label, with a ceiling of 10 labels per task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.problem import Problem
from nextlabel.policies.base import Policy
from nextlabel.policies.index import Index
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import BLUE, INK, RED, drawing, in_order, look
from nextlabel.simulation.study import simulate
from nextlabel.solve.index import index_table
from nextlabel.solve.progress import Progress, part
from studies.study import ExperimentOutcome, StudyOptions, draw_line, legend_beside, pick, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TASKS, QUICK_TASKS = 200, 30
REPLICATIONS, QUICK = 400, 20
RATIOS, QUICK_RATIOS = (1, 2, 3, 4), (2,)
COSTS, QUICK_COSTS = (0.005, 0.01, 0.02, 0.04, 0.08), (0.04,)
CEILING = 10
SINGLE = "index, one Beta"

MIXTURES = {
    "easy or coin flip": BetaMixture((0.5, 0.5), (Beta(18, 2), Beta(50, 50))),
    "easy yes or easy no": BetaMixture((0.5, 0.5), (Beta(9, 3), Beta(3, 9))),
}
RIVALS = ("index", "okg-pending", "okg", "uncertainty", "uniform")
TOLERANCE = 1e-6


def one_beta(mixture: BetaMixture) -> Beta:
    """The Beta with the mixture's mean and variance."""
    parts = list(zip(mixture.weights, mixture.components, strict=True))
    mean = sum(v * c.alpha / (c.alpha + c.beta) for v, c in parts)
    second = sum(v * c.alpha * (c.alpha + 1) / ((c.alpha + c.beta) * (c.alpha + c.beta + 1)) for v, c in parts)
    weight = (mean - second) / (second - mean**2)
    return Beta(mean * weight, (1.0 - mean) * weight)


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """The three comparisons."""
    K = config.tasks or (QUICK_TASKS if config.quick else TASKS)
    ratios = QUICK_RATIOS if config.quick else RATIOS
    costs = QUICK_COSTS if config.quick else COSTS
    todo: list[tuple[str, str, float, Problem, list[Policy | str]]] = []
    for kind, mixture in MIXTURES.items():
        largest = Problem.identical(K, ratios[-1] * K, mixture)
        knows = Index(index_table(largest, tolerance=TOLERANCE))
        plain = Index(index_table(largest.with_prior(one_beta(mixture)), tolerance=TOLERANCE), name=SINGLE)
        todo += [("mixture", kind, q, largest.with_budget(q * K), [knows, plain, "uniform"]) for q in ratios]
    todo += [("answers", "", q, Problem.identical(K, q * K, (1, 1, 1)), list(RIVALS)) for q in ratios]
    todo += [("money", "", c, Problem.identical(K, CEILING * K, label_cost=c), list(RIVALS)) for c in costs]
    rows: list[Row] = []
    for k, (panel, kind, x, problem, policies) in enumerate(todo):
        study = simulate(
            problem, policies, replications=config.count(REPLICATIONS, QUICK), seed=config.seed, engine=config.engine,
            progress=part(progress, k, len(todo)),
        )  # fmt: skip
        for result in study.results:
            ahead = study.difference(result.name, "index")
            rows.append(
                {
                    "panel": panel,
                    "kind": kind,
                    "x": x,
                    "tasks": K,
                    "budget": problem.budget,
                    "policy": result.name,
                    "mean": result.per_task.mean,
                    "half_width": result.per_task.half_width,
                    "bound": study.bound.per_task,
                    "gap_percent": result.gap_percent.mean if result.gap_percent else None,
                    "minus_index": ahead.mean,
                    "minus_index_half_width": ahead.half_width,
                    "labels_per_task": result.labels_used / K,
                    "replications": study.replications,
                }
            )
    return ExperimentOutcome(rows, {"replications": config.count(REPLICATIONS, QUICK)})


def draw(rows: list[Row]) -> Figure:
    """Three panels."""
    with drawing(1, 3, figsize=(14.0, 4.4)) as (figure, panels):
        _mixture(panels[0], pick(rows, panel="mixture"))
        _values_and_bound(panels[1], pick(rows, panel="answers"))
        panels[1].set(xlabel="labels per task", ylabel="tasks right, per task")
        panels[1].set_xticks(values_of(pick(rows, panel="answers"), "x"))
        panels[1].set_title("Three answers, Dirichlet(1, 1, 1)")
        _values_and_bound(panels[2], pick(rows, panel="money"))
        panels[2].set(xscale="log", xlabel="cost of a label (a correct task is worth 1)", ylabel="net value per task")
        panels[2].set_title("Money: who can stop, and who cannot")
        costs = values_of(pick(rows, panel="money"), "x")
        panels[2].set_xticks(costs, [f"{c:g}" for c in costs])
        panels[2].set_xticks([], minor=True)
        legend_beside(figure, panels[1:])
    return figure


def _mixture(axes: Axes, rows: list[Row]) -> None:
    for kind, colour, marker in zip(values_of(rows, "kind"), (BLUE, RED), ("o", "s"), strict=True):
        some = [row for row in pick(rows, kind=kind) if row["policy"] not in ("index", "uniform")]
        gain = [{**row, "gain": -row["minus_index"]} for row in some]
        draw_line(axes, gain, "x", "gain", "minus_index_half_width", color=colour, marker=marker, label=kind)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set(xlabel="labels per task", ylabel="more tasks right, per task")
    axes.set_xticks(values_of(rows, "x"))
    axes.set_title("What the mixture prior adds to one Beta")
    axes.legend(title="tasks are")


def _values_and_bound(axes: Axes, rows: list[Row]) -> None:
    for name in in_order(values_of(rows, "policy")):
        draw_line(axes, pick(rows, policy=name), "x", "mean", "half_width", **look(name))
    line = pick(rows, policy="index")
    axes.plot([row["x"] for row in line], [row["bound"] for row in line], color=INK, linewidth=1, label="upper bound")
