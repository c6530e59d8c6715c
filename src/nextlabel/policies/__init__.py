"""Policies: which task the next worker gets. One small file each; ``registry`` knows them by name."""
