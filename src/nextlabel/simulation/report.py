"""A study in rows, tables and sentences, and what it leaves in a folder: a table, a figure and a manifest.

The gap of a row is the martingale estimate where there is one; with many kinds of tasks it is bound minus mean; with
``pending="discard"`` there is none, because the bound is for waiting. Percentages are of the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nextlabel.notebook import interval_picture, table_html
from nextlabel.problem.tables import problem_table
from nextlabel.reporting.artifacts import Row, manifest
from nextlabel.reporting.report import Report, Table, text_table
from nextlabel.reporting.style import BLUE, RED, drawing, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nextlabel.simulation.study import PolicyResult, Study

TABLE, FIGURE, MANIFEST = "policies.csv", "policies.png", "manifest.json"


def policy_rows(study: Study) -> list[Row]:
    """One row per policy, in the order given."""
    return [_row(study, result) for result in study.results]


def _row(study: Study, result: PolicyResult) -> Row:
    percent = half_width = None
    if result.gap_percent is not None:
        percent, half_width = result.gap_percent.mean, result.gap_percent.half_width
    elif study.pending == "wait" and study.bound.per_task != 0.0:
        share = 100.0 / abs(study.bound.per_task)
        percent = share * (study.bound.per_task - result.per_task.mean)
        half_width = share * result.per_task.half_width
    return {
        "name": result.name,
        "mean_per_task": result.per_task.mean,
        "half_width": result.per_task.half_width,
        "gap_percent": percent,
        "gap_half_width": half_width,
        "labels_used": result.labels_used,
        "most_labels": result.most_labels,
        "cap_binds": result.cap_binds,
        "variance_ratio": result.variance_ratio,
        "seconds": result.seconds,
        "table_seconds": result.table_seconds,
    }


def policy_table(study: Study) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Header and cells of the table that people read."""
    rows = [
        (
            row["name"],
            f"{row['mean_per_task']:.6f} ±{row['half_width']:.6f}",
            "-" if row["gap_percent"] is None else f"{row['gap_percent']:.4f} ±{row['gap_half_width']:.4f}",
            f"{row['labels_used']:,.1f}",
            f"{row['most_labels']}",
            _ratio(row["variance_ratio"]),
        )
        for row in policy_rows(study)
    ]
    return ("policy", "per task", "gap %", "labels", "most", "ratio"), rows


def _ratio(value: float | None) -> str:
    """How many times fewer replications the martingale needs than the plain estimate."""
    if value is None:
        return "-"
    return f"{value:,.1f}" if value < 1e6 else "> 10^6"


def study_text(study: Study) -> str:
    """The study as a table in plain text."""
    return text_table(_title(study), *policy_table(study), *_notes(study))


def study_html(study: Study) -> str:
    """The study as notebooks show it, with a picture of each policy's interval below the bound."""
    header, cells = policy_table(study)
    ends = [(one.per_task.mean, one.per_task.half_width) for one in study.results]
    widths = [0.0 if math.isnan(width) else width for _, width in ends]
    lows = [mean - width for (mean, _), width in zip(ends, widths, strict=True)]
    least, most = min(lows), max(study.bound.per_task, *(mean + w for (mean, _), w in zip(ends, widths, strict=True)))
    pictures = [
        interval_picture(mean, mean - width, mean + width, least, most)
        for (mean, _), width in zip(ends, widths, strict=True)
    ]
    rows = [[*row, picture] for row, picture in zip(cells, pictures, strict=True)]
    return table_html(_title(study), [*header, f"{least:.4f} to {most:.4f}"], rows, _notes(study))


def _title(study: Study) -> str:
    problem = study.problem
    return f"{problem.tasks:,} tasks, {problem.budget:,} labels, {study.replications:,} replications"


def _notes(study: Study) -> tuple[str, str]:
    bound = f"Bound {study.bound.per_task:.6f} per task; ± is the half-width of a 95% interval."
    return bound, verdict(study)


def difference_rows(study: Study) -> list[Row]:
    """Paired differences per task of every other policy to the first."""
    first, *others = study.results
    rows = []
    for other in others:
        difference = study.difference(other.name, first.name)
        rows.append(
            {
                "name": other.name,
                "minus": first.name,
                "mean_per_task": difference.mean,
                "half_width": difference.half_width,
                "excludes_zero": _excludes_zero(difference.mean, difference.half_width),
            }
        )
    return rows


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


def study_report(study: Study, title: str, fields: Mapping[str, Any], about: Mapping[str, Any]) -> Report:
    """The study as the command tells it; ``fields`` is its JSON, ``about`` what the manifest says of the run."""
    spent = sum(result.seconds for result in study.results)
    caption = f"Bound {study.bound.per_task:.6f} per task; ± is the half-width of a 95% interval. {spent:.2f} s."
    if any(result.variance_ratio is not None for result in study.results):
        caption += " Ratio: how many times more replications the gap would need from the plain means."
    if study.pending == "discard":
        caption += " The bound is for waiting, so no gap is given: labels in flight at the last arrival were dropped."
    if study.problem.label_cost > 0:
        caption += " Values are net of what the labels cost."
    differences = difference_rows(study)
    lines = [(row["name"], f"{row['mean_per_task']:+.6f} ±{row['half_width']:.6f}") for row in differences]
    paired = Table(f"Paired differences to {study.results[0].name}", ("policy", "per task"), lines, verdict(study))
    tables = [Table(title, *policy_table(study), caption if differences else f"{caption} {verdict(study)}")]

    def files() -> Mapping[str, Any]:
        told = {
            "replications": study.replications, "pending": study.pending, **about,
            "policies": [result.name for result in study.results], "problem": problem_table(study.problem),
            "bound_per_task": study.bound.per_task, "files": [TABLE, FIGURE, MANIFEST],
        }  # fmt: skip
        return {TABLE: _table(study), FIGURE: draw(study), MANIFEST: manifest(seed=study.seed, **told)}

    return Report(title, [*tables, *([paired] if differences else [])], [verdict(study)], fields=fields, files=files)


def _table(study: Study) -> list[Row]:
    rows = policy_rows(study)
    differences = {row["name"]: row for row in difference_rows(study)}
    for row in rows:
        other = differences.get(row["name"])
        row["bound_per_task"] = study.bound.per_task
        row["difference_to_first"] = 0.0 if other is None else other["mean_per_task"]
        row["difference_half_width"] = 0.0 if other is None else other["half_width"]
    return rows


def draw(study: Study) -> Figure:
    """Means with their 95% intervals, one line for each policy, and the bound."""
    names = [result.name for result in study.results]
    means = [result.per_task.mean for result in study.results]
    widths = [0.0 if math.isnan(r.per_task.half_width) else r.per_task.half_width for r in study.results]
    places = list(range(len(names)))
    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(7.0, 1.4 + 0.34 * len(names)), layout="constrained")
        axes.errorbar(means, places, xerr=widths, fmt="o", capsize=3, color=BLUE, label="mean, 95% interval")
        axes.axvline(study.bound.per_task, color=RED, linestyle="--", label=f"bound {study.bound.per_task:.6f}")
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_xlabel("value per task")
        tasks, budget = study.problem.tasks, study.problem.budget
        axes.set_title(f"{tasks:,} tasks, {budget:,} labels, {study.replications:,} replications, {study.pending}")
        axes.legend(loc="best")
        return finish(figure)
