"""A problem and a policy as the arrays that the event loop takes (``kernels.rollout``), ready to be played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import refuse
from nextlabel.kernels.choice import BY_CONFIDENCE, BY_DEFICIT, BY_DRAW, BY_LEVELS, BY_TABLE, NO_LEVELS, PolicyArrays
from nextlabel.kernels.events import NONE_RECORDED, RecordedLabels, Timing
from nextlabel.kernels.inputs import NO_SLACK_TIME
from nextlabel.kernels.ranked_tasks import NO_RANKED_TASKS, RankedTasks
from nextlabel.kernels.rollout import NO_GAP, GapTables, ProblemArrays, rollout
from nextlabel.model.problem import Problem, reward_unit
from nextlabel.model.simplex import deepest, nodes_of
from nextlabel.policies.base import (
    MOST_IN_FLIGHT,
    MOST_LABELS,
    MOST_NODES,
    ClassView,
    Policy,
    ScoreTables,
    Setting,
    checked_table,
)
from nextlabel.policies.index import Index
from nextlabel.solve.index import index_table
from nextlabel.solve.truncation import make_cut

#: With more classes than this, tasks are ranked one by one.
FEW_CLASSES = 64
#: Levels that the index looks ahead beyond the most labels of a task.
AHEAD = 12
#: Labels per task, and of them in flight, that are looked at: the first for whose tables there is room.
DEPTHS = ((MOST_LABELS, MOST_IN_FLIGHT), (48, 16), (32, 12), (24, 8), (16, 6), (12, 4))
#: Bytes of those tables.
ROOM = 600e6


def affordable_limits(classes: int, answers: int, static: bool) -> tuple[int, int]:
    """Labels per task, and of them in flight, with so many lattices; ``static``: with a score for every state."""
    for depth, flight in DEPTHS:
        depth = min(depth, deepest(answers, MOST_NODES))
        states = nodes_of(answers, depth)
        numbers = answers * states + (flight + 1) * states if static else answers * nodes_of(answers, depth + AHEAD)
        if 8.0 * classes * numbers <= ROOM:
            break
    return depth, min(depth, flight)


#: Budgets of a curve.
POINTS = 33
#: Labels of one task that the patient index models in full, and its accuracy.
CAP, TOLERANCE = 8, 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """Campaigns that are ready to be played: by default with the problem's own budget, labels drawn and awaited.

    ``budgets`` rise to the problem's own; one campaign passes through all of them.
    """

    problem: ProblemArrays
    policy: PolicyArrays
    budgets: tuple[int, ...] = ()
    gap: GapTables = NO_GAP
    own: RankedTasks = NO_RANKED_TASKS
    recorded: RecordedLabels = NONE_RECORDED
    worth: Floats = field(default_factory=lambda: np.zeros(0))
    awaited: bool = True

    @classmethod
    def over_budgets(cls, problem: Problem, policy: Policy, budgets: Sequence[int]) -> Rollout:
        """A curve: the tables are those of the largest budget, the labels in flight at each budget are averaged."""
        setting = Setting.of(problem.with_budget(max(int(budgets[-1]), 1)))
        tables = make_policy_arrays(setting, policy)
        what = f"policy {policy.name!r} plans for one budget and does not pass through several."
        refuse((tables.mode in (BY_DEFICIT, BY_LEVELS), what, "Use index, okg-pending or another rule."))
        arrays = make_problem_arrays(setting, True)
        return cls(arrays, tables, tuple(map(int, budgets)), worth=_worth(setting), awaited=False)

    def play(self, seed: int, first: int, count: int, keep: int = 0) -> tuple[Floats, Ints]:
        """Replications first .. first + count - 1: ``write_outcome`` (count, budgets, 5), and where tasks end.

        The ends (count, budgets, keep) are those of ``kernels.rollout.write_ends``, for as many tasks as there are.
        """
        budgets = np.array(self.budgets or (self.problem.budget,), dtype=np.int64)
        out, ends = np.zeros((count, len(budgets), 5)), np.zeros((count, len(budgets), keep), dtype=np.int64)
        rollout(
            self.problem, self.policy, self.gap, self.own, self.recorded, self.worth, budgets, self.awaited, seed,
            first, out, ends,
        )  # fmt: skip
        return out, ends


def curve_budgets(largest: int) -> Ints:
    """The budgets of a curve, from none to the largest."""
    return np.unique(np.round(np.linspace(0, largest, POINTS)).astype(np.int64))


def patient_index(problem: Problem) -> Index:
    """The index policy of the campaign without deadline, with a table small enough for any budget."""
    endless = replace(problem, horizon=inf, arrival_rate=problem.peak_rate)
    cap = min(CAP, make_cut(endless, None, None).cap)
    return Index(index_table(endless, cap=cap, tolerance=TOLERANCE))


def _worth(setting: Setting) -> Floats:
    """Of each state w * nodes + i: E[R after the labels in flight], or R if a horizon may cut them off."""
    after = ClassView.whatever_in_flight if setting.problem.finite else ClassView.after_flight
    rows = [after(view, view.lattice.reward) for view in setting.views]
    return np.ascontiguousarray(np.concatenate(rows, axis=1)).ravel()


def make_problem_arrays(setting: Setting, wait: bool, limits: Ints | None = None) -> ProblemArrays:
    """Lattices of all classes one after another; tasks are numbered class by class."""
    problem, views = setting.problem, setting.views
    start = np.concatenate([[0], np.cumsum([view.nodes for view in views])[:-1]]).astype(np.int64)
    child = np.concatenate([view.lattice.child + s for view, s in zip(views, start, strict=True)]).astype(np.int64)
    child.setflags(write=False)  # as one lattice has it: compiled kernels tell the two kinds of array apart
    depth = np.repeat([setting.depth] * len(views) if limits is None else limits, [v.nodes for v in views])
    return ProblemArrays(
        level=np.concatenate([v.level for v in views]),
        reward=np.concatenate([v.lattice.reward for v in views]),
        prob=np.concatenate([v.lattice.prob for v in views]),
        child=child,
        limit=depth.astype(np.int64),
        root=np.repeat(start, [c.count for c in problem.classes]).astype(np.int64),
        flight=np.zeros(0, dtype=np.int64),
        budget=problem.budget,
        timing=make_timing(problem, wait),
    )


def make_timing(problem: Problem, wait: bool) -> Timing:
    """Rates and horizon; ``wait`` for the labels in flight when the budget is spent."""
    return Timing(*problem.rate_pieces, problem.completion_rate, problem.horizon, wait)


def make_policy_arrays(setting: Setting, policy: Policy) -> PolicyArrays:
    """The policy's scores over all classes."""
    policy.check_answers(setting.problem.answers)
    return join_scores(setting, policy, checked_scores(setting, policy))


def checked_scores(setting: Setting, policy: Policy) -> list[ScoreTables]:
    """One table for each class, of the right shape and finite; anything else is refused in one sentence."""
    found: Any = policy.scores(setting)
    many = len(setting.views)
    refuse((
        not isinstance(found, list) or [type(one) for one in found] != [ScoreTables] * many,
        f"policy {policy.name!r} returns {type(found).__name__}, and a list of {many} ScoreTables is needed.",
        "Return one for each of setting.views, or make it a StaticPolicy with score(view).",
    ))  # fmt: skip
    scores: list[ScoreTables] = found
    for one, view in zip(scores, setting.views, strict=True):
        checked_table(policy.name, one.static, view)
    return scores


def no_tables(shape: tuple[int, int], price: Floats) -> PolicyArrays:
    """For tasks that are ranked by scores of their own (``kernels.ranked_tasks``): which states are full is all."""
    static, none = np.zeros(shape), np.zeros((0, 2))
    core = np.full(shape, -1, dtype=np.int64)
    return PolicyArrays(
        static, np.zeros((0, 0, 1)), core, np.array([np.inf]), True, BY_TABLE, np.zeros((0, 0)), 0.0, price, none, none,
        NO_LEVELS, NO_SLACK_TIME,
    )  # fmt: skip


def join_scores(setting: Setting, policy: Policy, scores: Sequence[ScoreTables]) -> PolicyArrays:
    """Scores of the classes side by side."""
    static, rows, core = join_tables([s.static for s in scores], [s.rows for s in scores], [s.core for s in scores])
    first, cost = scores[0], setting.problem.label_cost
    ways = (
        (BY_DEFICIT, any(s.planned is not None for s in scores)), (BY_LEVELS, first.levels is not None),
        (BY_DRAW, first.quantiles is not None), (BY_CONFIDENCE, first.facts is not None), (BY_TABLE, True),
    )  # fmt: skip
    tied = policy.tied * (reward_unit(setting.problem) if policy.in_reward_units else 1.0)
    least = cost - tied if cost > 0 and policy.priced else -np.inf
    return PolicyArrays(
        static=static,
        rows=rows,
        core=core,
        tau=next((s.tau for s in scores if s.tau is not None), np.array([np.inf])),
        random_ties=policy.random_ties,
        mode=next(mode for mode, so in ways if so),
        planned=_joined([s.planned for s in scores], 1, 0),
        tied=tied,
        facts=_joined([s.facts for s in scores], 0, 2),
        quantiles=_joined([s.quantiles for s in scores], 0, 2),
        price=np.full(max(setting.problem.budget, 1), least),
        levels=NO_LEVELS if first.levels is None else first.levels,
        slack_time=first.slack_time,
    )


def _joined(tables: Sequence[Floats | None], axis: int, width: int) -> Floats:
    """The tables that there are side by side, or one without rows."""
    known = [table for table in tables if table is not None]
    return np.concatenate(known, axis=axis) if known else np.zeros((0, width))


def join_tables(
    static: list[Floats], rows: Sequence[Floats | None], core: Sequence[Ints | None]
) -> tuple[Floats, Floats, Ints]:
    """Tables of several classes side by side; shorter rows are continued with their last one."""
    all_static = np.concatenate(static, axis=1)
    longest, at = max((len(r) for r in rows if r is not None), default=0), 0
    joined, columns = [np.zeros((longest, 0, 1))], list[Ints]()
    for table, r, c in zip(static, rows, core, strict=True):
        if r is None or c is None:
            columns.append(np.full(table.shape, -1, dtype=np.int64))
            continue
        joined.append(np.concatenate([r, np.repeat(r[-1:], longest - len(r), axis=0)]))
        columns.append(np.where(c >= 0, c + at, -1))
        at += r.shape[1]
    layers = joined[1:] or joined
    return all_static, np.ascontiguousarray(np.concatenate(layers, axis=1)), np.concatenate(columns, axis=1)
