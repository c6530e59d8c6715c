"""A policy's index, turned from [w, node] tables of each class into one array over the joint problem's state ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError
from nextlabel.kernels.joint import FIRST, GROUPS, RANDOM
from nextlabel.kernels.ties import TIED
from nextlabel.solve.joint.states import Numbering, TaskGroup

TIE_RULES = {"random": RANDOM, "groups": GROUPS, "first": FIRST}


class NotLumpableError(Exception):
    """The index tells nodes apart that are alike in law; caught inside the package."""


def index_rule(ties: str) -> int:
    """The kernel's number of a tie rule."""
    if ties not in TIE_RULES:
        raise ProblemError(f"ties is {ties!r}.", f"Give one of {', '.join(TIE_RULES)}.")
    return TIE_RULES[ties]


def tie_order(numbering: Numbering) -> Ints:
    """Rank of every id by class, then node, then w."""
    order = np.empty(len(numbering.node), dtype=np.int64)
    order[np.lexsort((numbering.w, numbering.node, numbering.group))] = np.arange(len(numbering.node))
    return order


def index_by_id(
    groups: Sequence[TaskGroup],
    numbering: Numbering,
    index: Callable[[int, int, float], Floats],
    n: int,
    g: int,
    taus: Floats,
) -> Floats:
    """The index of every id with at most ``g`` labels given out, n arrivals left, at each time left in ``taus``."""
    out = np.full((len(numbering.node), len(taus)), -np.inf)
    for k, group in enumerate(groups):
        ids = np.flatnonzero((numbering.group == k) & (numbering.tables.size <= g))
        node, w = numbering.node[ids], numbering.w[ids]
        nodes = group.lattice.nodes
        alike = np.argsort(group.to_node, kind="stable")
        starts = np.searchsorted(group.to_node[alike], np.arange(nodes))
        for t, tau in enumerate(taus):
            # With no time left the choice is worth nothing, and the index may not be defined.
            table = index(k, n, float(tau if tau > 0 else taus[1]))
            values = np.asarray(table, dtype=np.float64)[:, : len(group.to_node)][:, alike]
            high = np.maximum.reduceat(values, starts, axis=1)[w, node]
            low = np.minimum.reduceat(values, starts, axis=1)[w, node]
            if np.isnan(low).any():
                raise ProblemError(
                    f"the index of class {k} with {n} arrivals left is not a number.",
                    "Give an index for every state with level + w below the budget.",
                )
            if np.any(low < high - TIED):
                raise NotLumpableError
            out[ids, t] = high
    return out
