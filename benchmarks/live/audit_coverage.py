"""``python -m benchmarks.live.audit_coverage DATA``: how often the interval of an audit of 60 items holds the truth.

For each recorded set in the folder DATA, three labels of every task are drawn at random, learnt as a live campaign
learns them, and audited as the certificate does, a hundred times over.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.crowd_prior import recorded
from nextlabel.crowd.audit import audited_accuracy
from nextlabel.crowd.fit import fit_crowd

SETS, EACH, ITEMS, REPETITIONS = ("rte", "temp"), 3, 60, 100


def coverage(folder: Path) -> tuple[int, float, float]:
    """Of a hundred audits those whose interval holds the share that is right; its mean, and that which is expected."""
    held, shares, expected = 0, [], []
    for seed in range(REPETITIONS):
        labels, truth = recorded(folder, EACH, seed)
        beliefs = fit_crowd(labels).beliefs
        drawn = np.random.default_rng(seed).choice(len(truth), ITEMS, replace=False)
        found = audited_accuracy(beliefs, {int(k): int(truth[k]) for k in drawn})
        assert found is not None
        share = float((beliefs.argmax(axis=1) == truth).mean())
        held += found.low <= share <= found.high
        shares.append(share)
        expected.append(float(beliefs.max(axis=1).mean()))
    return held, float(np.mean(shares)), float(np.mean(expected))


def main() -> None:
    """Print a table in Markdown."""
    print("| set | intervals that hold, of 100 | right | expected by the model |\n|---|---|---|---|")
    for name in SETS:
        held, share, expected = coverage(Path(sys.argv[1]) / name)
        print(f"| {name} | {held} | {share:.3f} | {expected:.3f} |")


if __name__ == "__main__":
    main()
