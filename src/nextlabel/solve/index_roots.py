"""Index roots of one class: sweeps at well-chosen prices narrow the brackets of all states at once.

========= ======== ================================================================================
symbol    code     meaning
========= ======== ================================================================================
y         --       tau - (n - 1) / r: slack time, once the arrivals that are left have come
y_lo      least    a campaign that starts with all its time comes below it with chance LATE
x         late     e^{-mu y}: the chance that a label given to the last arrival is not back in time
========= ======== ================================================================================

Notation of ``kernels.sweep``. A round sweeps at up to PRICES_A_ROUND prices; each open bracket then names the price it
would like to see next (where its tangents cross zero), and the next round takes a spread-out choice of these.

*Proof that no greater root was missed* (``look_above``; docs/theory.md, section 8): V is convex in the price, so that
values and slopes at both ends of an interval bound g inside; intervals that are not ruled out are cut in PARTS and
looked at again, until they are ruled out or narrower than the tolerance. Without a horizon only, where V is exact, and
where it takes at most PROOF_WORK state updates; elsewhere only rows with few arrivals left are looked at, and nothing
is proved.

*A deadline that comes after the last arrival* (``SlackTimeWork``). Time left and arrivals left fall together, and the
slack time stays about where it was: a campaign meets only a strip of the pairs (n, tau), along which indices hardly
change. The table has a few layers of x, from that of y_lo down to 0, no deadline at all, and is linear in x between
them. Its ``error`` is the largest change of an advantage, over a few prices, when there are twice as many layers, and
of the line between them, at pairs that a campaign meets; roots are searched for to SLACK_TOLERANCE.
Guarantee: roots within the tolerance where g changes sign once; elsewhere the greatest root found, which is the
greatest of all where the proof is complete. Cost: some hundred to some thousand sweeps, one and a half times for each
layer of slack time (``kernels.sweep``); about as many for the proof.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf

import numpy as np
from scipy.special import gammaincinv

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.kernels.inputs import make_grid
from nextlabel.kernels.no_delay import limit_indices
from nextlabel.kernels.sweep import (
    FEWEST,
    Block,
    Brackets,
    Openings,
    Stencils,
    fill_edges,
    narrow,
    new_block,
    next_row,
    prices_at_once,
    rule_out,
    stencils,
    sweep,
)
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass, stack_classes
from nextlabel.solve.progress import Progress
from nextlabel.solve.truncation import Cut, Timeline, differences, halve_steps, make_stencils, make_timeline

#: State updates that a proof may cost; prices of its first pass; parts into which an open interval is cut.
PROOF_WORK = 4_000_000
PROOF_PRICES, PARTS = 257, 4
#: Where that is not enough for all rows: rows that are looked at, and what it may cost.
PART_ROWS, PART_WORK = 64, 20_000_000


def _cut(prices: Floats, wide: list[int]) -> tuple[Floats, np.ndarray]:
    """The intervals in parts: prices, and whether each price ends a part."""
    out: list[float] = []
    linked: list[bool] = []
    for p in wide:
        parts = np.linspace(prices[p - 1], prices[p], PARTS + 1).tolist()
        if not out or out[-1] != parts[0]:
            out.append(parts[0])
            linked.append(False)
        out += parts[1:]
        linked += [True] * PARTS
    return np.array(out), np.array(linked)


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
        self.states = self.grid.states
        self.top = 1.001 * float(self.stack.spread[0])
        self.steps = make_stencils(problem, line, cut.flight)

    def roots(self, at: Ints, tolerance: float, progress: Progress | None) -> tuple[Floats, bool]:
        """Greatest roots for n in ``at`` (rising), and whether it is proved that no greater one was missed."""
        shape = (len(at), self.states, self.layers)
        root = np.zeros(shape)
        todo = np.zeros(shape, dtype=bool)
        todo[:, self.grid.up >= 0] = True
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
        prices = np.ascontiguousarray(prices)  # of one layout, which is compiled once
        narrow(self.stack, self.grid, self.steps, prices, at, self.block(prices), out)

    def block(self, prices: Floats) -> Block:
        """Work space for sweeps at these prices, as many at once as the cache allows."""
        fewest = 1 if self.line.finite else FEWEST
        return new_block(self.states, self.layers, prices_at_once(self.states, self.layers, len(prices), fewest))

    def look_above(self, at: Ints, root: Floats, tolerance: float) -> tuple[Floats, bool]:
        """Prices above the roots at which 'assign' is better (0: none was seen), and whether all others are ruled out.

        With layers none are looked for.
        """
        higher = np.zeros(root.shape)
        if self.layers > 1:
            return higher, False
        known, left = len(at), PROOF_WORK // (int(at[-1]) * self.states)
        if left < PROOF_PRICES:  # too dear for all rows: those with few arrivals left have several roots most often
            known = int(np.searchsorted(at, PART_ROWS, side="right"))
            left = PART_WORK // (int(at[known - 1]) * self.states)
        prices = self.top * np.linspace(1.0, 0.0, PROOF_PRICES) ** 2
        linked, block = np.ones(len(prices), dtype=bool), self.block(prices)
        above = np.ascontiguousarray(root[:known, :, 0])
        while len(prices) <= left:
            left -= len(prices)
            found = Openings(np.zeros(len(prices), dtype=bool), higher[:known, :, 0])
            rule_out(self.stack, self.grid, self.steps, prices, linked, at[:known], above, tolerance, block, found)
            wide = [int(p) for p in np.flatnonzero(found.open_) if prices[p - 1] - prices[p] > tolerance]
            if not wide:
                return higher, known == len(at)
            prices, linked = _cut(prices, wide)
        return higher, False

    def advantages(self, rows: int, lam: float) -> Floats:
        """V(w+1) - V(w) with n - 1 arrivals left, at one price."""
        V, N = np.zeros((2, rows, self.states, self.line.layers))
        sweep(self.stack, self.grid, self.steps, lam, V, N)
        A = differences(np.moveaxis(V, 1, 2), self.grid)
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
        s, own = self.stack, stack_classes([self.entry], self.stack.depth, lumped=False)
        index, facts = np.zeros(s.nodes), np.column_stack([own.reward[0], np.cumsum(own.prob[0], axis=1)[:, :-1]])
        kept = np.unique(s.node_of, return_index=True)[1]  # one node of those that are alike
        limit_indices(own.first, own.child, facts, np.sort(kept), index[: len(kept)])
        index = index[np.argsort(np.argsort(kept))]
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


#: Chance that a campaign has less slack time, at its last arrival, than the table knows.
LATE = 1e-9
#: Prices, as shares of the largest index, at which the error is judged; and shares of what a deadline takes from it.
JUDGED, JUDGED_NEAR = (0.6, 0.4, 0.2, 0.1, 0.05), (0.2, 0.5, 0.8)


def least_slack_time(problem: Problem) -> float:
    """y at the last arrival, which is below it with chance LATE."""
    return problem.horizon - float(gammaincinv(problem.budget, 1.0 - LATE)) / problem.peak_rate


def most_late(problem: Problem, rows: int) -> Floats:
    """(rows,) x with 1, 2, .. arrivals left, which a campaign exceeds with chance LATE."""
    n = np.arange(1, rows + 1)
    spent = gammaincinv(problem.budget - n + 1, 1.0 - LATE) / problem.peak_rate
    slack_time = problem.horizon - spent - (n - 1) / problem.peak_rate
    return np.asarray(np.exp(-problem.completion_rate * slack_time), dtype=np.float64)


def finer(x: Floats) -> Floats:
    """The layers and as many between them."""
    return np.asarray(x[0] * np.linspace(1.0, 0.0, 2 * len(x) - 1) ** 2)


def slack_steps(problem: Problem, flight: int, x: Floats) -> Stencils:
    """Weights of the stencils: exact for 1, x and x^2."""
    r, mu, power = problem.peak_rate, problem.completion_rate, np.arange(3)
    start = np.clip(np.arange(len(x)) - 1, 0, len(x) - 3)
    through = np.linalg.inv([np.vander(x[j : j + 3], 3, increasing=True).T for j in start])
    arrived, returned = np.zeros((2, flight + 1, len(x), 3))
    for w in range(flight + 1):
        q = r + mu * w
        mean = x[:, None] ** power * q / (q - power * mu)
        arrived[w] = r / q * np.einsum("kgj,kj->kg", through, mean * np.exp(-power * mu / r))
        returned[w] = mu * w / q * np.einsum("kgj,kj->kg", through, mean)
    found: Stencils = stencils(x, start.astype(np.int64), arrived, returned)
    return found


class SlackTimeWork(IndexWork):
    """Sweeps over layers of slack time."""

    def __init__(self, problem: Problem, entry: TaskClass, cut: Cut, x: Floats) -> None:
        endless = replace(problem, horizon=inf)
        super().__init__(endless, entry, cut, make_timeline(endless))
        self.timed = problem
        self.layers, self.x = len(x), x
        self.steps = slack_steps(problem, cut.flight, x)

    def time_error(self, rows: int) -> float:
        """Largest change of an advantage when there are twice as many layers, where a campaign comes."""
        prices, near = self._judged_prices()
        both = [self, SlackTimeWork(self.timed, self.entry, self.cut, finer(self.x))]
        met = both[1].x <= most_late(self.timed, rows)[:, None] * (1.0 + 1e-9)
        blocks = [work.block(prices) for work in both]
        for work, block in zip(both, blocks, strict=True):
            fill_edges(work.stack, work.grid, prices, block)
        worst = 0.0
        for n in range(rows):
            few, many = (work._advantages(block, n, prices) for work, block in zip(both, blocks, strict=True))
            share = ((both[1].x[1::2] - self.x[1:]) / (self.x[:-1] - self.x[1:]))[:, None, None]
            many[::2] -= few
            many[1::2] -= share * few[:-1] + (1.0 - share) * few[1:]
            many[1::2, near] = 0.0
            worst = max(worst, float(np.abs(many[met[n]]).max()))
        return worst

    def _judged_prices(self) -> tuple[Floats, Bools]:
        """Falling prices at which the error is judged, and which of them take the first label of a task in time only.

        There what a task is worth has a kink between two layers, which says nothing about the line between their roots.
        """
        stack = self.stack
        gain = float(stack.prob[0, 0] @ stack.reward[0, stack.child[0]] - stack.reward[0, 0])
        near = gain * (1.0 - self.x[0] * np.array(JUDGED_NEAR))
        prices = np.concatenate([self.top * np.array(JUDGED), near])
        falling = np.argsort(-prices)
        return prices[falling], falling >= len(JUDGED)

    def _advantages(self, block: Block, n: int, prices: Floats) -> Floats:
        """(layers, P, states) V(w+1) - V(w) with n arrivals left, which is swept after n - 1."""
        next_row(self.stack, self.grid, self.steps, prices, n, False, block)
        V = block.V[n % 2].reshape(self.states, self.layers, len(prices))
        return differences(np.moveaxis(V, 0, 2), self.grid)
