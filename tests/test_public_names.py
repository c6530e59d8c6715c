"""The public face: about forty names in ``nl``, the others in its namespaces, and a sentence for those that moved."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import nextlabel as nl
from nextlabel import policies


@pytest.mark.parametrize("module", [nl, policies])
def test_every_name_is_there(module: ModuleType) -> None:
    assert {"Problem", "rates", "errors"} < set(dir(nl)) and {"Policy", "IndexPolicy"} < set(dir(policies))
    for name in dir(module):
        assert getattr(module, name) is not None


def test_about_forty_names() -> None:
    assert len(dir(nl)) <= 40


def test_a_name_that_moved_says_where_it_is() -> None:
    with pytest.raises(AttributeError, match=r"nl\.Dirichlet has moved: it is nl\.priors\.Dirichlet now\."):
        nl.Dirichlet  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"nl\.Told has moved: it is nl\.results\.Receipt now\."):
        nl.Told  # type: ignore[attr-defined]  # noqa: B018
    assert nl.priors.Dirichlet is not None and nl.results.Receipt is not None


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="nextlable"):
        nl.nextlable  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="Nothing"):
        policies.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_import_is_light() -> None:
    code = "import nextlabel, sys; sys.exit(any(m in sys.modules for m in ('numpy', 'numba', 'scipy', 'typer')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
