"""The kernels of the policy ``crowd``, compiled outside any transaction, once for a process.

Cost: about a second; half a minute after an installation, when nothing is stored on disk yet.
"""

from __future__ import annotations

from concurrent.futures import Future
from threading import Lock, Thread

import numpy as np

from nextlabel.crowd.copying import find_copying
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.skill import accuracies
from nextlabel.policies.crowd.growing import GrowingCrowd

_lock = Lock()
_compiled: list[Future[None]] = []


def crowd_compiled() -> Future[None]:
    """Done when the kernels are compiled; the first call begins with it, in a thread of its own."""
    with _lock:
        if not _compiled:
            _compiled.append(Future())
            Thread(target=_compile, args=(_compiled[0],), name="compile-crowd", daemon=True).start()
        return _compiled[0]


def _compile(done: Future[None]) -> None:
    try:
        exercise()
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(None)
        exercise_reports()  # nobody who asks for a task waits for these


def exercise() -> None:
    """Take every step of a crowd once."""
    crowd = GrowingCrowd(np.array([0.5, 0.5]))
    limit = np.full(2, 3)
    crowd.add_tasks(np.zeros((2, 2)), limit, limit)
    worker = crowd.add_worker()
    for entry, task in enumerate((0, 1)):
        crowd.learn(entry + 1, entry, 2)
        crowd.choose(worker)
        crowd.lease(task, worker)
        crowd.label(entry, 1)
    crowd.take_back(1)
    crowd.give_up(1)
    crowd.label(1, 0)
    crowd.learn(3, 2, 2)


def exercise_reports() -> None:
    """Learn a tiny crowd as the reports on workers do (``campaigns.worker_reports``)."""
    pair = np.array([0, 1])
    labels = CrowdLabels(np.repeat(pair, 2), np.tile(pair, 2), np.repeat(pair, 2), 2, 2, 2)
    fit = fit_crowd(labels, np.full(2, -1))
    accuracies(labels, fit)
    find_copying(labels, fit)
