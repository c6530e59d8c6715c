"""Workers who differ: how near policies come to the bound in simulated crowds, and what they get right on real ones.

==================== ======================================================================================
part                 what varies
==================== ======================================================================================
tasks                the number of tasks; budget and supply grow with it
spread               how much workers differ: .75 plus and minus the spread, a third of the labels each
in-flight            labels in flight per task
recorded             labels per task, on RTE and TEMP, and on MRE with its own times
==================== ======================================================================================

Simulated: U = 3K, one-coin workers right with .9, .75, .6 who can give K, 2K, 3K labels, unless the part says
otherwise; channels known to the policies, or learnt as labels come in from 20 workers of each type who share its supply
(from K / 50 of them in smaller campaigns). Gaps are to the bound in which all channels are known. Recorded: no gold and
no pilot; RTE and TEMP task first and worker first in random orders, MRE with its own times, batches and workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nextlabel.model.fact import Fact
from nextlabel.model.problem import Problem, WorkerType
from nextlabel.model.tasks import TaskClass
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import drawing, in_order, look
from nextlabel.simulation.crowd_replay import CrowdReplayed, replay_crowd
from nextlabel.simulation.study import PolicyResult, Study, simulate
from nextlabel.solve.progress import Progress, part
from studies.study import ExperimentOutcome, StudyOptions, draw_line, find_set, legend_beside, pick, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIMULATED = ("crowd", "crowd-uncertainty", "uniform")
REPLAYED = ("crowd", "crowd-uncertainty", "index", "uniform")
SKILLS = (0.9, 0.75, 0.6)
TASKS, QUICK_TASKS = (125, 250, 500, 1000, 2000), (60, 120)
SPREADS, QUICK_SPREADS = (0.0, 0.05, 0.1, 0.15, 0.2), (0.0, 0.15)
LOADS, QUICK_LOADS = (0.0, 0.025, 0.25, 1.0), (0.0, 0.25)
PER_TASK, QUICK_PER_TASK = (1.5, 2.0, 3.0, 5.0, 7.0), (2.0,)
TIMED_PER_TASK, QUICK_TIMED = (3.0, 5.0, 8.0), (3.0,)

#: Replications of a simulated campaign and orders of recorded labels; quickly.
REPLICATIONS, QUICK, ORDERS, QUICK_ORDERS = 20, 3, 10, 2

#: Tasks of the parts in which their number does not vary.
MIDDLE, QUICK_MIDDLE = 1000, 60
MU = 0.4

#: Part of the study: its column, the label of the axis, the title after "gap by".
PARTS = {
    "tasks": ("tasks", "number of tasks K", "number of tasks"),
    "spread": ("spread", "accuracies .75, and .75 plus and minus this", "spread of skill"),
    "in-flight": ("in_flight_per_task", "labels in flight per task", "labels in flight"),
}


class Campaign(NamedTuple):
    """One simulated campaign of the study."""

    part: str
    tasks: int
    spread: float
    load: float
    channels: str


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """Simulated crowds, then the recorded ones."""
    campaigns, replays = list(_campaigns(config)), list(_replays(config))
    work = len(campaigns) + 2 * len(replays)
    replications, orders = config.count(REPLICATIONS, QUICK), config.count(ORDERS, QUICK_ORDERS)
    rows: list[Row] = []
    for k, one in enumerate(campaigns):
        rows += _simulated(one, replications, config, part(progress, k, work))
    for k, (name, replay, turn_away) in enumerate(replays):
        begin = len(campaigns) + 2 * k
        rows += _recorded(name, replay, turn_away, orders, config, part(progress, begin // 2, work // 2))
    return ExperimentOutcome(rows, {"replications": replications, "orders": orders})


def crowd_problem(one: Campaign) -> Problem:
    """The campaign as a problem; learnt channels belong to workers who share their type's supply."""
    K, people = one.tasks, 1 if one.channels == "known" else max(2, min(20, one.tasks // 50))
    skills = SKILLS if one.part != "spread" else (0.75 + one.spread, 0.75, 0.75 - one.spread)
    supplies = (K, 2 * K, 3 * K) if one.part != "spread" else (K, K, K)
    workers = tuple(
        WorkerType.of_accuracy(skill, supply=supply, count=people)
        for skill, supply in zip(skills, supplies, strict=True)
    )
    rate = {"arrival_rate": one.load * K * MU, "completion_rate": MU} if one.load > 0 else {}
    return Problem((TaskClass(K, Fact(0.5)),), 3 * K, workers=workers, **rate)


def _campaigns(config: StudyOptions) -> Iterator[Campaign]:
    quick = config.quick
    middle = QUICK_MIDDLE if quick else MIDDLE
    for channels in ("known", "learnt"):
        for K in QUICK_TASKS if quick else TASKS:
            yield Campaign("tasks", K, 0.15, 0.0, channels)
        for spread in QUICK_SPREADS if quick else SPREADS:
            yield Campaign("spread", middle, spread, 0.0, channels)
        for load in QUICK_LOADS if quick else LOADS:
            yield Campaign("in-flight", middle, 0.15, load, channels)


def _replays(config: StudyOptions) -> Iterator[tuple[str, str, bool]]:
    for name in ("rte", "temp"):
        yield name, "task-first", False
        yield name, "worker-first", False
        yield name, "worker-first", True
    yield "mre", "timed", False
    yield "mre", "timed", True


def _simulated(one: Campaign, replications: int, config: StudyOptions, progress: Progress | None) -> list[Row]:
    study = simulate(
        crowd_problem(one), SIMULATED, replications=replications, seed=config.seed, engine=config.engine,
        turn_away=True, channels=one.channels, progress=progress,
    )  # fmt: skip
    return [_simulated_row(one, study, result) for result in study.results]


def _simulated_row(one: Campaign, study: Study, result: PolicyResult) -> Row:
    assert result.gap_percent is not None
    return {
        **_blank(one.part, result.name),
        "tasks": one.tasks,
        "spread": one.spread,
        "in_flight_per_task": one.load,
        "channels": one.channels,
        "turn_away": True,
        "labels_per_task": result.labels_used / one.tasks,
        "accuracy": result.per_task.mean,
        "half_width": result.per_task.half_width,
        "bound": study.bound.per_task,
        "gap_percent": result.gap_percent.mean,
        "gap_half_width": result.gap_percent.half_width,
        "replications": study.replications,
    }


def _recorded(
    name: str, replay: str, turn_away: bool, orders: int, config: StudyOptions, progress: Progress | None
) -> list[Row]:
    record = find_set(config.data, name)
    K = len(record.gold)
    each = (QUICK_TIMED if config.quick else TIMED_PER_TASK) if replay == "timed" else _per_task(config)
    policies = [policy for policy in REPLAYED if policy != "index" or replay == "task-first"]
    found = replay_crowd(
        record, policies, [round(labels * K) for labels in each], replay=replay, turn_away=turn_away,
        replications=1 if replay == "timed" else orders, seed=config.seed, progress=progress,
    )  # fmt: skip
    return [row for one in found for row in _recorded_rows(name, K, one)]


def _per_task(config: StudyOptions) -> Sequence[float]:
    return QUICK_PER_TASK if config.quick else PER_TASK


def _recorded_rows(name: str, K: int, one: CrowdReplayed) -> Iterator[Row]:
    """One row for each read-out; a replay of times as they were happens once and has no interval."""
    for readout in one.right:
        many = len(one.labels_used) > 1
        estimate = one.accuracy(readout) if many else None
        yield {
            **_blank("recorded", one.policy),
            "tasks": K,
            "set": name,
            "replay": one.replay,
            "turn_away": one.turn_away,
            "readout": readout,
            "labels_per_task": float(one.labels_used.mean()) / K,
            "budget_per_task": one.budget / K,
            "accuracy": float(one.accuracies(readout).mean()),
            "half_width": None if estimate is None else estimate.half_width,
            "expected": float(one.expected.mean()) if readout == "workers" else None,
            "replications": len(one.labels_used),
        }


def _blank(part_: str, policy: str) -> Row:
    """A row with every column, so that simulated and recorded campaigns share one table."""
    empty = (
        "tasks", "spread", "in_flight_per_task", "channels", "set", "replay", "turn_away", "readout",
        "budget_per_task", "labels_per_task", "accuracy", "half_width", "expected", "bound", "gap_percent",
        "gap_half_width", "replications",
    )  # fmt: skip
    return {"part": part_, "policy": policy, **dict.fromkeys(empty)}


def draw(rows: list[Row]) -> Figure:
    """Simulated: a row for known and one for learnt channels. Recorded: a column for each set."""
    with drawing(4, 3, figsize=(14, 15.5)) as (figure, panels):
        for line, channels in enumerate(("known", "learnt")):
            for axes, name in zip(panels[line], PARTS, strict=True):
                _gaps(axes, pick(rows, part=name, channels=channels), name, channels)
        for line, turn_away in ((2, False), (3, True)):
            for axes, name in zip(panels[line], ("rte", "temp", "mre"), strict=True):
                replay, words = ("timed", "its own times") if name == "mre" else ("worker-first", "worker first")
                if name != "mre" and not turn_away:
                    replay, words = "task-first", "task first"
                some = pick(rows, set=name, replay=replay, turn_away=turn_away)
                _accuracy(axes, some, f"{name.upper()}, {words}{', turning away' if turn_away else ''}")
        legend_beside(figure, panels.flat)
    return figure


def _gaps(axes: Axes, rows: Sequence[Row], name: str, channels: str) -> None:
    x, words, title = PARTS[name]
    for policy in in_order(values_of(rows, "policy")):
        draw_line(axes, pick(rows, policy=policy), x, "gap_percent", "gap_half_width", **look(policy))
    axes.set(xlabel=words, ylabel="gap to the bound, %", yscale="symlog" if name == "spread" else "log")
    if name == "tasks":
        axes.set_xscale("log")
        axes.set_xticks(values_of(rows, x), [f"{K:,}" for K in values_of(rows, x)])
        axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.set_title(f"Channels {channels}: gap by {title}")


def _accuracy(axes: Axes, rows: Sequence[Row], title: str) -> None:
    """The worker-aware read-out of every policy, and fixed overlap by majority as people do it today."""
    for policy in in_order(values_of(rows, "policy")):
        draw_line(
            axes, pick(rows, policy=policy, readout="workers"), "labels_per_task", "accuracy", "half_width",
            **look(policy),
        )  # fmt: skip
    style = {**look("overlap"), "label": "uniform, majority"}
    draw_line(
        axes, pick(rows, policy="uniform", readout="majority"), "labels_per_task", "accuracy", "half_width", **style
    )
    axes.set(xlabel="labels per task used", ylabel="accuracy against gold")
    axes.set_title(title)
