"""Index roots of one class: sweeps at well-chosen prices narrow the brackets of all states at once.

Notation of ``kernels.index``. A round sweeps at up to PRICES_A_ROUND prices; each open bracket then names the price it
would like to see next (where its tangents cross zero), and the next round takes a spread-out choice of these.
Guarantee: roots within the tolerance where g changes sign once; elsewhere the greatest root found, which is the
greatest of all where ``proof`` says so. Cost: some hundred to some thousand sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.kernels.index import Brackets, gittins, narrow, narrow_over_time, sweep
from nextlabel.kernels.inputs import make_grid
from nextlabel.kernels.price_block import make_block_room
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.solve.core_states import differences
from nextlabel.solve.index.proof import look_above
from nextlabel.solve.progress import Progress
from nextlabel.solve.relaxed import stack_classes
from nextlabel.solve.timeline import NO_STEPS, Timeline, halve_steps, step_weights
from nextlabel.solve.truncation import Cut, late_tail

#: Brackets narrower than this are roots; so are brackets whose two tangents agree on the root within the tolerance.
ROOT = 1e-9
#: An advantage up to this is none.
FLAT = 1e-10
FIRST_PRICES = 256
PRICES_A_ROUND = 512
ROUNDS = 60
#: Searches at most, each from the greater roots that the one before has missed.
SEARCHES = 6
#: Labels in flight up to which the index past the cap is tabulated.
BEYOND_FLIGHT = 32
#: States times prices from which a round is worth two threads.
THREAD_WORK = 10_000_000


class IndexWork:
    """Arrays of one class and the sweeps on them."""

    def __init__(self, problem: Problem, entry: TaskClass, cut: Cut, line: Timeline) -> None:
        self.problem, self.entry, self.cut, self.line = problem, entry, cut, line
        self.layers = line.layers
        self.stack = stack_classes([entry], cut.depth, problem.budget)
        self.grid = make_grid(self.stack.first, cut.cap, cut.flight)
        self.off, self.states = self.grid.off, self.grid.states
        self.top = 1.001 * float(self.stack.spread[0])
        self.weights = step_weights(problem, line, cut.flight) if line.finite else NO_STEPS

    def call(self, kernel: Callable[..., Any], *rest: Any) -> Any:
        """Call an index kernel: the class's arrays come first, then what this call brings."""
        steps = self.line.steps(self.problem.completion_rate)
        tail = late_tail(self.problem, self.cut.depth)
        return kernel(self.stack.arrays, self.grid, steps, self.weights, tail, *rest)

    def roots(self, at: Ints, tolerance: float, progress: Progress | None) -> tuple[Floats, bool]:
        """Greatest roots for n in ``at`` (rising), and whether it is proved that no greater one was missed."""
        shape = (len(at), self.states, self.layers)
        root = np.zeros(shape)
        todo = np.zeros(shape, dtype=bool)
        for w in range(self.cut.flight):
            todo[:, self.off[w] : self.off[w] + self.stack.first[self.cut.cap - w]] = True
        if self.line.finite:
            todo[:, :, 0] = False  # no time left: a label is worth nothing
        prices = self.top * np.linspace(1.0, 0.0, FIRST_PRICES, endpoint=False)[1:] ** 2
        self._search(at, prices, todo, root, tolerance, progress)
        # Below the least of these prices little has been tried, and 0 not at all.
        low = root.copy()
        self._search(at, np.array([prices[-1], 0.0]), todo & (root <= prices[-1]), low, tolerance, progress)
        np.maximum(root, low, out=root)
        for _ in range(SEARCHES):
            higher, complete = self.look_above(at, root, tolerance)
            todo = higher > root + tolerance
            if not todo.any():
                return root, complete
            prices = np.unique(np.concatenate([prices, higher[todo]]))[::-1]
            self._search(at, prices, todo, root, tolerance, progress)
        return root, False

    def _search(
        self, at: Ints, prices: Floats, todo: Bools, root: Floats, tolerance: float, progress: Progress | None
    ) -> None:
        """Roots of the states ``todo``, from sweeps at these prices on, chosen where the open brackets point."""
        lo, hi = np.full(root.shape, -1.0 if prices[-1] == 0.0 else 0.0), np.full(root.shape, self.top)
        ends = np.zeros((4, *root.shape))
        ends[2] = -self.top
        ends[3] = -1.0
        todo = todo.copy()
        if not todo.any():
            return
        for step in range(ROUNDS):
            self._narrow(prices, at, lo, hi, ends)
            if progress is not None:
                progress(1.0 - 0.8 ** (step + 1))
            guess, solved = _solve_brackets(lo[todo], hi[todo], ends[:, todo], tolerance, step)
            root[todo] = np.maximum(guess, 0.0)
            todo[todo] = ~solved
            if not todo.any():
                break
            prices = _pick(root[todo])

    def _narrow(self, prices: Floats, at: Ints, lo: Floats, hi: Floats, ends: Floats) -> None:
        """Brackets narrowed on two threads, by both halves of the prices; the upper half wins where it has a root."""
        if len(prices) * int(at[-1]) * lo[0].size < THREAD_WORK:
            self._sweep(prices, at, Brackets(lo, hi, ends))
            return
        half = len(prices) // 2
        lo_up, hi_up, ends_up = lo.copy(), hi.copy(), ends.copy()
        floor = lo.copy()
        with ThreadPoolExecutor(2) as pool:
            upper = pool.submit(self._sweep, prices[:half], at, Brackets(lo_up, hi_up, ends_up))
            self._sweep(prices[half:], at, Brackets(lo, hi, ends))
            upper.result()
        wins = lo_up > floor
        above = wins | (hi_up < hi)
        np.copyto(lo, lo_up, where=wins)
        np.copyto(ends[:2], ends_up[:2], where=wins)
        np.copyto(hi, hi_up, where=above)
        np.copyto(ends[2:], ends_up[2:], where=above)

    def _sweep(self, prices: Floats, at: Ints, out: Brackets) -> None:
        """Sweeps at these falling prices, on one thread."""
        if self.line.finite:
            shape = (int(at[-1]), *out.lo.shape[1:])
            self.call(narrow_over_time, prices, at, np.zeros(shape), np.zeros(shape), out)
        else:
            room = make_block_room(self.stack.nodes, self.states, len(prices))
            steps = self.line.steps(self.problem.completion_rate)
            narrow(self.stack.arrays, self.grid, steps, prices, at, room, out)

    def look_above(self, at: Ints, root: Floats, tolerance: float) -> tuple[Floats, bool]:
        """Greater roots that were missed, and whether there are no others (``proof``)."""
        return look_above(self, at, root, tolerance)

    def advantages(self, rows: int, lam: float) -> Floats:
        """V(w+1) - V(w) with n - 1 arrivals left, at one price."""
        V, N = np.zeros((2, rows, self.states, self.line.layers))
        self.call(sweep, lam, V, N)
        A = differences(np.moveaxis(V, 1, 2), self.stack.first, self.cut.cap, self.cut.flight)
        return np.moveaxis(A, 2, 1)

    def time_error(self, rows: int) -> float:
        """Largest change of an advantage, over a few prices, when every time step is halved; 0 for infinite T."""
        if not self.line.finite:
            return 0.0
        fine = IndexWork(self.problem, self.entry, self.cut, halve_steps(self.problem, self.line))
        prices = self.top * np.array([0.05, 0.1, 0.2, 0.4])
        return max(
            float(np.abs(self.advantages(rows, lam) - fine.advantages(rows, lam)[:, :, ::2]).max()) for lam in prices
        )

    def beyond(self) -> Floats:
        """(w, nodes) no-delay index: Gittins for w = 0, else its least over the nodes w labels on."""
        s = self.stack
        index = np.zeros(s.nodes)
        gittins(s.first, s.reward[0], s.prob[0], s.child, s.depth, np.empty(s.nodes), np.empty(s.nodes), index)
        rows = [index]
        inner = int(s.first[s.depth])
        for _ in range(max(self.cut.flight, BEYOND_FLIGHT)):
            following = np.zeros(s.nodes)
            after = np.where(s.prob[0, :inner] > 0, rows[-1][s.child[:inner]], np.inf)
            following[:inner] = after.min(axis=1)
            rows.append(following)
        return np.stack(rows)


def _solve_brackets(lo: Floats, hi: Floats, ends: Floats, tolerance: float, step: int) -> tuple[Floats, Bools]:
    """Root of each bracket if it is known, else the price to try next.

    A root is known when the bracket is tiny, when g is 0 at ``lo`` and the tangent from above leads there, or when the
    tangents from both sides and the chord agree: g is then straight, or bent so little that it does not matter.
    """
    g_lo, s_lo, g_hi, s_hi = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        from_hi = np.clip(np.where(s_hi < 0, hi - g_hi / s_hi, lo), lo, hi)
        from_lo = np.clip(np.where(s_lo < 0, lo - g_lo / s_lo, hi), lo, hi)
        chord = np.clip(np.where(g_lo > g_hi, lo + (hi - lo) * g_lo / (g_lo - g_hi), lo), lo, hi)
    near = (hi - lo <= ROOT) | ((from_hi - lo <= ROOT) & (g_lo <= FLAT))
    agree = (np.abs(from_hi - from_lo) <= 0.3 * tolerance) & (np.abs(from_hi - chord) <= 0.3 * tolerance)
    trial = chord if step % 3 == 1 else (from_hi if step % 3 == 0 else 0.5 * (lo + hi))
    trial = np.where((trial <= lo) | (trial >= hi), 0.5 * (lo + hi), trial)
    return np.where(near, from_hi, np.where(agree, chord, trial)), near | agree


def _pick(wanted: Floats) -> Floats:
    """At most PRICES_A_ROUND of the prices asked for, spread over them, falling."""
    unique = np.unique(np.round(wanted, 11))[::-1]
    if len(unique) > PRICES_A_ROUND:
        unique = unique[np.linspace(0, len(unique) - 1, PRICES_A_ROUND).astype(np.int64)]
    return unique
