"""Index tables: where a label is worth most, for every state of a task; and whether a problem is indexable at all.

=========== ========= ================== ==================================================================
symbol      code      shape              meaning
=========== ========= ================== ==================================================================
lam*        rows      (n, states, layers) greatest price at which 'assign' is optimal, n arrivals left
tau_k       tau       (layers,)          time left (one layer, inf, when T is infinite); with ``slack_time`` -x instead
--          beyond    (w, nodes)         index past the cap: no-delay continuation, any n
=========== ========= ================== ==================================================================

    lam*(i,w,n) = max{ lam : V(i,w+1,n-1; lam) - lam >= V(i,w,n-1; lam) }.

The rows settle as n grows (``settled``, within the tolerance); later arrivals use the last row. From DENSE arrivals
left on the roots are found for some n, ever sparser, and interpolated for the others. Past the cap a task goes on as if
labels came at once, where lam*(i, 0) is the Gittins index max_tau E[R_tau - R] / E[tau] and lam*(i, w) the least of it
over the nodes that the w labels in flight can lead to.
Guarantee: 1e-7 of the rewards' unit (``reward_unit``) for n up to DENSE, of the greatest root found (of the greatest
root where ``proved``), but for ties: where g is within TIED_VALUES of 0 over more than that, any price of the flat
piece counts. For finite T also the time steps matter, and ``error`` is the estimate of what they leave. A large problem
whose deadline comes after its last arrival has layers of slack time instead (``solve.index_roots``). Interpolated
rows are within some 1e-6 of their roots but where a root jumps as n grows (the problem is not quite indexable); there
they are between the two.

A problem is indexable if, as the price grows, the states that take a label only become fewer. That is checked by sweeps
on a grid of prices, every state and number of arrivals left: a state that clearly waits at a lower price and clearly
takes a label at a higher one is a violation. Only states whose whole look-ahead fits below the cap are judged, so that
truncation cannot cause one. No violation on the grid is evidence, not a proof.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isinf
from pathlib import Path

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.kernels.inputs import NO_SLACK_TIME, TIED, SlackTime, layer_at, make_grid, place_in_time
from nextlabel.model.problem import Problem, in_units, refuse_workers
from nextlabel.model.simplex import counts_of_node, deepest, node_of_counts, simplex
from nextlabel.solve.index_roots import (
    ROOT,
    IndexWork,
    SlackTimeWork,
    finer,
    least_slack_time,
)
from nextlabel.solve.progress import Progress, part
from nextlabel.solve.truncation import (
    Cut,
    Timeline,
    halve_steps,
    make_cut,
    make_timeline,
    over_own_lattice,
    state_columns,
)

FORMAT = "nextlabel index table 2"


@dataclass(frozen=True, slots=True)
class ClassIndex:
    """Index rows of one class, on its lumped lattice."""

    first: Ints
    node_of: Ints
    rows: Floats
    beyond: Floats
    cap: int
    flight: int
    settled: int
    error: float
    answers: int = 2
    #: No root above these was missed (``proof``).
    proved: bool = False

    def times(self, factor: float) -> ClassIndex:
        """The indices in another unit."""
        return replace(self, rows=factor * self.rows, beyond=factor * self.beyond, error=factor * self.error)

    def core(self, flight: int, own: Ints) -> Ints:
        """(flight + 1, nodes) column of ``rows`` of [w, node] over the class's own lattice, -1 where there is none."""
        return state_columns(make_grid(self.first, self.cap, self.flight), self.node_of, flight, own, edge=False)

    def dense_beyond(self, flight: int, own: Ints) -> Floats:
        """(flight + 1, nodes) the index of [w, node] past the cap, over the class's own lattice; 0 where it ends."""
        return over_own_lattice(self.beyond, self.first, self.node_of, flight, own)

    def dense(self, n: int, layer: int, flight: int, depth: int) -> Floats:
        """(flight + 1, nodes) index of [w, node] over the class's own lattice of that depth."""
        own = simplex(self.answers, depth)[0]
        out, core = self.dense_beyond(flight, own), self.core(flight, own)
        inside = core >= 0
        out[inside] = self.rows[min(n, len(self.rows)) - 1, core[inside], layer]
        return out


@dataclass(frozen=True, slots=True)
class IndexTable:
    """Indices of all classes of a problem."""

    tau: Floats
    classes: tuple[ClassIndex, ...]
    budget: int
    left: int
    #: What the layers ``tau`` stand for, if there is a deadline after the last arrival.
    slack_time: SlackTime = NO_SLACK_TIME

    @property
    def settled(self) -> int:
        """Arrivals left from which no row changes any more."""
        return max(c.settled for c in self.classes)

    @property
    def error(self) -> float:
        """Estimated error of the indices (layers of time; finite horizon)."""
        return max(c.error for c in self.classes)

    @property
    def proved(self) -> bool:
        """Whether every index up to the cap is proved to be the greatest root, and not just the greatest one found."""
        return all(c.proved for c in self.classes)

    def index(self, c: int, counts: Sequence[int], w: int, n: int, tau: float = math.inf) -> float:
        """Index of class ``c``, w labels in flight, n arrivals and time tau left.

        ``counts`` are the labels come in: (ones, zeros), or one number an answer if there are more than two.
        """
        if not 0 <= c < len(self.classes):
            raise ProblemError(
                f"the table has no class {c}.",
                f"It has {len(self.classes)}, counted from 0: ask for 0 to {len(self.classes) - 1}.",
            )
        if len(counts) != self.classes[c].answers:
            raise ProblemError(
                f"the state has {len(counts)} counts for {self.classes[c].answers} answers.",
                "Give the number of labels of each answer.",
            )
        if not 1 <= n <= self.left:
            raise ProblemError(f"the table has no row for {n} arrivals left.", f"Ask for 1 to {self.left}.")
        if self.slack_time.rate > 0.0 and place_in_time(self.slack_time, n, tau) < self.tau[0] * (1.0 + 1e-9):
            raise ProblemError(
                f"the table has no entry for {n} arrivals left and a time of {tau:g}: a campaign that starts with the "
                f"whole budget and horizon does not come there.",
                f"Solve the table for a budget of {n} and a horizon of {tau:g}.",
            )
        return float(self._dense(c, n, tau, w, sum(counts))[w, node_of_counts(counts)])

    def policy_index(self, c: int, n: int, tau: float) -> Floats:
        """(U + 1, nodes) index of [w, node] for ``solve.exact.index_value``."""
        return self._dense(c, n, tau, self.budget, self.budget)

    def save(self, path: str | Path) -> None:
        """Write the table to one file (NumPy archive), whole or not at all."""
        path = Path(path)
        arrays: dict[str, np.ndarray] = {"tau": self.tau}
        entries = []
        for c, one in enumerate(self.classes):
            for name in ("first", "node_of", "rows", "beyond"):
                arrays[f"{name}_{c}"] = getattr(one, name)
            names = ("cap", "flight", "settled", "error", "answers", "proved")
            entries.append({name: getattr(one, name) for name in names})
        meta = {"format": FORMAT, "budget": self.budget, "left": self.left, "slack_time": self.slack_time}
        arrays["meta"] = np.array(json.dumps({**meta, "classes": entries}))
        try:
            handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            raise FileFormatError(
                f"cannot write {path}: {error.strerror}.", "Give a path in a folder that exists."
            ) from error
        try:
            with os.fdopen(handle, "wb") as stream:
                np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
            os.replace(partial, path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | Path) -> IndexTable:
        """Read a table that ``save`` wrote."""
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as data:
                meta = json.loads(str(data["meta"]))
                if meta["format"] != FORMAT:
                    raise FileFormatError(
                        f"{path} has the format {meta['format']!r}.", f"This version reads {FORMAT!r}."
                    )
                slack_time = SlackTime(*map(float, meta["slack_time"] or NO_SLACK_TIME))
                classes = tuple(
                    ClassIndex(
                        data[f"first_{c}"], data[f"node_of_{c}"], data[f"rows_{c}"], data[f"beyond_{c}"], **entry
                    )
                    for c, entry in enumerate(meta["classes"])
                )
                return cls(data["tau"], classes, int(meta["budget"]), int(meta["left"]), slack_time)
        except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
            raise FileFormatError(f"{path} is not an index table.", "Make one with nextlabel index --save.") from error

    def _dense(self, c: int, n: int, tau: float, flight: int, depth: int) -> Floats:
        """(flight + 1, nodes) index of [w, node], between the layers around ``tau``."""
        one, (k, share) = self.classes[c], layer_at(self.tau, self.slack_time, n, tau)
        left = one.dense(n, k, flight, depth)
        return left if share == 0.0 else (1.0 - share) * left + share * one.dense(n, k + 1, flight, depth)


TOLERANCE = 1e-7
#: Rows tried first, and so many more for each label in flight; more until the last ones agree.
FIRST_ROWS, ROWS_PER_RHO = 64, 30
#: Every n up to the first number has roots of its own; then so many n as n doubles, and lines in log n between them.
DENSE, PER_DOUBLING = 256, 32
#: Time steps of a finite horizon: doubled from the first number until the error fits, or the table is this large.
FIRST_STEPS = 64
TABLE_SIZE = 600_000
#: Layers of slack time at first and at most, doubled, less one, until the error fits; roots are not searched for more
#: accurately than that.
FIRST_LAYERS, MOST_LAYERS, SLACK_TOLERANCE = 3, 17, 1e-5
#: Labels in flight from which x is nearly a martingale, and the largest x of a table.
LEAST_RHO, MOST_LATE = 5.0, 0.02
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
    layers = slack_layers(problem, cut, rows, tolerance)
    if layers is None:
        line = index_timeline(problem, cut, rows, tolerance)
        works = [IndexWork(problem, entry, cut, line) for entry in problem.classes]
        tau, slack_time = line.tau, NO_SLACK_TIME
    else:
        works = [SlackTimeWork(problem, entry, cut, layers) for entry in problem.classes]
        tau, slack_time = -layers, SlackTime(problem.peak_rate, problem.completion_rate)
        tolerance = max(tolerance, SLACK_TOLERANCE)
    done = [_class_index(work, rows, tolerance, part(progress, c, len(works))) for c, work in enumerate(works)]
    if progress is not None:
        progress(1.0)
    settled = all(one.settled < rows for one in done)
    classes = tuple(done) if unit == 1.0 else tuple(one.times(unit) for one in done)
    return IndexTable(tau, classes, problem.budget, problem.budget if settled else rows, slack_time)


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


def slack_layers(problem: Problem, cut: Cut, rows: int, tolerance: float) -> Floats | None:
    """Falling x down to 0, fine enough for the tolerance (judged by the first class), as far as there may be so many.

    None where all pairs of arrivals and time left are few enough, or have to be known: the deadline may come before the
    last labels are back.
    """
    states = make_grid(simplex(problem.answers, cut.cap + 1)[0], cut.cap, cut.flight).states
    few = rows * states * FIRST_STEPS <= TABLE_SIZE
    if few or not problem.finite or len(problem.rate_pieces[1]) > 1 or problem.rho < LEAST_RHO:
        return None
    x = (
        math.exp(-problem.completion_rate * max(least_slack_time(problem), 0.0))
        * np.linspace(1.0, 0.0, FIRST_LAYERS) ** 2
    )
    if x[0] > MOST_LATE:
        return None
    judged, tolerance = min(rows, first_rows(problem)), max(tolerance, SLACK_TOLERANCE)
    while 2 * len(x) - 1 <= MOST_LAYERS:
        if SlackTimeWork(problem, problem.classes[0], cut, x).time_error(judged) <= tolerance:
            break
        x = finer(x)
    return x


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


PRICES_CHECKED = 400
#: Labels a task, in flight or not, and arrivals left up to which states are checked.
DEPTH_CHECKED = 24
#: Beliefs of one task up to which that depth is kept.
MOST_NODES_CHECKED = 1000


@dataclass(frozen=True, slots=True)
class Violation:
    """A state that waits at a lower price than one at which it takes a label."""

    task_class: int
    node: int
    in_flight: int
    left: int
    time_left: float
    price: float
    answers: int = 2

    def __str__(self) -> str:
        counts = counts_of_node(self.answers, self.node)
        seen = f"{counts[0]} ones and {counts[1]} zeros" if self.answers == 2 else f"labels {counts}"
        when = "" if isinf(self.time_left) else f", time left {self.time_left:g}"
        return (
            f"class {self.task_class}, {seen} seen, {self.in_flight} in flight, "
            f"{self.left} arrivals left{when}, price {self.price:.3g}"
        )


@dataclass(frozen=True, slots=True)
class IndexabilityReport:
    """Outcome of the check over ``prices_checked`` prices and ``states_checked`` states."""

    indexable: bool
    prices_checked: int
    states_checked: int
    violations: int
    first_violation: Violation | None


def check_indexability(
    problem: Problem,
    *,
    cap: int | None = None,
    flight: int | None = None,
    prices: int = PRICES_CHECKED,
    progress: Progress | None = None,
) -> IndexabilityReport:
    """Look for states whose decision reopens as the price grows."""
    refuse_workers(problem, "a check of indexability")
    problem, unit = in_units(problem)
    top = min(max(problem.budget, 1), DEPTH_CHECKED, deepest(problem.answers, MOST_NODES_CHECKED))
    cut = make_cut(problem, top if cap is None else cap, top if flight is None else flight)
    rows = cut.cap
    line = index_timeline(problem, cut, rows, 1e-5)
    violations = states = 0
    first: Violation | None = None
    for c, entry in enumerate(problem.classes):
        work = IndexWork(problem, entry, cut, line)
        grid, n = work.grid, np.arange(rows)[:, None]
        # Only states whose look-ahead of n + 1 labels stays off the edge: there V is the model's own.
        reach, level = grid.flight + n, np.searchsorted(work.stack.first, grid.node, side="right") - 1
        judged = ((reach < cut.flight) & (level + reach < cut.cap))[:, :, None]
        closed = np.zeros((rows, work.states, line.layers), dtype=bool)
        for price in work.top * np.linspace(0.0, 1.0, prices + 1)[1:] ** 2:
            gain = work.advantages(rows, price) - price
            found = np.argwhere(judged & closed & (gain > TIED))
            closed |= judged & (gain < -TIED)
            violations += len(found)
            if len(found) and first is None:
                n_, s, k = found[0].tolist()
                node = int(np.flatnonzero(work.stack.node_of == grid.node[s])[0])
                left, time_left = n_ + 1, float(line.tau[k])
                first = Violation(c, node, int(grid.flight[s]), left, time_left, unit * float(price), entry.answers)
        states += int(judged.sum()) * line.layers
        if progress is not None:
            progress((c + 1) / len(problem.classes))
    return IndexabilityReport(violations == 0, prices, states, violations, first)
