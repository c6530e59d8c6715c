"""Campaigns on paper: the event simulator, its crowds and its estimates."""
