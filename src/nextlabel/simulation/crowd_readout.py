"""Answers from labels whose workers are known, and how many of them are right.

========= =================================================================================================
workers   all labels are fitted from the votes on until the evidence bound rests (``crowd.fit``); the answer is
          the likeliest truth
majority  the answer that most of a task's labels give
========= =================================================================================================

A tie counts as the share of its answers that are right; a task without labels is a tie of all answers. Gold is
looked at here and nowhere before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.kernels.inputs import TIED

READOUTS = ("workers", "majority")


@dataclass(frozen=True, slots=True, eq=False)
class ReadOut:
    """``right[readout]`` (K,): 1, 0 or the share of a tie, nan where gold is not known; ``expected``: own word."""

    right: dict[str, Floats]
    expected: float
    labels: int


def read_out(labels: CrowdLabels, gold: Ints, prior: CrowdPrior | None = None) -> ReadOut:
    """Both read-outs of the same labels; ``expected`` is the mean probability of the answers of ``workers``."""
    beliefs = fit_crowd(labels, prior=prior).beliefs
    votes = np.zeros((labels.tasks, labels.answers))
    np.add.at(votes, (labels.task, labels.answer), 1.0)
    right = {"workers": share_right(beliefs, gold), "majority": share_right(votes, gold)}
    return ReadOut(right, float(beliefs.max(axis=1).mean()), len(labels.task))


def best_answers(scores: Floats) -> Bools:
    """(K, C) the answers with the highest score of their task; several of them are a tie."""
    return np.asarray(scores >= scores.max(axis=1, keepdims=True) - TIED)


def share_right(scores: Floats, gold: Ints) -> Floats:
    """(K,) 1 where the gold answer alone has the highest score, its share of a tie, nan where gold is not known."""
    best = best_answers(scores)
    out = np.full(len(gold), np.nan)
    known = np.flatnonzero(gold >= 0)
    out[known] = best[known, gold[known]] / best[known].sum(axis=1)
    return out
