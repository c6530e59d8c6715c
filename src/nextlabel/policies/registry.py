"""All policies by name."""

from __future__ import annotations

from nextlabel.errors import InputError
from nextlabel.policies.base import Policy
from nextlabel.policies.index import Index
from nextlabel.policies.kg import KG, KGRandom
from nextlabel.policies.lagrangian import Lagrangian
from nextlabel.policies.okg import OKG, OKGIdle, OKGPending
from nextlabel.policies.overlap import Overlap
from nextlabel.policies.random import Random
from nextlabel.policies.resolve import Resolve
from nextlabel.policies.thompson import Thompson
from nextlabel.policies.thresholding import APT, LSA
from nextlabel.policies.ucb import UCB1Tuned, UCB1TunedLiteral
from nextlabel.policies.uncertainty import Uncertainty
from nextlabel.policies.uniform import Uniform

POLICIES: dict[str, type[Policy]] = {
    cls.name: cls
    for cls in (
        Index, Lagrangian, Resolve, OKG, OKGIdle, OKGPending, KG, KGRandom, Thompson, UCB1Tuned, UCB1TunedLiteral, APT,
        LSA, Uncertainty, Uniform, Random, Overlap,
    )
}  # fmt: skip


def make_policy(name: str) -> Policy:
    """The policy called ``name`` with its usual parameters."""
    if name not in POLICIES:
        raise InputError(f"policy {name!r} is not known.", f"Known policies: {', '.join(sorted(POLICIES))}.")
    return POLICIES[name]()
