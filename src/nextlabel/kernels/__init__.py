"""Numba kernels: arrays in, ``out`` last, no checks, no exceptions."""

import os

# Numba colours its messages with colorama where that is installed, and swaps sys.stdout and sys.stderr for it while it
# compiles: what another thread says meanwhile would go elsewhere.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
