"""Make the report: numbers from ``studies/results``, figures from ``docs/figures``, LaTeX into ``out/report.pdf``."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS, FIGURES, OUT = HERE.parents[1] / "studies" / "results", HERE.parent / "figures", HERE.parents[1] / "out"
Row = dict[str, str]
#: Numbers of the study of auto's losses, by the end of their LaTeX command.
AUTO = {"cells": "cells", "of": "of", "again": "run_again", "lost": "behind_after_holm"}


def read(study: str) -> list[Row]:
    """The committed rows of a study."""
    with (RESULTS / f"{study}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(rows: Iterable[Iterable[str]]) -> str:
    """The body of a LaTeX table."""
    return "\n".join(" & ".join(row) + r"\\" for row in rows)


def number(text: str, digits: int) -> str:
    """A number with so many decimals, nothing where there is none."""
    return f"{float(text) + 0.0:.{digits}f}".replace("-0." + "0" * digits, "0." + "0" * digits) if text else "--"


def pivot(
    rows: list[Row],
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    cell: Callable[[Row], str],
    wanted: set[tuple[str, ...]],
) -> str:
    """One line for each of the keys ``wanted``, in the file's order, one column for each policy."""
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        key = tuple(row[k] for k in keys)
        if key in wanted:
            lines.setdefault(key, {})[row["policy"]] = cell(row)
    return table(
        [*(k.rstrip("0").rstrip(".") if "." in k else k for k in key), *(line[c] for c in columns)]
        for key, line in lines.items()
    )


def costs() -> list[list[str]]:
    """What was computed and how long it took, from the page of benchmarks."""
    page = (HERE.parent / "benchmarks.md").read_text(encoding="utf-8")
    lines = page.split("<!-- bench:start -->")[1].split("<!-- bench:end -->")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [[row[0].replace("%", r"\%"), row[2], row[1].replace("<", "$<$").replace("%", r"\%")] for row in rows[2:]]


def auto_losses(rows: list[Row]) -> list[list[str]]:
    """By tasks, load and whether there is a deadline: cells, those behind at first, behind again, and the worst."""
    ours = [row for row in rows if row["policy"] == "auto" and row["part"].startswith("cells")]
    kinds = sorted({(int(row["tasks"]), float(row["rho"]), float(row["deadline"]) < inf) for row in ours})
    out = []
    for K, rho, timed in kinds:
        here = [r for r in ours if (int(r["tasks"]), float(r["rho"]), float(r["deadline"]) < inf) == (K, rho, timed)]
        first = [row for row in here if row["part"] == "cells"]
        again = [row for row in here if row["part"] != "cells"]
        mean = sum(float(row["behind"]) for row in first) / len(first)
        worst = max((float(row["behind"]) for row in again), default=None)
        shown = "--" if worst is None else number(str(worst), 4)
        counts = [str(len(first)), str(len(again))]
        out.append([str(K), f"{rho:g}", "yes" if timed else "no", *counts, number(str(mean), 4), shown])
    return out


def values() -> dict[str, str]:
    """What the text takes from the studies, by the name of its LaTeX command."""
    indexability, delay, growth, exact, fig1, fig2, workers = (
        read(name) for name in ("indexability", "delay", "growth", "exact", "fig1", "fig2", "workers")
    )
    features = [row for row in read("features") if row["bought"] == "evenly"]
    auto = json.loads((RESULTS / "auto.manifest.json").read_text(encoding="utf-8"))
    ratios = [float(row["variance_ratio"]) for row in growth if row["policy"] == "index"]
    index_loses = [float(row["loss_percent"]) for row in exact if row["policy"] == "index"]
    awaited = [row for row in fig1 if row["stop"] == "wait"]
    recorded = [
        {**row, "labels": str(round(int(row["budget"]) / 750))}
        for row in fig2
        if row["set"] == "rte" and row["tasks"] == "750" and row["order"] == "random"
    ]
    tasks = [row for row in workers if row["part"] == "tasks"]
    crowds = []
    for K in dict.fromkeys(row["tasks"] for row in tasks):
        here = {(row["channels"], row["policy"]): number(row["gap_percent"], 2) for row in tasks if row["tasks"] == K}
        rules = ("crowd", "crowd-uncertainty", "uniform")
        crowds.append([K, *(here[channels, rule] for channels in ("known", "learnt") for rule in rules)])
    return {
        "commit": commit(),
        "indexabilityrows": table(
            [
                row["tasks"],
                row["budget"],
                f"{float(row['arrival_rate']) / 0.4:g}",
                row["states"],
                row["reopening"],
                number(row["greatest_loses_percent"], 4),
                number(row["least_loses_percent"], 4),
            ]
            for row in indexability
            if int(row["reopening"])
        ),
        "delayrows": pivot(
            delay,
            ("tasks", "rho"),
            ("auto", "index", "lagrangian", "okg-pending", "okg", "uniform"),
            lambda row: number(row["gap_per_arrival_percent"], 3),
            {(row["tasks"], row["rho"]) for row in delay},
        ),
        "growthrows": pivot(
            growth,
            ("ratio", "tasks"),
            ("index", "okg-idle", "uniform"),
            lambda row: rf"${number(row['total_gap'], 3)}\pm{number(row['half_width'], 3)}$",
            {(row["ratio"], row["tasks"]) for row in growth if row["tasks"] in ("30", "240", "1920")},
        ),
        "leastvariance": f"{min(ratios):.0f}",
        "mostvariance": f"{max(ratios):.0f}",
        "mostindexloss": f"{max(index_loses):.2f}",
        "figonereplications": fig1[0]["replications"],
        "figonerows": pivot(
            awaited,
            ("tasks",),
            ("index", "okg", "thompson", "uniform"),
            lambda row: rf"${number(row['gap_percent'], 4)}\pm{number(row['gap_half_width'], 4)}$",
            {(row["tasks"],) for row in awaited},
        ),
        "figtworows": pivot(
            recorded,
            ("threshold_kind", "labels"),
            ("index", "okg", "overlap", "uniform"),
            lambda row: number(row["accuracy"], 4),
            {(row["threshold_kind"], row["labels"]) for row in recorded if row["labels"] in ("2", "3", "5")},
        ),
        "autorows": table(auto_losses(read("auto"))),
        **{f"auto{name}": str(auto[key]) for name, key in AUTO.items()},
        "featuresrows": pivot(
            [{**row, "policy": row["read_out"], "labels": f"{float(row['labels']):.3g}"} for row in features],
            ("set", "labels"),
            ("people", "learner", "joint", "crowdlab"),
            lambda row: number(str(100 * float(row["right"])), 1),
            {(row["set"], f"{float(row['labels']):.3g}") for row in features},
        ),
        "costrows": table(costs()),
        "workersrows": table(crowds),
        "workersreplications": tasks[0]["replications"],
        "buyingrows": pivot(
            [{**row, "policy": row["way"]} for row in read("guarantee") if row["part"] == "buying"],
            ("set", "labels_each"),
            ("even", "crowd", "expert"),
            lambda row: rf"${100 * float(row['expert_sees']):.1f}\pm{100 * float(row['half_width']):.1f}$",
            {(row["set"], row["labels_each"]) for row in read("guarantee") if row["part"] == "buying"},
        ),
        "guaranteerows": table(
            [
                row["set"],
                row["items"],
                row["at_most_wrong"],
                *(number(str(100 * float(row[name])), 1) for name in ("wrong", "expert_sees", "missed")),
            ]
            for row in read("guarantee")
            if row["part"] == "misses" and float(row["alpha"]) == 0.05
        ),
    }


def commit() -> str:
    """The commit that the report is made from."""
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or json.loads((RESULTS / "fig1.manifest.json").read_text())["commit"][:9]


def main() -> int:
    """Write the numbers, run LaTeX, and say where the report lies."""
    if shutil.which("pdflatex") is None:
        print(
            "pdflatex is missing: `make paper` installs it, or take Debian's texlive-latex-recommended.",
            file=sys.stderr,
        )
        return 2
    work = OUT / "report"
    work.mkdir(parents=True, exist_ok=True)
    for name in ("report.tex", "report.bib"):
        shutil.copy2(HERE / name, work)
    shutil.copytree(FIGURES, work / "figures", dirs_exist_ok=True)
    commands = "\n".join(rf"\newcommand{{\{name}}}{{{text}}}" for name, text in values().items())
    (work / "values.tex").write_text(commands + "\n", encoding="utf-8")
    steps = (["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"], ["bibtex", "-terse", "report"])
    for step in (steps[0], steps[1], steps[0], steps[0]):
        told = subprocess.run(
            step,
            cwd=work,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        if told.returncode:
            print(told.stdout[-3000:], file=sys.stderr)
            return 1
    shutil.copy2(work / "report.pdf", OUT / "report.pdf")
    print(OUT / "report.pdf")
    return 0


if __name__ == "__main__":
    sys.exit(main())
