"""Numba kernels: arrays in, ``out`` last, no checks, no exceptions."""
