"""The simulator: policies side by side on the same randomness.

This package bears the name of its main function, and Python binds a subpackage to its parent under that name. So the
package itself can be called: ``nl.simulate(problem, policies)`` is ``study.simulate`` whatever was imported first.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nextlabel.simulate.study import Study


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Study:
        from nextlabel.simulate.study import simulate

        return simulate(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
