"""Thompson's draws: what is left undrawn cannot win, and everything else is as if all groups had been drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextlabel.kernels.choice import PolicyArrays, StateScores, draw_groups, drawn, most_drawn, scores_by_state
from nextlabel.model.problem import Problem
from nextlabel.policies.base import Setting
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import make_policy_arrays, make_problem_arrays

DEPTH = 5


def thompson() -> tuple[Setting, PolicyArrays, StateScores, np.ndarray]:
    setting = Setting.of(Problem.identical(40, 60), DEPTH, DEPTH)
    arrays, tables = make_problem_arrays(setting, True), make_policy_arrays(setting, make_policy("thompson"))
    return setting, tables, scores_by_state(tables, arrays.level, arrays.limit, arrays.child), arrays.child


SETTING, TABLES, BY_STATE, CHILD = thompson()
STATES = len(BY_STATE.score)


@given(
    st.lists(st.integers(0, STATES - 1), unique=True, min_size=1, max_size=20),
    st.lists(st.integers(1, 9), min_size=20, max_size=20),
    st.integers(0, 10**6),
)
def test_the_best_draw_is_that_of_all_groups(states: list[int], sizes: list[int], ell: int) -> None:
    active = np.array([*states, 0, len(states)], dtype=np.int64)
    count = np.zeros(STATES, dtype=np.int64)
    count[states] = sizes[: len(states)]
    scores, key = np.full(len(active), np.nan), np.uint64(7)
    best = draw_groups(TABLES.facts, TABLES.quantiles, TABLES.tied, BY_STATE, CHILD, active, count, key, ell, scores)
    every, draws = [], 0
    for s in states:
        w, i = int(BY_STATE.flight[s]), int(BY_STATE.node[s])
        if BY_STATE.score[s] == -np.inf:  # full
            every.append(-np.inf)
            continue
        every.append(drawn(TABLES.facts, TABLES.quantiles, CHILD, w, i, int(count[s]), key, ell, draws))
        draws += 1 if w == 0 else int(count[s]) * (1 + w)
    assert best == max(every)
    for mine, reference in zip(scores, every, strict=False):
        assert mine == reference or (mine == -np.inf and reference < best - TABLES.tied)


@pytest.mark.parametrize("w", [0, 1, 3])
def test_no_draw_is_above_its_cap(w: int) -> None:
    cap = most_drawn(TABLES.facts, CHILD, SETTING.flight + 1).reshape(SETTING.flight + 1, -1)
    for i in range(cap.shape[1]):
        best = [drawn(TABLES.facts, TABLES.quantiles, CHILD, w, i, 3, np.uint64(1), ell, 0) for ell in range(300)]
        assert max(best) <= cap[w, i] + 1e-12
