"""Which task should the next worker get? Look the tasks' states up in an index table and take the largest.

python examples/index_lookup.py
"""

import nextlabel as nl

problem = nl.Problem.identical(tasks=100, budget=300, prior=nl.Beta(1, 1))
table = nl.index_table(problem)
left = 120  # arrivals left, the present one included

# task -> (ones seen, zeros seen, labels in flight)
tasks = {"ant": (0, 0, 1), "bee": (1, 0, 0), "cow": (1, 1, 0), "dog": (2, 0, 0), "elk": (2, 2, 1), "fly": (5, 4, 0)}

# Indices are exact to nine digits; tasks that are tied come in the order of their names.
ranked = sorted((-round(table.index(0, (a, b), w, left), 9), name) for name, (a, b, w) in tasks.items())
for value, name in ranked:
    print(f"{name}  {tasks[name]}  index {-value:.6f}")
print(f"give the next worker: {ranked[0][1]}")
