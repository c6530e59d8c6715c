"""Priors learnt from labels that were recorded before: by moments, by maximum likelihood, and as a mixture."""
