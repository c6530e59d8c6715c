"""The outcome of the demo, compared with a fixed number of labels per item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nextlabel.campaign.settings import CampaignSettings
from nextlabel.demo.sample import Item
from nextlabel.problem.problem import Problem
from nextlabel.solve.curve import overlap_values

#: The most labels per item for which fixed overlap is evaluated.
MOST_OVERLAP = 41


@dataclass(frozen=True, slots=True)
class Moment:
    """Expected accuracy after so many labels."""

    labels: int
    now: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The certificate, and the comparison.

    ``overlap_same`` is the number of labels that fixed overlap needs for the same expected accuracy (between whole
    numbers of labels per item, some items get one more), None if MOST_OVERLAP labels per item are not enough.
    """

    items: int
    labels: int
    right: float
    expected: float
    upper_at_start: float
    overlap_values: tuple[float, ...]
    overlap_same: float | None
    moments: tuple[Moment, ...]

    @property
    def saved(self) -> float | None:
        """The share of labels saved against fixed overlap."""
        return None if self.overlap_same is None else 1.0 - self.labels / self.overlap_same


def outcome(
    config: CampaignSettings, items: Sequence[Item], labelled: Mapping[str, str], labels: int, expected: float,
    upper_at_start: float, moments: Sequence[Moment],
) -> Outcome:  # fmt: skip
    """Compute the outcome; ``labelled`` has the label of each item."""
    truth = {item.id: item.truth for item in items}
    right = float(np.mean([truth[task] == label for task, label in labelled.items()]))
    problem = Problem((config.class_of(None, len(items)),), config.budget)
    overlaps = np.arange(MOST_OVERLAP + 1)
    values = np.maximum.accumulate(overlap_values(problem, overlaps))
    same = None
    if values[-1] >= expected:
        same = float(np.interp(expected, values, overlaps)) * len(items)
    return Outcome(
        len(items), labels, right, expected, upper_at_start, tuple(float(v) for v in values), same, tuple(moments)
    )


def draw(found: Outcome, path: Path) -> None:
    """Expected accuracy against labels, the bound, and fixed overlap."""
    from nextlabel.reporting.style import BLUE, GREY, INK, drawing

    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(6.4, 3.8))
        x = [moment.labels for moment in found.moments]
        axes.plot(x, [moment.now for moment in found.moments], color=BLUE, label="this campaign, expected")
        axes.plot([found.labels], [found.right], "*", color=INK, markersize=11, label="against the hidden truth")
        most = min(len(found.overlap_values) - 1, int(1.9 * found.labels / found.items) + 1)
        overlaps = range(1, most + 1, 2)
        axes.plot(
            [k * found.items for k in overlaps], [found.overlap_values[k] for k in overlaps], "s--", color=GREY,
            label="1, 3, 5 ... labels for every item",
        )  # fmt: skip
        axes.axhline(found.upper_at_start, color=INK, linestyle=":", linewidth=1)
        axes.annotate(
            f"at most {found.upper_at_start:.3f} under any policy, if workers are alike",
            (0, found.upper_at_start), xytext=(4, 4), textcoords="offset points", fontsize=8,
        )  # fmt: skip
        axes.set_xlabel("labels bought")
        axes.set_ylabel("share of correct items")
        axes.set_ylim(top=max(found.upper_at_start, found.right) + 0.04)
        axes.legend(loc="lower right", frameon=False)
        axes.set_title(f"{found.items} items, {found.labels} labels")
        figure.savefig(path, dpi=150, bbox_inches="tight")
        plt.close(figure)
