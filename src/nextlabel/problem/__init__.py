"""What is to be solved: tasks, budget, rates, horizon."""
