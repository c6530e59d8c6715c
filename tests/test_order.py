"""The order of the tests: what takes long begins, nothing is lost, modules stay whole."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from order import long_modules_first


@dataclass(frozen=True)
class Named:
    nodeid: str
    slow: bool = False

    def get_closest_marker(self, name: str) -> object:
        assert name == "slow"
        return self.slow or None


def module(name: str, tests: int, slow: bool = False) -> list[Named]:
    return [Named(f"{name}.py::test_{k}", slow and k == 1) for k in range(tests)]


TESTS = [*module("a", 3), *module("b", 4, True), *module("c", 5), *module("d", 2, True), *module("e", 6)]


@pytest.mark.parametrize("processes", [1, 2, 3, 30])
def test_nothing_is_lost_and_long_modules_begin_a_stretch(processes: int) -> None:
    found = long_modules_first(TESTS, processes)
    assert sorted(found, key=repr) == sorted(TESTS, key=repr)
    assert [test.nodeid for test in found[:4]] == [test.nodeid for test in module("b", 4, True)]
    if processes == 2:
        assert [test.nodeid[0] for test in found] == list("bbbbaaaccc" + "ddcceeeeee")
