"""Rows of the crowd: learning workers from a million labels against crowd-kit, and one label at a time."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.rows import FLOP, Row
from benchmarks.timing import seconds, timed
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.kernels.crowd_fit import new_state, stream_label

LABELS, TASKS, WORKERS, SWEEPS = 1_000_000, 200_000, 2_000, 20
#: Flops of one label in one sweep: an addition to the log-odds of its task, one to the counts of its worker.
LABEL = 2


def million_labels() -> CrowdLabels:
    """Labels of workers between .55 and .95, on tasks and by workers drawn at random."""
    rng = np.random.default_rng(0)
    task, worker = rng.integers(0, TASKS, LABELS), rng.integers(0, WORKERS, LABELS)
    truth, skill = rng.integers(0, 2, TASKS), rng.uniform(0.55, 0.95, WORKERS)
    answer = np.where(rng.random(LABELS) < skill[worker], truth[task], 1 - truth[task])
    return CrowdLabels(task, worker, answer, TASKS, WORKERS, 2)


def refit() -> Row:
    """Twenty sweeps over a million labels, and twenty iterations of crowd-kit's Dawid-Skene in the same run."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    labels = million_labels()
    fit_crowd(labels, most_iterations=1)
    ours = timed(lambda: fit_crowd(labels, most_iterations=SWEEPS, tolerance=-np.inf), 5)
    frame = pd.DataFrame({"task": labels.task, "worker": labels.worker, "label": labels.answer})
    with warnings.catch_warnings():  # crowd-kit's own, about pandas
        warnings.simplefilter("ignore")
        # with a tolerance below any gain, all iterations are made
        theirs = timed(lambda: DawidSkene(n_iter=SWEEPS, tol=-np.inf).fit(frame), 2)
    assert ours.answer.iterations == len(theirs.answer.loss_history_) == SWEEPS
    same = np.argmax(ours.answer.beliefs, axis=1)[theirs.answer.labels_.index] == theirs.answer.labels_
    return Row(
        "20 sweeps over 1,000,000 labels, 200,000 tasks, 2,000 workers, against crowd-kit's Dawid-Skene",
        "at least 10 times faster",
        f"{seconds(ours.best)} : {seconds(theirs.best)}",
        f"1 : {theirs.median / ours.median:.0f}",
        f"{seconds(LABELS * SWEEPS * LABEL * FLOP)}: 20,000,000 label visits x {LABEL} flops",
        f"{same.mean():.2%} of the labels alike",
    )


def stream() -> Row:
    """One label at a time, called from Python."""
    labels, prior = million_labels(), CrowdPrior.default(2)
    state = new_state(TASKS, WORKERS, prior.pseudo, prior.share)
    rows = [tuple(map(int, row)) for row in zip(*(column[:20_000] for column in labels[:3]), strict=True)]
    stream_label(state, *rows[0])

    def some() -> None:
        for row in rows:
            stream_label(state, *row)

    run = timed(some, 5)
    return Row(
        "a streamed label moves its task and its worker, called from Python",
        "< 20 us",
        seconds(run.best / len(rows)),
        seconds(run.median / len(rows)),
        "",
        "",
    )


CROWD = (refit, stream)
