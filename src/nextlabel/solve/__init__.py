"""Solvers: check input, allocate, call kernels, return frozen results."""
