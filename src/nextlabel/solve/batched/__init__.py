"""Prices while a campaign runs: arrivals in batches, tasks counted by state, milliseconds a solve."""
