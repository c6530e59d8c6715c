"""``python -m benchmarks.scores``: a million tasks with a model's score each, bounded and simulated.

A figure that misses what is wanted ends the command with status 1.
"""

from __future__ import annotations

import sys

from benchmarks.rows import NO_DELAY, Row, flops
from benchmarks.simulator import EVENT
from benchmarks.timing import count, in_fresh_process, seconds

#: Most seconds and megabytes of the bound, its largest relative error, and most seconds of a campaign.
BOUND_SECONDS, BOUND_MB, RELATIVE_ERROR, CAMPAIGN_SECONDS = 30.0, 2000.0, 1e-4, 60.0
#: Flops behind the certified error of a score: eight beta functions of about 40 each.
ERRORS = 320


def bound(missed: list[str] | None = None) -> Row:
    """The bound, from the scores to the certificate."""
    run = in_fresh_process("scores_bound")
    if missed is not None:
        for what, found, most in (
            ("seconds of the bound", run["seconds"], BOUND_SECONDS),
            ("megabytes of the bound", run["peak_mb"], BOUND_MB),
            ("relative error of the bound", run["relative_error"], RELATIVE_ERROR),
        ):
            if not found < most:
                missed.append(f"{what}: {found:.3g}, wanted less than {most:.3g}")
    return Row(
        "bound, 1,000,000 tasks with 1,000,000 scores, U=3,000,000",
        f"< {BOUND_SECONDS:.0f} s, {BOUND_MB / 1000:.0f} GB, certified relative error < {RELATIVE_ERROR:.0e}",
        seconds(run["seconds"]),
        "once",
        flops(
            run["visited"] * NO_DELAY / 2 + 1e6 * ERRORS,
            f"{count(run['visited'])} nodes (all prices) x {NO_DELAY} flops, two cores; 1,000,000 scores x {ERRORS}",
        ),
        f"{run['value']:.1f}, relative error {run['relative_error']:.1e}, {run['groups']:.0f} priors, "
        f"peak {run['peak_mb']:.0f} MB",
    )


def campaign(missed: list[str] | None = None) -> Row:
    """One campaign by the index."""
    run = in_fresh_process("scores_campaign")
    if missed is not None and not run["seconds"] < CAMPAIGN_SECONDS:
        missed.append(f"seconds of the campaign: {run['seconds']:.3g}, wanted less than {CAMPAIGN_SECONDS:.3g}")
    return Row(
        "one campaign of 1,000,000 tasks with 1,000,000 scores, 3,000,000 labels, index",
        f"< {CAMPAIGN_SECONDS:.0f} s",
        seconds(run["seconds"]),
        "once",
        flops(6e6 * EVENT, f"6,000,000 events x {EVENT} flops"),
        f"{run['per_task']:.6f} per task, {count(run['indices'])} indices, at most {run['most_labels']:.0f} labels of "
        f"a task, tables {seconds(run['table_seconds'])}, peak {run['peak_mb']:.0f} MB",
    )


SCORES = (bound, campaign)


def main() -> None:
    """Both rows, and what was missed."""
    from benchmarks.__main__ import markdown, others

    missed: list[str] = []
    load = others()
    rows = [row(missed) for row in SCORES]
    print(markdown(rows, f" Load of the machine when it began: {load}."))
    if missed:
        sys.exit("\n".join(missed))


if __name__ == "__main__":
    main()
