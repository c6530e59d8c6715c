"""How often problems are not indexable, how often that changes a decision, and what it costs.

A state that takes a label, waits and takes one again as the price grows has more than one candidate for its index. The
index is the greatest price at which 'assign' is optimal; the other natural choice is the least price at which 'assign'
stops. Both rules are valued exactly (``policy_value``, ties by lot) and set against the optimum; campaigns are played
by the first, and at each arrival it is noted whether the other would have given it to a task in another state.
Beta(1, 1), d = 1/2, mu = 0.4, labels awaited. The least price is looked for on a grid of prices, so that a reopening
between two of them is missed; states and arrivals left are all those that the budget can reach.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Bools, Floats
from nextlabel.kernels.inputs import TIED
from nextlabel.model.problem import Problem
from nextlabel.policies.exact_value import policy_value
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import drawing
from nextlabel.solve.exact import exact_value
from nextlabel.solve.index import IndexTable, index_cut, index_table
from nextlabel.solve.index_roots import IndexWork
from nextlabel.solve.progress import Progress
from nextlabel.solve.truncation import make_cut, make_timeline
from studies.study import ExperimentOutcome, StudyOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: K, U; each with every arrival rate.
PROBLEMS, QUICK_PROBLEMS = ((2, 20), (3, 12), (4, 10), (10, 12)), ((2, 6), (3, 6))
ARRIVAL_RATES = (0.1, 1.0, 10.0)
REPLICATIONS, QUICK = 4_000, 100
PRICES = 1000

PANELS = (
    ("reopening_percent", "states that reopen, %"),
    ("changed_percent", "decisions that differ, %"),
    ("cost", "value lost by the least price, % of the optimum"),
)


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """One row for each problem and arrival rate."""
    replications = config.count(REPLICATIONS, QUICK)
    settings = [(K, U, r) for K, U in (QUICK_PROBLEMS if config.quick else PROBLEMS) for r in ARRIVAL_RATES]
    rows: list[Row] = []
    for k, (K, U, r) in enumerate(settings):
        problem = Problem.identical(K, U, arrival_rate=r)
        greatest = index_table(problem, cap=U, flight=U, left=U)
        least, reopens, reachable = least_prices(problem, greatest)
        changed, half = changed_decisions(problem, greatest, least, replications, config.seed)
        first, second = (policy_value(problem, table.policy_index).value for table in (greatest, least))
        best = exact_value(problem).value
        rows.append(
            {
                "tasks": K,
                "budget": U,
                "arrival_rate": r,
                "states": int(reachable.sum()),
                "reopening": int(reopens.sum()),
                "reopening_percent": 100.0 * float(reopens.sum()) / float(reachable.sum()),
                "widest": float((_rows(greatest) - _rows(least)).max()),
                "changed_percent": 100.0 * changed,
                "changed_half_width": 100.0 * half,
                "optimum": best,
                "greatest": first,
                "least": second,
                "greatest_loses_percent": 100.0 * (1.0 - first / best),
                "least_loses_percent": 100.0 * (1.0 - second / best),
            }
        )
        progress((k + 1) / len(settings))
    return ExperimentOutcome(rows, {"replications": replications, "prices": PRICES})


def least_prices(problem: Problem, greatest: IndexTable) -> tuple[IndexTable, Bools, Bools]:
    """The table of the least prices at which 'assign' stops; the states that reopen; those that can be reached."""
    U = problem.budget
    cut = index_cut(make_cut(problem, U, U), problem)
    work = IndexWork(problem, problem.classes[0], cut, make_timeline(problem))
    rows = _rows(greatest)
    shape = (len(rows), work.states)
    closing = np.full(shape, np.inf)  # where 'assign' first stops
    reopens = np.zeros(shape, dtype=bool)
    before, below = np.zeros(shape), 0.0
    for price in work.top * np.linspace(0.0, 1.0, PRICES + 1)[1:] ** 2:
        gain = work.advantages(len(rows), price)[:, :, 0] - price
        stops = np.isinf(closing) & (gain < -TIED)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = below + (price - below) * np.clip(before / (before - gain), 0.0, 1.0)
        closing[stops] = np.where(before > 0, at, below)[stops]
        reopens |= np.isfinite(closing) & ~stops & (gain > TIED)
        before, below = gain, price
    reachable = np.zeros(shape, dtype=bool)
    for w in range(U):
        for n in range(1, min(len(rows), U - w) + 1):
            end = int(work.stack.first[max(U - w - n + 1, 0)])
            reachable[n - 1, work.grid.off[w] : work.grid.off[w] + end] = True
    reopens &= reachable
    lower = rows.copy()
    lower[reopens] = np.minimum(closing, rows)[reopens]
    one = replace(greatest.classes[0], rows=lower[:, :, None])
    return replace(greatest, classes=(one,)), reopens, reachable


def changed_decisions(
    problem: Problem, greatest: IndexTable, least: IndexTable, replications: int, seed: int
) -> tuple[float, float]:
    """Share of arrivals for which the two tables choose tasks in different states, with a 95% half-width.

    Campaigns are played by ``greatest``; tasks in the same state are counted together. A choice is different if no
    state is among the tied best of both.
    """
    rng = np.random.default_rng(seed)
    U, K, rho = problem.budget, problem.tasks, problem.rho
    tables = [[table.policy_index(0, n, np.inf) for n in range(1, U + 1)] for table in (greatest, least)]
    prob = problem.classes[0].lattice(U).prob
    child = problem.classes[0].lattice(U).child
    changed = np.zeros(replications)
    for replication in range(replications):
        tasks = np.zeros((K, 2), dtype=np.int64)  # node, in flight
        left = U
        while left > 0:
            flying = int(tasks[:, 1].sum())
            if rng.random() * (rho + flying) < rho:
                first, second = (_tied(table[left - 1], tasks) for table in tables)
                changed[replication] += not (first & second).any()
                tasks[rng.choice(np.flatnonzero(first)), 1] += 1
                left -= 1
                continue
            x = rng.choice(K, p=tasks[:, 1] / flying)
            node = tasks[x, 0]
            tasks[x] = child[node, int(rng.random() < prob[node, 1])], tasks[x, 1] - 1
    share = changed / U
    return float(share.mean()), 1.96 * float(share.std()) / sqrt(replications)


def _tied(index: Floats, tasks: np.ndarray) -> Bools:
    """Which tasks have the greatest index."""
    here = index[tasks[:, 1], tasks[:, 0]]
    return np.asarray(here >= here.max() - TIED)


def _rows(table: IndexTable) -> Floats:
    return np.asarray(table.classes[0].rows[:, :, 0], dtype=np.float64)


def draw(rows: list[Row]) -> Figure:
    """Three panels over the same problems."""
    with drawing(1, 3, figsize=(11, 1.4 + 0.3 * len(rows)), sharey=True) as (figure, panels):
        names = [f"K={r['tasks']}, U={r['budget']}, r/μ={r['arrival_rate'] / 0.4:g}" for r in rows]
        y = [-k for k in range(len(rows))]
        for axes, (key, label) in zip(panels, PANELS, strict=True):
            if key == "cost":
                x = [row["least_loses_percent"] - row["greatest_loses_percent"] for row in rows]
            else:
                x = [row[key] for row in rows]
            axes.barh(y, x, height=0.6)
            axes.axvline(0.0, color="#5b6672", linewidth=0.8)
            axes.set_xlabel(label)
            axes.grid(axis="y", visible=False)
        panels[0].set_yticks(y, names)
        figure.suptitle("Problems that are not indexable: the greatest price against the least")
    return figure
