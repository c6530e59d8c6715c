"""A million labels from a CSV file: seconds of CPU time in a fresh process; ``python -m benchmarks.reading``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from subprocess import run

import numpy as np

ROWS, ROUNDS = 1_000_000, 3
CODE = """
import sys, time
from nextlabel.files.labels import read_labels
begin = time.process_time()
table = read_labels(sys.argv[1])
print(len(table), len(table.tasks), f"{time.process_time() - begin:.2f}")
"""


def main() -> None:
    rng = np.random.default_rng(0)
    task, worker, label = (rng.integers(0, most, ROWS) for most in (ROWS // 10, 500, 2))
    with tempfile.TemporaryDirectory() as folder:
        for name, order in (("random order", np.arange(ROWS)), ("by task", np.argsort(task, kind="stable"))):
            path = Path(folder) / "labels.csv"
            lines = (f"t{task[k]},w{worker[k]},{label[k]}\n" for k in order)
            path.write_text("task,worker,label\n" + "".join(lines))
            for _ in range(ROUNDS):
                done = run([sys.executable, "-c", CODE, str(path)], check=True, capture_output=True, text=True)
                labels, tasks, seconds = done.stdout.split()
                print(f"{name}: {ROWS:,} rows, {labels} labels of {tasks} tasks in {seconds} s")


if __name__ == "__main__":
    main()
