"""Workers and tasks learnt together from labels: the kernel of ``kernels.crowd_fit`` behind a checked door."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError
from nextlabel.files.labels import LabelTable
from nextlabel.kernels.crowd_fit import CrowdState, new_state, refit, stiffness
from nextlabel.wording import counted

#: Sweeps after which a fit is given up, and the rise of the bound per label at which it is over.
MOST_ITERATIONS, TOLERANCE = 500, 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class CrowdFit:
    """Beliefs of tasks and channels of workers.

    =========== ============= ==========================================================================
    code        shape         meaning
    =========== ============= ==========================================================================
    beliefs     (K, C)        probability of each truth
    counts      (W, C, C)     expected number of times a worker gave an answer (last axis) to a truth
    channels    (W, C, C)     P(answer | truth), posterior mean
    share       (C,)          shares of the truths, posterior mean
    prior       --            what the crowd is like, as learnt, and the pseudo-tasks of the truths as they were used
    bounds      (iterations,) evidence bound after each sweep, in nats; it never falls
    =========== ============= ==========================================================================
    """

    beliefs: Floats
    counts: Floats
    channels: Floats
    share: Floats
    prior: CrowdPrior
    bounds: Floats
    converged: bool

    @property
    def evidence(self) -> float:
        """The last evidence bound: at most log P(labels and gold | the crowd as learnt)."""
        return float(self.bounds[-1]) if self.bounds.size else 0.0

    @property
    def iterations(self) -> int:
        """Sweeps made."""
        return int(self.bounds.size)


def fit_crowd(
    labels: CrowdLabels,
    gold: Ints | None = None,
    prior: CrowdPrior | None = None,
    prior_offset: Floats | None = None,
    most_iterations: int = MOST_ITERATIONS,
    tolerance: float = TOLERANCE,
) -> CrowdFit:
    """Learn channels and truths from all labels; ``gold`` (K,) settles tasks, -1 where it is not known.

    Starts from the votes. ``prior_offset`` (K, C) is added to the log shares of a task with a prior of its own.
    """
    prior = CrowdPrior.default(labels.answers) if prior is None else prior
    if prior.answers != labels.answers:
        raise InputError(
            f"the prior is for {prior.answers} answers and the labels have {labels.answers}.",
            f"Give a prior for {labels.answers} answers.",
        )
    truth = np.full(labels.tasks, -1, dtype=np.int64) if gold is None else np.asarray(gold, dtype=np.int64)
    if truth.shape != (labels.tasks,) or (truth >= labels.answers).any():
        raise InputError(
            f"gold has the shape {truth.shape} for {labels.tasks} tasks.",
            f"Give one number for each task, -1 or below {labels.answers}.",
        )
    offset = np.zeros((0, labels.answers)) if prior_offset is None else prior_offset
    state: CrowdState = new_state(labels.tasks, labels.workers, prior.pseudo, prior.share, prior.hold)
    bounds = np.zeros(most_iterations)
    task, worker, answer = (np.ascontiguousarray(a, dtype=np.int64) for a in labels[:3])
    offset = np.ascontiguousarray(offset, dtype=np.float64)
    made, converged = refit(state, task, worker, answer, truth, offset, most_iterations, tolerance, bounds)
    rows, used = state.pseudo + state.counts, prior.share
    if prior.hold < math.inf:
        first = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=labels.tasks))])
        used = prior.share * stiffness(first, truth)
    shares = used + state.total
    return CrowdFit(
        beliefs=state.belief,
        counts=state.counts,
        channels=rows / rows.sum(axis=2, keepdims=True),
        share=shares / shares.sum(),
        prior=replace(prior, pseudo=state.pseudo, share=used),
        bounds=bounds[:made].copy(),
        converged=bool(converged),
    )


class CrowdLabels(NamedTuple):
    """``task``, ``worker`` and ``answer`` (n,) of each label, numbered from 0; how many of each there are."""

    task: Ints
    worker: Ints
    answer: Ints
    tasks: int
    workers: int
    answers: int


def crowd_labels(table: LabelTable) -> CrowdLabels:
    """The labels of a table that names the workers; refused are tables in which every answer is the same."""
    worker, workers = table.givers()
    said = np.unique(table.label)
    if len(said) < 2:
        raise InputError(
            f"all of the {counted(len(table), 'label')} are {table.labels[int(said[0])]}, which tells nobody apart.",
            "Give labels with two different answers or more.",
        )
    return CrowdLabels(table.task, worker, table.label, len(table.tasks), workers, len(table.labels))
