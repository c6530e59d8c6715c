"""Policies: which task the next worker gets. One small file each; ``registry`` knows them by name.

A policy of your own derives from ``nl.policies.Policy`` or one of its kin. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nextlabel.lazy import lazy_names

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

_lazy, _names = lazy_names(__name__)


def __getattr__(name: str) -> Any:
    return _lazy(name)


def __dir__() -> list[str]:
    return _names()
