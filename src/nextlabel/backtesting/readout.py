"""How labels are turned into answers: by the model of workers, by the posterior, by majority, by Dawid and Skene.

============ ===================================================================================================
workers      how each worker confuses the answers is learnt with the truths, with features of the tasks if there are any
crowdlab     CROWDLAB's weighted mean of the workers and of a learner of the features (``crowd.crowdlab``)
posterior    1{P(theta > d) > 1/2} of the prior that the policies use
majority     more ones than zeros
dawid-skene  each worker has a confusion matrix, learnt with the answers (crowd-kit); all labels of a set together
============ ===================================================================================================

Posterior and majority look at a task's counts alone and are read off a tally of ends. The others need to know who gave
which label: a rule's labels of a task are the first ``taken`` of its ``drawn`` ones. A tie counts half, or is decided
one way; with workers a task is worth 1 if its truth alone has the greatest score, and a share of 1 if several have.
Guarantee: the same draws for all read-outs; the labels collected and nothing else are looked at. Cost: a fit of workers
some milliseconds per thousand labels, of Dawid-Skene about a second per some thousand.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.files.features import Features
from nextlabel.model.lattice import triangle_counts
from nextlabel.model.prior import Prior
from nextlabel.simulation.crowd_replay import best_answers, learnt_beliefs, share_right, votes_of
from nextlabel.simulation.replay import CrowdRecord, ReplaySetup, credits, decisions_of
from nextlabel.wording import needs

COUNTING = ("posterior", "majority")
LEARNING = ("workers", "crowdlab")
READOUTS = (*LEARNING, *COUNTING, "dawid-skene")
ITERATIONS = 100
#: Dawid-Skene is fitted for so many replications.
FITS = 5


def decisions(readout: str, prior: Prior, threshold: float, depth: int) -> Ints:
    """(nodes,) 0, 1, or -1 for a tie, at each (labels, ones)."""
    if readout == "posterior":
        return decisions_of(prior, threshold, depth)
    level, ones = triangle_counts(depth)
    return np.where(2 * ones == level, -1, (2 * ones > level).astype(np.int64))


def needs_crowdkit() -> Any:
    """crowd-kit's Dawid-Skene, or a sentence on how to get it."""
    with needs("the read-out dawid-skene", "crowd-kit", "'nextlabel[crowdkit]'"):
        from crowdkit.aggregation import DawidSkene
    return DawidSkene


def everything(recorded: CrowdRecord) -> tuple[Ints, Ints]:
    """All labels of every task, as drawn and taken."""
    return np.tile(np.arange(recorded.rows.shape[1]), (len(recorded.gold), 1)), recorded.counts


def collected_labels(recorded: CrowdRecord, drawn: Ints, taken: Ints) -> CrowdLabels:
    """The first ``taken`` of each task's ``drawn`` labels, with workers numbered from 0."""
    got = np.arange(drawn.shape[1])[None, :] < taken[:, None]
    labels = recorded.some(recorded.rows[np.nonzero(got)[0], drawn[got]])
    known, worker = np.unique(labels.worker, return_inverse=True)
    return labels._replace(worker=worker.reshape(-1).astype(np.int64), workers=len(known))


def scores_of(readout: str, setting: ReplaySetup, drawn: Ints, taken: Ints, features: Features | None = None) -> Floats:
    """(K, C) what a read-out holds of each answer: probabilities or votes."""
    labels = collected_labels(setting.recorded, drawn, taken)
    if readout in LEARNING:
        return learnt_beliefs(labels, None, features, setting.recorded.tasks)[0][readout]
    if readout == "dawid-skene":
        return _dawid_skene(labels)
    votes = votes_of(labels)
    if readout == "majority":
        return votes
    different, place = np.unique(votes.astype(np.int64), axis=0, return_inverse=True)
    above = setting.prior.above(setting.threshold, different.sum(axis=1), different[:, 1])[place.reshape(-1)]
    return np.column_stack([1.0 - above, above])


def _dawid_skene(labels: CrowdLabels) -> Floats:
    """1 for the answer of crowd-kit's Dawid-Skene; a task without labels has none."""
    import pandas as pd

    frame = pd.DataFrame({"task": labels.task, "worker": labels.worker, "label": labels.answer}, copy=False)
    with warnings.catch_warnings():  # crowd-kit's own, about pandas
        warnings.simplefilter("ignore")
        said = needs_crowdkit()(n_iter=ITERATIONS).fit_predict(frame)
    out = np.zeros((labels.tasks, labels.answers))
    out[said.index.to_numpy(dtype=np.int64), said.to_numpy(dtype=np.int64)] = 1.0
    return out


def winners(scores: Floats) -> Ints:
    """(K,) the answer with the greatest score, -1 where several have it."""
    top = best_answers(scores)
    return np.where(top.sum(axis=1) > 1, -1, top.argmax(axis=1))


def right_by(scores: Floats, gold: Ints, ties: str) -> Floats:
    """(K,) what each task is worth that is decided by the greatest score; nan where no truth is known."""
    if ties == "half" or scores.shape[1] > 2:
        return share_right(scores, gold)
    worth = credits(winners(scores), ties)[np.arange(len(gold)), np.maximum(gold, 0)]
    return np.where(gold < 0, np.nan, worth)
