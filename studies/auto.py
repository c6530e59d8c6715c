"""Where the default rule for equal workers loses, and how its total gap grows.

Cells: priors x tasks x labels per task x labels in flight x deadlines, against the index and ``lagrangian``, and at 50
tasks without a deadline against ``resolve``; with a deadline, where the index takes minutes, against ``lagrangian`` and
two kinds of ``okg``. A cell in which ``auto`` is behind the best other rule by more than the paired 95% interval is run
again from another seed; the column ``p`` of the second run is one-sided, for Holm's rule.
Growth: Beta(2, 1), U = 2.4 K, four loads, K = 50 to 3,200, to the bound with a price per arrival.

All of it takes many hours: ``python -m studies.auto FILE.csv --minutes 7`` adds the cells that FILE does not have,
quick ones first, and stops after so many minutes.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from math import inf, sqrt
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.reporting.artifacts import Row, manifest, save_png, to_eight_digits
from nextlabel.reporting.style import drawing, look
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.progress import Progress, part
from studies.study import ExperimentOutcome, StudyOptions, draw_line, pick, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIORS: dict[str, Prior] = {
    "Beta(1, 1)": Beta(1, 1), "Beta(2, 1)": Beta(2, 1), "Beta(4, 2)": Beta(4, 2), "Beta(.5, .5)": Beta(0.5, 0.5),
    "Dirichlet(1, 1, 1)": Dirichlet((1.0, 1.0, 1.0)),
}  # fmt: skip
TASKS, RATIOS, LOADS, DEADLINES = (50, 200, 1000), (1.5, 2.4, 5.0), (0.3, 2.0, 8.0, 60.0), (inf, 0.8, 1.3)
REPLICATIONS, RESOLVES, QUICK_CELLS = 300, 30, 8
GROWTH, QUICK_GROWTH, LEVEL = (50, 100, 200, 400, 800, 1600, 3200), (50, 100, 200), 0.05
CELL = ("prior", "tasks", "ratio", "rho", "deadline")
Cell = tuple[str, int, float, float, float]
Piece = tuple[str, Cell]


def problem(name: str, tasks: int, ratio: float, rho: float, deadline: float) -> Problem:
    """One cell; the deadline is in units of U / r."""
    budget = round(ratio * tasks)
    horizon = inf if deadline == inf else deadline * budget / rho
    return Problem((TaskClass(tasks, PRIORS[name]),), budget, rho, 1.0, horizon)


def pieces(config: StudyOptions) -> list[Piece]:
    """Every cell with its part, in the order in which they are run: those that take long come last."""
    grid = list(product(PRIORS, TASKS, RATIOS, LOADS, DEADLINES))
    grid = [grid[k] for k in np.random.default_rng(config.seed).permutation(len(grid))]
    grid = [cell for cell in grid if config.tasks in (None, cell[1])]
    grown = product(["Beta(2, 1)"], QUICK_GROWTH if config.quick else GROWTH, [2.4], LOADS, [inf])
    some = [cell for cell in grid if cell[4] == inf][:QUICK_CELLS] if config.quick else grid
    against = [cell for cell in grid if cell[1] == TASKS[0] and cell[4] == inf and not config.quick]
    every = [*(("cells", c) for c in some), *(("growth", c) for c in grown), *(("resolve", c) for c in against)]
    return sorted(every, key=cost)


def cost(piece: Piece) -> tuple[bool, bool, bool, bool, float]:
    """What is sorted by: the first that is true makes a cell slow."""
    kind, (_, K, _, rho, deadline) = piece
    size = K / 32 if kind == "growth" else K
    return kind == "resolve", size > 400, rho > 8.0, deadline < inf, size


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """All of it (8 cells without a deadline and ``lagrangian``, and three sizes, if quick)."""
    rows: list[Row] = []
    every = pieces(config)
    for k, piece in enumerate(every):
        rows += settle(piece, config, part(progress, k, len(every)))
    return ExperimentOutcome(rows, summary(rows))


def settle(piece: Piece, config: StudyOptions, progress: Progress | None = None) -> list[Row]:
    """One cell, and again from another seed if ``auto`` is behind."""
    rows = measure(*piece, config, progress)
    if piece[0] != "growth" and rows[0]["behind"] > rows[0]["behind_half"]:
        again = measure(*piece, replace(config, seed=config.seed + 1000))
        rows += [{**row, "part": f"{piece[0]} again"} for row in again]
    return rows


def summary(rows: Sequence[Row]) -> Row:
    """How many cells were run, how many again, and how many are behind after Holm's correction."""
    ours = [row for row in rows if row["policy"] == "auto" and row["part"] != "growth"]
    again = sorted(float(row["p"]) for row in ours if row["part"].endswith("again"))
    lost = next((k for k, p in enumerate(again) if p > LEVEL / (len(again) - k)), len(again))
    return {
        "cells": sum(row["part"] == "cells" for row in ours),
        "against_resolve": sum(row["part"] == "resolve" for row in ours),
        "of": len(PRIORS) * len(TASKS) * len(RATIOS) * len(LOADS) * len(DEADLINES),
        "run_again": len(again),
        "behind_after_holm": lost,
    }


def measure(kind: str, cell: Cell, config: StudyOptions, progress: Progress | None = None) -> list[Row]:
    """Every rule on one cell; ``behind``: what ``auto`` loses to the best other, in percent of the bound."""
    setting = problem(*cell)
    rules = ["auto", "resolve"] if kind == "resolve" else ["auto", "index"]
    if cell[4] < inf:
        rules = ["auto", "lagrangian", "okg-pending", "okg-idle"]
    elif kind == "cells" and not config.quick:
        rules.append("lagrangian")
    replications = config.count(RESOLVES if kind == "resolve" else REPLICATIONS, REPLICATIONS)
    # Percentages are of the bound without the deadline, which is there in no time.
    bound = upper_bound(replace(setting, horizon=inf), "per-arrival" if kind == "growth" else "scalar")
    study = simulate(
        setting, rules, replications=replications, seed=config.seed, engine=config.engine, bound=bound,
        progress=progress,
    )  # fmt: skip
    auto, *others = study.results
    best = min(others, key=lambda one: float(one.gaps.mean()))
    loss = 100.0 / bound.value * (auto.gaps - best.gaps)
    error = float(loss.std(ddof=1)) / sqrt(replications)
    rows: list[Row] = []
    for one in study.results:
        assert one.gap is not None
        rows.append(
            {
                "part": kind, "prior": cell[0], "tasks": cell[1], "ratio": cell[2], "rho": cell[3],
                "deadline": cell[4], "policy": one.name, "total_gap": cell[1] * one.gap.mean,
                "half_width": cell[1] * one.gap.half_width, "gap_percent": 100.0 * one.gap.mean / bound.per_task,
                "behind": float(loss.mean()), "behind_half": 1.96 * error,
                "p": float(norm.sf(loss.mean() / error)) if error > 0 else 1.0,
                "replications": replications, "seed": config.seed,
            }
        )  # fmt: skip
    return rows


def main() -> None:
    """Add cells to a file, and say in its manifest what they show so far."""
    parser = argparse.ArgumentParser(prog="python -m studies.auto", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    started, begun, config = datetime.now(UTC), perf_counter(), StudyOptions(seed=given.seed)
    rows = read_rows(given.file)
    done = {(row["part"], *(row[name] for name in CELL)) for row in rows}
    for kind, cell in pieces(config):
        if (kind, *cell) not in done and perf_counter() - begun < 60.0 * given.minutes:
            rows += settle((kind, cell), config)
            with given.file.open("w", newline="", encoding="utf-8") as stream:
                writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(to_eight_digits(rows))
    fields = manifest(
        command=f"python -m studies.auto {given.file.name} --seed {given.seed}", seed=given.seed, started=started,
        seconds=perf_counter() - begun, study="auto", **summary(rows),
    )  # fmt: skip
    if any(row["part"] == "growth" for row in rows):
        save_png(draw(rows), given.file.with_suffix(".png"))
    given.file.with_suffix(".manifest.json").write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")


def read_rows(file: Path) -> list[Row]:
    """The rows that a file has, numbers as numbers; none if there is no file."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as stream:
        rows: list[Row] = list(csv.DictReader(stream))
    words = {"part", "prior", "policy"}
    whole = {"tasks", "replications", "seed"}
    return [{k: v if k in words else int(v) if k in whole else float(v) for k, v in row.items()} for row in rows]


def growth_rate(rows: Sequence[Row]) -> float:
    """The exponent b of the fit total gap = a K^b, by least squares of the logarithms."""
    sizes = np.log([float(row["tasks"]) for row in rows])
    totals = np.log([max(float(row["total_gap"]), 1e-9) for row in rows])
    return float(np.polyfit(sizes, totals, 1)[0])


def draw(rows: list[Row]) -> Figure:
    """Total gap against K, one panel for each load, with the fitted growth."""
    grown = pick(rows, part="growth")
    loads = values_of(grown, "rho")
    with drawing(1, len(loads), figsize=(11, 3.4), sharey=True, squeeze=False) as (figure, panels):
        for axes, rho in zip(panels.flat, loads, strict=True):
            for name in ("auto", "index"):
                some = pick(grown, rho=rho, policy=name)
                told = {**look(name), "label": f"{name}, K^{growth_rate(some):.2f}"}
                draw_line(axes, some, "tasks", "total_gap", "half_width", **told)
            axes.set(xscale="log", yscale="log", title=f"r/μ = {rho:g}", xlabel="tasks K")
            axes.set_xticks(values_of(grown, "tasks"), [f"{K:,}" for K in values_of(grown, "tasks")])
            axes.set_xticks([], minor=True)
            axes.legend(loc="best")
        panels[0, 0].set_ylabel("total gap to the bound, tasks")
    return figure


if __name__ == "__main__":
    main()
