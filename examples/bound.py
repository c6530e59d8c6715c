"""What can a budget buy at most, if workers are alike? Two kinds of tasks, and what a price per arrival takes off.

python examples/bound.py
"""

from pathlib import Path

import nextlabel as nl

problem = nl.load_problem(Path(__file__).parent / "two_classes.toml")

common = nl.upper_bound(problem)
print(f"{problem.tasks} tasks, {problem.budget} labels, {problem.rho:g} labels in flight on average")
print(f"one price      at most {common.value:.4f} right, price of a label {common.price:.5f}, gap {common.gap:.1e}")

each = nl.upper_bound(problem, "per-arrival")
print(f"price each     at most {each.value:.4f} right, gap {each.gap:.1e}, certified {each.certified}")
print(f"prices         {each.prices[0]:.5f} for the first arrival, {each.prices[-1]:.5f} for the last")

for budget in (100, 200, 400, 800):
    bound = nl.upper_bound(problem.with_budget(budget))
    print(f"budget {budget:4d}    {bound.per_task:.5f} a task, the next label is worth {bound.price:.5f}")
