"""Tasks with nearly equal priors, grouped with a certified error."""
