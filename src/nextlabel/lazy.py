"""Names of a package that are imported when they are first used, so that importing it costs next to nothing."""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What ``__getattr__`` and ``__dir__`` of a package return: its names are those that it imports for type checkers.

    There each has a line: ``from MODULE import NAME as NAME``, or without an alias and then ``OTHER = NAME``.
    """

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        source = (pkgutil.get_data(package, "__init__.py") or b"").decode()
        block = source.partition("\nif TYPE_CHECKING")[2].partition("\n\n\n")[0]
        found = re.findall(r"^    from (\S+) import (\w+)", block, re.MULTILINE)
        named = {name: (module, name) for module, name in found}
        for other, name in re.findall(r"^    (\w+) = (\w+)$", block, re.MULTILINE):
            named[other] = named.pop(name)
        return named

    def get(name: str) -> Any:
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, there = homes()[name]
        found = import_module(f"{module}.{there}") if module == package else getattr(import_module(module), there)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted(homes())
