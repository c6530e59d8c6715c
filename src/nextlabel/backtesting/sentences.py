"""A backtest in sentences: what is saved, who is ahead and why, where there is no room, and what is missing."""

from __future__ import annotations

import numpy as np

from nextlabel.backtesting.readout import accuracy_of, with_all_labels
from nextlabel.backtesting.result import Backtest, PolicyAccuracy
from nextlabel.backtesting.threshold import learnt_threshold
from nextlabel.backtesting.verdicts import NAMED, SHOWN, verdicts
from nextlabel.prose import listed

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
                f"Little room: one label per task has {one.accuracy.mean:.3f} and all of them "
                f"{found.ceilings[one.readout]:.3f}."
            )
    return out


def _truth(found: Backtest) -> list[str]:
    if found.truth == "gold":
        return []
    tied = f"; {found.undecided:,} tasks that they leave undecided are not counted" if found.undecided else ""
    by = ", read out by workers" if "workers" in found.readouts else ""
    return [
        f"There is no gold: 'right' means what all recorded labels say together{by}{tied}. This flatters every rule, "
        "since it is judged by the very labels it used: the ceiling is 1 by definition, and what is saved is the cost "
        "of agreeing with the full set, not of being right."
    ]
