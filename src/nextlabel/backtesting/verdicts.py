"""One verdict per read-out: what the leading policy saves against the same number of labels for every task."""

from __future__ import annotations

from dataclasses import dataclass

from nextlabel.backtesting.result import Backtest
from nextlabel.backtesting.savings import Saving

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
