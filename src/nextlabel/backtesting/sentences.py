"""A backtest in sentences: what is saved, who is ahead and why, where there is no room, and what it rests on."""

from __future__ import annotations

import numpy as np

from nextlabel.backtesting.backtest import FITS
from nextlabel.backtesting.readout import accuracy_of, with_all_labels
from nextlabel.backtesting.result import Backtest, PolicyAccuracy
from nextlabel.backtesting.savings import Saving
from nextlabel.backtesting.threshold import learnt_threshold
from nextlabel.prose import listed

#: Overlaps that the sentences are about, if the set has them; with three labels per task most sets leave no room.
NAMED, FEW = (5, 7), 3
#: What the model expects and what it gets differ by so much, and a better cut gains so much, before it is a reason.
MISFIT, BETTER_CUT = 0.02, 0.01
ORDER_WORDS = {
    "random": "in random order, fresh in every replication",
    "file": "in the order of the file",
    "reversed": "in the reversed order of the file",
}
TIE_WORDS = {"half": "count half", "positive": "are decided as 1", "negative": "are decided as 0"}


def percent_saved(share: float | None) -> str:
    """A share of labels saved."""
    return "" if share is None else f"{100 * share:.0f}%"


def strongest(found: Backtest, readout: str) -> list[Saving]:
    """Savings by a read-out against each overlap, decided by whichever read-out serves the overlap better."""
    mine = [one for one in found.savings if one.readout == readout]
    out = []
    for one in mine:
        rivals = [x for x in mine if (x.policy, x.overlap) == (one.policy, one.overlap)]
        best = max(rivals, key=lambda x: (x.overlap_accuracy, x.overlap_readout == readout))
        if best is one:
            out.append(one)
    return out


def headline(found: Backtest) -> list[Saving]:
    """The first policy's savings against the overlaps that people use."""
    readout = found.readouts[0] if found.readouts[0] != "dawid-skene" else "posterior"
    mine = [one for one in strongest(found, readout) if one.policy == found.policies[0]]
    return [one for one in mine if one.overlap in NAMED] or mine[-1:]


def sentences(found: Backtest) -> list[str]:
    """The answers in words, the one that matters first."""
    out = [_saving_sentence(found, one) for one in headline(found)]
    readout = found.readouts[0] if found.readouts[0] != "dawid-skene" else "posterior"
    for one in strongest(found, readout):
        if one.policy == "okg" and one.policy != found.policies[0] and one.overlap in NAMED:
            out.append(_saving_sentence(found, one))
    out += _costly_prior(found)
    return out + _even_overlaps(found, readout) + _ahead(found, found.readouts[0]) + no_room(found) + _truth(found)


def _saving_sentence(found: Backtest, one: Saving) -> str:
    what = f"the accuracy of overlap {one.overlap} ({one.overlap_accuracy:.4f} by {one.overlap_readout})"
    if one.saved is None or one.labels is None:
        return f"{one.policy} does not reach {what} with the labels it was given."
    each = f"{one.labels / found.tasks:.2f} labels per task"
    if one.flat:
        return f"{one.policy} has {what} at {each}, but its curve is flat: more labels hardly change anything."
    low, high = percent_saved(one.low), percent_saved(one.high)
    if one.low is None or one.high is None:
        interval = f"in {1 - one.reached:.0%} of the resampled replications it does not get there at all"
    else:
        interval = f"95% interval {low} to {high}"
    if one.saved < 0:
        if one.low is not None and one.high is not None and one.high < 0:
            interval = f"95% interval {percent_saved(-one.high)} to {percent_saved(-one.low)}"
        return f"{one.policy} needs {percent_saved(-one.saved)} more labels for {what}: {each} ({interval})."
    least = "at least " if one.at_first else ""
    return f"{one.policy} has {what} with {least}{percent_saved(one.saved)} fewer labels ({interval}): {each}."


def _costly_prior(found: Backtest) -> list[str]:
    """Where the vote count does better than prior and threshold on the same labels."""
    by = {(one.readout, one.budget): one.accuracy for one in found.overlaps}
    for k in (*NAMED, FEW):
        posterior, majority = by.get(("posterior", k)), by.get(("majority", k))
        if posterior is None or majority is None:
            continue
        if majority.mean - posterior.mean > BETTER_CUT:
            return [
                f"Prior and threshold cost accuracy here: {k} labels for every task have {posterior.mean:.4f} by "
                f"posterior and {majority.mean:.4f} by majority. A pilot of {found.pilot.size} tasks may be too few "
                "for a threshold: try --threshold 0.5, or a larger --pilot-tasks."
            ]
    return []


def _even_overlaps(found: Backtest, readout: str) -> list[str]:
    """With a learnt threshold an even number of labels may be no waste; then odd overlaps are a weak opponent."""
    uniform = {
        one.budget: one for one in found.points if (one.policy, one.readout, one.asked) == ("uniform", readout, True)
    }
    for one in found.overlaps:
        before = uniform.get((one.budget - 1) * found.tasks)
        if one.readout != readout or one.budget < 3 or before is None:
            continue
        if before.accuracy.mean - before.accuracy.half_width > one.accuracy.mean:
            return [
                f"Mind the even numbers: {one.budget - 1} labels for every task by {readout} have "
                f"{before.accuracy.mean:.4f}, overlap {one.budget} has {one.accuracy.mean:.4f}. With prior and "
                "threshold an even vote is decided for a reason here, so part of what is saved against odd overlaps "
                "is the read-out's merit, not the policy's."
            ]
    return []


def _ahead(found: Backtest, readout: str) -> list[str]:
    """Where another rule is ahead of the index, by how much, and why."""
    if "index" not in found.policies:
        return []
    ahead = [
        one
        for one in found.points
        if one.asked and one.readout == readout and one.minus_index is not None
        and one.minus_index.mean - one.minus_index.half_width > 0
    ]  # fmt: skip
    if not ahead:
        return ["No other rule is ahead of the index by more than its interval at the budgets asked for."]
    out = []
    for name in dict.fromkeys(one.policy for one in ahead):
        parts = [_lead(one, found) for one in ahead if one.policy == name]
        out.append(f"{name} is ahead of the index: {'; '.join(parts)}.")
    return [*out, _why(found, ahead)]


def _lead(one: PolicyAccuracy, found: Backtest) -> str:
    assert one.minus_index is not None
    by = f"{one.minus_index.mean:.4f} ±{one.minus_index.half_width:.4f}"
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
    share = known.shares()
    said = np.where(np.isclose(share, cut), -1, (share > cut).astype(np.int64))
    used = with_all_labels("posterior", known, found.setting.prior, found.setting.threshold)
    return cut, accuracy_of(said, known.gold, "half"), accuracy_of(used, known.gold, found.ties)


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
                f"Little room: one label per task has {one.accuracy.mean:.4f} and all of them "
                f"{found.ceilings[one.readout]:.4f}."
            )
    return out


def _truth(found: Backtest) -> list[str]:
    if found.truth == "gold":
        return []
    tied = f"; {found.undecided:,} tasks that they leave undecided are not counted" if found.undecided else ""
    return [
        f"There is no gold: 'right' means what all recorded labels say together{tied}. This flatters every rule, "
        "since it is judged by the very labels it used: the ceiling is 1 by definition, and what is saved is the cost "
        "of agreeing with the full set, not of being right."
    ]


def assumptions(found: Backtest) -> list[str]:
    """What the numbers rest on."""
    setting, pilot = found.setting, found.pilot
    held = f" from {pilot.size} random tasks, which are not replayed" if pilot.size else ""
    judged = "gold" if found.truth == "gold" else "what all recorded labels say together"
    out = [
        f"{found.tasks:,} tasks with {int(setting.recorded.counts.sum()):,} labels are replayed; {found.known:,} of "
        f"them are judged, against {judged}.",
        f"Prior {setting.prior.describe()}, {pilot.prior_from}{held}; threshold {setting.threshold:g}, "
        f"{pilot.threshold_from}.",
        f"A task's labels come {ORDER_WORDS[setting.order]}; ties {TIE_WORDS[found.ties]}.",
        "Labels come back at once."
        if found.rho == 0
        else f"On average {found.rho:g} labels are in flight (arrival rate over completion rate); all are awaited.",
        f"{found.replications:,} replications from seed {setting.seed}, the same draws for every rule. Intervals are "
        "95% and cover the draws of the replay only, not another crowd, other tasks or another pilot."
        + (" Another --seed holds out another pilot: try a few, they can differ by more." if pilot.size else ""),
    ]
    if pilot.note:
        out.append(f"About the prior: {pilot.note}")
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
