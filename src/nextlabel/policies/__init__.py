"""Policies: which task the next worker gets. One small file each; ``registry`` knows them by name.

A policy of your own derives from ``nl.policies.Policy`` or one of its kin. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nextlabel.policies.base import ClassView as ClassView
    from nextlabel.policies.base import Policy as Policy
    from nextlabel.policies.base import ScoreTables as ScoreTables
    from nextlabel.policies.base import Setting as Setting
    from nextlabel.policies.base import StaticPolicy as StaticPolicy
    from nextlabel.policies.crowd.policies import CrowdView as CrowdView
    from nextlabel.policies.crowd.policies import WorkerPolicy as WorkerPolicy
    from nextlabel.policies.index import Index
    from nextlabel.policies.okg import OKG as OKG
    from nextlabel.policies.registry import make_policy as make_policy

    IndexPolicy = Index

#: The modules that have the names; ``IndexPolicy`` is called ``Index`` there.
_HOMES = {
    "nextlabel.policies.base": "ClassView Policy ScoreTables Setting StaticPolicy",
    "nextlabel.policies.crowd.policies": "CrowdView WorkerPolicy",
    "nextlabel.policies.index": "IndexPolicy",
    "nextlabel.policies.okg": "OKG",
    "nextlabel.policies.registry": "make_policy",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), "Index" if name == "IndexPolicy" else name)


def __dir__() -> list[str]:
    return sorted(_HOME)
