"""How labels are turned into answers: by the posterior, by majority, or by Dawid and Skene's model of the workers.

============ ===================================================================================================
posterior    1{P(theta > d) > 1/2} of the prior that the policies use
majority     more ones than zeros
dawid-skene  each worker has a confusion matrix, learnt with the answers (crowd-kit); all labels of a set together
============ ===================================================================================================

The first two look at a task's counts alone and are read off a tally of ends. Dawid-Skene needs to know who gave which
label: those that a task got are the first of its draw. A tie counts half, or is decided one way.
Guarantee: the same draws for all read-outs. Cost of Dawid-Skene: about a second per fit of some thousand labels.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.beliefs.lattice import triangle_counts
from nextlabel.beliefs.prior import Prior
from nextlabel.errors import InputError
from nextlabel.kernels.recorded import draw_recorded
from nextlabel.simulation.replay import ORDERS, Recorded, credits, decide, decisions_of

COUNTING = ("posterior", "majority")
READOUTS = ("workers", *COUNTING, "dawid-skene")
ITERATIONS = 100
#: Dawid-Skene is fitted for so many replications.
FITS = 5


def decisions(readout: str, prior: Prior, threshold: float, depth: int) -> Ints:
    """(nodes,) 0, 1, or -1 for a tie, at each (labels, ones)."""
    if readout == "posterior":
        return decisions_of(prior, threshold, depth)
    level, ones = triangle_counts(depth)
    return np.where(2 * ones == level, -1, (2 * ones > level).astype(np.int64))


def accuracy_of(decision: Ints, gold: Ints, ties: str) -> float:
    """Accuracy of one decision per task, where the truth is known."""
    known = gold >= 0
    return float(credits(decision[known], ties)[np.arange(int(known.sum())), gold[known]].mean())


def with_all_labels(readout: str, recorded: Recorded, prior: Prior, threshold: float) -> Ints:
    """(N,) the decision that all recorded labels give, -1 for a tie."""
    ones = (recorded.labels == 1).sum(axis=1)
    if readout == "majority":
        return np.where(2 * ones == recorded.counts, -1, (2 * ones > recorded.counts).astype(np.int64))
    different, place = np.unique(np.column_stack([recorded.counts, ones]), axis=0, return_inverse=True)
    said = decide(prior.above(threshold, different[:, 0], different[:, 1]))
    return np.asarray(said[place.reshape(-1)], dtype=np.int64)


def needs_crowdkit() -> Any:
    """crowd-kit's Dawid-Skene, or a sentence on how to get it."""
    try:
        from crowdkit.aggregation import DawidSkene
    except ImportError as error:
        raise InputError(
            "the read-out dawid-skene needs the package crowd-kit.", "pip install 'nextlabel[crowdkit]'."
        ) from error
    return DawidSkene


def drawn_labels(recorded: Recorded, order: str, seed: int, replication: int) -> Ints:
    """(N, most) which of a task's labels comes first, second ... in a replication; -1 past the task's last."""
    N, most = recorded.labels.shape
    rows, places = np.zeros(N, dtype=np.int64), np.zeros((N, most), dtype=np.int64)
    which = np.tile(np.arange(most), (N, 1))
    draw_recorded(which, recorded.counts, seed, replication, ORDERS[order], rows, places)
    out = np.empty_like(places)
    out[rows] = places
    return out


def taken_labels(drawn: Ints, taken: Ints) -> tuple[Ints, Ints]:
    """Task and column of every label that was taken: the first ``taken`` of each task's ``drawn`` ones."""
    got = np.arange(drawn.shape[1])[None, :] < taken[:, None]
    return np.nonzero(got)[0], drawn[got]


def dawid_skene(recorded: Recorded, workers: Ints, chosen: Ints, taken: Ints) -> Ints:
    """(N,) decisions from the first ``taken`` of each task's ``chosen`` labels; -1 for a task without any."""
    import pandas as pd

    model = needs_crowdkit()(n_iter=ITERATIONS)
    task, which = taken_labels(chosen, taken)
    frame = pd.DataFrame(
        {"task": task, "worker": workers[task, which], "label": recorded.labels[task, which]}, copy=False
    )
    with warnings.catch_warnings():  # crowd-kit's own, about pandas
        warnings.simplefilter("ignore")
        said = model.fit_predict(frame)
    out = np.full(len(recorded), -1, dtype=np.int64)
    out[said.index.to_numpy(dtype=np.int64)] = said.to_numpy(dtype=np.int64)
    return out
