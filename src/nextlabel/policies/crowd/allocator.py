"""The allocator of policies that know workers (``policies.allocation`` has the contract), refitted as labels come in.

====== ========== =========================================================================================
symbol code       meaning
====== ========== =========================================================================================
U      budget     labels that can still be given
N      arrivals   workers still to come, as far as anyone knows (infinite: no limit but the budget)
N_m    supply     of them of type m: known, or the share of those who came, times N
====== ========== =========================================================================================

``settings.turn_away`` off: every arrival is given something, so that of type m only N_m U / N can label before the
budget is spent; the relaxation is solved with that supply. Where channels are learnt, workers are grouped into types by
what is known of them so far (``group_workers``); the share of arrivals by workers not seen yet is that of those
seen once (Good and Turing), and a stranger has the crowd's mean channel. Labels on tasks that nobody else labels say
nothing about a worker, so tasks that were begun are finished first, at the start with a generous price, and nobody is
turned away before ``TRIAL_LABELS`` labels.

``CrowdAllocator`` knows its tasks, workers and budget from the start: simulations and replays. In a live campaign all
of them grow (``GrowingCrowd``), in arrays that double. Every step but ``learn`` moves what its task and its worker are
believed to be; ``learn`` computes everything anew from what was given out and came in, so that its outcome is a
function of that alone:

    state after ``learn``  =  f(entries with their answers, tasks, limits, version, labels given and left, arrivals,
                              who was turned away, seed)

Nothing of what was believed or planned before enters. Whoever knows the entries can compute the state again, and
before the first ``learn`` (``planned`` is False) nothing but the entries is kept. There is always a row beyond the
last task and one beyond the last worker, which stand for those of whom nothing is known.
Guarantee: heuristic, deterministic under the seed. Cost: a step some microseconds; ``resolve`` 5 to 100 ms, plus a
refit over all labels where channels are learnt; ``learn`` 0.05 to 1 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.special import gammaln

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.learner import learn_jointly, modest_prior
from nextlabel.crowd.noise import answers_at_random
from nextlabel.crowd.prior import TASKS, CrowdPrior
from nextlabel.files.features import Features
from nextlabel.kernels.crowd_campaign import (
    GONE,
    IN_FLIGHT,
    CrowdCampaign,
    CrowdPlan,
    assign,
    cancel,
    complete,
    count_members,
    follow_plans,
    new_campaign,
    next_among,
    next_task,
    open_tasks,
    place_task,
    plan_start,
    rebin_all,
    reopen,
)
from nextlabel.kernels.crowd_fit import refit
from nextlabel.policies.allocation import Outlook, Refusal
from nextlabel.policies.base import Policy
from nextlabel.policies.crowd.policies import (
    GAP,
    LEARNT_GAP,
    MOST_PLANS,
    Chain,
    CrowdTypes,
    CrowdView,
    belief_grid,
    crowd_plan,
    group_workers,
    ranked_plan,
    reward_on,
    same_channels,
    solve_relaxation,
)
from nextlabel.policies.registry import make_policy

#: Sweeps of a refit at most, and the rise of the evidence per label at which it ends.
SWEEPS, RISE = 30, 1e-5
#: Labels that a worker is given before they may be turned away; as many per worker are the cold start.
TRIAL_LABELS = 10


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """How to allocate: the rule, and what it may do.

    ``named``: a worker gets a task at most once (off: a type stands for many people of whom each comes once).
    ``expert``: an expert answers the least certain tasks in the end, so that no task is worth less than this.
    ``utility`` [answer][truth] is what answers are worth, None if those that are right are.
    ``task_first``: the task is chosen before anyone knows who will label it. ``resolves``: about how many times the
    relaxation is solved again while the budget is spent.
    """

    rule: str | Policy = "crowd"
    turn_away: bool = False
    task_first: bool = False
    named: bool = True
    resolves: int = 40
    seed: int = 0
    expert: float = 0.0
    utility: tuple[tuple[float, ...], ...] | None = None


class CrowdAllocator:
    """Tasks, workers and a budget.

    ``beliefs`` (K, C) are the tasks' priors. With ``channels`` (W, C, C) the workers are known; without, their
    channels are learnt from ``prior`` on. ``supply`` (W,) is what each worker can give, or how often each comes;
    ``arrivals`` the number of arrivals to come (the sum of the supply unless given).
    """

    def __init__(
        self,
        beliefs: Floats,
        budget: int,
        settings: CrowdSettings | None = None,
        *,
        workers: int | None = None,
        channels: Floats | None = None,
        prior: CrowdPrior | None = None,
        supply: Floats | None = None,
        arrivals: float | None = None,
        cost: Floats | None = None,
        replication: int = 0,
    ) -> None:
        beliefs = np.ascontiguousarray(beliefs, dtype=np.float64)
        tasks, answers = beliefs.shape
        self.settings = settings or CrowdSettings()
        self.policy = make_policy(self.settings.rule)
        self.learnt = channels is None
        assert workers is not None or channels is not None, "workers are known or learnt"
        self.people = people = int(workers or 0) if channels is None else len(channels)
        self.prior = prior or CrowdPrior.default(answers)
        self.budget, self.given = budget, 0
        self.supply = None if supply is None else np.asarray(supply, dtype=np.float64).copy()
        if arrivals is None:
            arrivals = np.inf if self.supply is None else float(self.supply.sum())
        self.arrivals = float(arrivals)
        self.cost = np.zeros(people) if cost is None else np.asarray(cost, dtype=np.float64)
        self.grid = np.arange(1024.0) if self.policy.by_count else belief_grid(answers)
        options = np.array([self.learnt, self.settings.named, self.policy.by_count, TRIAL_LABELS if self.learnt else 0])
        groups = 2 * len(self.grid) * MOST_PLANS
        self.campaign: CrowdCampaign = new_campaign(
            tasks, people, budget, groups, self.prior.pseudo, self.prior.share, float(self.prior.hold), options
        )
        #: (K, C) log beliefs of tasks without labels, less those of a usual task.
        self.offsets = np.log(np.maximum(beliefs, 1e-300)) - self.campaign.state.logp
        #: Whether these come from a learner that people have taught (``crowd.learner``).
        self.beside_learner = False
        self.campaign.state.logp[:] += self.offsets
        self.campaign.state.belief[:] = beliefs
        if channels is not None:
            self.campaign.channels[:] = channels
        self.gold = np.full(tasks, -1, dtype=np.int64)
        self._start = plan_start(self.settings.seed, replication)
        #: (M, C, C) the types of workers whose plans were made last, and these plans.
        self._types: Floats | None = None
        self._plans: Ints | None = None
        self.next_due = 0
        self.plan: CrowdPlan = ranked_plan(self.grid, -self.grid)
        open_tasks(self.campaign.bins, np.ones(tasks, dtype=np.int64), MOST_PLANS)
        self.resolve()

    # One decision at a time -------------------------------------------------------------------------------------

    def outlook(self, eligible: Ints | None = None) -> Outlook:
        """What the next choice looks at; somebody must be served if nobody is turned away, or all are needed."""
        left = self.budget - self.given
        must_serve = not self.settings.turn_away or self.arrivals <= left
        return Outlook(int(self.campaign.history.size[0]), left, self.given, must_serve=must_serve, eligible=eligible)

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The task for this worker, or why there is none; -1 is a worker nobody knows."""
        x = self._next(worker, outlook, outlook.must_serve)
        if x >= 0:
            return x
        if not outlook.must_serve and self._next(worker, outlook, True) >= 0:
            return "turned_away"
        return "nothing_left_for_you" if self.campaign.bins.members.any() else "all_leased"

    def _next(self, worker: int, outlook: Outlook, must_serve: bool) -> int:
        if self.settings.task_first:
            return int(next_task(self.campaign, self.plan, -1, True))
        who = self.people if worker < 0 else worker
        if outlook.eligible is None:
            return int(next_task(self.campaign, self.plan, who, must_serve))
        return int(next_among(self.campaign, self.plan, who, must_serve, outlook.eligible))

    def assign(self, lease: int, task: int, worker: int) -> None:
        """The worker has been given the task."""
        assert lease == self.campaign.history.size[0], "entries are numbered in the order in which tasks are given out"
        self.given += 1
        assign(self.campaign, self.plan, task, worker, self._has_room(task))

    def complete(self, lease: int, answer: int) -> None:
        """The label of an entry has come in and counts, perhaps after it was gone."""
        complete(self.campaign, self.plan, lease, answer, self._has_room(int(self.campaign.history.task[lease])))

    def cancel(self, lease: int) -> None:
        """The label of an entry in flight is not expected any more, or does not count."""
        self.given -= 1
        cancel(self.campaign, self.plan, lease, self._has_room(int(self.campaign.history.task[lease])))

    def _has_room(self, task: int) -> bool:
        """Whether the task may be given out once more."""
        return True

    def arrived(self, worker: int) -> None:
        """The worker has arrived, whatever they are given."""
        self.campaign.arrived[worker] += 1
        self.arrivals = max(self.arrivals - 1.0, 0.0)
        if self.supply is not None:
            self.supply[worker] = max(self.supply[worker] - 1.0, 0.0)

    @property
    def due(self) -> bool:
        """Whether it is time to refit and to solve again."""
        return self.given >= self.next_due

    def labels(self, tasks: int) -> CrowdLabels:
        """The labels that count, of so many tasks."""
        history = self.campaign.history
        came = np.flatnonzero(history.answer[: int(history.size[0])] >= 0)
        columns = history.task[came], history.worker[came], history.answer[came]
        return CrowdLabels(*columns, tasks, self.people, self.campaign.state.belief.shape[1])

    # Learning and solving ---------------------------------------------------------------------------------------

    @property
    def beliefs(self) -> Floats:
        """(K, C) what is believed of each task."""
        return self.campaign.state.belief

    @property
    def channels(self) -> Floats:
        """(W, C, C) what is believed of each worker."""
        return self.campaign.channels

    def refit(self) -> None:
        """Learn channels and beliefs anew from all labels that have come in."""
        labels, state = self.labels(len(self.gold)), self.campaign.state
        if not self.learnt or not len(labels.task):
            return
        if self.beside_learner:
            modest = modest_prior(labels._replace(workers=len(state.counts)), self.gold, self.prior)
            state = state._replace(base=modest.pseudo, hold=float(modest.hold))
        offsets = self.offsets if np.ptp(self.offsets, axis=0).any() else self.offsets[:0]
        refit(state, *labels[:3], self.gold, offsets, SWEEPS, RISE, np.zeros(SWEEPS))
        pseudo = state.counts + state.pseudo
        self.campaign.channels[:] = pseudo / pseudo.sum(axis=2, keepdims=True)

    def hear(self, labels: CrowdLabels, features: Features, names: Sequence[Any]) -> None:
        """Teach a learner of the tasks' features by the labels so far; the next refit starts from what it says."""
        _, taught = learn_jointly(labels, self.gold, features, names, prior=self.prior)
        self.offsets[:] = 0.0 if taught.prior_offset is None else taught.prior_offset
        self.beside_learner = taught.prior_offset is not None

    def rebin(self) -> None:
        """After a refit: tasks go to the bins of their new beliefs and keep their plans."""
        rebin_all(self.campaign, self.plan)

    def resolve(self) -> None:
        """Ask the policy anew, for the tasks as they stand, and hand every task a plan."""
        self.plan = self.policy.plan(self)
        self._start += 0.5
        follow_plans(self.campaign, self.plan, self._start)
        spread = self.budget / self.settings.resolves
        self.next_due = self.given + max(1, int(min(spread, max(10.0, self.given / 5.0) if self.learnt else spread)))

    def view(self) -> CrowdView:
        """Tasks and workers as a policy sees them; workers are grouped anew.

        Where the task is chosen before anyone knows who will label it, there is one type: whoever comes.
        """
        types, supply, cost = self._group()
        chain, share = Chain(types.channels), types.share
        members, left = np.zeros(len(self.grid)), float(max(self.budget - self.given, 0))
        count_members(self.campaign, self.grid, members)
        tables, self._types, self.campaign.kind[:] = chain.tables, types.channels, types.kind
        if self.settings.task_first:
            tables, share, self.campaign.kind[:] = chain.mixed(types.share), np.ones(1), 0
            cost, supply = np.array([float(types.share @ cost)]), np.array([left])
        return CrowdView(self.grid, chain.reward, *tables, share, cost, supply, members, left)

    def relaxation(self) -> CrowdPlan:
        """The plan of the relaxation for the tasks as they stand."""
        before, start = self._types, self._plans
        view, more = self.view(), self._generosity
        finish, right = self._finishes_first, np.maximum(view.reward, self.settings.expert)
        reward = reward_on(self.grid, right, self.settings.utility)
        if start is not None and before is not None and self._types is not None and not self.settings.task_first:
            # Each type of before is replaced by the nearest type of now.
            nearest = np.abs(before[:, None] - self._types[None]).sum(axis=(2, 3)).argmin(axis=1)
            start = np.append(nearest, -1)[start] if self.learnt else start
        relaxation = solve_relaxation(
            (view.to, view.weight), reward, view.cost, view.members, more * view.left, more * view.supply,
            LEARNT_GAP if self.learnt else GAP, start,
        )  # fmt: skip
        self._plans = relaxation.plans
        return crowd_plan(self.grid, relaxation, right if finish else reward, finish=finish)

    def _group(self) -> tuple[CrowdTypes, Floats, Floats]:
        """Types of workers, what each can still give before the budget is spent, and what a label of theirs costs."""
        weights = self._expected()
        known = None if self.learnt else same_channels(self.campaign.channels, weights)
        types = known or group_workers(self.campaign.channels, weights)
        weight, M = np.maximum(weights, 1e-9), len(types.share)
        cost = np.bincount(types.kind, self.cost * weight, M) / np.maximum(np.bincount(types.kind, weight, M), 1e-12)
        to_come = self.arrivals
        if not self.settings.turn_away:
            to_come = min(to_come, float(self.budget - self.given))
        supply = np.where(types.share > 0, types.share * to_come, 0.0) if np.isfinite(to_come) else types.share * np.inf
        return types, np.nan_to_num(supply, nan=0.0, posinf=np.inf), cost

    @property
    def _strangers(self) -> bool:
        """Whether it matters who a worker is and nobody knows; task first it is not known who will come anyway."""
        return self.learnt and not self.settings.task_first and not self.beside_learner

    @property
    def _generosity(self) -> float:
        """How many times its due a task gets while the workers are strangers: at first twice, then less and less."""
        if not self._strangers:
            return 1.0
        seen = int(np.count_nonzero(self.campaign.arrived)) or len(self.campaign.arrived)
        cold = min(float(TRIAL_LABELS * seen), self.budget / 3.0)
        return max(1.0, 2.0 - self.given / cold)

    @property
    def _finishes_first(self) -> bool:
        """Whether tasks that were begun come before those with more left to gain."""
        return self._strangers

    def _expected(self) -> Floats:
        """(W,) shares of the arrivals to come."""
        if self.supply is not None:
            return self.supply
        arrived = self.campaign.arrived.astype(np.float64)
        total = arrived.sum()
        if total == 0:
            return np.ones(len(arrived))
        strangers = arrived == 0
        new = (arrived == 1).sum() / total if strangers.any() else 0.0
        shares = arrived / total * (1.0 - new)
        shares[strangers] = new / max(int(strangers.sum()), 1)
        return np.asarray(shares)


def extended(table: Any, capacity: int, rests: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with ``capacity`` rows, the new ones filled with their rests (``LAST``: the last row's)."""
    out: dict[str, Any] = {}
    for name, rest in rests.items():
        one = getattr(table, name)
        if isinstance(rest, Mapping):
            out[name] = one._replace(**extended(one, capacity, rest))
        else:
            out[name] = np.empty((capacity, *one.shape[1:]), dtype=one.dtype)
            out[name][: len(one)], out[name][len(one) :] = one, one[-1] if rest is LAST else rest
    return out


#: What grows with tasks, workers and entries.
LAST: Final = "last"
BY_TASK: dict[str, Any] = {
    "gold": -1, "offsets": 0.0, "came": 0, "flight": 0,
    "campaign": {
        "given": 0, "state": {"logp": LAST, "belief": LAST}, "bins": {"bin": -1, "plan": 0, "after": -1, "before": -1},
        "history": {"last": -1},
    },
}  # fmt: skip
BY_WORKER: dict[str, Any] = {
    "cost": 0.0,
    "campaign": {
        "channels": LAST, "kind": LAST, "arrived": 0, "worked": 0, "named": 1, "state": {"counts": 0.0},
    },
}  # fmt: skip
BY_ENTRY = {"campaign": {"history": {"earlier": -1, "task": 0, "worker": 0, "answer": IN_FLIGHT}}}
#: Rows of the arrays at first: tasks and entries, workers.
FIRST_ROWS, WORKERS = 64, 8
#: Labels per worker after which workers are no strangers any more.
KNOWN_LABELS = 40
#: Labels that what is known of a worker is worth at most.
MOST_KNOWN = 30.0
#: The least belief that a task may start with.
LEAST = 1e-6
#: What a label less on a task is worth among equal values; multiples of the golden ratio put tasks into any order.
FEWER, GOLDEN = 1e-9, 0.6180339887498949


def _log_marginal(counts: Floats, pseudo: Floats) -> float:
    """log P(counts) of rows that are drawn with Dirichlet channels."""
    rows = gammaln(pseudo + counts) - gammaln(pseudo)
    return float(rows.sum() + (gammaln(pseudo.sum(axis=1)) - gammaln((pseudo + counts).sum(axis=1))).sum())


class GrowingCrowd(CrowdAllocator):
    """Tasks, workers and what was given out, by number; ``share`` (C,) is what a task is believed to be at first.

    ``prior`` says what workers are like (that of any crowd, unless one is given); its shares are not looked at.
    """

    def __init__(self, share: Floats, rule: str = "crowd", seed: int = 0, prior: CrowdPrior | None = None) -> None:
        start = np.maximum(np.asarray(share, dtype=np.float64), LEAST)
        start = start / start.sum()
        usual = CrowdPrior.default(len(start)) if prior is None else prior
        self.tasks = self.entries = 0
        self.planned = False
        self._models: list[int] = []
        self._turned_away: list[float] = []
        #: What earlier campaigns taught about workers, as counts of their answers (C, C).
        self.known: dict[int, Floats] = {}
        super().__init__(
            np.tile(start, (FIRST_ROWS, 1)),
            FIRST_ROWS,
            CrowdSettings(rule=rule, seed=seed),
            workers=WORKERS,
            prior=CrowdPrior(usual.pseudo, TASKS * start, usual.hold),
        )
        self.people = 0
        #: (C,) what was believed of a usual task before any label.
        self.given_share = start
        self.offsets[:] = 0.0
        #: (K,) labels that came and are in flight.
        self.came, self.flight = np.zeros((2, FIRST_ROWS), dtype=np.int64)
        #: Labels that a task may have, and those of them in flight at once.
        self.most_labels = self.most_in_flight = 0
        open_tasks(self.campaign.bins, self.came, MOST_PLANS)

    # What grows -------------------------------------------------------------------------------------------------

    def add_tasks(self, offsets: Floats, most_labels: int, most_in_flight: int) -> None:
        """More tasks, which are given out from the next ``learn`` on, with the limits of all tasks.

        ``offsets`` (n, C) are their log beliefs less that of a usual task.
        """
        first, self.tasks = self.tasks, self.tasks + len(offsets)
        self.reserve_tasks(self.tasks)
        self.offsets[first : self.tasks] = offsets
        self.most_labels, self.most_in_flight = most_labels, most_in_flight

    def reserve_tasks(self, tasks: int) -> None:
        """Make place for so many tasks and one more."""
        self._reserve(len(self.gold), tasks + 1, BY_TASK)

    def _reserve(self, capacity: int, wanted: int, rests: Mapping[str, Any]) -> None:
        """Double what there is place for until so many rows fit."""
        rows = capacity
        while rows < wanted:
            rows *= 2
        if rows > capacity:
            self.__dict__.update(extended(self, rows, rests))

    def add_worker(self, comes: bool = True) -> int:
        """One more worker; return their number. One who never ``comes`` for a task is a model."""
        number, self.people = self.people, self.people + 1
        self._turned_away.append(0.0)
        if not comes:
            self._models.append(number)
        self._reserve(len(self.cost), self.people + 1, BY_WORKER)
        return number

    def introduce(self, worker: int, counts: Floats) -> None:
        """A new worker is known: ``counts`` (C, C) say how often they gave an answer (last axis) to a truth."""
        self.known[worker] = counts * min(1.0, MOST_KNOWN / max(float(counts.sum()), 1e-9))
        self._lend(worker)

    def _lend(self, worker: int) -> None:
        """Count what is known of a worker beside their labels here, as far as they are who they were.

        Either they are, with a chance of one half before any label, or they are a stranger: labels here tell.
        """
        state, channels, history = self.campaign.state, self.campaign.channels, self.campaign.history
        here, known = state.counts[worker].copy(), self.known[worker]
        odds = _log_marginal(here, state.pseudo + known) - _log_marginal(here, state.pseudo)
        state.counts[worker] = here + known / (1.0 + np.exp(-odds))
        before, rows = channels[worker].copy(), state.pseudo + state.counts[worker]
        channels[worker] = rows / rows.sum(axis=1, keepdims=True)
        theirs = np.flatnonzero((history.worker[: self.entries] == worker) & (history.answer[: self.entries] >= 0))
        task, answer = history.task[theirs], history.answer[theirs]
        free = self.gold[task] < 0
        np.add.at(state.logp, task[free], np.log(channels[worker] / before).T[answer[free]])
        touched = np.unique(task[free])
        odds_of = np.exp(state.logp[touched] - state.logp[touched].max(axis=1, keepdims=True))
        state.belief[touched] = odds_of / odds_of.sum(axis=1, keepdims=True)

    def know(self, task: int, answer: int) -> None:
        """The task's truth is known: it is given out no more by the plan, and tells about its workers."""
        self.reserve_tasks(task + 1)
        self.gold[task] = answer
        if self.planned:
            self._settle(task)
            place_task(self.campaign, self.plan, task, False)
        else:
            self._follow(task)

    def forget_truth(self, task: int) -> None:
        """The task's truth is not known any more; until the next refit its labels count by the channels as they are."""
        self.gold[task] = -1
        if not self.planned:
            self._follow(task)
            return
        state, logp = self.campaign.state, self._start_of(task)
        for worker, answer in self.entries_of(task):
            if answer >= 0:
                logp = logp + np.log(self.campaign.channels[worker, :, answer])
        odds = np.exp(logp - logp.max())
        state.logp[task], state.belief[task] = logp, odds / odds.sum()
        place_task(self.campaign, self.plan, task, self._has_room(task))

    def entries_of(self, task: int) -> Iterator[tuple[int, int]]:
        """Worker and answer of the task's entries that count or are in flight, last first."""
        history = self.campaign.history
        entry = int(history.last[task])
        while entry >= 0:
            if history.answer[entry] != GONE:
                yield int(history.worker[entry]), int(history.answer[entry])
            entry = int(history.earlier[entry])

    def _follow(self, task: int) -> None:
        """A task has changed while there is no plan: where there never is one, it is valued here."""

    def _settle(self, task: int) -> None:
        state = self.campaign.state
        state.logp[task], state.belief[task] = self._start_of(task), 0.0
        state.belief[task, self.gold[task]] = 1.0

    def _start_of(self, task: int) -> Floats:
        """(C,) the task's log belief without labels."""
        if self.gold[task] < 0:
            return np.asarray(self.campaign.state.logp[-1] + self.offsets[task])
        return np.where(np.arange(len(self.given_share)) == self.gold[task], 0.0, -np.inf)

    # Steps ------------------------------------------------------------------------------------------------------

    def turn_away(self, worker: int, visits: int) -> None:
        """The worker came and was given nothing; on their ``visits`` before they were.

        It counts as many arrivals as one of those: whoever is turned away would have stayed for more than one label.
        """
        self._turned_away[worker] += max(float(self.campaign.worked[worker]) / max(visits, 1), 1.0)

    def assign(self, lease: int, task: int, worker: int) -> None:
        """The worker has been given the task."""
        self.entries += 1
        self._reserve(len(self.campaign.history.task), self.entries, BY_ENTRY)
        self.flight[task] += 1
        if self._is_planned(task):
            super().assign(lease, task, worker)
            return
        history = self.campaign.history
        history.task[lease], history.worker[lease] = task, worker
        history.earlier[lease], history.last[task] = history.last[task], lease
        history.size[0] = lease + 1
        self._count(task, worker, 1)
        self._follow(task)

    def hold(self, lease: int, task: int, worker: int) -> None:
        """The worker has had the task unasked: it is not given to them again, and nothing is in flight."""
        self.reserve_tasks(task + 1)
        self.assign(lease, task, worker)
        self.cancel(lease)

    def complete(self, lease: int, answer: int, places: int = 1) -> None:
        """The label of an entry has come in and counts, perhaps after it was gone.

        It takes one of the ``places`` that its task has for labels, that of a model none.
        """
        history = self.campaign.history
        task, gone = int(history.task[lease]), history.answer[lease] == GONE
        self.came[task] += places
        self.flight[task] -= 0 if gone else 1
        if self._is_planned(task):
            super().complete(lease, answer)
            return
        if gone:
            self._count(task, int(history.worker[lease]), 1)
        history.answer[lease] = answer
        self._follow(task)

    def cancel(self, lease: int) -> None:
        """The label of an entry in flight is not expected any more, or does not count."""
        history = self.campaign.history
        task = int(history.task[lease])
        self.flight[task] -= 1
        if self._is_planned(task):
            super().cancel(lease)
            return
        history.answer[lease] = GONE
        self._count(task, int(history.worker[lease]), -1)
        self._follow(task)

    def reopen(self, lease: int, places: int = 1) -> None:
        """An entry that has an answer, or is gone, is in flight again; its label took so many ``places``."""
        history = self.campaign.history
        task, gone = int(history.task[lease]), history.answer[lease] == GONE
        self.came[task] -= 0 if gone else places
        self.flight[task] += 1
        if self._is_planned(task):
            reopen(self.campaign, self.plan, lease, self._start_of(task), self._has_room(task))
            return
        if gone:
            self._count(task, int(history.worker[lease]), 1)
        history.answer[lease] = IN_FLIGHT
        self._follow(task)

    def _is_planned(self, task: int) -> bool:
        """Whether there is a plan for the task: a new one has its place from the next ``learn`` on."""
        return self.planned and task < self.tasks

    def _count(self, task: int, worker: int, change: int) -> None:
        self.campaign.given[task] += change
        self.campaign.worked[worker] += change

    def _has_room(self, task: int) -> bool:
        flight, known = self.flight[task], task >= self.tasks or self.gold[task] >= 0
        return bool(not known and flight < self.most_in_flight and self.came[task] + flight < self.most_labels)

    def _rooms(self) -> Bools:
        """(K,) the same of every task."""
        room = (self.flight < self.most_in_flight) & (self.came + self.flight < self.most_labels) & (self.gold < 0)
        room[self.tasks :] = False
        return np.asarray(room)

    def most_valuable(self, value: Floats, worker: int, outlook: Outlook) -> int | Refusal:
        """Of the first tasks that may be given to the worker the one of most ``value``; of equal ones any."""
        n, history = len(value), self.campaign.history
        count, room = self.came[:n] + self.flight[:n], self._rooms()[:n]
        if outlook.eligible is not None:
            eligible = np.zeros(n, dtype=np.bool_)
            eligible[outlook.eligible] = True
            room &= eligible
        if not room.any():
            return "all_leased"
        had = history.task[: self.entries][history.worker[: self.entries] == worker]
        room[had[had < n]] = False
        if not room.any():
            return "nothing_left_for_you"
        order = np.arange(n) * GOLDEN % 1.0
        return int(np.where(room, value - FEWER * (count + order), -np.inf).argmax())

    # Snapshots --------------------------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """What is known beside ``columns``."""
        return {
            "tasks": self.tasks, "people": self.people, "entries": self.entries, "models": self._models,
            "turned_away": self._turned_away, "known": [[who, one.tolist()] for who, one in self.known.items()],
            "limits": [self.most_labels, self.most_in_flight],
        }  # fmt: skip

    def columns(self) -> dict[str, Ints | Floats]:
        """All that ``learn`` is a function of, by task, worker and entry."""
        campaign, history, n = self.campaign, self.campaign.history, self.entries
        return {
            "gold": self.gold, "offsets": self.offsets, "came": self.came, "flight": self.flight,
            "last": history.last, "given": campaign.given, "worked": campaign.worked[: self.people],
            "task": history.task[:n], "worker": history.worker[:n], "answer": history.answer[:n],
            "earlier": history.earlier[:n],
        }  # fmt: skip

    def restore(self, facts: dict[str, Any], columns: dict[str, Any]) -> None:
        """Become the crowd, before its next ``learn``, that these were taken from; this one must be new."""
        self.reserve_tasks(len(columns["gold"]) - 1)
        for _ in range(facts["people"]):
            self.add_worker()
        self._models, self._turned_away = facts["models"], facts["turned_away"]
        self.known = {worker: np.array(counts) for worker, counts in facts["known"]}
        self.tasks, self.entries = facts["tasks"], facts["entries"]
        self.most_labels, self.most_in_flight = facts["limits"]
        self._reserve(len(self.campaign.history.task), self.entries, BY_ENTRY)
        for name, own in self.columns().items():
            own[:] = columns[name]
        self.campaign.history.size[0] = self.entries

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        campaign = self.campaign
        parts = (*campaign, *campaign.state, *campaign.bins, *campaign.history, self.offsets)
        return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))

    # Learning and solving ---------------------------------------------------------------------------------------

    def learn(self, version: int, given: int, left: int, arrivals: float | None = None, expert: float = 0.0) -> None:
        """Learn workers and tasks from all labels, and solve for the ``left`` labels to come after ``given``.

        ``arrivals`` are those that are expected where workers may be turned away, None where nobody is.
        """
        self.given, self.budget = given, given + left
        self.settings = replace(self.settings, turn_away=arrivals is not None, expert=expert)
        self.arrivals = np.inf if arrivals is None else arrivals
        # Who came and handed nothing in will be as little help next time.
        self.campaign.arrived[:] = self.campaign.worked
        self.campaign.arrived[: self.people] += np.rint(self._turned_away).astype(np.int64)
        self.campaign.arrived[self._models] = 0
        self._start = float(plan_start(self.settings.seed, 0)) + 0.5 * version
        self.refit()
        open_tasks(self.campaign.bins, self._rooms().astype(np.int64), MOST_PLANS)
        self.planned = True
        self.resolve()

    def refit(self) -> None:
        """Learn channels and beliefs anew from all labels that have come in; without any, those of the start."""
        history, state = self.campaign.history, self.campaign.state
        if (history.answer[: self.entries] >= 0).any():
            super().refit()
            for worker in self.known:
                self._lend(worker)
            return
        state.counts[:], state.total[:], state.pseudo[:] = 0.0, 0.0, state.base
        self.campaign.channels[:] = state.pseudo / state.pseudo.sum(axis=1, keepdims=True)
        state.logp[:] = np.log(self.given_share) + self.offsets
        odds = np.exp(state.logp - state.logp.max(axis=1, keepdims=True))
        state.belief[:] = odds / odds.sum(axis=1, keepdims=True)
        for task in np.flatnonzero(self.gold >= 0):
            self._settle(int(task))
        for worker in self.known:
            self._lend(worker)

    def _expected(self) -> Floats:
        """(W,) shares of the arrivals to come, in which models have none."""
        shares = super()._expected()
        if self._models:
            shares = shares.copy()
            shares[self._models] = 0.0
        return shares

    def resolve(self) -> None:
        """Solve for the tasks as they stand, as if for the first time."""
        if self.planned:
            self._plans = self._types = None
            super().resolve()

    @property
    def _finishes_first(self) -> bool:
        """While workers are strangers: later on, who stops early has all tasks labelled rather than some of them.

        Which task comes first hardly matters for the end of the budget (decision 43).
        """
        seen = int(np.count_nonzero(self.campaign.arrived))
        return self._strangers and self.given < KNOWN_LABELS * max(seen, 1)

    def at_random(self) -> Bools:
        """(people,) whose answers have nothing to do with the truth, by the labels up to the last ``learn``."""
        labels = self.labels(len(self.gold))
        return answers_at_random(*labels[:3], self.campaign.state.logp, self.channels[: self.people])

    @property
    def start(self) -> Floats:
        """(C,) what is believed of a usual task without labels."""
        return np.asarray(self.campaign.state.belief[-1])
