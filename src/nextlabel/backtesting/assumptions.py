"""What the numbers of a backtest rest on, in sentences."""

from __future__ import annotations

from nextlabel.backtesting.readout import FITS
from nextlabel.backtesting.result import Backtest
from nextlabel.prose import counted

ORDER_WORDS = {
    "random": "in random order, fresh in every replication",
    "file": "in the order of the file",
    "reversed": "in the reversed order of the file",
}
TIE_WORDS = {"half": "count half", "positive": "are decided as 1", "negative": "are decided as 0"}
REPLAY_WORDS = {
    "task-first": "Task first: a rule names a task, and the next of its recorded labels comes with the worker who gave "
    "it.",
    "worker-first": "Worker first: workers come in random order, as often as they are recorded, and a rule chooses "
    "among the tasks that this worker labelled in the record and has not been given yet.",
    "timed": "Timed: workers come when they came and take as long as they took; a rule chooses among the tasks of the "
    "batch then open that this worker labelled in the record.",
}


def assumptions(found: Backtest) -> list[str]:
    """What the numbers rest on."""
    setting = found.setting
    judged = "gold" if found.truth == "gold" else "what all recorded labels say together"
    crowd = "" if found.workers is None else f" by {counted(found.workers, 'worker')}"
    out = [
        f"{found.tasks:,} tasks with {int(setting.recorded.counts.sum()):,} labels{crowd} are replayed; "
        f"{found.known:,} of them are judged, against {judged}.",
        *_model(found),
        *_replay(found),
        *_order(found),
        *_intervals(found),
    ]
    if found.uses_prior and found.pilot.note:
        out.append(f"About the prior: {found.pilot.note}")
    if int(setting.recorded.counts.max()) > setting.depth:
        out.append(f"A task can be given {setting.depth} labels at most.")
    least = int(setting.recorded.counts.min())
    if any(one.budget > least for one in found.overlaps):
        out.append("Overlap k gives k labels to every task, and all there are to a task that has fewer.")
    if "dawid-skene" in found.readouts:
        out.append(
            f"Dawid-Skene is fitted by crowd-kit to the labels that each rule collected, in {FITS} replications at "
            "most, at the budgets asked for."
        )
    return out


def _model(found: Backtest) -> list[str]:
    """What is known beforehand, and what is learnt."""
    out, setting, pilot = [], found.setting, found.pilot
    if "workers" in found.readouts:
        gold = "; gold only judges" if found.truth == "gold" else ""
        out.append(
            "Read-out by workers: how each worker confuses the answers and the truth of each task are learnt together, "
            f"from the labels that a rule collected and nothing else{gold}."
        )
    if found.uses_prior:
        held = f" from {pilot.size} random tasks, which are not replayed" if pilot.size else ""
        out.append(
            f"Prior {setting.prior.describe()}, {pilot.prior_from}{held}; threshold {setting.threshold:g}, "
            f"{pilot.threshold_from}."
        )
    return out


def _replay(found: Backtest) -> list[str]:
    if not found.crowd:
        return []
    away = " Workers whose label is not worth its price may be turned away." if found.turn_away else ""
    return [REPLAY_WORDS[found.replay] + away]


def _order(found: Backtest) -> list[str]:
    """In which order labels come, and when."""
    ties = f"ties {TIE_WORDS[found.ties]}."
    if found.replay == "timed":
        return [f"Labels come in as long after their worker came as they took in the record; {ties}"]
    flight = f"On average {found.rho:g} labels are in flight (arrival rate over completion rate); all are awaited."
    return [
        f"A task's labels come {ORDER_WORDS[found.setting.order]}; {ties}"
        if found.replay == "task-first"
        else f"Workers come in random order, fresh in every replication; {ties}",
        "Labels come back at once." if found.rho == 0 else flight,
    ]


def _intervals(found: Backtest) -> list[str]:
    setting, pilot = found.setting, found.pilot
    drawn = f"{found.replications:,} replications from seed {setting.seed}, the same draws for every rule."
    if found.replay == "timed":
        drawn = f"Real times leave nothing to chance; overlaps are drawn {found.replications:,} times, in random order."
    return [
        f"{drawn} Intervals are "
        "95% and cover the order of the labels and which tasks these happened to be (tasks are resampled too), not "
        f"another crowd{' or another pilot' if pilot.size else ''}."
        + (" Another --seed holds out another pilot: try a few, they can differ by more." if pilot.size else "")
    ]
