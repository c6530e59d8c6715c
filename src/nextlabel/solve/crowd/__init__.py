"""Bounds and optima with workers who differ."""
