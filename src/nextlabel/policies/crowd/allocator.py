"""Policies that know workers, one decision at a time: ask who gets which task, tell what came back, refit, ask anew.

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

Guarantee: heuristic, deterministic under the seed. Cost: a decision some microseconds; ``resolve`` 5 to 100 ms,
plus a refit over all labels where channels are learnt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError
from nextlabel.kernels.crowd_bins import put
from nextlabel.kernels.crowd_campaign import (
    CrowdCampaign,
    assign,
    come_in,
    count_members,
    drop,
    new_campaign,
    next_among,
    next_for_anyone,
    next_task,
    rebin_all,
    task_bins,
)
from nextlabel.kernels.crowd_choice import CrowdPlan, follow_plans, plan_start
from nextlabel.kernels.crowd_core import refit_with_core
from nextlabel.kernels.crowd_fit import refit
from nextlabel.policies.base import Policy
from nextlabel.policies.crowd.policies import CrowdView
from nextlabel.policies.crowd.relaxation import (
    GAP,
    LEARNT_GAP,
    MOST_PLANS,
    Chain,
    CrowdTypes,
    RelaxationSolver,
    belief_grid,
    crowd_plan,
    group_workers,
    ranked_plan,
    same_channels,
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
    ``task_first``: the task is chosen before anyone knows who will label it. ``resolves``: about how many times the
    relaxation is solved again while the budget is spent.
    """

    rule: str | Policy = "crowd"
    turn_away: bool = False
    task_first: bool = False
    named: bool = True
    resolves: int = 40
    seed: int = 0


class CrowdAllocator:
    """Tasks, workers and a budget; ``ask`` for a task and ``tell`` what the worker said.

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
        if channels is None and workers is None:
            raise InputError("neither channels nor a number of workers is given.", "Give one of them.")
        self.settings = settings or CrowdSettings()
        self.policy = make_policy(self.settings.rule)
        self.learnt = channels is None
        people = int(workers) if channels is None and workers is not None else len(np.asarray(channels))
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
        self._tilt = np.log(np.maximum(beliefs, 1e-300)) - self.campaign.state.logp
        self.campaign.state.logp[:] += self._tilt
        self.campaign.state.belief[:] = beliefs
        if channels is not None:
            self.campaign.channels[:] = channels
        self.gold = np.full(tasks, -1, dtype=np.int64)
        self._start = plan_start(self.settings.seed, replication)
        self._types: CrowdTypes | None = None
        self._before: CrowdTypes | None = None
        self._plans: Ints | None = None
        self.next_due = 0
        self.plan: CrowdPlan = ranked_plan(self.grid, -self.grid)
        for x in range(tasks):
            put(self.campaign.bins, x, 0, 0, MOST_PLANS)
        self.resolve()

    # One decision at a time -------------------------------------------------------------------------------------

    def ask(self, worker: int, eligible: Ints | None = None) -> int | None:
        """The task for this worker, or None: nothing for them now. ``assign`` says that they took it."""
        must = self.must
        if self.given >= self.budget:
            return None
        if self.settings.task_first:
            x = next_for_anyone(self.campaign, self.plan)
        elif eligible is None:
            x = next_task(self.campaign, self.plan, worker, must)
        else:
            x = next_among(self.campaign, self.plan, worker, must, eligible, len(eligible))
        return None if x < 0 else int(x)

    def assign(self, task: int, worker: int) -> int:
        """The worker has been given the task; return the entry for ``tell``."""
        self.given += 1
        return int(assign(self.campaign, self.plan, task, worker))

    def tell(self, entry: int, answer: int) -> None:
        """The label of that entry has come in."""
        come_in(self.campaign, self.plan, entry, answer)

    def drop(self, entry: int) -> None:
        """The work of that entry will not be handed in: its label can be given again."""
        drop(self.campaign, self.plan, entry)
        self.given -= 1

    @property
    def must(self) -> bool:
        """Whether the next arrival must be given something: nobody is turned away, or all are needed."""
        return not self.settings.turn_away or self.arrivals <= self.budget - self.given

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
        history, state = self.campaign.history, self.campaign.state
        n = int(history.size[0])
        came = np.flatnonzero(history.answer[:n] >= 0)
        if not self.learnt or not len(came):
            return
        task, worker, answer = history.task[came], history.worker[came], history.answer[came]
        if self.prior.core > 0:
            bounds = np.zeros(SWEEPS)
            refit_with_core(
                state, task, worker, answer, len(came), self.gold, float(self.prior.core), SWEEPS, RISE, bounds
            )
        else:
            refit(state, task, worker, answer, len(came), self.gold, SWEEPS, RISE, False, np.zeros(SWEEPS))
        pseudo = state.counts + state.pseudo
        self.campaign.channels[:] = pseudo / pseudo.sum(axis=2, keepdims=True)
        if np.ptp(self._tilt, axis=0).any():
            state.logp[:] = np.log(np.maximum(state.belief, 1e-300)) + self._tilt
            odds = np.exp(state.logp - state.logp.max(axis=1, keepdims=True))
            state.belief[:] = odds / odds.sum(axis=1, keepdims=True)

    def rebin(self) -> None:
        """After a refit: tasks go to the bins of their new beliefs and keep their plans."""
        rebin_all(self.campaign, self.plan)

    def resolve(self) -> None:
        """Ask the policy anew, for the tasks as they stand, and hand every task a plan."""
        target = np.zeros(len(self.gold), dtype=np.int64)
        task_bins(self.campaign, self.grid, target)
        self.plan = self.policy.plan(self)
        self._start += 0.5
        follow_plans(self.campaign.bins, self.plan, target, self._start)
        spread = self.budget / self.settings.resolves
        self.next_due = self.given + max(1, int(min(spread, max(10.0, self.given / 5.0) if self.learnt else spread)))

    @property
    def certainty(self) -> Floats:
        """(G,) the chance that the likeliest answer is right."""
        return np.maximum(self.grid, 1.0 - self.grid) if self.campaign.state.belief.shape[1] == 2 else self.grid

    def view(self) -> CrowdView:
        """Tasks and workers as a policy sees them; workers are grouped anew.

        Where the task is chosen before anyone knows who will label it, there is one type: whoever comes.
        """
        types, supply, cost = self._group()
        chain, share = Chain(types.channels), types.share
        members, left = np.zeros(len(self.grid)), float(max(self.budget - self.given, 0))
        count_members(self.campaign, self.grid, members)
        tables = chain.tables
        if self.settings.task_first:
            tables, share = chain.mixed(types.share), np.ones(1)
            cost, supply = np.array([float(types.share @ cost)]), np.array([left])
        self.campaign.kind[:] = 0 if self.settings.task_first else types.kind
        self._before, self._types = self._types, types
        return CrowdView(self.grid, chain.reward, *tables, share, cost, supply, members, left)

    def relaxation(self) -> CrowdPlan:
        """The plan of the relaxation for the tasks as they stand."""
        view, start = self.view(), self._plans
        if start is not None and self.learnt and not self.settings.task_first and self._before is not None:
            assert self._types is not None
            start = _renamed(start, self._before.channels, self._types.channels)
        solver = RelaxationSolver((view.to, view.weight), view.reward, view.cost, start)
        more = self._generosity
        found = solver.solve(view.members, more * view.left, more * view.supply, LEARNT_GAP if self.learnt else GAP)
        self._plans = found.plans
        return crowd_plan(self.grid, found, solver.losses(found), view.reward, finish=self._finishes_first)

    def _group(self) -> tuple[CrowdTypes, Floats, Floats]:
        """Types of workers, what each can still give before the budget is spent, and what a label of theirs costs."""
        weights = self._expected()
        types = None if self.learnt else same_channels(self.campaign.channels, weights)
        if types is None:
            types = group_workers(self.campaign.channels, weights)
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
        return self.learnt and not self.settings.task_first

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


def _renamed(plans: Ints, before: Floats, now: Floats) -> Ints:
    """Plans with each type of before replaced by the nearest type of now."""
    distance = np.abs(before[:, None] - now[None]).sum(axis=(2, 3))
    nearest = np.append(np.argmin(distance, axis=1), -1)
    return np.asarray(nearest[plans])
