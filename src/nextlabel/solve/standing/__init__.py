"""The bound of a running campaign, from where its tasks stand now."""
