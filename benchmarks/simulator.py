"""Rows of the simulator: time an event, and what a study of the paper's size takes."""

from __future__ import annotations

import nextlabel as nl
from benchmarks.rows import FILL, FLOP, Row, flops
from benchmarks.timing import count, in_fresh_process, seconds
from nextlabel.model.problem import Problem
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.study import Study, simulate

#: Flops an event costs at least: two draws and logarithms, the heap, the lists, and a look at ten groups.
EVENT = 50
#: And a node that the limit index of a state looks at.
PLAN = 11


def _floor(events: int, cores: int = 1) -> str:
    both = ", two cores" if cores == 2 else ""
    return f"{seconds(events * EVENT * FLOP / cores)}: {events:,} events x {EVENT} flops{both}"


def _study(problem: Problem, replications: int, jobs: int = 1) -> Study:
    return simulate(problem, ["index"], replications=replications, engine=Engine(jobs=jobs))


def paper() -> Row:
    """5000 replications of K = 1000, U = 1200."""
    problem = nl.Problem.identical(tasks=1000, budget=1200)
    _study(problem, 2)
    study = _study(problem, 5000, 2)
    result = study.results[0]
    assert result.gap_percent is not None
    gap = result.gap_percent
    return Row(
        "simulation, K=1000, U=1200, index, 5000 replications",
        "< 6 s, gap at most 0.03%",
        seconds(result.seconds),
        "once",
        _floor(5000 * 2400, 2),
        f"gap {gap.mean:.4f} ± {gap.half_width:.4f}%, tables {seconds(result.table_seconds)}",
    )


def million() -> Row:
    """One campaign of 1,000,000 tasks."""
    result = _study(nl.Problem.identical(tasks=1_000_000, budget=3_000_000), 1).results[0]
    return Row(
        "one campaign of 1,000,000 tasks, 3,000,000 labels, index",
        "< 10 s",
        seconds(result.seconds),
        "once",
        _floor(6_000_000),
        f"{result.per_task.mean:.4f} per task",
    )


def many() -> Row:
    """One campaign of 100,000 tasks, no two alike: lattices, indices of the states that are met, and the campaign."""
    run = in_fresh_process("many")
    events = 600_000
    return Row(
        "one campaign of 100,000 different priors, 300,000 labels, index",
        "< 15 s, 1.5 GB",
        seconds(run["table_seconds"] + run["seconds"]),
        "once",
        flops(
            FILL * run["filled"] / 2 + PLAN * run["visited"] + EVENT * events,
            f"{count(run['filled'])} nodes x {FILL} flops to fill, two cores; {count(run['indices'])} indices that "
            f"look at {count(run['visited'])} nodes x {PLAN}; {events:,} events x {EVENT}",
        ),
        f"{run['per_task']:.4f} per task, tables {seconds(run['table_seconds'])}, peak {run['peak_mb']:.0f} MB",
    )


def growth() -> Row:
    """Time an event as the number of tasks grows a thousandfold, in one run."""
    small = _study(nl.Problem.identical(tasks=1000, budget=3000), 300).results[0].seconds / (300 * 6000)
    large = _study(nl.Problem.identical(tasks=1_000_000, budget=3_000_000), 1).results[0].seconds / 6_000_000
    return Row(
        "an event at 1,000 tasks against one at 1,000,000",
        "less than 1 : 3",
        f"{small * 1e9:.0f} ns : {large * 1e9:.0f} ns",
        f"1 : {large / small:.2g}",
        "",
        "",
    )


def martingale() -> Row:
    """Standard error of the total gap at K = 480, U = 960."""
    result = _study(nl.Problem.identical(tasks=480, budget=960), 400).results[0]
    assert result.gap is not None
    error = result.gap.half_width / 1.96 * 480
    return Row(
        "gap by the martingale, K=480, U=960, 400 replications",
        "standard error at most 0.01",
        seconds(result.seconds),
        "once",
        _floor(400 * 1920),
        f"total {result.gap.mean * 480:.4f}, standard error {error:.4f}, variance ratio {result.variance_ratio:.0f}",
    )


SIMULATOR = (paper, million, many, growth, martingale)
