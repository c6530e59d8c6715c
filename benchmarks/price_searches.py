"""``python -m benchmarks.price_searches``: one price per arrival by smoothing and by cutting planes, in one run.

Both minimise B(lam) = sum_x V_x(lam) + sum_l lam_l over the same sweeps (``PricedProblem``), from the best common
price.

- *Smoothing* is what the library does: projected L-BFGS on the smoothed B over hat functions (``solve.per_arrival``).
- *Cutting planes*: every evaluation gives a tangent plane of B; the next prices minimise the largest plane within a box
  around the best prices so far, a linear program (HiGHS). The box grows after a step that achieves at least a tenth of
  what the planes promised, and shrinks after one that does not lower B. Without the box the planes send the prices from
  one end of their range to the other.

An evaluation is one backward and one forward sweep. The gap is measured against the feasible plan of the smoothed
search. Each row is printed when it is done.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

import nextlabel as nl
from nextlabel.arrays import Floats
from nextlabel.solve.per_arrival import PricedProblem, optimise_prices
from nextlabel.solve.truncation import make_cut, make_timeline

#: K, U, r; completion rate 0.4.
PROBLEMS = ((2, 5, 0.1), (20, 60, 10.0), (100, 300, 10.0))
#: Evaluations after which the cutting planes are looked at.
LOOKS = (25, 50, 100, 200, 400)
#: Smoothing ends at this share of the value between its two sides, or after so many evaluations.
TOLERANCE, EVALUATIONS = 2e-6, 3000


class Look(NamedTuple):
    """Where a search stands."""

    method: str
    evaluations: int
    seconds: float
    value: float


def smoothing(priced: PricedProblem, start: Floats, spread: float) -> tuple[Look, float]:
    """The library's search, and the value of its feasible plan."""
    begin, before = perf_counter(), priced.evaluations
    found = optimise_prices(priced, start, spread, TOLERANCE, before + EVALUATIONS)
    taken = perf_counter() - begin
    return Look("smoothing", priced.evaluations - before, taken, found.value), found.lower


def cutting_planes(priced: PricedProblem, start: Floats, spread: float) -> Iterator[Look]:
    """Tangent planes in a box, as often as LOOKS says."""
    U = len(start)
    come = priced.come

    def evaluate(prices: Floats) -> tuple[float, Floats]:
        value = priced.backward(prices) + float(prices @ come)
        priced.forward(prices, 0.0, 0)
        return value, come - priced.given

    begin = perf_counter()
    best, slope = evaluate(start)
    centre, radius = start, 0.1 * float(start.max())
    slopes, heights = [slope], [best - float(slope @ start)]
    for evaluation in range(2, LOOKS[-1] + 1):
        # Unknowns: the height t and the prices; t is at least every plane.
        planes = np.column_stack([-np.ones(len(slopes)), np.array(slopes)])
        low, high = np.maximum(centre - radius, 0.0), np.minimum(centre + radius, spread)
        box = [(None, None), *zip(low, high, strict=True)]
        solved = linprog(np.append(1.0, np.zeros(U)), planes, -np.array(heights), bounds=box, method="highs")
        trial, promised = solved.x[1:], best - float(solved.fun)
        value, slope = evaluate(trial)
        slopes.append(slope)
        heights.append(value - float(slope @ trial))
        if best - value >= 0.1 * promised:
            radius *= 2.0
        elif value >= best:
            radius *= 0.5
        if value < best:
            best, centre = value, trial
        if evaluation in LOOKS:
            yield Look("cutting planes", evaluation, perf_counter() - begin, best)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.price_searches", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest problem only")
    problems = PROBLEMS[:1] if parser.parse_args().quick else PROBLEMS
    nl.upper_bound(nl.Problem.identical(tasks=2, budget=3), "per-arrival")  # compiles the kernels
    print("| K, U, r | search | evaluations | seconds | bound | relative gap |")
    print("|---|---|---|---|---|---|")
    for K, U, r in problems:
        problem = nl.Problem.identical(tasks=K, budget=U, arrival_rate=r)
        common = nl.upper_bound(problem)
        priced = PricedProblem(problem, make_cut(problem, common.cap, common.flight), make_timeline(problem))
        spread = float(priced.stack.spread.max())
        start = np.full(U, common.price or 0.0)
        first, lower = smoothing(priced, start, spread)
        for look in (first, *cutting_planes(priced, start, spread)):
            gap = (look.value - lower) / look.value
            done = f"{look.evaluations} | {look.seconds:.2f} | {look.value:.4f} | {gap:.1e}"
            print(f"| {K}, {U}, {r:g} | {look.method} | {done} |", flush=True)


if __name__ == "__main__":
    main()
