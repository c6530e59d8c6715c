"""The rows of the table: what is promised, what it took, and the least it could take."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import nextlabel as nl
from benchmarks.timing import count, counting, in_fresh_process, seconds, timed
from nextlabel.kernels.inputs import make_grid
from nextlabel.kernels.joint import BEST
from nextlabel.kernels.sweep import MOST, prices_at_once
from nextlabel.model.lattice import lump, make_lattice
from nextlabel.model.simplex import nodes_of
from nextlabel.model.tasks import stack_classes
from nextlabel.solve import bound as bound_module
from nextlabel.solve import exact as exact_module
from nextlabel.solve.exact import MAX_STATES, ExactResult
from nextlabel.solve.index_roots import IndexWork
from nextlabel.solve.per_arrival import PricedProblem
from nextlabel.solve.relaxed import RelaxedProblem
from nextlabel.solve.truncation import Cut, make_cut, make_timeline

#: Flops a node costs in the no-delay problem, a state in a backward sweep, with its labels, and in the supersolution.
NO_DELAY, SWEEP, SWEEP_AND_LABELS, ABOVE = 16, 10, 18, 45
#: And to fill a node of a lattice, and to see that its label is too dear.
FILL, VISIT = 6, 2
#: A floor is what the counted flops take at four per nanosecond and core, without vector instructions; a lookup 10 ns.
FLOP, LOOKUP = 0.25e-9, 1e-8


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    wanted: str
    best: str
    median: str
    floor: str
    result: str


def flops(work: float, what: str) -> str:
    """A floor in words."""
    return f"{seconds(work * FLOP)}: {what}"


def scalar() -> Row:
    """K = 1000, U = 1200, one price."""
    problem = nl.Problem.identical(tasks=1000, budget=1200)
    with counting(RelaxedProblem, "at", lambda self, prices, *_: len(prices)) as prices:
        nl.upper_bound(problem)
    nodes = lump(make_lattice(nl.Beta(1, 1), 0.5, make_cut(problem, None, None).depth))[0].nodes
    run = timed(lambda: nl.upper_bound(problem), 15)
    return Row(
        "scalar bound, K=1000, U=1200",
        "< 0.1 s",
        seconds(run.best),
        seconds(run.median),
        flops(sum(prices) * nodes * NO_DELAY, f"{sum(prices):.0f} prices x {nodes} nodes x {NO_DELAY} flops"),
        f"{run.answer.value:.6f}, gap {run.answer.gap:.1g}",
    )


def million() -> Row:
    """1,000,000 identical tasks in a process of its own."""
    runs = [in_fresh_process("million") for _ in range(3)]
    taken = sorted(run["seconds"] for run in runs)
    return Row(
        "scalar bound, K=1,000,000, U=3,000,000, fresh process",
        "< 0.5 s, 200 MB",
        seconds(taken[0]),
        seconds(taken[1]),
        f"as above; {runs[0]['imports_mb']:.0f} MB are interpreter, libraries and kernels",
        f"{runs[0]['value']:.3f}, relative gap {runs[0]['relative_gap']:.1g}, peak {runs[0]['peak_mb']:.0f} MB",
    )


def many_priors() -> Row:
    """100,000 tasks, no two alike."""
    run = in_fresh_process("priors")
    nodes = nodes_of(2, 64)
    passes, prices = run["passes"], run["prices"]
    work = 1e5 * nodes * (FILL * passes + VISIT * prices) / 2
    return Row(
        "scalar bound, 100,000 different priors, U=300,000",
        "< 60 s, 4 GB",
        seconds(run["seconds"]),
        "once",
        flops(
            work,
            f"100,000 lattices x {nodes} nodes x ({passes:.0f} passes x {FILL} flops to fill, {prices:.0f} prices x "
            f"{VISIT} to visit), two cores",
        ),
        f"{run['value']:.3f}, relative gap {run['relative_gap']:.1g}, peak {run['peak_mb']:.0f} MB",
    )


def per_arrival() -> Row:
    """One price for each of 3000 arrivals with many labels in flight."""
    problem = nl.Problem.identical(tasks=1000, budget=3000, arrival_rate=100.0)
    with counting(PricedProblem, "backward", lambda self, *_: self.sweeps.grid.states) as states:
        run = timed(lambda: nl.upper_bound(problem, "per-arrival"), 1)
    work = 2 * SWEEP * states[0] * 3000 * len(states)
    return Row(
        "per-arrival bound, K=1000, U=3000, r=100",
        "< 60 s, gap < 1e-4",
        seconds(run.best),
        "once",
        flops(work, f"{len(states)} evaluations x 2 sweeps x 3000 arrivals x {states[0]:.0f} states x {SWEEP} flops"),
        f"{run.answer.value:.4f}, relative gap {run.answer.gap / run.answer.value:.1g}",
    )


def index() -> Row:
    """Every index of K = 1000, U = 1200, cap 10."""
    problem = nl.Problem.identical(tasks=1000, budget=1200)
    with counting(IndexWork, "_narrow", lambda self, prices, at, lo, *_: len(prices) * at[-1] * lo[0].size) as work:
        nl.index_table(problem, cap=10)
    run = timed(lambda: nl.index_table(problem, cap=10), 5)
    return Row(
        "index table, K=1000, U=1200, cap 10",
        "< 1 s",
        seconds(run.best),
        seconds(run.median),
        flops(
            sum(work) * SWEEP_AND_LABELS / 2,
            f"{count(sum(work))} state updates (all prices) x {SWEEP_AND_LABELS} flops, two cores",
        ),
        f"settled at {run.answer.settled} arrivals left",
    )


def exact(K: int, U: int, wanted: str, repeats: int) -> Row:
    """The exact optimum over multisets."""
    problem = nl.Problem.identical(tasks=K, budget=U)
    nl.exact_value(nl.Problem.identical(tasks=3, budget=4))
    run = timed(lambda: nl.exact_value(problem), repeats)
    states = run.answer.states
    return Row(
        f"exact optimum, K={K}, U={U}",
        wanted,
        seconds(run.best),
        seconds(run.median) if repeats > 1 else "once",
        f"{seconds(3 * states * LOOKUP)}: {states:,} states x 3 lookups or more",
        f"{run.answer.value:.6f}",
    )


def horizon() -> Row:
    """A certified finite horizon."""
    problem = nl.Problem.identical(tasks=10, budget=12, horizon=60.0)
    nl.upper_bound(problem)
    work: list[float] = []
    original = vars(bound_module)["backward_above"]

    def counted(*args: Any) -> None:
        _, grid, steps, lam, *_ = args
        work.append(grid.states * len(steps.h) * len(lam))
        original(*args)

    vars(bound_module)["backward_above"] = counted
    try:
        nl.upper_bound(problem)
    finally:
        vars(bound_module)["backward_above"] = original
    run = timed(lambda: nl.upper_bound(problem), 7)
    return Row(
        "certified bound, finite horizon, K=10, U=12, T=60",
        "at most 6.4964",
        seconds(run.best),
        seconds(run.median),
        flops(sum(work) * ABOVE, f"certificate alone: {count(sum(work))} state updates x {ABOVE} flops"),
        f"{run.answer.value:.6f}, gap {run.answer.gap:.1g}",
    )


def compilation() -> Row:
    """The first run of all, with nothing in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        cold = in_fresh_process("compile", NUMBA_CACHE_DIR=folder)
        warm = in_fresh_process("compile", NUMBA_CACHE_DIR=folder)
    return Row(
        "first use: compiling the kernels, empty cache",
        "< 30 s, once",
        seconds(cold["all"]),
        "once",
        f"{seconds(warm['all'])}: reading them back from the cache",
        f"processor time {seconds(cold['all_cpu'])}; for `bound`, `exact` and `index` {seconds(cold['demo'])}, "
        f"processor time {seconds(cold['demo_cpu'])}",
    )


def no_delay_ratio() -> Row:
    """What knowing the limit of the recursion saves."""
    problem = nl.Problem.identical(tasks=1000, budget=1200)
    price = nl.upper_bound(problem).price or 0.0
    relaxed = RelaxedProblem(problem, make_cut(problem, None, None), make_timeline(problem))
    stack = relaxed._kept
    assert stack is not None
    sweep = make_grid(stack.first, relaxed.cut.cap, relaxed.cut.flight), np.array([price]), np.array([np.inf])
    relaxed._sweep(stack.one(0), *sweep)
    short = timed(lambda: relaxed.at(sweep[1]), 25)
    full = timed(lambda: relaxed._sweep(stack.one(0), *sweep), 5)
    apart = abs(float(short.answer[0, 0]) / 1000 - float(full.answer[0, 0]))
    return Row(
        "one price: no-delay shortcut against the full sweep of 1200 arrivals",
        "",
        f"{seconds(short.best)} : {seconds(full.best)}",
        f"1 : {full.median / short.median:.0f}",
        "",
        f"values {apart:.0e} apart",
    )


def dense_ratio() -> Row:
    """Backward sweeps, prices side by side, and the same process by dense matrices, as general libraries do."""
    problem = nl.Problem.identical(tasks=1000, budget=1200, prior=nl.Beta(1.7, 1.1))
    relaxed = RelaxedProblem(problem, Cut(10, 10, 64), make_timeline(problem), forbid=True)
    stack, U, lam = stack_classes(problem.classes, 64), problem.budget, 0.02
    grid = make_grid(stack.first, 10, 10)
    count = prices_at_once(grid.states, 1, MOST)
    prices, never = lam * np.linspace(1.0, 0.5, count), np.full(count, np.inf)
    relaxed._sweep(stack.one(0), grid, prices, never)
    ours = timed(lambda: relaxed._sweep(stack.one(0), grid, prices, never), 15)
    # Between two arrivals labels come in: ``next`` is where a state is when the next worker comes, ``end`` after all.
    stay, go, end, up = *np.zeros((3, grid.states, grid.states)), np.arange(grid.states)
    for w in range(grid.W + 1):
        for i in range(int(stack.first[grid.C - w + 1])):
            s, q = grid.off[w] + i, problem.rho + w
            stay[s, s], end[s, s] = problem.rho / q, w == 0
            for p, child in zip(stack.prob[0, i], stack.child[i], strict=True) if w else ():
                go[s, grid.off[w - 1] + child] += p * w / q
                end[s] += p * end[grid.off[w - 1] + child]
            if w < grid.W and i < stack.first[grid.C - w]:
                up[s] = grid.off[w + 1] + i
    wait = np.linalg.solve(np.eye(grid.states) - go, stay)
    take, cost = np.ascontiguousarray(wait[up]), np.where(up > np.arange(grid.states), lam, np.inf)
    last = end[:, : grid.off[1]] @ stack.reward[0, : grid.off[1]]

    def library() -> float:
        value = np.maximum(last, last[up] - cost)
        for _ in range(U - 1):
            value = np.maximum(wait @ value, take @ value - cost)
        return float((wait @ value)[0])

    theirs = timed(library, 5)
    return Row(
        f"backward sweep of {grid.states} states x {U:,} arrivals, one price of {count}, against dense matrices",
        "at least 60 times faster",
        f"{seconds(ours.best / count)} : {seconds(theirs.best)}",
        f"1 : {count * theirs.median / ours.median:.0f}",
        f"{seconds(grid.states * U * SWEEP_AND_LABELS * FLOP)}: states x arrivals x {SWEEP_AND_LABELS} flops",
        f"values {abs(float(ours.answer[0, 0]) - theirs.answer):.0e} apart",
    )


def lumped_ratio() -> Row:
    """What merging (a, b) and (b, a) saves, in the exact optimum.

    Not in the sweep of one task, where this row once looked: up to cap 8 it has 94 states instead of 164 and takes 1 ms
    instead of 1.6, which is within the noise of a busy machine, and the lattice past the cap, of half the nodes, is
    visited once a price and not once an arrival. Joint states are multisets of task states: what is not quite halved
    for one task is divided by more than eight for twelve.
    """
    problem = nl.Problem.identical(tasks=12, budget=14)

    def solve(lumped: bool) -> ExactResult:
        return exact_module._value(problem, None, BEST, "wait", 0.0, MAX_STATES, None, lumped=lumped)

    solve(True)
    small, large = timed(lambda: solve(True), 3), timed(lambda: solve(False), 3)
    return Row(
        "exact optimum, K=12, U=14: lattice lumped against not lumped",
        "",
        f"{seconds(small.best)} : {seconds(large.best)}",
        f"1 : {large.median / small.median:.2g}",
        f"1 : {large.answer.states / small.answer.states:.2g} by states ({small.answer.states:,} : "
        f"{large.answer.states:,})",
        f"values {abs(small.answer.value - large.answer.value):.0e} apart",
    )


QUICK: tuple[Callable[[], Row], ...] = (
    scalar,
    index,
    lambda: exact(10, 12, "< 1 s", 3),
    horizon,
    no_delay_ratio,
    dense_ratio,
    lumped_ratio,
)
ALL: tuple[Callable[[], Row], ...] = (
    scalar,
    million,
    many_priors,
    per_arrival,
    index,
    lambda: exact(10, 12, "< 1 s", 5),
    lambda: exact(14, 17, "< 60 s", 1),
    compilation,
    horizon,
    no_delay_ratio,
    dense_ratio,
    lumped_ratio,
)
