"""The index table: limits, slow oracles, Gittins, past the cap, files."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.model.beta import Beta
from nextlabel.model.problem import Problem
from nextlabel.model.simplex import node_of_counts
from nextlabel.model.tasks import TaskClass
from nextlabel.solve.index import IndexTable, index_table
from oracles import Task, gittins, gittins_by_enumeration, index_finite, index_infinite, infinite
from strategies import problem_of, thresholds, weights
from tolerances import INDEX, INDEX_FINITE, ROUNDING

#: Rates at which few labels are in flight: there g has one root (test_indexability shows what happens else).
calm = st.builds(Task, weights, weights, thresholds, st.floats(0.05, 0.5), st.floats(0.4, 2.0))


@pytest.fixture(scope="module")
def paper() -> IndexTable:
    return index_table(Problem.identical(1000, 1200))


# ------------------------------------------------------------------------------------------------- closed forms


#: tests/reference_values.md, The index. The Gittins index on a deep lattice has the same limits.
LIMITS = {(0, 0): 1 / 4, (1, 1): 3 / 16, (2, 2): 5 / 32, (1, 0): 3 / 64, (2, 1): 5 / 112, (2, 0): 0.0164095790}


@pytest.mark.parametrize("state", LIMITS)
def test_theory_theorem_4_limits_are_the_gittins_indices(paper: IndexTable, state: tuple[int, int]) -> None:
    a, b = state
    assert paper.index(0, (a, b), 0, 1200) == pytest.approx(LIMITS[state], abs=INDEX)
    assert paper.index(0, (b, a), 0, 1200) == pytest.approx(LIMITS[state], abs=INDEX)
    assert gittins(Task(), a, b, 150) == pytest.approx(LIMITS[state], abs=1e-9)
    least = min(gittins(Task(), a + 1, b, 150), gittins(Task(), a, b + 1, 150))
    assert paper.index(0, (a, b), 1, 1200) == pytest.approx(least, abs=2e-3)


def test_models_figure_is_of_a_cap() -> None:
    """tests/reference_values.md: with at most ten labels in all, the index of (2,0,0) is below its limit."""
    assert gittins(Task(), 2, 0, 8) == pytest.approx(0.0152, abs=6e-4)
    assert gittins(Task(), 2, 0, 8) < 0.0160 < LIMITS[2, 0]


def test_settled_rows_are_those_of_longer_tables(paper: IndexTable) -> None:
    assert 20 <= paper.settled <= 70
    longer = index_table(Problem.identical(1000, 1200), left=4 * paper.settled)
    for state in ((0, 0), (1, 0), (2, 0), (2, 1), (3, 1)):
        for w in range(3):
            for n in (1, 5, 20, paper.settled, 3 * paper.settled, 1200):
                assert paper.index(0, state, w, n) == pytest.approx(longer.index(0, state, w, n), abs=INDEX)
    assert paper.error == 0.0


# -------------------------------------------------------------------------------------------------- slow oracles


def test_a_kink_between_two_prices_is_not_the_root() -> None:
    task = Task(0.3, 5.0, 0.3125, r=0.25, mu=2.0)
    table = index_table(problem_of(task, 3), cap=3, flight=3)
    assert table.index(0, (0, 0), 0, 3) == pytest.approx(index_infinite(task, 0, 0, 0, 3), abs=INDEX)


@given(calm, st.data())
@settings(max_examples=40, phases=[Phase.explicit, Phase.generate])  # the oracle is too slow to shrink with
def test_against_the_greatest_root(task: Task, data: st.DataObject) -> None:
    U = data.draw(st.integers(1, 6))
    table = index_table(problem_of(task, U), cap=U, flight=U)
    for _ in range(4):
        n = data.draw(st.integers(1, U))
        w = data.draw(st.integers(0, U - n))
        m = data.draw(st.integers(0, U - n - w))
        a = data.draw(st.integers(0, m))
        assert table.index(0, (a, m - a), w, n) == pytest.approx(index_infinite(task, a, m - a, w, n), abs=INDEX)


@pytest.mark.parametrize(
    ("task", "U", "T", "state"),
    [
        (Task(r=1.0), 3, 4.0, (0, 0, 0, 3)),
        (Task(r=1.0), 4, 5.0, (1, 0, 0, 3)),
        (Task(r=1.0), 4, 5.0, (0, 0, 1, 3)),
        (Task(2, 1.3, 0.6, r=0.5), 3, 8.0, (0, 0, 0, 3)),
        (Task(2, 1.3, 0.6, r=0.5), 3, 8.0, (0, 1, 0, 2)),
    ],
)
def test_finite_horizon_against_bisection(task: Task, U: int, T: float, state: tuple[int, int, int, int]) -> None:
    a, b, w, n = state
    table = index_table(problem_of(task, U, T), cap=U, flight=U)
    assert table.error <= INDEX
    assert table.index(0, (a, b), w, n, T) == pytest.approx(
        index_finite(task, a, b, w, n, T), abs=INDEX_FINITE + table.error
    )


def test_a_long_horizon_is_no_horizon() -> None:
    problem = Problem.identical(1, 4, arrival_rate=1.0)
    endless, long = index_table(problem), index_table(replace(problem, horizon=80.0), tolerance=1e-6)
    for n in range(1, 5):
        assert long.index(0, (0, 0), 0, n, 80.0) == pytest.approx(endless.index(0, (0, 0), 0, n), abs=1e-5)
    assert long.index(0, (0, 0), 0, 4, 1e-9) == pytest.approx(0.0, abs=1e-6)
    values = [long.index(0, (0, 0), 0, 4, tau) for tau in (0.5, 2.0, 8.0, 30.0)]
    assert np.all(np.diff(values) > 0)


@given(weights, weights, thresholds, st.data())
@settings(max_examples=40)
def test_labels_at_once_is_gittins(alpha: float, beta: float, d: float, data: st.DataObject) -> None:
    task = Task(alpha, beta, d, r=1e-9, mu=1.0)
    U = data.draw(st.integers(1, 7))
    table = index_table(problem_of(task, U), cap=U, flight=U)
    n = data.draw(st.integers(1, U))
    a = data.draw(st.integers(0, U - n))
    assert table.index(0, (a, 0), 0, n) == pytest.approx(gittins(task, a, 0, n), abs=INDEX)
    if n <= 3:
        assert table.index(0, (a, 0), 0, n) == pytest.approx(gittins_by_enumeration(task, a, 0, n), abs=INDEX)


# ------------------------------------------------------------------------------------------------- past the cap


def test_past_the_cap_is_gittins() -> None:
    table = index_table(Problem.identical(100, 150, prior=(2, 1.5)), cap=4, flight=2)
    task = Task(2, 1.5)
    depth = len(table.classes[0].first) - 2  # the no-delay index looks ahead to there
    assert depth >= 76
    for a, b in ((2, 2), (4, 0), (3, 2), (4, 4)):
        ahead = depth - a - b
        assert table.index(0, (a, b), 0, 150) == pytest.approx(gittins(task, a, b, ahead), abs=INDEX)
        # What looking no further costs: a lopsided state would need more than seventy labels to turn.
        assert table.index(0, (a, b), 0, 150) == pytest.approx(gittins(task, a, b, 150 - a - b), abs=3e-5)
    # With labels in flight past the cap: the least over where they can lead.
    least = min(gittins(task, 3 + k, 4 - k, depth - 7) for k in range(3))
    assert table.index(0, (3, 2), 2, 150) == pytest.approx(least, abs=INDEX)


def test_a_deeper_cap_moves_no_limit(paper: IndexTable) -> None:
    shallow = index_table(Problem.identical(1000, 1200), cap=4, flight=3)
    for state in LIMITS:
        assert shallow.index(0, state, 0, 1200) == pytest.approx(paper.index(0, state, 0, 1200), abs=INDEX)


# ------------------------------------------------------------------------------------------------------- symmetry


@given(weights, weights, thresholds, st.floats(0.05, 5.0))
@settings(max_examples=25)
def test_flip(alpha: float, beta: float, d: float, r: float) -> None:
    U = 5
    assume(1 - (1 - d) == pytest.approx(d, abs=1e-15))
    one = index_table(problem_of(Task(alpha, beta, d, r), U), cap=U, flight=U)
    other = index_table(problem_of(Task(beta, alpha, 1 - d, r), U), cap=U, flight=U)
    for n in range(1, U + 1):
        for m in range(U - n + 1):
            for a in range(m + 1):
                ours, theirs = one.index(0, (a, m - a), 0, n), other.index(0, (m - a, a), 0, n)
                assert ours == pytest.approx(theirs, abs=INDEX)


def test_order_of_classes_permutes_the_answer() -> None:
    classes = (TaskClass(2, Beta(1, 1)), TaskClass(3, Beta(3, 1), 0.6))
    table = index_table(Problem(classes, 6))
    swapped = index_table(Problem(classes[::-1], 6))
    for n in (1, 3, 6):
        assert table.index(0, (1, 0), 1, n) == swapped.index(1, (1, 0), 1, n)
        assert table.index(1, (1, 0), 1, n) == swapped.index(0, (1, 0), 1, n)


@pytest.mark.parametrize("horizon", [math.inf, 6.0])
def test_the_dense_table_is_the_index(horizon: float) -> None:
    U, cap, flight = 6, 4, 2
    problem = Problem((TaskClass(1), TaskClass(1, Beta(2, 1), 0.4)), U, 1.0, 0.4, horizon)
    table = index_table(problem, cap=cap, flight=flight, tolerance=1e-4)
    for c in range(2):
        for n in (1, 4, 6):
            for tau in (horizon, 2.345) if math.isfinite(horizon) else (math.inf,):
                dense = table.policy_index(c, n, tau)
                assert dense.shape == (U + 1, (U + 1) * (U + 2) // 2)
                for w in range(U + 1):
                    for m in range(U + 1):
                        for a in range(m + 1):
                            one = table.index(c, (a, m - a), w, n, tau)
                            assert dense[w, node_of_counts((a, m - a))] == pytest.approx(one, abs=ROUNDING)


# ----------------------------------------------------------------------------------------------------------- files


@pytest.fixture(scope="module")
def small() -> IndexTable:
    return index_table(Problem((TaskClass(1), TaskClass(1, Beta(2, 1), 0.4)), 5))


def test_save_and_load(small: IndexTable, tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    small.save(path)
    again = IndexTable.load(path)
    assert (again.budget, again.settled, again.error) == (small.budget, small.settled, small.error)
    for c in range(2):
        for n in range(1, 6):
            assert np.array_equal(again.policy_index(c, n, math.inf), small.policy_index(c, n, math.inf))
    assert [p.name for p in tmp_path.iterdir()] == ["table.npz"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda whole: b"",
        lambda whole: b"not an archive",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-30],
        lambda whole: whole[:200] + bytes(200) + whole[400:],
    ],
    ids=["empty", "other", "half", "end missing", "middle blank"],
)
def test_broken_files(broken: Callable[[bytes], bytes], small: IndexTable, tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    small.save(path)
    whole = path.read_bytes()
    path.write_bytes(broken(whole))
    with pytest.raises(FileFormatError, match="not an index table"):
        IndexTable.load(path)


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    with pytest.raises(FileFormatError):
        IndexTable.load(tmp_path / "nowhere.npz")
    np.savez(path, tau=np.zeros(1))
    with pytest.raises(FileFormatError, match="not an index table"):
        IndexTable.load(path)
    np.savez(path, meta=np.array('{"format": "something else"}'))
    with pytest.raises(FileFormatError, match="something else"):
        IndexTable.load(path)


def test_an_interrupted_save_leaves_what_was_there(
    small: IndexTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.npz"

    def stop(stream: object, **arrays: np.ndarray) -> None:
        stream.write(b"half")  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", stop)
    with pytest.raises(KeyboardInterrupt):
        small.save(path)
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt):
        small.save(path)
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["table.npz"]
    with pytest.raises(FileFormatError, match="cannot write"):
        small.save(tmp_path / "no such folder" / "table.npz")


def test_no_budget_is_refused() -> None:
    with pytest.raises(ProblemError, match="budget of 0"):
        index_table(Problem.identical(2, 0))


# ------------------------------------------------------------------ a root that the first prices step over


def test_a_narrow_reopening_is_found_by_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """At rho = 25, (0, 0, 2) with 4 arrivals left takes below 0.0077, waits, and takes again from 0.009 to 0.0175.

    From sixteen prices to begin with, none shows the second interval, and a search that looks no further ends in the
    first.
    """
    busy = Problem.identical(4, 10, arrival_rate=10.0)
    monkeypatch.setattr("nextlabel.solve.index_roots.FIRST_PRICES", 16)
    monkeypatch.setattr("nextlabel.solve.index_roots.PROOF_WORK", 0)
    monkeypatch.setattr("nextlabel.solve.index_roots.PART_WORK", 0)
    missed = index_table(busy, cap=10, flight=10)
    assert not missed.proved
    assert missed.index(0, (0, 0), 2, 4) == pytest.approx(0.007675, abs=1e-5)
    monkeypatch.undo()
    monkeypatch.setattr("nextlabel.solve.index_roots.FIRST_PRICES", 16)
    table = index_table(busy, cap=10, flight=10)
    assert table.proved
    assert table.index(0, (0, 0), 2, 4) == pytest.approx(0.0175007, abs=INDEX)


def test_rows_with_few_arrivals_left_are_looked_at_where_all_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Problem.identical(4, 10, arrival_rate=10.0)
    monkeypatch.setattr("nextlabel.solve.index_roots.FIRST_PRICES", 16)
    monkeypatch.setattr("nextlabel.solve.index_roots.PROOF_WORK", 0)
    monkeypatch.setattr("nextlabel.solve.index_roots.PART_ROWS", 5)
    table = index_table(busy, cap=10, flight=10)
    assert not table.proved
    assert table.index(0, (0, 0), 2, 4) == pytest.approx(0.0175007, abs=INDEX)


@pytest.mark.parametrize("r", [4.0, 10.0, 30.0])
def test_the_usual_search_misses_nothing_here(r: float, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Problem.identical(4, 10, arrival_rate=r)
    proved = index_table(busy, cap=10, flight=10)
    monkeypatch.setattr("nextlabel.solve.index_roots.PROOF_WORK", 0)
    monkeypatch.setattr("nextlabel.solve.index_roots.PART_WORK", 0)
    found = index_table(busy, cap=10, flight=10)
    assert proved.proved and not found.proved
    np.testing.assert_allclose(found.classes[0].rows, proved.classes[0].rows, atol=INDEX)


def test_proved_roots_are_the_greatest_on_a_fine_grid() -> None:
    """Every state of a problem that is not indexable, against the plain recursion on 20,000 prices."""
    busy = Problem.identical(3, 6, arrival_rate=10.0)
    table = index_table(busy, cap=6, flight=6)
    assert table.proved
    task = Task(r=10.0)
    prices = np.linspace(0.0, 0.3, 20_001)
    for n, w, a, b in ((4, 2, 0, 0), (3, 1, 1, 0), (3, 2, 0, 0), (2, 1, 1, 1), (2, 3, 0, 0)):
        V = infinite(task, [prices] * (n - 1))
        gain = V(a, b, w + 1, n - 1) - prices - V(a, b, w, n - 1)
        last = np.flatnonzero(gain > 0)[-1]
        assert prices[last] - INDEX <= table.index(0, (a, b), w, n) <= prices[last + 1] + INDEX


def test_a_tiny_index_is_not_taken_for_none() -> None:
    """The first prices end at 0, where the gain of a label is not 0: an index of 1e-6 keeps its digits."""
    problem = Problem.identical(100, 12)
    table = index_table(problem, cap=12, flight=12)
    for n, w, a, b in ((5, 4, 2, 0), (6, 5, 1, 0), (4, 4, 3, 0), (3, 6, 2, 1)):
        exact = index_infinite(Task(), a, b, w, n, top=0.05)
        assert table.index(0, (a, b), w, n) == pytest.approx(exact, abs=INDEX)


def test_a_class_that_is_not_there_is_refused() -> None:
    table = index_table(Problem.identical(2, 3, arrival_rate=2))
    for c in (1, 3, -1):
        with pytest.raises(ProblemError, match=f"the table has no class {c}"):
            table.index(c, (1, 0), 0, 2)
