"""Read-outs of the labels that a rule collected, task by task: by the model of workers, by votes, by Dawid-Skene.

A rule's labels of a task are the first ``taken`` of its ``drawn`` ones, with the workers who gave them. A read-out has
a score for every answer; the task is worth 1 if its truth alone has the greatest, and a share of 1 if several have.
Guarantee: the labels collected and nothing else are looked at. Cost: one fit of them, some milliseconds per thousand.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.backtesting.readout import dawid_skene, taken_labels
from nextlabel.beliefs.prior import Prior
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.simulation.crowd_readout import best_answers, share_right
from nextlabel.simulation.replay import Recorded, credits

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


def beliefs_of(recorded: Recorded, drawn: Ints, taken: Ints) -> Floats:
    """(K, C) probability of each truth by the model of workers."""
    return fit_crowd(collected_labels(recorded, drawn, taken)).beliefs


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
