"""Groups of tasks from one row per task, as tests would rather write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nextlabel.model.tasks import Groups


def group_tasks(entry: Any, node: Any, w: Any) -> Groups:
    """Groups from one row per task, in the order of (class, node, w)."""
    rows = np.column_stack([entry, node, w]).astype(np.int64)
    states, members = np.unique(rows, axis=0, return_counts=True)
    entries, nodes, flights = (np.ascontiguousarray(states[:, k]) for k in range(3))
    return Groups(entries, nodes, flights, members.astype(np.int64))
