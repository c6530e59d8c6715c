"""``jit`` without reference counts, for inner functions that make no array and return none.

A compiled function counts the users of every array that it is handed, one atomic operation each on entering and on
leaving, and a NamedTuple of arrays counts them all. Small functions in a loop then spend most of their time on it, and
threads that share the arrays wait for each other. Whoever calls from outside holds the arrays anyway.
"""

from __future__ import annotations

from typing import Any, TypeVar

from nextlabel.kernels.jit import jit

F = TypeVar("F")


def uncounted(function: F) -> F:
    """Compile as ``jit`` does; the function must neither make arrays nor return any."""
    compiled: Any = jit(function)  # type: ignore[type-var]
    options = getattr(compiled, "targetoptions", None)
    if options is not None:  # None when compilation is switched off
        options["_nrt"] = False
    out: F = compiled
    return out
