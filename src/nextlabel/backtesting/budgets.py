"""Which budgets are played, and which fixed overlaps they are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nextlabel.backtesting.replays import BacktestSetup
from nextlabel.errors import InputError

LABELS_PER_TASK = (2.0, 3.0, 4.0, 5.0)
#: Budgets of the grid, and labels per task up to which it goes if there are so many.
POINTS, LARGEST_OVERLAP = 25, 7
#: Labels per task of the grid of policies whose every budget is a campaign of its own; finest where most is saved.
CROWD_GRID = (1.0, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)
#: An overlap is compared with if so many of the tasks have the labels for it.
ENOUGH_TASKS = 0.5


def choose_budgets(
    setting: BacktestSetup,
    labels_per_task: Sequence[float] | None,
    budgets: Sequence[int] | None,
    *,
    crowd: bool = False,
) -> tuple[list[int], list[int], tuple[int, ...]]:
    """Budgets asked for, the grid with them, and the overlaps to compare with; ``crowd``: a coarser grid."""
    K, most = len(setting.recorded), setting.most_labels
    if budgets is not None:
        asked = sorted(set(budgets))
    elif labels_per_task is not None:
        asked = sorted({round(x * K) for x in labels_per_task})
    else:
        asked = [round(x * K) for x in LABELS_PER_TASK if x * K <= most] or [most]
    for U in asked:
        if not 1 <= U <= most:
            raise InputError(
                f"a budget of {U:,} labels ({U / K:.3g} per task) is asked for, and the {K:,} replayed tasks have "
                f"{most:,} ({most / K:.3g} per task).",
                "Give fewer, e.g. --labels-per-task 3.",
            )
    top = max(asked[-1], min(LARGEST_OVERLAP * K, most))
    even = np.linspace(min(K, asked[0]), top, POINTS)
    if crowd:
        even = np.array([x * K for x in CROWD_GRID if x * K <= top])
    grid = np.unique(np.append(np.round(even), asked)).astype(np.int64)
    counts = setting.recorded.counts
    odd = range(1, min(setting.depth, -(-top // K)) + 1, 2)
    return asked, grid.tolist(), tuple(k for k in odd if k == 1 or (counts >= k).mean() >= ENOUGH_TASKS)
