"""How sharp a campaign's bound before its deadline is, beside the bounds that count workers alone.

    python -m benchmarks.live.deadline_bounds

Fresh tasks with uniform priors, in the model: workers come at rate r until T, labels take 1/mu on average, and what is
in flight at T is lost. Per task.
"""

from __future__ import annotations

from time import perf_counter

from nextlabel.model.problem import Problem
from nextlabel.model.tasks import fresh_groups
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.deadline import deadline_bound
from nextlabel.solve.exact import exact_value
from nextlabel.solve.present_bound import present_bound

#: Tasks, budget, arrival rate, completion rate, horizon; whether the optimum is within reach, and prices per arrival.
PROBLEMS = (
    (10, 12, 0.1, 0.4, 60.0, True, True),
    (10, 30, 1.0, 0.4, 40.0, False, True),
    (50, 150, 4.0, 0.4, 30.0, False, True),
    (200, 800, 10.0, 0.05, 60.0, False, False),
    (2000, 8000, 100.0, 0.05, 60.0, False, False),
    (200, 800, 1.0, 0.05, 600.0, False, False),
)


def main() -> None:
    """Print a table."""
    print("| K, U, r, mu, T | workers counted | one price per arrival | a price by time | slack | seconds | optimum |")
    print("|---|---|---|---|---|---|---|")
    for K, U, r, mu, T, exact, per_arrival in PROBLEMS:
        problem = Problem.identical(K, U, arrival_rate=r, completion_rate=mu, horizon=T)
        fresh = fresh_groups(problem.classes)
        counted = present_bound(problem.classes, fresh, U, mean_arrivals=r * T).upper
        prices = f"{upper_bound(problem, 'per-arrival').per_task:.5f}" if per_arrival else "too large"
        begin = perf_counter()
        found = deadline_bound(problem, fresh, U)
        seconds = perf_counter() - begin
        optimum = f"{exact_value(problem).per_task:.5f}" if exact else ""
        cells = (f"{counted:.5f}", prices, f"{found.upper:.5f}", f"{found.slack:.5f}", f"{seconds:.1f}", optimum)
        print(f"| {K}, {U}, {r:g}, {mu:g}, {T:g} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
