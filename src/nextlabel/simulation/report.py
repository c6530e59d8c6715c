"""What a study says: rows for tables and JSON, a sentence, and a folder with table, figure and manifest.

The gap of a row is the martingale estimate where there is one; with a finite horizon it is bound minus mean; with
``pending="discard"`` there is none, because the bound is for waiting. Percentages are of the bound.
"""

from __future__ import annotations

import csv
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nextlabel.errors import InputError
from nextlabel.problem.tables import prior_table, reward_table
from nextlabel.simulation.study import PolicyResult, Study

TABLE, FIGURE, MANIFEST = "policies.csv", "policies.png", "manifest.json"
#: Packages whose version can move a digit or a picture.
PACKAGES = ("nextlabel", "numpy", "scipy", "numba", "joblib", "distributed", "matplotlib")


def policy_rows(study: Study) -> list[dict[str, Any]]:
    """One row a policy, in the order given."""
    return [_row(study, result) for result in study.results]


def _row(study: Study, result: PolicyResult) -> dict[str, Any]:
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


def difference_rows(study: Study) -> list[dict[str, Any]]:
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
        return f"{best.name} gets {best.per_task.mean:.4f} of each task right."
    second = ranked[1]
    ahead = study.difference(best.name, second.name)
    if ahead.mean == 0.0 and not ahead.half_width > 0:
        return f"{best.name} and {second.name} did equally well in every replication."
    words = f"{best.name} is ahead of {second.name} by {ahead.mean:.6f} a task"
    if math.isnan(ahead.half_width):
        return f"{words}, but one replication gives no interval."
    if _excludes_zero(ahead.mean, ahead.half_width):
        return f"{words} (± {ahead.half_width:.6f}): the 95% interval excludes zero."
    return f"{words} (± {ahead.half_width:.6f}): the 95% interval includes zero, so this is no evidence."


def _excludes_zero(mean: float, half_width: float) -> bool:
    return abs(mean) > half_width  # False where the half-width is not a number


def needs_figures() -> None:
    """Refuse early where no figure can be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise InputError("a figure needs the package matplotlib.", "pip install nextlabel[figures].") from error


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder.", "Give a folder for table, figure and manifest.")
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError(f"{folder} cannot be written to.", "Give another folder.")


def write_report(study: Study, folder: Path, *, command: str, started: datetime, seconds: float, **more: Any) -> None:
    """Table, figure and manifest into ``folder``; written beside it and moved in when all three are complete."""
    check_folder(folder)
    needs_figures()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, prefix=".nextlabel-") as name:
            partial = Path(name)
            _write_table(study, partial / TABLE)
            draw(study, partial / FIGURE)
            fields = manifest(study, command=command, started=started, seconds=seconds, **more)
            (partial / MANIFEST).write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
            folder.mkdir(exist_ok=True)
            for part in (TABLE, FIGURE, MANIFEST):
                (partial / part).replace(folder / part)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}.", "Give another folder.") from error


def manifest(study: Study, *, command: str, started: datetime, seconds: float, **more: Any) -> dict[str, Any]:
    """What is needed to make the same digits again."""
    problem = study.problem
    rate = problem.arrival_rate
    return {
        "command": command,
        "seed": study.seed,
        "replications": study.replications,
        "pending": study.pending,
        **more,
        "policies": [result.name for result in study.results],
        "problem": {
            "classes": [
                {
                    "count": c.count,
                    "prior": prior_table(c.prior),
                    "threshold": c.threshold,
                    "reward": reward_table(c.reward),
                }
                for c in problem.classes
            ],
            "budget": problem.budget,
            "arrival_rate": rate if isinstance(rate, float) else rate.pieces,
            "arrival_period": None if isinstance(rate, float) or math.isinf(rate.period) else rate.period,
            "completion_rate": problem.completion_rate,
            "horizon": problem.horizon if problem.finite else None,
            "label_cost": problem.label_cost,
        },
        "bound_per_task": study.bound.per_task,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": _versions(),
        "files": [TABLE, FIGURE, MANIFEST],
    }


def _versions() -> Mapping[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _write_table(study: Study, path: Path) -> None:
    rows = policy_rows(study)
    differences = {row["name"]: row for row in difference_rows(study)}
    for row in rows:
        other = differences.get(row["name"])
        row["bound_per_task"] = study.bound.per_task
        row["difference_to_first"] = 0.0 if other is None else other["mean_per_task"]
        row["difference_half_width"] = 0.0 if other is None else other["half_width"]
    write_csv(rows, path)


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Rows with a header, nothing where a cell is None; an empty line if there are no rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def draw(study: Study, path: Path) -> None:
    """Means with their 95% intervals, one line a policy, and the bound."""
    from matplotlib.figure import Figure

    names = [result.name for result in study.results]
    means = [result.per_task.mean for result in study.results]
    widths = [0.0 if math.isnan(r.per_task.half_width) else r.per_task.half_width for r in study.results]
    figure = Figure(figsize=(7.0, 1.4 + 0.34 * len(names)), layout="constrained")
    axes = figure.subplots()
    places = range(len(names))
    axes.errorbar(means, places, xerr=widths, fmt="o", capsize=3, color="tab:blue", label="mean, 95% interval")
    axes.axvline(study.bound.per_task, color="tab:red", linestyle="--", label=f"bound {study.bound.per_task:.6f}")
    axes.set_yticks(list(places), names)
    axes.invert_yaxis()
    axes.set_xlabel("value per task")
    tasks, budget = study.problem.tasks, study.problem.budget
    axes.set_title(f"{tasks:,} tasks, {budget:,} labels, {study.replications:,} replications, {study.pending}")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="best", fontsize="small")
    figure.savefig(path, dpi=150)
