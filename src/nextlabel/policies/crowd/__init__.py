"""Policies that know who is there: which task for this worker, or none."""
