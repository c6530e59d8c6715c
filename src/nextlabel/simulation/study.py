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

In tables the gap of a row is the martingale estimate where there is one; with many kinds of tasks it is bound minus
mean; with ``pending="discard"`` there is none, because the bound is for waiting. Percentages are of the bound.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import InputError, one_of, refuse
from nextlabel.kernels.ranked_tasks import NO_RANKED_TASKS
from nextlabel.kernels.rollout import (
    NO_GAP,
    GapTables,
    ProblemArrays,
    advance,
    new_run,
    start_run,
    write_outcome,
)
from nextlabel.model.estimate import Estimate
from nextlabel.model.problem import Problem, in_units
from nextlabel.model.tables import problem_table
from nextlabel.model.tasks import whole
from nextlabel.notebook import interval_picture, table_html
from nextlabel.policies.base import Policy, Setting
from nextlabel.policies.gap import gap_tables
from nextlabel.policies.lagrangian import Resolve, Solved
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import (
    FEW_CLASSES,
    Rollout,
    join_scores,
    make_policy_arrays,
    make_problem_arrays,
)
from nextlabel.reporting.artifacts import Row, manifest
from nextlabel.reporting.report import Report, Table, text_table
from nextlabel.reporting.style import BLUE, RED, drawing
from nextlabel.simulation.engine import Chunk, Engine, run_chunks
from nextlabel.simulation.ranked_tasks import RankedCampaigns, ranked_tables
from nextlabel.solve.bound import Bound, upper_bound
from nextlabel.solve.progress import Progress, part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nextlabel.files.frames import Library


PENDING = ("wait", "discard")
#: Campaigns of each policy; fewer where workers differ, which take seconds each and say more.
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

    @classmethod
    def of(
        cls, tasks: int, bound: Bound, name: str, rewards: Floats, gaps: Floats | None, labels: Floats, most: Floats,
        cap_binds: bool, seconds: tuple[float, float],
    ) -> PolicyResult:  # fmt: skip
        """From one number of each kind per replication: rewards, gaps (None: not known), labels, most of one task."""
        ratio = None
        if gaps is not None:  # 1 where the gap is that of the rewards, with many kinds of tasks
            plain, noise = np.array_equal(gaps, bound.value - rewards), float(gaps.var())
            ratio = 1.0 if plain else float(rewards.var()) / noise if noise > 0 else float("inf")
        return cls(
            name=name,
            per_task=Estimate.of(rewards, tasks),
            gap=None if gaps is None else Estimate.of(gaps, tasks),
            gap_percent=None if gaps is None or bound.value == 0.0 else Estimate.of(gaps, abs(bound.value) / 100.0),
            variance_ratio=ratio,
            labels_used=float(labels.mean()),
            most_labels=int(most.max()),
            cap_binds=cap_binds,
            rewards=rewards,
            gaps=np.zeros(0) if gaps is None else gaps,
            table_seconds=seconds[0],
            seconds=seconds[1],
        )


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
        table = policy_table(self)
        return text_table(_title(self), table.header, table.rows, *_notes(self))

    def _repr_html_(self) -> str:
        return study_html(self)

    def frame(self, library: Library = "pandas") -> Any:
        """A row for each policy, with the columns of the table that ``simulate --out`` writes."""
        from nextlabel.files.frames import make_frame

        rows = _table(self)
        names = list(dict.fromkeys(name for row in rows for name in row))
        return make_frame(names, [[row.get(name) for name in names] for row in rows], library)

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
    unknown = pending not in PENDING
    refuse((unknown, f"pending {pending!r} is not known.", "Use wait, or discard to stop at the last arrival."))
    usual = CROWD_REPLICATIONS if problem.workers else REPLICATIONS
    given = usual if replications is None else replications
    count = whole("replications", given, 1, "Give at least one replication, e.g. --replications 1000.")
    whole("seed", seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    whole("budget", problem.budget, 1, "Give at least one label to simulate, e.g. --budget 1200.")
    chosen = [make_policy(p) for p in policies]
    engine = engine or Engine()
    solving, playing = (part(progress, 0, 2), part(progress, 1, 2)) if bound is None else (None, progress)
    if problem.workers:
        from nextlabel.simulation.crowd import play_crowds, turned_bound

        one_of("channels", channels or "known", ("known", "learnt"))
        refuse((
            pending != "wait" or prices != "scalar" or most_labels is not None,
            "with workers who differ every label is waited for, at the prices of the bound, with no most per task.",
            "Leave out pending, prices and most labels.",
        ))  # fmt: skip
        learnt = channels == "learnt"
        bound = bound or turned_bound(problem, turn_away, learnt)
        played = play_crowds(problem, chosen, count, seed, engine, bound, turn_away, learnt, playing)
    else:
        refuse((
            turn_away or channels is not None,
            "turning away and channels are for problems with workers who differ, and this one has none.",
            "Add workers to the problem, or leave them out.",
        ))  # fmt: skip
        bound = bound or upper_bound(problem, prices, progress=solving)
        played = _play(problem, chosen, count, seed, engine, pending, bound, most_labels, playing)
    results = tuple(PolicyResult.of(problem.tasks, bound, *one) for one in played)
    if progress is not None:
        progress(1.0)
    return Study(problem, bound, results, count, seed, pending)


def _play(
    original: Problem, policies: Sequence[Policy], count: int, seed: int, engine: Engine, pending: str, bound: Bound,
    most_labels: int | None, progress: Progress | None,
) -> Iterator[tuple[str, Floats, Floats | None, Floats, Floats, bool, tuple[float, float]]]:  # fmt: skip
    """Few kinds of tasks form groups of equal state, with the gap by its martingale; of many each task is ranked."""
    ranked, wait = len(original.classes) > FEW_CLASSES, pending == "wait"
    problem, unit = in_units(original) if ranked else (original, 1.0)
    if not ranked:
        setting = Setting.of(problem, most_labels)
        arrays = make_problem_arrays(setting, wait)
        gap, correction = gap_tables(setting, bound) if wait else (NO_GAP, 0.0)
    measured = not ranked and (len(gap.price) > 0 or len(gap.timed.tau) > 0)
    for k, policy in enumerate(policies):
        begin = perf_counter()
        chunk: Chunk
        if ranked:
            tasks = ranked_tables(problem, policy, part(progress, 2 * k, 2 * len(policies)), most_labels)
            chunk, depth = partial(RankedCampaigns(problem, tasks, wait=wait).play, seed), tasks.D
        else:
            depth = setting.depth
            if isinstance(policy, Resolve):
                chunk = partial(resolve_chunk, setting, policy, policy.prepare(setting), arrays, gap, seed)
            else:
                chunk = partial(Rollout(arrays, make_policy_arrays(setting, policy), gap=gap).play, seed)
        solved = perf_counter()
        shown = part(progress, 2 * k + 1, 2 * len(policies)) if ranked else part(progress, k, len(policies))
        out = run_chunks(engine, chunk, count, shown)[0][:, 0]
        rewards = unit * (out[:, 0] - problem.label_cost * out[:, 1])
        gaps = out[:, 3] - correction if measured else bound.value - rewards if ranked and wait else None
        full, seconds = bool(out[:, 2].max() >= depth < problem.budget), (solved - begin, perf_counter() - solved)
        yield policy.name, rewards, gaps, out[:, 1], out[:, 2], full, seconds


def resolve_chunk(
    setting: Setting, policy: Resolve, solved: Solved, arrays: ProblemArrays, gap: GapTables, seed: int, first: int,
    count: int,
) -> tuple[Floats]:  # fmt: skip
    """Replications of a policy that solves again: some arrivals, a look at the states, new tables."""
    out, own = np.zeros((count, 1, 5)), NO_RANKED_TASKS
    every, U, horizon = policy.interval(setting), arrays.budget, arrays.timing.horizon
    ends = np.cumsum([view.nodes for view in setting.views])[:-1]  # of the classes' nodes
    for rep in range(count):
        mine, occupied, over, ell, left = copy.copy(solved), policy.fresh(setting), False, 0, horizon
        while not over and ell < U and left > 0.0:
            tables = join_scores(setting, policy, policy.update(setting, mine, occupied, U - ell, left))
            planned = np.zeros((U, tables.planned.shape[1]))
            planned[ell:] = tables.planned  # the plan starts at this arrival
            tables = tables._replace(planned=planned)
            if ell == 0:
                run = new_run(arrays, tables, own)
                start_run(arrays, own, arrays.root, run, seed, first + rep)
            run.given[:] = 0.0
            over = advance(arrays, tables, gap, own, run, seed, first + rep, min(ell + every, U))
            ell, left = int(run.counters[1]), horizon - float(run.clock[0])
            members = run.members.reshape((setting.flight + 1, -1)).astype(np.float64)
            occupied = np.split(members, ends, axis=1)
        if not over:
            advance(arrays, tables, gap, own, run, seed, first + rep, U + 1)
        write_outcome(arrays, own, np.zeros(0), run, out[rep, 0])
    return (out,)


TABLE, FIGURE, MANIFEST = "policies.csv", "policies.png", "manifest.json"


def policy_rows(study: Study) -> list[Row]:
    """One row per policy, in the order given."""
    return [
        {
            "name": result.name,
            "mean_per_task": result.per_task.mean,
            "half_width": result.per_task.half_width,
            **dict(zip(("gap_percent", "gap_half_width"), _gap(study, result), strict=True)),
            "labels_used": result.labels_used,
            "most_labels": result.most_labels,
            "cap_binds": result.cap_binds,
            "variance_ratio": result.variance_ratio,
            "seconds": result.seconds,
            "table_seconds": result.table_seconds,
        }
        for result in study.results
    ]


def _gap(study: Study, result: PolicyResult) -> tuple[float | None, float | None]:
    """The gap in percent of the bound, by the martingale or plainly, and its half-width."""
    if result.gap_percent is not None:
        return result.gap_percent.mean, result.gap_percent.half_width
    if study.pending != "wait" or study.bound.per_task == 0.0:
        return None, None
    share = 100.0 / abs(study.bound.per_task)
    return share * (study.bound.per_task - result.per_task.mean), share * result.per_task.half_width


#: Columns of the table that people read; the last is how many times fewer replications the martingale needs.
COLUMNS = {
    "policy": "{name}", "per task": "{mean_per_task:.6f} ±{half_width:.6f}",
    "gap %": "{gap_percent:.4f} ±{gap_half_width:.4f}", "labels": "{labels_used:,.1f}", "most": "{most_labels}",
    "ratio": "{ratio}",
}  # fmt: skip


def policy_table(study: Study, title: str = "", caption: str = "") -> Table:
    """The table that people read."""
    rows = policy_rows(study)
    for row in rows:
        ratio = row["variance_ratio"]
        row["ratio"] = ratio if ratio is None else f"{ratio:,.1f}" if ratio < 1e6 else "> 10^6"
    return Table.of(title, COLUMNS, rows, caption, nothing="-")


def study_html(study: Study) -> str:
    """The study as notebooks show it, with a picture of each policy's interval below the bound."""
    table = policy_table(study)
    means, widths = _intervals(study)
    lows, highs = means - widths, means + widths
    least, most = float(lows.min()), max(study.bound.per_task, float(highs.max()))
    ends = zip(means.tolist(), lows.tolist(), highs.tolist(), strict=True)
    rows = [[*row, interval_picture(*end, least, most)] for row, end in zip(table.rows, ends, strict=True)]
    return table_html(_title(study), [*table.header, f"{least:.4f} to {most:.4f}"], rows, _notes(study))


def _intervals(study: Study) -> Floats:
    """(2, policies) means, and half-widths, 0 where there is one replication."""
    return np.nan_to_num([(one.per_task.mean, one.per_task.half_width) for one in study.results]).T


def _title(study: Study) -> str:
    problem = study.problem
    return f"{problem.tasks:,} tasks, {problem.budget:,} labels, {study.replications:,} replications"


def _notes(study: Study) -> tuple[str, str]:
    bound = f"Bound {study.bound.per_task:.6f} per task; ± is the half-width of a 95% interval."
    return bound, verdict(study)


def difference_rows(study: Study) -> list[Row]:
    """Paired differences per task of every other policy to the first."""
    first, *others = study.results
    found = [(other.name, study.difference(other.name, first.name)) for other in others]
    return [
        {
            "name": name, "minus": first.name, "mean_per_task": one.mean, "half_width": one.half_width,
            "excludes_zero": _excludes_zero(one.mean, one.half_width),
        }
        for name, one in found
    ]  # fmt: skip


def verdict(study: Study) -> str:
    """Who is ahead of whom, and whether the paired interval excludes zero."""
    ranked = sorted(study.results, key=lambda r: -r.per_task.mean)
    best = ranked[0]
    if len(ranked) == 1:
        value = f"{best.per_task.mean:.4f}"
        if study.problem.label_cost == 0 and study.problem.is_accuracy:
            return f"{best.name} gets {value} of each task right."
        return f"{best.name} has a value of {value} per task."
    second = ranked[1]
    ahead = study.difference(best.name, second.name)
    if ahead.mean == 0.0 and not ahead.half_width > 0:
        return f"{best.name} and {second.name} did equally well in every replication."
    words = f"{best.name} is ahead of {second.name} by {ahead.mean:.6f} per task"
    if math.isnan(ahead.half_width):
        return f"{words}, but one replication gives no interval."
    if _excludes_zero(ahead.mean, ahead.half_width):
        return f"{words} (± {ahead.half_width:.6f}): the 95% interval excludes zero."
    return f"{words} (± {ahead.half_width:.6f}): the 95% interval includes zero, so this is no evidence."


def _excludes_zero(mean: float, half_width: float) -> bool:
    return abs(mean) > half_width  # False where the half-width is not a number


def study_report(study: Study, title: str, more: Mapping[str, Any], about: Mapping[str, Any]) -> Report:
    """The study as the command tells it; its JSON has ``more``, and the manifest what is ``about`` the run."""
    spent = sum(result.seconds for result in study.results)
    caption = f"Bound {study.bound.per_task:.6f} per task; ± is the half-width of a 95% interval. {spent:.2f} s."
    if any(result.variance_ratio is not None for result in study.results):
        caption += " Ratio: how many times more replications the gap would need from the plain means."
    if study.pending == "discard":
        caption += " The bound is for waiting, so no gap is given: labels in flight at the last arrival were dropped."
    if study.problem.label_cost > 0:
        caption += " Values are net of what the labels cost."
    differences = difference_rows(study)
    tables = [policy_table(study, title, caption if differences else f"{caption} {verdict(study)}")]
    if differences:
        paired = {"policy": "{name}", "per task": "{mean_per_task:+.6f} ±{half_width:.6f}"}
        tables.append(Table.of(f"Paired differences to {study.results[0].name}", paired, differences, verdict(study)))

    def files() -> Mapping[str, Any]:
        told = {
            "replications": study.replications, "pending": study.pending, **about,
            "policies": [result.name for result in study.results], "problem": problem_table(study.problem),
            "bound_per_task": study.bound.per_task, "files": [TABLE, FIGURE, MANIFEST],
        }  # fmt: skip
        return {TABLE: _table(study), FIGURE: draw(study), MANIFEST: manifest(seed=study.seed, **told)}

    fields = {
        "bound_per_task": study.bound.per_task, "policies": policy_rows(study), "differences": differences,
        "replications": study.replications, "seed": study.seed, "pending": study.pending, **more,
    }  # fmt: skip
    return Report(title, tables, [verdict(study)], fields=fields, files=files)


def _table(study: Study) -> list[Row]:
    others = {row["name"]: (row["mean_per_task"], row["half_width"]) for row in difference_rows(study)}
    names = "bound_per_task", "difference_to_first", "difference_half_width"
    return [
        row | dict(zip(names, (study.bound.per_task, *others.get(row["name"], (0.0, 0.0))), strict=True))
        for row in policy_rows(study)
    ]


def draw(study: Study) -> Figure:
    """Means with their 95% intervals, one line for each policy, and the bound."""
    names = [result.name for result in study.results]
    means, widths = _intervals(study)
    places = list(range(len(names)))
    with drawing(figsize=(7.0, 1.4 + 0.34 * len(names))) as (figure, axes):
        axes.errorbar(means, places, xerr=widths, fmt="o", capsize=3, color=BLUE, label="mean, 95% interval")
        axes.axvline(study.bound.per_task, color=RED, linestyle="--", label=f"bound {study.bound.per_task:.6f}")
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_xlabel("value per task")
        tasks, budget = study.problem.tasks, study.problem.budget
        axes.set_title(f"{tasks:,} tasks, {budget:,} labels, {study.replications:,} replications, {study.pending}")
        axes.legend(loc="best")
    return figure
