"""The public face: about forty names in ``nl``, the others in its namespaces, and a sentence for those that moved."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import nextlabel as nl
from nextlabel import policies


def imported_for_type_checkers(module: ModuleType) -> set[str]:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [alias for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    renamed = [node.targets[0] for node in block.body if isinstance(node, ast.Assign)]
    return {alias.asname for alias in imports if alias.asname} | {ast.unparse(target) for target in renamed}


@pytest.mark.parametrize("module", [nl, policies])
def test_every_name_is_there_also_for_type_checkers(module: ModuleType) -> None:
    names = set(dir(module)) - {"__version__"}
    assert names == imported_for_type_checkers(module)
    for name in names:
        assert getattr(module, name) is not None


def test_about_forty_names() -> None:
    assert len(dir(nl)) <= 40


def test_a_name_that_moved_says_where_it_is() -> None:
    with pytest.raises(AttributeError, match=r"nl\.Dirichlet has moved: it is nl\.priors\.Dirichlet now\."):
        nl.Dirichlet  # type: ignore[attr-defined]  # noqa: B018
    for namespace, names in nl._MOVED.items():
        for name in names.split():
            assert getattr(getattr(nl, namespace), name) is not None


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="nextlable"):
        nl.nextlable  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="Nothing"):
        policies.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_import_is_light() -> None:
    code = "import nextlabel, sys; sys.exit(any(m in sys.modules for m in ('numpy', 'numba', 'scipy', 'typer')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
