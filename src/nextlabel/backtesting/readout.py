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
from collections.abc import Callable
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.lattice import triangle_counts
from nextlabel.beliefs.prior import Prior
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.errors import InputError
from nextlabel.files.features import Features
from nextlabel.simulation.crowd_replay import best_answers, learnt_beliefs, share_right
from nextlabel.simulation.replay import Recorded, credits, decide, decisions_of

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


#: (K,) what each task is worth, from its drawn labels and how many of them were taken; nan where no truth is known.
CollectedReadout = Callable[[Ints, Ints], Floats]


def everything(recorded: Recorded) -> tuple[Ints, Ints]:
    """All labels of every task, as drawn and taken."""
    return np.tile(np.arange(recorded.labels.shape[1]), (len(recorded), 1)), recorded.counts


def collected_labels(recorded: Recorded, drawn: Ints, taken: Ints) -> CrowdLabels:
    """The labels that were collected, with workers numbered from 0."""
    assert recorded.workers is not None
    task, which = taken_labels(drawn, taken)
    known, worker = np.unique(recorded.workers[task, which], return_inverse=True)
    return CrowdLabels(
        task=task,
        worker=worker.reshape(-1).astype(np.int64),
        answer=recorded.labels[task, which],
        tasks=len(recorded),
        workers=len(known),
        answers=recorded.answers,
    )


def beliefs_of(
    recorded: Recorded, drawn: Ints, taken: Ints, features: Features | None = None, readout: str = "workers"
) -> Floats:
    """(K, C) probability of each truth by the model of workers, or another read-out of ``LEARNING``."""
    return learnt_beliefs(collected_labels(recorded, drawn, taken), None, features, recorded.tasks)[0][readout]


def votes_of(recorded: Recorded, drawn: Ints, taken: Ints) -> Floats:
    """(K, C) votes for each answer."""
    task, which = taken_labels(drawn, taken)
    out = np.zeros((len(recorded), recorded.answers))
    np.add.at(out, (task, recorded.labels[task, which]), 1.0)
    return out


def posteriors_of(prior: Prior, threshold: float, recorded: Recorded, drawn: Ints, taken: Ints) -> Floats:
    """(K, 2) probability of each truth by the prior, if workers are alike."""
    votes = votes_of(recorded, drawn, taken).astype(np.int64)
    above = prior.above(threshold, votes.sum(axis=1), votes[:, 1])
    return np.column_stack([1.0 - above, above])


def winners(scores: Floats) -> Ints:
    """(K,) the answer with the greatest score, -1 where several have it."""
    top = best_answers(scores)
    return np.where(top.sum(axis=1) > 1, -1, top.argmax(axis=1))


def by_scores(recorded: Recorded, scores: Callable[[Recorded, Ints, Ints], Floats]) -> CollectedReadout:
    """The read-out that decides by the greatest score."""
    return lambda drawn, taken: share_right(scores(recorded, drawn, taken), recorded.gold)


def by_dawid_skene(recorded: Recorded, ties: str) -> CollectedReadout:
    """The read-out of crowd-kit's Dawid-Skene."""
    workers = recorded.workers
    assert workers is not None

    def read_out(drawn: Ints, taken: Ints) -> Floats:
        credit = credits(dawid_skene(recorded, workers, drawn, taken), ties)
        return np.where(recorded.gold < 0, np.nan, credit[np.arange(len(recorded)), np.maximum(recorded.gold, 0)])

    return read_out
