"""How much of the gap is the rule's and how much the bound's? Exact optimum, index rule and bounds side by side.

python examples/exact_vs_bound.py
"""

import nextlabel as nl

print("  K   U    r     index rule   optimum      per arrival  one price")
for tasks, budget, rate in ((2, 5, 0.1), (2, 5, 1.0), (3, 6, 1.0), (10, 12, 0.1), (10, 12, 10.0)):
    problem = nl.Problem.identical(tasks=tasks, budget=budget, arrival_rate=rate)
    rule = nl.policy_value(problem, nl.index_table(problem).policy_index)
    best = nl.exact_value(problem)
    each = nl.upper_bound(problem, "per-arrival")
    common = nl.upper_bound(problem)
    print(
        f"{tasks:3d} {budget:3d} {rate:5.1f}   "
        f"{rule.value:11.6f}  {best.value:11.6f}  {each.value:11.6f}  {common.value:11.6f}"
    )
