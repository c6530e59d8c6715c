"""Habits of the house that a reader would have to check by hand: how long parameter lists and contracts are."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import nextlabel
from nextlabel.store.sql import SqlStore

MOST_PARAMETERS = 12


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> int:
    given = function.args
    named = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
    return named + (given.vararg is not None) + (given.kwarg is not None)


def test_no_function_outside_the_command_line_has_many_parameters() -> None:
    source = Path(nextlabel.__file__).parent
    counts = {
        f"{path.relative_to(source)}:{node.lineno}": parameters(node)
        for path in source.rglob("*.py")
        if path.relative_to(source).parts[0] != "cli"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    }
    assert len(counts) > 1000  # the search finds the functions
    assert {where: count for where, count in counts.items() if count > MOST_PARAMETERS} == {}


def test_the_store_is_a_short_contract() -> None:
    """What another store would have to offer; records of access, visits, imports and webhooks stand on it."""
    methods = [name for name, one in vars(SqlStore).items() if inspect.isfunction(one) and not name.startswith("_")]
    assert 10 < len(methods) <= 20, methods
