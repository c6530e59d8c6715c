"""Rows of the bound with workers who differ: hundreds of workers of their own, and a warm search for a few."""

from __future__ import annotations

import numpy as np

import nextlabel as nl
from benchmarks.rows import Row, flops
from benchmarks.timing import counting, seconds, timed
from nextlabel.solve.crowd.relaxation import Types, _Program, relax

TASKS, BUDGET, WORKERS = 10_000, 30_000, 200
#: States of the grid, iterations, and flops of one: half the normal matrix per row, and the factor.
ROW = 98


def crowd_of(workers: int) -> tuple[nl.WorkerType, ...]:
    """Workers with two coins of their own, Beta(4, 2) each, and half as many labels again as the budget takes."""
    chance = np.random.default_rng(0)
    coins = zip(chance.beta(4, 2, workers), chance.beta(4, 2, workers), strict=True)
    supply = 3 * BUDGET // (2 * workers)
    return tuple(nl.WorkerType(((t, 1 - t), (1 - s, s)), supply=supply) for s, t in coins)


def many_workers() -> Row:
    """The bound with 200 workers of their own, prices for each."""
    problem = nl.Problem.identical(TASKS, BUDGET, nl.priors.Fact(0.5), workers=crowd_of(WORKERS))
    nl.upper_bound(problem.with_budget(BUDGET // 2))
    run = timed(lambda: nl.upper_bound(problem), 3)
    types = Types(np.array([w.mean_channel for w in problem.workers]), np.full(WORKERS, 225.0), np.zeros(WORKERS))
    with counting(_Program, "factor", lambda program, d: program.shape[1]) as states:
        relax(np.array([[0.5, 0.5]]), np.array([float(TASKS)]), types, BUDGET)
    G, rounds = int(states[0]), len(states)
    work = rounds * (WORKERS * G * ROW + G**3 / 3 + WORKERS * G**2)
    return Row(
        f"bound with {WORKERS} workers of their own, K={TASKS:,}, U={BUDGET:,}",
        "< 10 s, gap < 1e-4",
        seconds(run.best),
        seconds(run.median),
        flops(work, f"{rounds} iterations on {G} beliefs"),
        f"{run.answer.value:.4f}, gap {run.answer.gap:.1g}",
    )


def again() -> Row:
    """Thirty types on a coarse grid, as a policy solves them again in a campaign."""
    types = Types(np.array([w.mean_channel for w in crowd_of(30)]), np.full(30, 1500.0), np.zeros(30))
    belief, tasks = np.array([[0.5, 0.5]]), np.array([float(TASKS)])
    with counting(_Program, "factor", lambda program, d: program.shape[1]) as states:
        relax(belief, tasks, types, 0.9 * BUDGET, grid=100, tolerance=1e-4)
    run = timed(lambda: relax(belief, tasks, types, 0.9 * BUDGET, grid=100, tolerance=1e-4), 10)
    G, rounds, found = int(states[0]), len(states), run.answer
    return Row(
        "relaxation of 30 types on 100 beliefs",
        "tens of milliseconds",
        seconds(run.best),
        seconds(run.median),
        flops(rounds * (30 * G * ROW + G**3 / 3 + 30 * G**2), f"{rounds} iterations on {G} beliefs"),
        f"gap {found.gap / TASKS:.1g} per task",
    )


CROWD_BOUND = (many_workers, again)
