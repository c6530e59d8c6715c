"""``python -m benchmarks.live.many_priors``: what one certificate costs with many priors and a large budget.

Fifty tasks of each prior, none of them labelled; ``--nodes`` changes how many nodes of lattices are allowed.
"""

from __future__ import annotations

import argparse
import resource
from time import process_time

import numpy as np

from nextlabel.model.beta import Beta
from nextlabel.model.tasks import TaskClass
from nextlabel.solve import present_bound

TASKS = 50


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--priors", type=int, default=100)
    parser.add_argument("--each", type=float, default=25.0, help="labels left per task")
    parser.add_argument("--nodes", type=int, default=present_bound.MOST_CHEAP_NODES)
    given = parser.parse_args()
    present_bound.MOST_CHEAP_NODES = given.nodes
    classes = [TaskClass(1, Beta(4 * p, 4 * (1 - p))) for p in np.linspace(0.02, 0.98, given.priors)]
    zeros = np.zeros(given.priors, dtype=np.int64)
    groups = (np.arange(given.priors), zeros, zeros, np.full(given.priors, TASKS))
    begun = process_time()
    found = present_bound.present_bound(classes, groups, int(given.each * TASKS * given.priors))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"at most {found.upper:.4f}, slack {found.slack:.4f}: {process_time() - begun:.1f} s, {peak:,.0f} MB in all")


if __name__ == "__main__":
    main()
