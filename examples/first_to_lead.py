"""A policy of one's own: ask about a task until one answer leads by two votes.

In the folder of this file:

    nextlabel simulate --tasks 100 --budget 300 --policy first_to_lead:FirstToLead --policy overlap --policy index
    nextlabel backtest labels.csv --policy first_to_lead:FirstToLead --policy index
"""

import numpy as np
from numpy.typing import NDArray

import nextlabel as nl


class FirstToLead(nl.policies.StaticPolicy):
    """Open tasks first, then those that a label in flight may settle, then settled ones; the fewest labels first."""

    name = "first-to-lead"
    in_flight = "whether it may settle the task"
    uses_prior = False
    in_reward_units = False

    def __init__(self, lead: int = 2) -> None:
        self.lead = lead

    def score(self, view: nl.policies.ClassView) -> NDArray[np.float64]:
        """(flight + 1, nodes): one row for each number of labels in flight, one column for each belief."""
        votes = np.sort(view.counts, axis=1)
        ahead = (votes[:, -1] - votes[:, -2])[None, :]
        waiting = np.arange(view.flight + 1)[:, None]
        settled = ahead >= self.lead
        maybe = ahead + waiting >= self.lead
        tier = np.where(settled, 0.0, np.where(maybe, 1.0, 2.0))
        return 1000.0 * tier - view.given


def main() -> None:
    problem = nl.Problem.identical(tasks=100, budget=300, arrival_rate=0.1, completion_rate=0.4)
    study = nl.simulate(
        problem,
        [FirstToLead(), nl.policies.make_policy("overlap"), nl.policies.IndexPolicy()],
        replications=200,
        seed=0,
    )
    print(study)
    small = nl.Problem.identical(tasks=3, budget=6)
    print(f"Exactly, with 3 tasks and 6 labels: {nl.policy_value(small, FirstToLead()).value:.6f} right,")
    print(f"where the best policy gets {nl.exact_value(small).value:.6f}.")


if __name__ == "__main__":
    main()
