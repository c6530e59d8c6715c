"""The order in which several processes take the tests, so that none of them waits for the others at the end.

pytest-xdist hands every process one stretch of the list and lets those that are done take from the ends of the others
(``--dist worksteal``). What is at the end of a stretch should therefore be short: modules that hold a test marked
``slow`` stand at the beginning of the stretches, dealt out in turn. Modules stay whole, because their fixtures are
shared, and inside a module the order stays the random one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, islice
from typing import Protocol, TypeVar


class Test(Protocol):
    """What of ``pytest.Item`` matters here."""

    @property
    def nodeid(self) -> str: ...

    def get_closest_marker(self, name: str) -> object: ...


T = TypeVar("T", bound=Test)


def long_modules_first(tests: Sequence[T], processes: int) -> list[T]:
    """The tests in an order that begins each of the stretches with modules that take long."""
    modules = [list(group) for _, group in groupby(tests, lambda test: test.nodeid.partition("::")[0])]
    slow = [module for module in modules if any(test.get_closest_marker("slow") for test in module)]
    other = iter([test for module in modules if module not in slow for test in module])
    found: list[T] = []
    for process in range(processes):
        stretch = [test for module in slow[process::processes] for test in module]
        left, sharing = len(tests) - len(found), processes - process
        found += stretch
        found += islice(other, max(left // sharing - len(stretch), 0))
    return [*found, *other]
