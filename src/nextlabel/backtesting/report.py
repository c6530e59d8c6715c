"""The report of a backtest: what is saved, who is ahead and why, what the numbers rest on, and the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.backtesting.pilot import credit, learnt_threshold
from nextlabel.backtesting.readout import FITS, LEARNING, everything, right_by, scores_of
from nextlabel.backtesting.result import Backtest, PolicyAccuracy, Saving
from nextlabel.model.tables import prior_table
from nextlabel.prose import counted, listed
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.report import Report, Table, read_sentences
from nextlabel.reporting.style import GREY, INK, drawing, in_order, look, panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The overlap that a verdict is about, if the set has it, and those that the tables and boxes show.
NAMED, SHOWN = 5, (3, 5, 7)
USUAL = "majority"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The leading policy by one read-out, against one overlap by majority and by the same read-out."""

    readout: str
    policy: str
    overlap: int
    savings: tuple[Saving, ...]
    sentence: str


def percent_saved(share: float | None) -> str:
    """A share of labels saved."""
    return "" if share is None else f"{100 * share:.0f}%"


def leader(found: Backtest, readout: str) -> str | None:
    """The first policy whose savings by this read-out are known."""
    known = {one.policy for one in found.savings if one.readout == readout}
    return next((name for name in found.policies if name in known), None)


def against(found: Backtest, readout: str, other: str) -> list[Saving]:
    """Savings by a read-out against overlaps read out by another one or the same."""
    return [one for one in found.savings if (one.readout, one.overlap_readout) == (readout, other)]


def opponents(found: Backtest, readout: str) -> list[str]:
    """Read-outs of the overlaps that a read-out is compared with: the usual one, and its own."""
    return [name for name in dict.fromkeys([USUAL, readout]) if against(found, readout, name)]


def headline(found: Backtest) -> list[Saving]:
    """The first policy's savings by the first read-out against the overlaps that people use."""
    for readout in found.readouts:
        for other in opponents(found, readout):
            mine = [one for one in against(found, readout, other) if one.policy == leader(found, readout)]
            if mine:
                return [one for one in mine if one.overlap in SHOWN[1:]] or mine[-1:]
    return []


def verdicts(found: Backtest) -> list[Verdict]:
    """One for each read-out that has savings, in the order of the read-outs."""
    return [one for readout in found.readouts if (one := verdict(found, readout)) is not None]


def verdict(found: Backtest, readout: str) -> Verdict | None:
    """The verdict of one read-out."""
    policy = leader(found, readout)
    rivals = [
        one for other in opponents(found, readout) for one in against(found, readout, other) if one.policy == policy
    ]
    if policy is None or not rivals:
        return None
    overlaps = sorted({one.overlap for one in rivals})
    overlap = NAMED if NAMED in overlaps else overlaps[-1]
    mine = tuple(one for one in rivals if one.overlap == overlap)
    parts = [_clause(found, one, first=k == 0) for k, one in enumerate(mine)]
    return Verdict(readout, policy, overlap, mine, f"Read out by {readout}: {' '.join(parts)}")


def _clause(found: Backtest, one: Saving, *, first: bool) -> str:
    who = one.policy if first else "It"
    same = one.overlap_readout == one.readout and not first
    how = "read out the same way" if same else f"by {one.overlap_readout}"
    what = f"the accuracy of {one.overlap} labels for every task {how} ({one.overlap_accuracy:.3f})"
    if one.saved is None or one.labels is None:
        return f"{who} does not reach {what} with the labels it was given."
    each = f"{one.labels / found.tasks:.2f} labels per task"
    if one.flat:
        return f"{who} has {what} at {each}, but its curve is flat: more labels hardly change anything."
    if one.saved < 0:
        return f"{who} needs {percent_saved(-one.saved)} more labels for {what}, {each} ({_interval(one, -1)})."
    least = "at least " if one.at_first else ""
    return f"{who} has {what} with {least}{percent_saved(one.saved)} fewer labels, {each} ({_interval(one, 1)})."


def _interval(one: Saving, sign: int) -> str:
    if one.low is None or one.high is None:
        return f"in {1 - one.reached:.0%} of the resampled sets it does not get there at all"
    ends = sorted((sign * one.low, sign * one.high))
    return f"95% interval {percent_saved(ends[0])} to {percent_saved(ends[1])}"


#: With so few labels per task most sets leave no room.
FEW = 3
#: What the model expects and what it gets differ by so much, and a better cut gains so much, before it is a reason.
MISFIT, BETTER_CUT = 0.02, 0.01


def sentences(found: Backtest) -> list[str]:
    """The answers in words, the one that matters first."""
    out = [one.sentence for one in verdicts(found)]
    out += _ahead(found, found.readouts[0]) + _workers(found)
    if "posterior" in found.readouts:
        out += _costly_prior(found) + _even_overlaps(found)
    return out + no_room(found) + _truth(found)


def _workers(found: Backtest) -> list[str]:
    """What cannot be learnt about workers from these labels."""
    if found.workers is None:
        return [
            "There is no column of workers, so all of them are taken to be alike. With one (--worker-column NAME) the "
            "policy crowd learns who is good at this from the labels themselves, and so does the read-out."
        ]
    if found.workers == 1:
        return [
            "All labels are from one worker: how good that worker is cannot be learnt, because nobody else has "
            "answered the same tasks. Give gold, or labels of more workers."
        ]
    return []


def _costly_prior(found: Backtest) -> list[str]:
    """Where the vote count does better than prior and threshold on the same labels."""
    by = {(one.readout, one.budget): one.accuracy for one in found.overlaps}
    for k in (NAMED, *SHOWN):
        posterior, majority = by.get(("posterior", k)), by.get(("majority", k))
        if posterior is None or majority is None or majority.mean - posterior.mean <= BETTER_CUT:
            continue
        half = found.setting.threshold == 0.5
        if half:
            advice = "The prior leans to one answer; --prior 1,1 does not."
        elif found.pilot.threshold_from == "given":
            advice = f"The threshold {found.setting.threshold:g} was given; without it 1/2 is used."
        else:
            advice = "Try --threshold 0.5, or a larger --pilot-tasks."
        return [
            f"Prior and threshold cost accuracy here: {k} labels for every task have {posterior.mean:.3f} by "
            f"posterior and {majority.mean:.3f} by majority. {advice}"
        ]
    return []


def _even_overlaps(found: Backtest) -> list[str]:
    """With a learnt threshold an even number of labels may be no waste; then odd overlaps are a weak opponent."""
    uniform = {
        one.budget: one
        for one in found.points
        if (one.policy, one.readout, one.asked) == ("uniform", "posterior", True)
    }
    for one in found.overlaps:
        before = uniform.get((one.budget - 1) * found.tasks)
        if one.readout != "posterior" or one.budget < 3 or before is None:
            continue
        if before.accuracy.mean - before.accuracy.half_width > one.accuracy.mean:
            return [
                f"Mind the even numbers: {one.budget - 1} labels for every task by posterior have "
                f"{before.accuracy.mean:.3f}, overlap {one.budget} has {one.accuracy.mean:.3f}. With prior and "
                "threshold an even vote is decided for a reason here, so part of what is saved against odd overlaps "
                "is the read-out's merit, not the policy's."
            ]
    return []


def _ahead(found: Backtest, readout: str) -> list[str]:
    """Where another rule is ahead of the first one, by how much, and, of the index, why."""
    first = found.policies[0]
    if len(found.policies) < 2:
        return []
    ahead = [
        one
        for one in found.points
        if one.asked and one.readout == readout and one.minus_first is not None
        and one.minus_first.mean - one.minus_first.half_width > 0
    ]  # fmt: skip
    if not ahead:
        return [f"No other rule is ahead of {first} by more than its interval at the budgets asked for."]
    out = []
    for name in dict.fromkeys(one.policy for one in ahead):
        parts = [_lead(one, found) for one in ahead if one.policy == name]
        out.append(f"{name} is ahead of {first}: {'; '.join(parts)}.")
    return [*out, _why(found, ahead)] if first == "index" else out


def _lead(one: PolicyAccuracy, found: Backtest) -> str:
    assert one.minus_first is not None
    by = f"{one.minus_first.mean:.3f} ±{one.minus_first.half_width:.3f}"
    return f"at {one.budget / found.tasks:.3g} labels per task by {by}"


def _why(found: Backtest, ahead: list[PolicyAccuracy]) -> str:
    """What the data say about the reason: the model's own expectation, and the threshold."""
    reasons = []
    prior = found.setting.prior.describe()
    index = found.find("posterior", "index", ahead[0].budget)
    if index is not None and index.believed is not None and abs(index.believed - index.accuracy.mean) > MISFIT:
        reasons.append(
            f"the model is not this crowd: with {prior} and threshold {found.setting.threshold:g} the index expects "
            f"{index.believed:.3f} of the tasks right there, and {index.accuracy.mean:.3f} are"
        )
    cut, better, now = _better_cut(found)
    if better - now > BETTER_CUT:
        reasons.append(
            f"the threshold {found.setting.threshold:g} is not this crowd's: with all labels it gets {now:.3f} right, "
            f"a cut at {cut:.3g}, known only afterwards, {better:.3f}"
        )
    free = [name for name in dict.fromkeys(one.policy for one in ahead) if name in found.without_prior]
    if free:
        reasons.append(f"{listed(free)} {'does' if len(free) == 1 else 'do'} not look at the prior")
    if not reasons:
        reasons.append(
            "the prior fits on average; the index is best on average over tasks drawn from it, not on every set of them"
        )
    return f"What may explain it (measured here, but not tested as the cause): {'; '.join(reasons)}."


def _better_cut(found: Backtest) -> tuple[float, float, float]:
    """The best cut of the shares in hindsight, its accuracy with all labels, and that of the threshold in use."""
    pool = found.setting.recorded
    if found.truth != "gold":
        return found.setting.threshold, 1.0, 1.0
    known = pool.subset(np.flatnonzero(pool.gold >= 0))
    cut = learnt_threshold(known)
    used = scores_of("posterior", replace(found.setting, recorded=known), *everything(known))
    better = float(credit(known.shares(), known.gold, cut).mean())
    return cut, better, float(right_by(used, known.gold, found.ties).mean())


def no_room(found: Backtest) -> list[str]:
    """When the set leaves nothing to choose, or little."""
    counts, out = found.setting.recorded.counts, []
    few = float((counts <= FEW).mean())
    if few > 0.5:
        share = f"all tasks have {FEW} labels or fewer" if few == 1 else f"{few:.0%} of the tasks have {FEW} or fewer"
        out.append(
            f"No room: {share}, so there is nothing to choose. A rule that saves labels on easy tasks cannot spend "
            "them on hard ones, which have none left; a set with 7 or more labels per task would tell."
        )
    elif counts.min() == counts.max():
        m = int(counts[0])
        near = [one for one in found.points if one.asked and one.budget > 0.9 * m * found.tasks]
        if near:
            out.append(f"Near {m} labels per task every rule has used every label there is, and all are alike.")
    first = [one for one in found.overlaps if one.budget == 1]
    for one in first[:1]:
        gain = found.ceilings.get(one.readout, 1.0) - one.accuracy.mean
        if gain < 0.01:
            out.append(
                f"Little room: one label per task has {one.accuracy.mean:.3f} and all of them "
                f"{found.ceilings[one.readout]:.3f}."
            )
    return out


def _truth(found: Backtest) -> list[str]:
    if found.truth == "gold":
        return []
    tied = f"; {found.undecided:,} tasks that they leave undecided are not counted" if found.undecided else ""
    by = ", read out by workers" if "workers" in found.readouts else ""
    by += " without features" if by and found.features else ""
    ceiling = "" if found.features else "the ceiling is 1 by definition, and "
    return [
        f"There is no gold: 'right' means what all recorded labels say together{by}{tied}. This flatters every rule, "
        f"since it is judged by the very labels it used: {ceiling}what is saved is the cost "
        "of agreeing with the full set, not of being right."
    ]


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
        f"{found.tasks:,} tasks with {len(setting.recorded):,} labels{crowd} are replayed; "
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
        what = (
            "the features and the labels that a rule collected"
            if found.features
            else "the labels that a rule collected"
        )
        out.append(
            "Read-out by workers: how each worker confuses the answers and the truth of each task are learnt together, "
            f"from {what} and nothing else{gold}."
        )
    if found.features:
        who = listed([*found.crowd, *(f"the read-out {name}" for name in LEARNING if name in found.readouts)])
        out.append(f"Learnt from features too ({found.features}): {who}. Rules that count votes do not see them.")
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


def point_rows(found: Backtest, *, asked: bool = False) -> list[Row]:
    """One row for each policy, read-out and budget, then the overlaps, then the ceiling."""
    some = [one for one in found.points if one.asked or not asked]
    rows = [_row(one) for one in (*some, *found.overlaps)]
    total = len(found.setting.recorded)
    for readout, accuracy in found.ceilings.items():
        rows.append(
            {
                **dict.fromkeys(rows[0]),
                "policy": "all labels",
                "readout": readout,
                "budget": total,
                "labels_per_task": total / found.tasks,
                "labels_used": float(total),
                "accuracy": accuracy,
                "asked": True,
            }
        )
    return rows


def _row(one: PolicyAccuracy) -> Row:
    against = one.minus_index
    return {
        "policy": one.policy,
        "readout": one.readout,
        "budget": round(one.labels_used) if one.policy.startswith("overlap ") else one.budget,
        "labels_per_task": one.labels_per_task,
        "labels_used": one.labels_used,
        "accuracy": one.accuracy.mean,
        "half_width": one.accuracy.half_width,
        "minus_index": None if against is None else against.mean,
        "minus_index_half_width": None if against is None else against.half_width,
        "model_expects": one.believed,
        "asked": one.asked,
    }


def verdict_rows(found: Backtest) -> list[Row]:
    """One row for each read-out."""
    return [
        {
            "readout": one.readout,
            "policy": one.policy,
            "overlap": one.overlap,
            **{f"saved_against_{saving.overlap_readout}": saving.saved for saving in one.savings},
            "sentence": one.sentence,
        }
        for one in verdicts(found)
    ]


def saving_rows(found: Backtest) -> list[Row]:
    """One row for each policy, read-out, overlap and read-out of the overlap."""
    return [{name: getattr(one, name) for name in one.__slots__} for one in found.savings]


def accuracy_table(found: Backtest, readout: str) -> Table:
    """Policies down, asked budgets across; overlaps and the ceiling below."""
    points = [one for one in found.points if one.asked and one.readout == readout]
    budgets = sorted({one.budget for one in points})
    header = ["policy", *(f"{U / found.tasks:.3g} per task" for U in budgets)]
    at = {(one.policy, one.budget): one for one in points}
    rows = []
    for name in found.policies:
        cells = [at.get((name, U)) for U in budgets]
        if any(one is not None for one in cells):
            rows.append([name, *("" if one is None else with_interval(one) for one in cells)])
    return Table(f"Accuracy, read out by {readout}", header, rows, overlap_line(found, readout))


def overlap_line(found: Backtest, readout: str) -> str:
    """Fixed overlaps and the ceiling in one line."""
    parts = [f"{one.budget}: {with_interval(one)}" for one in found.overlaps if one.readout == readout]
    total = found.setting.recorded.counts.mean()
    noun = "label" if total == 1 else "labels"
    passed = any(one.readout == readout and one.accuracy.mean > found.ceilings[readout] for one in found.points)
    what = "no ceiling: it helps to leave some workers' labels out" if passed else "the ceiling"
    end = f"all {total:.3g} {noun} per task: {found.ceilings[readout]:.3f} ({what})"
    return f"The same number of labels for every task by {readout}: {'; '.join(parts)}; {end}."


def with_interval(one: PolicyAccuracy) -> str:
    """Mean and half-width, short enough for four budgets in 80 columns."""
    return f"{one.accuracy.mean:.3f} ±" + f"{one.accuracy.half_width:.3f}".lstrip("0")


def saving_table(found: Backtest, readout: str, other: str) -> Table:
    """Labels saved by a read-out against each overlap read out by another one or the same."""
    mine = against(found, readout, other)
    ks = sorted({one.overlap for one in mine})
    accuracy = {one.overlap: one for one in mine}
    header = ["policy", *(f"overlap {k} ({accuracy[k].overlap_accuracy:.3f})" for k in ks)]
    at = {(one.policy, one.overlap): one for one in mine}
    rows = [
        [name, *(_saved_cell(at.get((name, k))) for k in ks)]
        for name in found.policies
        if any((name, k) in at for k in ks)
    ]
    title = f"Labels saved, read out by {readout}, against a fixed overlap read out by {other}"
    open_end = any("(?" in cell for row in rows for cell in row)
    unknown = " A ? stands where some of the resampled sets do not get there at all." if open_end else ""
    return Table(title, header, rows, f"The interval is 95%, over orders and tasks.{unknown}")


def _saved_cell(one: Saving | None) -> str:
    if one is None:
        return ""
    if one.saved is None:
        return "not reached"
    more = "≥ " if one.at_first else ""
    low = "?" if one.low is None else percent_saved(one.low)
    high = "?" if one.high is None else percent_saved(one.high)
    return f"{more}{percent_saved(one.saved)} ({low} to {high})"


def backtest_report(found: Backtest, read: Sequence[Mapping[str, Any]] = ()) -> Report:
    """The report of a backtest; ``read`` says what was in the files."""
    first = found.readouts[0]
    answers, rests = sentences(found), assumptions(found)
    facts = [
        (
            percent_saved(one.saved),
            f"fewer labels than {one.overlap} for every task by {one.overlap_readout}, at equal accuracy: {one.policy}",
        )
        for one in headline(found)
        if one.saved is not None and one.saved > 0
    ]
    accuracy = (
        "Accuracy against labels per task with 95% intervals; squares: the same odd number of labels for every task."
    )
    saved = "Labels saved at the accuracy of a fixed number of labels for every task, with 95% intervals."
    return Report(
        title=f"{found.tasks:,} tasks replayed: accuracy, read out by {first}",
        tables=[
            *(accuracy_table(found, name) for name in found.readouts),
            *(saving_table(found, name, other) for name in found.readouts for other in opponents(found, name)),
        ],
        sentences=answers,
        heading="Backtest of recorded labels",
        lead=f"{found.tasks:,} tasks replayed under {len(found.policies)} policies.",
        facts=[*facts, (f"{found.ceilings[first]:.1%}", f"right with all labels, read out by {first}")],
        figures=[
            *((partial(panel, draw_accuracy, found, name), accuracy) for name in found.readouts),
            *([(partial(panel, draw_savings, found), saved)] if _savings(found) else []),
        ],
        sections={"What this rests on": rests, "What was read": read_sentences(read)},
        closing=["", *answers, "", *rests],
        fields=backtest_fields(found) | {"sentences": answers, "assumptions": rests, "read": read},
        files=lambda: {
            "backtest.csv": point_rows(found),
            "savings.csv": saving_rows(found),
            "backtest.png": backtest_figure(found),
        },
    )


def backtest_fields(found: Backtest) -> Row:
    """The numbers of a backtest."""
    setting, pilot = found.setting, found.pilot
    return {
        "tasks": found.tasks,
        "labels": len(setting.recorded),
        "truth": found.truth,
        "judged": found.known,
        "undecided": found.undecided,
        "pilot": pilot.size,
        "prior": prior_table(setting.prior),
        "prior_from": pilot.prior_from,
        "threshold": setting.threshold,
        "threshold_from": pilot.threshold_from,
        "in_flight": found.rho,
        "order": setting.order,
        "ties": found.ties,
        "workers": found.workers,
        "features": found.features,
        "replay": found.replay,
        "turn_away": found.turn_away,
        "ceiling": found.ceilings,
        "accuracy": point_rows(found),
        "savings": saving_rows(found),
        "verdicts": verdict_rows(found),
        "replications": found.replications,
        "seed": setting.seed,
        "seconds": found.seconds,
    }


#: A curve may begin below the panel: nothing is known about workers with fewer labels per task.
FIRST_SHOWN = 1.5
#: Labels saved, in percent, at the left end of the panel: an interval without a lower end begins there.
LEAST_SHOWN = -100.0


def backtest_figure(found: Backtest) -> Figure:
    """Accuracy for each read-out, side by side, and what is saved by the first of them."""
    many = len(found.readouts) + bool(_savings(found))
    with drawing(1, many, figsize=(4.6 * many, 4.6), squeeze=False) as (figure, panels):
        for axes, readout in zip(panels[0], found.readouts, strict=False):
            draw_accuracy(axes, found, readout)
        if _savings(found):
            draw_savings(panels[0][-1], found)
    return figure


def draw_accuracy(axes: Any, found: Backtest, readout: str) -> None:
    """Accuracy of every policy by one read-out, fixed overlaps by it and by majority, and the ceiling."""
    for name in in_order(found.policies):
        mine = [one for one in found.points if one.policy == name and one.readout == readout]
        if not mine:
            continue
        x = np.array([one.labels_per_task for one in mine])
        y = np.array([one.accuracy.mean for one in mine])
        h = np.array([one.accuracy.half_width for one in mine])
        style = look(name)
        axes.fill_between(x, y - h, y + h, color=style["color"], alpha=0.12, linewidth=0, zorder=2)
        axes.plot(x, y, **style, markevery=[k for k, one in enumerate(mine) if one.asked])
    _overlaps(axes, found, readout, INK, "white" if readout == USUAL else INK)
    if readout != USUAL and USUAL in found.readouts:
        _overlaps(axes, found, USUAL, INK, "white")
    axes.axhline(found.ceilings[readout], color=INK, linewidth=1.0, linestyle=":", label="all labels")
    axes.set_xlabel("labels per task")
    axes.set_ylabel("accuracy" if found.truth == "gold" else "agreement with all labels together")
    axes.set_title(f"read out by {readout}")
    axes.tick_params(colors=INK)
    axes.spines["left"].set_color(GREY)
    axes.set_ylim(*_limits(found))
    axes.legend(loc="lower right", fontsize=8)


def _overlaps(axes: Any, found: Backtest, readout: str, colour: str, face: str) -> None:
    fixed = [one for one in found.overlaps if one.readout == readout]
    axes.errorbar(
        [one.labels_per_task for one in fixed],
        [one.accuracy.mean for one in fixed],
        [one.accuracy.half_width for one in fixed],
        fmt="s", color=colour, markerfacecolor=face, markersize=7, linewidth=0.8, zorder=6,
        label=f"fixed overlap, {readout}",
    )  # fmt: skip
    for one in fixed:
        axes.annotate(
            str(one.budget), (one.labels_per_task, one.accuracy.mean), textcoords="offset points", xytext=(6, -12),
            color=colour,
        )  # fmt: skip


def draw_savings(axes: Any, found: Backtest) -> None:
    """Labels saved by the first read-out against overlaps, by majority and by the same read-out."""
    readout = _savings(found)
    rows = [
        (k, other, [one for one in against(found, readout, other) if one.overlap == k])
        for k in SHOWN
        for other in opponents(found, readout)
    ]
    rows = [row for row in rows if row[2]]
    names = in_order({one.policy for _, _, some in rows for one in some})
    named: set[str] = set()
    for r, (_, _, some) in enumerate(rows):
        for one in some:
            if one.saved is None:
                continue
            style = look(one.policy)
            shift = 0.5 * (names.index(one.policy) / (len(names) - 1) - 0.5) if len(names) > 1 else 0.0
            high = one.saved if one.high is None else one.high
            if one.low is None:  # some resampled sets do not get there at all: the interval has no lower end
                ends = (LEAST_SHOWN, 100 * high)
                axes.plot(LEAST_SHOWN, r + shift, "<", color=style["color"], markersize=5, clip_on=False)
            else:
                ends = (100 * one.low, 100 * high)
            axes.plot(ends, [r + shift] * 2, color=style["color"], linewidth=1.5)
            label = None if one.policy in named else one.policy
            named.add(one.policy)
            axes.plot(100 * one.saved, r + shift, style["marker"], color=style["color"], label=label)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [f"{k} labels,\nby {other}" for k, other, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(left=max(LEAST_SHOWN, axes.get_xlim()[0]), right=100.0)
    axes.set_xlabel("labels saved, %")
    axes.set_title(f"saved at equal accuracy, read out by {readout}")
    if named:
        axes.legend(loc="best", fontsize=8)
    else:
        axes.text(0.5, 0.5, "no policy reaches these accuracies", transform=axes.transAxes, ha="center", color=INK)


def _savings(found: Backtest) -> str:
    """The first read-out that has savings against an overlap that is shown; nothing if none has."""
    for readout in found.readouts:
        if any(one.overlap in SHOWN for other in opponents(found, readout) for one in against(found, readout, other)):
            return readout
    return ""


def _limits(found: Backtest) -> tuple[float, float]:
    """The same range of accuracies for all panels."""
    values = [one.accuracy.mean for one in found.points if one.labels_per_task >= FIRST_SHOWN]
    values += [one.accuracy.mean for one in found.overlaps if one.readout == USUAL or one.budget > 1]
    values += list(found.ceilings.values())
    room = 0.06 * (max(values) - min(values) + 0.01)
    return min(values) - room, max(values) + room
