"""Compare policies on one problem: means, paired differences, and the gap to the bound.

========== ============ ==============================================================================
symbol     code         meaning
========== ============ ==============================================================================
B          bound        upper bound on every policy's value (``solve.bound``)
--         reward       sum of R over the tasks at the end of a replication, less what the labels cost
G          gap          Lagrangian martingale: sum over arrivals and all tasks of
                        max{V(w), V(w+1) - lam} - value of what was done, and unused prices
========== ============ ==============================================================================

E[reward] = B - E[G] for any policy: completions are martingale steps of V and drop out, every term of G is >= 0. G
varies far less than the reward, so the gap is estimated by G (``variance_ratio`` says how much better that is).
Guarantee: unbiased, 95% normal intervals. With a horizon V is that of prices by time (``solve.deadline``), for up
to 16 classes; the gap is available with ``pending="wait"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import InputError
from nextlabel.kernels.gap import GapTables
from nextlabel.policies.base import Policy, Setting
from nextlabel.policies.own_priors import FEW_CLASSES
from nextlabel.policies.registry import make_policy
from nextlabel.policies.resolve import Resolve
from nextlabel.policies.rollout_arrays import make_gap, make_policy_arrays, make_problem_arrays, make_timed_gap, no_gap
from nextlabel.problem.estimate import Estimate
from nextlabel.problem.problem import Problem, in_units, whole
from nextlabel.simulation.adaptive import run_adaptive_chunk
from nextlabel.simulation.engine import Engine, run, run_chunks
from nextlabel.simulation.own_priors import own_prior_tables, own_priors_chunk
from nextlabel.solve.advantage import advantages
from nextlabel.solve.bound import Bound, upper_bound
from nextlabel.solve.deadline import can_be_timed, timed_values
from nextlabel.solve.progress import Progress, part
from nextlabel.solve.relaxed import counts_of
from nextlabel.solve.truncation import make_cut

PENDING = ("wait", "discard")
REPLICATIONS, CROWD_REPLICATIONS = 1000, 20


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """One policy on one problem."""

    name: str
    per_task: Estimate
    gap: Estimate | None
    gap_percent: Estimate | None
    variance_ratio: float | None
    labels_used: float
    most_labels: int
    cap_binds: bool
    rewards: Floats = field(repr=False)
    gaps: Floats = field(repr=False)
    table_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Study:
    """Policies side by side on the same arrivals, durations and labels."""

    problem: Problem
    bound: Bound
    results: tuple[PolicyResult, ...]
    replications: int
    seed: int
    pending: str

    def __str__(self) -> str:
        from nextlabel.simulation.summary import study_text

        return study_text(self)

    def _repr_html_(self) -> str:
        from nextlabel.simulation.summary import study_html

        return study_html(self)

    def difference(self, a: str, b: str) -> Estimate:
        """Paired difference of the values per task, policy ``a`` minus policy ``b``."""
        one, two = self.result(a), self.result(b)
        return Estimate.of(one.rewards - two.rewards, self.problem.tasks)

    def result(self, name: str) -> PolicyResult:
        """The result of the policy called ``name``."""
        for result in self.results:
            if result.name == name:
                return result
        raise InputError(f"policy {name!r} is not in this study.", f"It has {', '.join(r.name for r in self.results)}.")


def default_replications(problem: Problem) -> int:
    """Campaigns of each policy: fewer where workers differ, which take seconds each and say more."""
    return CROWD_REPLICATIONS if problem.workers else REPLICATIONS


def simulate(
    problem: Problem,
    policies: Sequence[Policy | str],
    *,
    replications: int | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    pending: str = "wait",
    prices: str = "scalar",
    bound: Bound | None = None,
    most_labels: int | None = None,
    turn_away: bool = False,
    channels: str | None = None,
    progress: Progress | None = None,
) -> Study:
    """Simulate every policy on the same randomness; ``prices`` chooses the bound that gaps are measured to.

    With workers who differ, ``turn_away`` lets a policy give an arrival nothing, and ``channels`` says whether the
    policies know the workers (``known``, the default) or learn them as labels come in (``learnt``); there are 20
    ``replications`` by default, elsewhere 1000.
    """
    if pending not in PENDING:
        raise InputError(f"pending {pending!r} is not known.", "Use wait, or discard to stop at the last arrival.")
    given = default_replications(problem) if replications is None else replications
    count = whole("replications", given, 1, "Give at least one replication, e.g. --replications 1000.")
    whole("seed", seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    whole("budget", problem.budget, 1, "Give at least one label to simulate, e.g. --budget 1200.")
    chosen = [make_policy(p) for p in policies]
    engine = engine or Engine()
    if problem.workers:
        from nextlabel.simulation.crowd import simulate_crowd

        if pending != "wait" or prices != "scalar" or most_labels is not None:
            raise InputError(
                "with workers who differ every label is waited for, at the prices of the bound, with no most per task.",
                "Leave out pending, prices and most labels.",
            )
        return simulate_crowd(
            problem, chosen, replications=count, seed=seed, engine=engine, turn_away=turn_away,
            channels=channels or "known", bound=bound, progress=progress,
        )  # fmt: skip
    if turn_away or channels is not None:
        raise InputError(
            "turning away and channels are for problems with workers who differ, and this one has none.",
            "Add workers to the problem, or leave them out.",
        )
    if len(problem.classes) > FEW_CLASSES:
        bound = bound or upper_bound(problem, prices)
        return _simulate_many(problem, chosen, count, seed, engine, pending, bound, most_labels, progress)
    setting = Setting.of(problem, most_labels)
    arrays = make_problem_arrays(setting, pending == "wait")
    if bound is None:
        bound = upper_bound(problem, prices)
    gap, correction = _gap(setting, bound) if pending == "wait" else (no_gap(), 0.0)
    results = []
    for k, policy in enumerate(chosen):
        begin = perf_counter()
        mine = part(progress, k, len(chosen))
        if isinstance(policy, Resolve):
            chunk = partial(run_adaptive_chunk, setting, policy, policy.prepare(setting), arrays, gap, seed)
            solved = perf_counter()
            out, _ = run_chunks(engine, chunk, count, mine)
        else:
            tables = make_policy_arrays(setting, policy)
            solved = perf_counter()
            out, _ = run(engine, arrays, tables, gap, count, seed, progress=mine)
        seconds = perf_counter() - solved
        results.append(_result(policy.name, setting, bound, gap, correction, out, solved - begin, seconds))
    if progress is not None:
        progress(1.0)
    return Study(problem, bound, tuple(results), count, seed, pending)


def _simulate_many(
    original: Problem,
    policies: Sequence[Policy],
    count: int,
    seed: int,
    engine: Engine,
    pending: str,
    bound: Bound,
    most_labels: int | None,
    progress: Progress | None,
) -> Study:
    """Many kinds of tasks, task by task; the gap is the plain difference to the bound."""
    results = []
    problem, unit = in_units(original)
    for k, policy in enumerate(policies):
        begin = perf_counter()
        tasks = own_prior_tables(problem, policy, part(progress, 2 * k, 2 * len(policies)), most_labels)
        solved = perf_counter()
        chunk = partial(own_priors_chunk, problem, tasks, pending == "wait", seed)
        out, _ = run_chunks(engine, chunk, count, part(progress, 2 * k + 1, 2 * len(policies)))
        rewards = unit * (out[:, 0] - problem.label_cost * out[:, 1])
        gaps = bound.value - rewards
        comparable = pending == "wait"
        most = int(out[:, 2].max())
        results.append(
            PolicyResult(
                name=policy.name,
                per_task=Estimate.of(rewards, problem.tasks),
                gap=Estimate.of(gaps, problem.tasks) if comparable else None,
                gap_percent=_percent(gaps, bound) if comparable else None,
                variance_ratio=1.0 if comparable else None,
                labels_used=float(out[:, 1].mean()),
                most_labels=most,
                cap_binds=most >= tasks.D < problem.budget,
                rewards=rewards,
                gaps=gaps,
                table_seconds=solved - begin,
                seconds=perf_counter() - solved,
            )
        )
    return Study(original, bound, tuple(results), count, seed, pending)


def _percent(gaps: Floats, bound: Bound) -> Estimate | None:
    """The gap in percent of the bound's size; None where the bound is 0."""
    return Estimate.of(gaps, abs(bound.value) / 100.0) if bound.value != 0.0 else None


def _gap(setting: Setting, bound: Bound) -> tuple[GapTables, float]:
    """Advantages at the bound's prices, and how much their own bound is above the one reported."""
    problem, unit = in_units(setting.problem)
    if problem.finite:
        if not can_be_timed(problem):
            return no_gap(), 0.0
        found = timed_values(problem)
        own = unit * (float(counts_of(problem.classes) @ found.start) + found.charge)
        return make_timed_gap(setting, found, unit), own - bound.value
    price = np.array([bound.price]) if bound.prices is None else bound.prices
    cut = make_cut(problem, bound.cap, bound.flight)
    parts = [
        advantages(problem, entry, price / unit, cut, setting.flight, setting.depth).times(unit)
        for entry in problem.classes
    ]
    charged = float(price[0]) * problem.budget if len(price) == 1 else float(price.sum())
    own = sum(entry.count * one.value for entry, one in zip(problem.classes, parts, strict=True)) + charged
    return make_gap(setting, parts, price), own - bound.value


def _result(
    name: str,
    setting: Setting,
    bound: Bound,
    gap: GapTables,
    correction: float,
    out: Floats,
    table_seconds: float,
    seconds: float,
) -> PolicyResult:
    K = setting.problem.tasks
    rewards, gaps = out[:, 0] - setting.problem.label_cost * out[:, 1], out[:, 3] - correction
    measured = len(gap.price) > 0 or len(gap.timed.tau) > 0
    most = int(out[:, 2].max())
    noise = float(gaps.var())
    return PolicyResult(
        name=name,
        per_task=Estimate.of(rewards, K),
        gap=Estimate.of(gaps, K) if measured else None,
        gap_percent=_percent(gaps, bound) if measured else None,
        variance_ratio=(float(rewards.var()) / noise if noise > 0 else float("inf")) if measured else None,
        labels_used=float(out[:, 1].mean()),
        most_labels=most,
        cap_binds=most >= setting.depth < setting.problem.budget,
        rewards=rewards,
        gaps=gaps if measured else np.zeros(0),
        table_seconds=table_seconds,
        seconds=seconds,
    )
