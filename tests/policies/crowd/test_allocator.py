"""The policy ``crowd`` one decision at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nextlabel.arrays import Floats
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError
from nextlabel.policies.crowd.allocator import CrowdAllocator, CrowdSettings
from nextlabel.policies.crowd.policies import CrowdView, WorkerPolicy


def coins(*accuracies: float) -> Floats:
    return np.array([[[a, 1 - a], [1 - a, a]] for a in accuracies])


def even(tasks: int, answers: int = 2) -> Floats:
    return np.full((tasks, answers), 1.0 / answers)


def ask(allocator: CrowdAllocator, worker: int) -> int | None:
    """The task for the worker, if there is one."""
    task = allocator.choose(worker, allocator.outlook())
    return None if isinstance(task, str) else task


def label(allocator: CrowdAllocator, task: int, worker: int, answer: int) -> None:
    """The worker is given the task and answers."""
    lease = allocator.outlook().lease
    allocator.assign(lease, task, worker)
    allocator.complete(lease, answer)


def test_a_good_worker_gets_the_open_question_and_a_poor_one_is_turned_away() -> None:
    settings = CrowdSettings(turn_away=True, named=False)
    allocator = CrowdAllocator(even(20), 20, settings, channels=coins(0.9, 0.55), supply=np.array([100.0, 100.0]))
    for _ in range(20):
        assert ask(allocator, 1) is None
        task = ask(allocator, 0)
        assert task is not None
        label(allocator, task, 0, 1)
    assert allocator.outlook().left == 0
    assert allocator.beliefs[:, 1] == pytest.approx(np.full(20, 0.9))


def test_nobody_is_turned_away_unless_it_is_allowed() -> None:
    allocator = CrowdAllocator(
        even(5), 30, CrowdSettings(named=False), channels=coins(0.9, 0.5), supply=np.full(2, 100.0)
    )
    for k in range(30):
        task = ask(allocator, k % 2)
        assert task is not None
        label(allocator, task, k % 2, 1)


def test_a_worker_never_gets_a_task_twice() -> None:
    allocator = CrowdAllocator(even(7), 100, CrowdSettings(), workers=3)
    seen = set()
    for k in range(21):
        worker = k % 3
        task = ask(allocator, worker)
        assert task is not None and (task, worker) not in seen
        seen.add((task, worker))
        label(allocator, task, worker, k % 2)
    assert ask(allocator, 0) is None


@pytest.mark.parametrize("rule", ["crowd", "crowd-uncertainty", "uniform"])
def test_work_in_flight_sends_the_next_worker_elsewhere(rule: str) -> None:
    allocator = CrowdAllocator(even(6), 60, CrowdSettings(rule), channels=np.repeat(coins(0.8), 6, axis=0))
    given = []
    for worker in range(6):
        task = ask(allocator, worker)
        assert task is not None
        given.append(task)
        allocator.assign(worker, task, worker)
    assert sorted(given) == list(range(6))


def test_an_unknown_rule_is_refused() -> None:
    for rule, why in (("best", "'best' is not known"), ("index", "takes workers to be alike")):
        with pytest.raises(InputError, match=why):
            CrowdAllocator(even(6), 60, CrowdSettings(rule), workers=3)


@pytest.mark.parametrize(("hold", "moves"), [(np.inf, False), (120.0, True)])
def test_a_crowd_that_is_known_is_not_learnt(hold: float, moves: bool) -> None:
    """Eight workers who agree on everything are better than thought, unless the prior says that it is known."""
    usual = CrowdPrior.default(2)
    prior = CrowdPrior(usual.pseudo, usual.share, hold)
    allocator = CrowdAllocator(even(12), 96, CrowdSettings(rule="uniform"), workers=8, prior=prior)
    for worker in range(8):
        for task in range(12):
            label(allocator, task, worker, task % 2)
    allocator.refit()
    assert (allocator.campaign.state.pseudo[0, 0] > usual.pseudo[0, 0]) == moves


class BestFirst(WorkerPolicy):
    """One's own: scores handed over as they are."""

    name = "best-first"

    def __init__(self, scores: Callable[[CrowdView], Floats]) -> None:
        self.scores_of = scores

    def score(self, view: CrowdView) -> Floats:
        return self.scores_of(view)


def test_a_policy_of_ones_own_says_who_gets_what() -> None:
    """Only the second type of worker is of use, and only on tasks that are not yet certain."""
    beliefs = np.array([[0.5, 0.5], [0.02, 0.98]])
    rule = BestFirst(lambda view: np.where(view.reward < 0.9, 1.0, -1.0) * np.array([[-1.0], [1.0]]))
    channels = np.concatenate([coins(0.6), coins(0.9)])
    allocator = CrowdAllocator(
        beliefs, 2, CrowdSettings(rule, turn_away=True), channels=channels, supply=np.array([50.0, 50.0])
    )
    assert ask(allocator, 0) == 1 and ask(allocator, 1) == 0
    gain = CrowdAllocator(beliefs, 2, CrowdSettings(BestFirst(lambda view: view.after(view.reward) - view.reward)),
                          channels=channels)  # fmt: skip
    assert ask(gain, 0) == ask(gain, 1) == 0


@pytest.mark.parametrize("wrong", [np.zeros((1, 3)), np.zeros(5)])
def test_scores_of_another_shape_are_refused(wrong: Floats) -> None:
    with pytest.raises(InputError, match=r"best-first.*one row for each type"):
        CrowdAllocator(even(6), 60, CrowdSettings(BestFirst(lambda view: wrong)), workers=3)


@pytest.mark.parametrize(("utility", "first"), [(None, 1), (((1.0, -5.0), (0.0, 1.0)), 0)])
def test_labels_go_where_they_change_what_is_worth_most(
    utility: tuple[tuple[float, ...], ...] | None, first: int
) -> None:
    """At 1 in 7 for the second answer both are worth the same here; for accuracy that is at 1 in 2."""
    doubt = np.where(np.arange(20) % 2, 0.5, 1.0 / 7.0)
    allocator = CrowdAllocator(
        np.stack([1.0 - doubt, doubt], axis=1), 10, CrowdSettings(named=False, utility=utility), channels=coins(0.8),
        supply=np.array([100.0]),
    )  # fmt: skip
    for _ in range(10):
        task = ask(allocator, 0)
        assert task is not None and task % 2 == first
        label(allocator, task, 0, 0)
