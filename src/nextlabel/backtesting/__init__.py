"""Recorded labels replayed under each policy: what it would have found, and what it would have saved."""
