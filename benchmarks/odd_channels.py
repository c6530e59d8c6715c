"""``python -m benchmarks.odd_channels``: bounds for workers who teach nothing, next to nothing, or all but everything.

Random problems of 1 to 200 tasks with two or three answers and 1 to 12 types of workers: channels whose rows are the
same but for 1e-2 to 1e-14, which tell the truth but for as much, repeated ones, and ordinary ones between them.
Printed: how many bounds are certified, the largest gap per task between the bound and what a plan on the same grid
reaches, and the longest times.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np

import nextlabel as nl
from nextlabel.arrays import Floats

#: Gap per task, and seconds, that none should pass.
NARROW, SOON = 1e-4, 2.0


def channel(rng: np.random.Generator, answers: int) -> Floats:
    """One channel of one of the odd kinds, or an ordinary one."""
    small = 10.0 ** -rng.uniform(2.0, 14.0)
    ordinary = rng.dirichlet(np.ones(answers), answers)
    kind = rng.integers(5)
    if kind == 0:  # all rows the same, but for a little
        rows = np.repeat(ordinary[:1], answers, axis=0) * (1.0 - small) + small * ordinary
    elif kind == 1:  # one row is another's but for a little, and nothing else is ever said
        rows = np.repeat(np.eye(answers)[:1], answers, axis=0)
        rows[-1] = (1.0 - small) * rows[0] + small * np.eye(answers)[-1]
    elif kind == 2:
        rows = (1.0 - small) * np.eye(answers) + small / answers
    elif kind == 3:
        rows = np.eye(answers)
    else:
        rows = ordinary
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def problem(rng: np.random.Generator) -> nl.Problem:
    """One problem."""
    answers, tasks = int(rng.integers(2, 4)), int(rng.integers(1, 201))
    own = [channel(rng, answers) for _ in range(rng.integers(1, 7))]
    channels = own + [own[k] for k in rng.integers(0, len(own), rng.integers(0, 7))]
    budget = int(rng.integers(1, 5 * tasks + 1))
    workers = tuple(
        nl.WorkerType(tuple(map(tuple, rows.tolist())), supply=int(rng.integers(1, 2 * budget + 1)))
        for rows in channels
    )
    law = rng.dirichlet(np.full(answers, 2.0)) if rng.random() < 0.5 else np.full(answers, 1.0 / answers)
    prior = nl.priors.Fact(*law.tolist()[1:]) if answers == 2 else nl.priors.Fact(probabilities=tuple(law.tolist()))
    return nl.Problem.identical(tasks, budget, prior, workers=workers)


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    certified, gaps, times = 0, [], []
    for number in range(given.problems):
        one = problem(np.random.default_rng([given.seed, number]))
        begun = perf_counter()
        found = nl.upper_bound(one)
        times.append(perf_counter() - begun)
        gaps.append(found.gap / one.tasks)
        certified += found.certified
        if not found.certified or gaps[-1] > NARROW or times[-1] > SOON:
            print(f"problem {number}: {one.tasks} tasks, {one.budget} labels, {one.answers} answers, "
                  f"{len(one.workers)} types: certified {found.certified}, gap {gaps[-1]:.1g} per task, "
                  f"{times[-1]:.2f} s", flush=True)  # fmt: skip
    wide, late = int((np.array(gaps) > NARROW).sum()), int((np.array(times) > SOON).sum())
    print(
        f"{given.problems:,} problems: {certified:,} certified; gap per task at most {max(gaps):.1g}, above {NARROW:g} "
        f"in {wide}; {np.median(times):.2f} s in the median, {max(times):.2f} s at most, above {SOON:g} s in {late}."
    )


if __name__ == "__main__":
    main()
