"""``python -m benchmarks [--quick] [--write docs/benchmarks.md]``: print the table of timings as Markdown."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from pathlib import Path

import numba
import numpy as np
import scipy

from benchmarks.crowd import CROWD
from benchmarks.crowd_bound import CROWD_BOUND
from benchmarks.crowd_campaign import CROWD_CAMPAIGN
from benchmarks.rows import ALL, QUICK, Row
from benchmarks.scores import SCORES
from benchmarks.simulator import SIMULATOR

START, END = "<!-- bench:start -->", "<!-- bench:end -->"
HEADER = ("what", "wanted", "best", "median", "floor", "answer")


def markdown(rows: list[Row], load: str) -> str:
    """The rows as a table, with the machine below it and how busy it was."""
    lines = [" | ".join(HEADER), " | ".join("---" for _ in HEADER)]
    lines += [" | ".join((r.what, r.wanted, r.best, r.median, r.floor, r.result)) for r in rows]
    return "\n".join(f"| {line} |" for line in lines) + "\n\n" + machine() + load + "\n"


def machine() -> str:
    """What ran it, and how to read the columns."""
    return (
        f"{processor()}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, Numba {numba.__version__}. Kernels were compiled before "
        "the clock started, except in the row about compiling. The floor is the counted work at four flops per "
        "nanosecond and core (10 ns per lookup), on one core unless it says two; rows with `:` compare two ways to the "
        "same number in one run."
    )


def processor() -> str:
    """The processor's name, where the system tells."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def others() -> str:
    """Load average of the last minute: above 0.5 or so the timings are of a shared machine."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def write(path: Path, table: str, start: str = START, end: str = END) -> None:
    """Replace what stands between the two marks."""
    text = path.read_text(encoding="utf-8")
    if start not in text or end not in text:
        sys.exit(f"{path} has no {start} and {end} to write between.")
    before, rest = text.split(start, 1)
    after = rest.split(end, 1)[1]
    path.write_text(f"{before}{start}\n{table}{end}{after}", encoding="utf-8")


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the rows that take more than a few seconds")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {START} and {END}")
    options = parser.parse_args()
    before = others()
    rows = []
    for make in QUICK if options.quick else (*ALL, *SIMULATOR, *SCORES, *CROWD, *CROWD_BOUND, *CROWD_CAMPAIGN):
        rows.append(make())
        print(f"{rows[-1].what}: {rows[-1].best}", file=sys.stderr, flush=True)
    table = markdown(rows, f" Load of the machine when it began: {before}.")
    print(table)
    if options.write is not None:
        write(options.write, table)


if __name__ == "__main__":
    main()
