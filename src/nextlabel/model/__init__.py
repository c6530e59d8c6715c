"""The model of tasks: priors, rewards and lattices, the problem to solve, and priors and rates learnt from labels."""
