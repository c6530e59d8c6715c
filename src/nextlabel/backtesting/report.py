"""The report of a backtest: what is saved, who is ahead and why, what the numbers rest on, and the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.backtesting.pilot import choose_threshold, credit
from nextlabel.backtesting.readout import FITS, LEARNING, everything, right_by, scores_of
from nextlabel.backtesting.result import Backtest, PolicyAccuracy, Saving
from nextlabel.model.tables import prior_table
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.report import Cells, Report, Table, read_sentences
from nextlabel.reporting.style import GREY, INK, drawing, in_order, look, panel
from nextlabel.wording import counted, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The overlap that a verdict is about, if the set has it, and those that the tables and boxes show.
NAMED, SHOWN = 5, (3, 5, 7)
USUAL = "majority"


def percent_saved(share: float | None) -> str:
    """A share of labels saved."""
    return "" if share is None else f"{100 * share:.0f}%"


def leader(found: Backtest, readout: str) -> str | None:
    """The first policy whose savings by this read-out are known."""
    known = {one.policy for one in found.savings if one.readout == readout}
    return next((name for name in found.policies if name in known), None)


def rivals(found: Backtest, readout: str) -> dict[str, list[Saving]]:
    """Savings by a read-out, by that of the overlaps that it is compared with: the usual one, and its own."""
    some: dict[str, list[Saving]] = {USUAL: [], readout: []}
    for one in found.savings:
        if one.readout == readout and one.overlap_readout in some:
            some[one.overlap_readout].append(one)
    return {other: savings for other, savings in some.items() if savings}


def headline(found: Backtest) -> list[Saving]:
    """The first policy's savings by the first read-out against the overlaps that people use."""
    for readout in found.readouts:
        for some in rivals(found, readout).values():
            mine = [one for one in some if one.policy == leader(found, readout)]
            if mine:
                return [one for one in mine if one.overlap in SHOWN[1:]] or mine[-1:]
    return []


def verdicts(found: Backtest) -> list[Row]:
    """By each read-out that has savings: the leading policy against one overlap, by majority and read out the same."""
    out = []
    for readout in found.readouts:
        policy = leader(found, readout)
        mine = [one for some in rivals(found, readout).values() for one in some if one.policy == policy]
        overlaps = {one.overlap for one in mine}
        overlap = NAMED if NAMED in overlaps else max(overlaps, default=0)
        mine = [one for one in mine if one.overlap == overlap]
        said = " ".join(_clause(found, one, first=one is mine[0]) for one in mine)
        if mine:
            out.append(
                {
                    "readout": readout,
                    "policy": policy,
                    "overlap": overlap,
                    **{f"saved_against_{one.overlap_readout}": one.saved for one in mine},
                    "sentence": f"Read out by {readout}: {said}",
                }
            )
    return out


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
    if one.low is None or one.high is None:
        interval = f"in {1 - one.reached:.0%} of the resampled sets it does not get there at all"
    else:
        low, high = (one.low, one.high) if one.saved >= 0 else (-one.high, -one.low)
        interval = f"95% interval {percent_saved(low)} to {percent_saved(high)}"
    if one.saved < 0:
        return f"{who} needs {percent_saved(-one.saved)} more labels for {what}, {each} ({interval})."
    least = "at least " if one.at_first else ""
    return f"{who} has {what} with {least}{percent_saved(one.saved)} fewer labels, {each} ({interval})."


#: With so few labels per task most sets leave no room.
FEW = 3
#: What the model expects and what it gets differ by so much, and a better cut gains so much, before it is a reason.
MISFIT, BETTER_CUT = 0.02, 0.01
#: What cannot be learnt about workers from these labels.
NO_WORKERS = (
    "There is no column of workers, so all of them are taken to be alike. With one (--worker-column NAME) the policy "
    "crowd learns who is good at this from the labels themselves, and so does the read-out."
)
ONE_WORKER = (
    "All labels are from one worker: how good that worker is cannot be learnt, because nobody else has answered the "
    "same tasks. Give gold, or labels of more workers."
)


def sentences(found: Backtest) -> list[str]:
    """The answers in words, the one that matters first."""
    people = {None: [NO_WORKERS], 1: [ONE_WORKER]}.get(found.workers, [])
    said = [one["sentence"] for one in verdicts(found)]
    return [
        *said,
        *_ahead(found),
        *people,
        *_costly_prior(found),
        *_even_overlaps(found),
        *_room(found),
        *_truth(found),
    ]


def _costly_prior(found: Backtest) -> list[str]:
    """Where the vote count does better than prior and threshold on the same labels."""
    by = {(one.readout, one.budget): one.accuracy.mean for one in found.overlaps}
    for k in (NAMED, *SHOWN):
        posterior, majority = by.get(("posterior", k)), by.get(("majority", k))
        if posterior is None or majority is None or majority - posterior <= BETTER_CUT:
            continue
        advice = "Try --threshold 0.5, or a larger --pilot-tasks."
        if found.setting.threshold == 0.5:
            advice = "The prior leans to one answer; --prior 1,1 does not."
        elif found.pilot.threshold_from == "given":
            advice = f"The threshold {found.setting.threshold:g} was given; without it 1/2 is used."
        return [
            f"Prior and threshold cost accuracy here: {k} labels for every task have {posterior:.3f} by "
            f"posterior and {majority:.3f} by majority. {advice}"
        ]
    return []


def _even_overlaps(found: Backtest) -> list[str]:
    """With a learnt threshold an even number of labels may be no waste; then odd overlaps are a weak opponent."""
    for one in found.overlaps:
        even = found.find("posterior", "uniform", (one.budget - 1) * found.tasks)
        if one.readout != "posterior" or one.budget < 3 or even is None or not even.asked:
            continue
        if even.accuracy.mean - even.accuracy.half_width > one.accuracy.mean:
            return [
                f"Mind the even numbers: {one.budget - 1} labels for every task by posterior have "
                f"{even.accuracy.mean:.3f}, overlap {one.budget} has {one.accuracy.mean:.3f}. With prior and "
                "threshold an even vote is decided for a reason here, so part of what is saved against odd overlaps "
                "is the read-out's merit, not the policy's."
            ]
    return []


def _ahead(found: Backtest) -> list[str]:
    """By the first read-out, where another rule is ahead of the first one, by how much, and, of the index, why."""
    first, leads = found.policies[0], dict[str, list[str]]()
    ahead = [
        (one, one.minus_first)
        for one in found.points
        if one.asked and one.readout == found.readouts[0] and one.minus_first is not None
        and one.minus_first.mean - one.minus_first.half_width > 0
    ]  # fmt: skip
    for one, lead in ahead:
        at = f"at {one.budget / found.tasks:.3g} labels per task by {lead.mean:.3f} ±{lead.half_width:.3f}"
        leads.setdefault(one.policy, []).append(at)
    if not leads and len(found.policies) > 1:
        return [f"No other rule is ahead of {first} by more than its interval at the budgets asked for."]
    out = [f"{name} is ahead of {first}: {'; '.join(parts)}." for name, parts in leads.items()]
    return [*out, _why(found, list(leads), ahead[0][0].budget)] if leads and first == "index" else out


def _why(found: Backtest, ahead: Sequence[str], budget: int) -> str:
    """What the data say about the reason: the model's own expectation, and the threshold."""
    reasons, threshold = [], found.setting.threshold
    index = found.find("posterior", "index", budget)
    if index is not None and index.believed is not None and abs(index.believed - index.accuracy.mean) > MISFIT:
        reasons.append(
            f"the model is not this crowd: with {found.setting.prior.describe()} and threshold {threshold:g} the index "
            f"expects {index.believed:.3f} of the tasks right there, and {index.accuracy.mean:.3f} are"
        )
    if found.truth == "gold":
        known = found.setting.recorded.subset(np.flatnonzero(found.setting.recorded.gold >= 0))
        cut = choose_threshold(known).best
        used = scores_of("posterior", replace(found.setting, recorded=known), *everything(known))
        better, now = credit(known.shares(), known.gold, cut).mean(), right_by(used, known.gold, found.ties).mean()
        if better - now > BETTER_CUT:
            reasons.append(
                f"the threshold {threshold:g} is not this crowd's: with all labels it gets {now:.3f} right, "
                f"a cut at {cut:.3g}, known only afterwards, {better:.3f}"
            )
    free = [name for name in ahead if name in found.without_prior]
    if free:
        reasons.append(f"{listed(free)} {'does' if len(free) == 1 else 'do'} not look at the prior")
    fits = "the prior fits on average; the index is best on average over tasks drawn from it, not on every set of them"
    return f"What may explain it (measured here, but not tested as the cause): {'; '.join(reasons or [fits])}."


def _room(found: Backtest) -> list[str]:
    """When the set leaves nothing to choose, or little."""
    counts, out = found.setting.recorded.counts, []
    few, m = float((counts <= FEW).mean()), int(counts[0])
    if few > 0.5:
        share = f"all tasks have {FEW} labels or fewer" if few == 1 else f"{few:.0%} of the tasks have {FEW} or fewer"
        out.append(
            f"No room: {share}, so there is nothing to choose. A rule that saves labels on easy tasks cannot spend "
            "them on hard ones, which have none left; a set with 7 or more labels per task would tell."
        )
    elif (counts == m).all() and any(one.asked and one.budget > 0.9 * m * found.tasks for one in found.points):
        out.append(f"Near {m} labels per task every rule has used every label there is, and all are alike.")
    first = next((one for one in found.overlaps if one.budget == 1), None)
    if first is not None and (most := found.ceilings[first.readout]) - first.accuracy.mean < 0.01:
        out.append(f"Little room: one label per task has {first.accuracy.mean:.3f} and all of them {most:.3f}.")
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
#: How labels come, where they do not come by task.
COME = {
    "worker-first": "Workers come in random order, fresh in every replication",
    "timed": "Labels come in as long after their worker came as they took in the record",
}


def assumptions(found: Backtest) -> list[str]:
    """What the numbers rest on."""
    setting, pilot, counts = found.setting, found.pilot, found.setting.recorded.counts
    judged = "gold" if found.truth == "gold" else "what all recorded labels say together"
    by = "" if found.workers is None else f" by {counted(found.workers, 'worker')}"
    seen = f"{'the features and ' if found.features else ''}the labels that a rule collected"
    who = listed([*found.crowd, *(f"the read-out {name}" for name in LEARNING if name in found.readouts)])
    held = f" from {pilot.size} random tasks, which are not replayed" if pilot.size else ""
    flight = f"On average {found.rho:g} labels are in flight (arrival rate over completion rate); all are awaited."
    timed, come = found.replay == "timed", f"A task's labels come {ORDER_WORDS[setting.order]}"
    drawn = f"{found.replications:,} replications from seed {setting.seed}, the same draws for every rule."
    if timed:
        drawn = f"Real times leave nothing to chance; overlaps are drawn {found.replications:,} times, in random order."
    return [
        sentence
        for holds, sentence in (
            (
                True,
                f"{found.tasks:,} tasks with {len(setting.recorded):,} labels{by} are replayed; "
                f"{found.known:,} of them are judged, against {judged}.",
            ),
            (
                "workers" in found.readouts,
                "Read-out by workers: how each worker confuses the answers and the truth of each task are learnt "
                f"together, from {seen} and nothing else{'; gold only judges' * (found.truth == 'gold')}.",
            ),
            (
                found.features,
                f"Learnt from features too ({found.features}): {who}. Rules that count votes do not see them.",
            ),
            (
                found.uses_prior,
                f"Prior {setting.prior.describe()}, {pilot.prior_from}{held}; threshold {setting.threshold:g}, "
                f"{pilot.threshold_from}.",
            ),
            (
                found.crowd,
                REPLAY_WORDS[found.replay]
                + " Workers whose label is not worth its price may be turned away." * found.turn_away,
            ),
            (True, f"{COME.get(found.replay, come)}; ties {TIE_WORDS[found.ties]}."),
            (not timed, flight if found.rho else "Labels come back at once."),
            (
                True,
                f"{drawn} Intervals are 95% and cover the order of the labels and which tasks these happened to be "
                f"(tasks are resampled too), not another crowd{' or another pilot' if pilot.size else ''}."
                + " Another --seed holds out another pilot: try a few, they can differ by more."
                * bool(pilot.size),
            ),
            (found.uses_prior and pilot.note, f"About the prior: {pilot.note}"),
            (counts.max() > setting.depth, f"A task can be given {setting.depth} labels at most."),
            (
                any(one.budget > counts.min() for one in found.overlaps),
                "Overlap k gives k labels to every task, and all there are to a task that has fewer.",
            ),
            (
                "dawid-skene" in found.readouts,
                f"Dawid-Skene is fitted by crowd-kit to the labels that each rule collected, in {FITS} replications "
                "at most, at the budgets asked for.",
            ),
        )
        if holds
    ]


def point_rows(found: Backtest) -> list[Row]:
    """One row for each policy, read-out and budget, then the overlaps, then the ceiling."""
    rows = [
        {
            "policy": one.policy,
            "readout": one.readout,
            "budget": round(one.labels_used) if one.policy.startswith("overlap ") else one.budget,
            "labels_per_task": one.labels_per_task,
            "labels_used": one.labels_used,
            "accuracy": one.accuracy.mean,
            "half_width": one.accuracy.half_width,
            "minus_index": None if one.minus_index is None else one.minus_index.mean,
            "minus_index_half_width": None if one.minus_index is None else one.minus_index.half_width,
            "model_expects": one.believed,
            "asked": one.asked,
        }
        for one in (*found.points, *found.overlaps)
    ]
    total, rest = len(found.setting.recorded), dict.fromkeys(rows[0])
    most = {"budget": total, "labels_per_task": total / found.tasks, "labels_used": float(total), "asked": True}
    for readout, accuracy in found.ceilings.items():
        rows.append({**rest, "policy": "all labels", "readout": readout, "accuracy": accuracy, **most})
    return rows


def _by_policy(
    found: Backtest, cells: Mapping[tuple[str, int], str], columns: Mapping[int, str]
) -> tuple[Sequence[str], Cells]:
    """Header and rows of the policies that have any of the cells."""
    rows = [
        [name, *(cells.get((name, column), "") for column in columns)]
        for name in found.policies
        if any((name, column) in cells for column in columns)
    ]
    return ["policy", *columns.values()], rows


def accuracy_table(found: Backtest, readout: str) -> Table:
    """Policies down, asked budgets across; overlaps and the ceiling below."""
    points = [one for one in found.points if one.asked and one.readout == readout]
    cells = {(one.policy, one.budget): with_interval(one) for one in points}
    columns = {U: f"{U / found.tasks:.3g} per task" for U in sorted({one.budget for one in points})}
    fixed = [f"{one.budget}: {with_interval(one)}" for one in found.overlaps if one.readout == readout]
    total, ceiling = found.setting.recorded.counts.mean(), found.ceilings[readout]
    passed = any(one.readout == readout and one.accuracy.mean > ceiling for one in found.points)
    what = "no ceiling: it helps to leave some workers' labels out" if passed else "the ceiling"
    line = (
        f"The same number of labels for every task by {readout}: {'; '.join(fixed)}; "
        f"all {total:.3g} {'label' if total == 1 else 'labels'} per task: {ceiling:.3f} ({what})."
    )
    return Table(f"Accuracy, read out by {readout}", *_by_policy(found, cells, columns), line)


def with_interval(one: PolicyAccuracy) -> str:
    """Mean and half-width, short enough for four budgets in 80 columns."""
    return f"{one.accuracy.mean:.3f} ±" + f"{one.accuracy.half_width:.3f}".lstrip("0")


def saving_table(found: Backtest, readout: str, other: str, mine: Sequence[Saving]) -> Table:
    """Labels saved by a read-out against each overlap read out by another one or the same."""
    columns = {
        one.overlap: f"overlap {one.overlap} ({one.overlap_accuracy:.3f})"
        for one in sorted(mine, key=lambda one: one.overlap)
    }
    cells = {(one.policy, one.overlap): _saved_cell(one) for one in mine}
    title = f"Labels saved, read out by {readout}, against a fixed overlap read out by {other}"
    open_end = any("(?" in cell for cell in cells.values())
    unknown = " A ? stands where some of the resampled sets do not get there at all." if open_end else ""
    caption = f"The interval is 95%, over orders and tasks.{unknown}"
    return Table(title, *_by_policy(found, cells, columns), caption)


def _saved_cell(one: Saving) -> str:
    low, high = percent_saved(one.low) or "?", percent_saved(one.high) or "?"
    more = "≥ " if one.at_first else ""
    return "not reached" if one.saved is None else f"{more}{percent_saved(one.saved)} ({low} to {high})"


def backtest_report(found: Backtest, read: Sequence[Mapping[str, Any]] = ()) -> Report:
    """The report of a backtest; ``read`` says what was in the files."""
    first, setting, pilot = found.readouts[0], found.setting, found.pilot
    answers, rests, savings = sentences(found), assumptions(found), [asdict(one) for one in found.savings]
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
            *(
                saving_table(found, name, other, some)
                for name in found.readouts
                for other, some in rivals(found, name).items()
            ),
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
        fields={
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
            "savings": savings,
            "verdicts": verdicts(found),
            "replications": found.replications,
            "seed": setting.seed,
            "seconds": found.seconds,
            "sentences": answers,
            "assumptions": rests,
            "read": read,
        },
        files=lambda: {
            "backtest.csv": point_rows(found),
            "savings.csv": savings,
            "backtest.png": backtest_figure(found),
        },
    )


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
    for name in in_order({one.policy for one in found.points if one.readout == readout}):
        mine = [one for one in found.points if (one.policy, one.readout) == (name, readout)]
        x, y, h = np.array([(one.labels_per_task, one.accuracy.mean, one.accuracy.half_width) for one in mine]).T
        style = look(name)
        axes.fill_between(x, y - h, y + h, color=style["color"], alpha=0.12, linewidth=0, zorder=2)
        axes.plot(x, y, **style, markevery=[k for k, one in enumerate(mine) if one.asked])
    _overlaps(axes, found, readout)
    if readout != USUAL and USUAL in found.readouts:
        _overlaps(axes, found, USUAL)
    axes.axhline(found.ceilings[readout], color=INK, linewidth=1.0, linestyle=":", label="all labels")
    what = "accuracy" if found.truth == "gold" else "agreement with all labels together"
    axes.set(xlabel="labels per task", ylabel=what, title=f"read out by {readout}")
    axes.tick_params(colors=INK)
    axes.spines["left"].set_color(GREY)
    values = [one.accuracy.mean for one in found.points if one.labels_per_task >= FIRST_SHOWN]
    values += [one.accuracy.mean for one in found.overlaps if one.readout == USUAL or one.budget > 1]
    values += list(found.ceilings.values())  # the same range of accuracies for all panels
    room = 0.06 * (max(values) - min(values) + 0.01)
    axes.set_ylim(min(values) - room, max(values) + room)
    axes.legend(loc="lower right", fontsize=8)


def _overlaps(axes: Any, found: Backtest, readout: str) -> None:
    fixed = [one for one in found.overlaps if one.readout == readout]
    axes.errorbar(
        [one.labels_per_task for one in fixed],
        [one.accuracy.mean for one in fixed],
        [one.accuracy.half_width for one in fixed],
        fmt="s", color=INK, markerfacecolor="white" if readout == USUAL else INK, markersize=7, linewidth=0.8, zorder=6,
        label=f"fixed overlap, {readout}",
    )  # fmt: skip
    for one in fixed:
        axes.annotate(
            str(one.budget), (one.labels_per_task, one.accuracy.mean), textcoords="offset points", xytext=(6, -12),
            color=INK,
        )  # fmt: skip


def draw_savings(axes: Any, found: Backtest) -> None:
    """Labels saved by the first read-out against overlaps, by majority and by the same read-out."""
    readout = _savings(found)
    rows = [
        (f"{k} labels,\nby {other}", mine)
        for k in SHOWN
        for other, some in rivals(found, readout).items()
        if (mine := [one for one in some if one.overlap == k])
    ]
    names = in_order({one.policy for _, some in rows for one in some})
    named: set[str] = set()
    for r, (_, some) in enumerate(rows):
        for one in some:
            if one.saved is None:
                continue
            style = look(one.policy)
            shift = 0.5 * (names.index(one.policy) / (len(names) - 1) - 0.5) if len(names) > 1 else 0.0
            high = one.saved if one.high is None else one.high
            if one.low is None:  # some resampled sets do not get there at all: the interval has no lower end
                axes.plot(LEAST_SHOWN, r + shift, "<", color=style["color"], markersize=5, clip_on=False)
            low = LEAST_SHOWN if one.low is None else 100 * one.low
            axes.plot((low, 100 * high), [r + shift] * 2, color=style["color"], linewidth=1.5)
            label = None if one.policy in named else one.policy
            named.add(one.policy)
            axes.plot(100 * one.saved, r + shift, style["marker"], color=style["color"], label=label)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(left=max(LEAST_SHOWN, axes.get_xlim()[0]), right=100.0)
    axes.set(xlabel="labels saved, %", title=f"saved at equal accuracy, read out by {readout}")
    if named:
        axes.legend(loc="best", fontsize=8)
    else:
        axes.text(0.5, 0.5, "no policy reaches these accuracies", transform=axes.transAxes, ha="center", color=INK)


def _savings(found: Backtest) -> str:
    """The first read-out that has savings against an overlap that is shown; nothing if none has."""
    some = ((name, one) for name in found.readouts for mine in rivals(found, name).values() for one in mine)
    return next((name for name, one in some if one.overlap in SHOWN), "")
