"""Index tables are made here: where a label is worth most, for every state a task can be in (``IndexTable``).

    lam*(i,w,n) = max{ lam : V(i,w+1,n-1; lam) - lam >= V(i,w,n-1; lam) }.

The rows settle as n grows (``settled``, within the tolerance); later arrivals use the last row. From DENSE arrivals
left on the roots are found for some n, ever sparser, and interpolated for the others. Past the cap a task goes on as if
labels came at once, where lam*(i, 0) is the Gittins index max_tau E[R_tau - R] / E[tau] and lam*(i, w) the least of it
over the nodes that the w labels in flight can lead to.
Guarantee: 1e-7 of the rewards' unit (``reward_unit``) for n up to DENSE, of the greatest root found (of the greatest
root where ``proved``), but for ties: where g is within TIED_VALUES of 0 over more than that, any price of the flat
piece counts. For finite T also the time steps matter, and ``error`` is the estimate of what they leave. A large problem
whose deadline comes after its last arrival has layers of time to spare instead (``spare``). Interpolated
rows are within some 1e-6 of their roots but where a root jumps as n grows (the problem is not quite indexable); there
they are between the two.
"""

from __future__ import annotations

import math

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.simplex import deepest, simplex
from nextlabel.errors import ProblemError
from nextlabel.kernels.inputs import make_grid
from nextlabel.problem.problem import Problem, in_units
from nextlabel.problem.workers import refuse_workers
from nextlabel.solve.index import spare as spare_time
from nextlabel.solve.index.result import ClassIndex, IndexTable
from nextlabel.solve.index.roots import ROOT, IndexWork
from nextlabel.solve.progress import Progress, part
from nextlabel.solve.timeline import Timeline, halve_steps, make_timeline
from nextlabel.solve.truncation import Cut, make_cut

TOLERANCE = 1e-7
#: Rows tried first, and so many more for each label in flight; more until the last ones agree.
FIRST_ROWS, ROWS_PER_RHO = 64, 30
#: Every n up to the first number has roots of its own; then so many n as n doubles, and lines in log n between them.
DENSE, PER_DOUBLING = 256, 32
#: Time steps of a finite horizon: doubled from the first number until the error fits, or the table is this large.
FIRST_STEPS = 64
TABLE_SIZE = 600_000
#: Levels past the cap on which the no-delay index looks ahead, fewer if the lattice would have more nodes than that.
BEYOND, BEYOND_NODES = 72, 30_000


def index_table(
    problem: Problem,
    *,
    cap: int | None = None,
    flight: int | None = None,
    left: int | None = None,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> IndexTable:
    """Index of every state of every class; ``left`` limits the rows to at most that many arrivals left.

    ``tolerance`` is in the unit of the rewards (``reward_unit``).
    """
    refuse_workers(problem, "an index")
    if problem.budget < 1:
        raise ProblemError("a budget of 0 has no arrivals to rank.", "Give --budget of at least 1.")
    problem, unit = in_units(problem)
    cut = index_cut(make_cut(problem, cap, flight), problem)
    rows = problem.budget if left is None else min(left, problem.budget)
    layers = _spare_layers(problem, cut, rows, tolerance)
    if layers is None:
        line = index_timeline(problem, cut, rows, tolerance)
        works = [IndexWork(problem, entry, cut, line) for entry in problem.classes]
        tau, spare = line.tau, None
    else:
        works = [spare_time.SpareWork(problem, entry, cut, layers) for entry in problem.classes]
        tau, spare = -layers, spare_time.Spare(problem.peak_rate, problem.completion_rate)
        tolerance = max(tolerance, spare_time.TOLERANCE)
    done = [_class_index(work, rows, tolerance, part(progress, c, len(works))) for c, work in enumerate(works)]
    if progress is not None:
        progress(1.0)
    settled = all(one.settled < rows for one in done)
    classes = tuple(done) if unit == 1.0 else tuple(one.times(unit) for one in done)
    return IndexTable(tau, classes, problem.budget, problem.budget if settled else rows, spare)


def sweep_size(problem: Problem) -> int:
    """States of one sweep over one class, for every number of arrivals left: a table's time is in proportion to it."""
    cut, answers = make_cut(problem, None, None), problem.answers
    states = sum(math.comb(cut.cap - w + answers, answers) for w in range(cut.flight + 1))
    return states * first_rows(problem)


def first_rows(problem: Problem) -> int:
    """Rows by which a table without a horizon has settled, in most cases."""
    return int(min(FIRST_ROWS + ROWS_PER_RHO * problem.rho, max(problem.budget, 1)))


def index_cut(cut: Cut, problem: Problem) -> Cut:
    """The cut's lattice, deep enough for the states past the cap and their own look-ahead."""
    depth = min(max(cut.depth, cut.cap + BEYOND), max(cut.cap, deepest(problem.answers, BEYOND_NODES)))
    return Cut(cut.cap, cut.flight, min(problem.budget, depth))


def index_timeline(problem: Problem, cut: Cut, rows: int, tolerance: float) -> Timeline:
    """Time layers fine enough for the tolerance (judged by the first class), as far as the table stays in size."""
    line = make_timeline(problem, FIRST_STEPS, "graded")
    while True:
        work = IndexWork(problem, problem.classes[0], cut, line)
        some = min(rows, FIRST_ROWS)
        if 2 * some * work.states * (line.layers - 1) > TABLE_SIZE or work.time_error(some) <= tolerance:
            return line
        line = halve_steps(problem, line)


def _spare_layers(problem: Problem, cut: Cut, rows: int, tolerance: float) -> Floats | None:
    """Layers of time to spare; None where all pairs of arrivals and time left are few enough, or have to be known."""
    x = spare_time.spare_layers(problem)
    states = make_grid(simplex(problem.answers, cut.cap + 1)[0], cut.cap, cut.flight).states
    if x is None or rows * states * FIRST_STEPS <= TABLE_SIZE:
        return None
    return spare_time.make_layers(problem, cut, x, min(rows, first_rows(problem)), max(tolerance, spare_time.TOLERANCE))


def _class_index(work: IndexWork, most: int, tolerance: float, progress: Progress | None) -> ClassIndex:
    cut = work.cut
    rows = min(first_rows(work.problem), most)
    while True:
        at = row_knots(rows)
        roots, proved = work.roots(at, tolerance, progress)
        table = between_knots(at, roots)
        settled = _settled_at(table, tolerance)
        if rows == most or 4 * settled <= 3 * rows:
            break
        rows = most if 3 * rows >= most else 2 * rows
    table = table[: min(settled, len(table))]
    return ClassIndex(
        work.stack.first,
        work.stack.node_of,
        table,
        work.beyond(),
        cut.cap,
        cut.flight,
        settled,
        work.time_error(len(table)),
        work.entry.answers,
        proved and len(at) == rows,
    )


def row_knots(rows: int) -> Ints:
    """Numbers of arrivals left, up to ``rows``, whose indices are solved for."""
    dense = np.arange(1, min(rows, DENSE) + 1)
    if rows <= DENSE:
        return dense
    doublings = np.log2(rows / DENSE)
    sparse = DENSE * 2.0 ** np.linspace(0.0, doublings, int(np.ceil(PER_DOUBLING * doublings)) + 1)
    return np.unique(np.concatenate([dense, np.round(sparse).astype(np.int64)]))


def between_knots(at: Ints, table: Floats) -> Floats:
    """Rows for every n up to the last knot, linear in log n between knots."""
    n = np.arange(1, int(at[-1]) + 1)
    if len(n) == len(at):
        return table
    right = np.clip(np.searchsorted(at, n), 1, len(at) - 1)
    low, high = np.log(at[right - 1]), np.log(at[right])
    share = ((np.log(n) - low) / (high - low))[:, None, None]
    return np.asarray((1.0 - share) * table[right - 1] + share * table[right], dtype=np.float64)


def _settled_at(table: Floats, tolerance: float) -> int:
    """The first number of arrivals left from which all later rows agree with the last one, within the tolerance."""
    far = np.abs(table - table[-1]).reshape(len(table), -1).max(axis=1) > max(10 * ROOT, 0.3 * tolerance)
    return int(np.flatnonzero(far)[-1]) + 2 if far.any() else 1
