"""All policies by name, and policies of one's own by ``module:Class``."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from nextlabel.errors import InputError, refuse
from nextlabel.policies.auto import Auto
from nextlabel.policies.bandits import APT, LSA, UCB1Tuned, UCB1TunedLiteral
from nextlabel.policies.base import Policy
from nextlabel.policies.crowd.policies import ActiveLab, Crowd, CrowdUncertainty, WorkerPolicy
from nextlabel.policies.index import Index
from nextlabel.policies.lagrangian import Lagrangian, Resolve
from nextlabel.policies.okg import KG, OKG, KGRandom, OKGIdle, OKGPending
from nextlabel.policies.overlap import Overlap
from nextlabel.policies.random import Random
from nextlabel.policies.thompson import Thompson
from nextlabel.policies.uncertainty import Uncertainty
from nextlabel.policies.uniform import Uniform

POLICIES: dict[str, type[Policy]] = {
    cls.name: cls
    for cls in (
        Auto, Index, Lagrangian, Resolve, OKG, OKGIdle, OKGPending, KG, KGRandom, Thompson, UCB1Tuned,
        UCB1TunedLiteral, APT, LSA, Uncertainty, Uniform, Random, Overlap,
    )
}  # fmt: skip

#: For workers who differ: these have no tables.
CROWD_POLICIES: dict[str, type[WorkerPolicy]] = {cls.name: cls for cls in (Crowd, CrowdUncertainty)}


def make_policy(policy: str | Policy) -> Policy:
    """The policy called so, or the class ``module:Class`` of your own, with its usual parameters; a policy as it is.

    A module of your own is looked for where Python looks, and then in the current folder.
    """
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str):
        raise InputError(f"policy {policy!r} is not a policy.", "Give a name, module:Class or an object such as OKG().")
    if ":" in policy:
        return _own(policy)
    known: dict[str, type[Policy]] = {**POLICIES, **CROWD_POLICIES, ActiveLab.name: ActiveLab}
    near = [f"; did you mean {name!r}?" for name in get_close_matches(policy, known, n=1)]
    every = f"Known policies: {', '.join(sorted(known))}; or module:Class for one of your own."
    refuse((policy not in known, f"policy {policy!r} is not known{(near or ['.'])[0]}", every))
    return known[policy]()


@lru_cache(maxsize=256)
def knows_workers(policy: str) -> bool:
    """Whether the policy called so tells workers apart and learns them, one of your own (``module:Class``) included."""
    return isinstance(make_policy(policy), WorkerPolicy)


def _own(given: str) -> Policy:
    """The class of the user's module, made without arguments; it is called ``given`` unless it has a name."""
    place, _, name = given.partition(":")
    fits = place.replace(".", "_").isidentifier() and name.isidentifier()
    refuse((not fits, f"policy {given!r} is not module:Class.", "Give e.g. first_to_lead:FirstToLead."))
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last, so that no file here takes the place of an installed package
    try:
        module = import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise InputError(f"policy {given!r}: {error}.", "Install what the module imports.") from error
        raise InputError(
            f"policy {given!r}: there is no module {place!r} in {here} or among the installed packages.",
            "Give module:Class, the module without .py.",
        ) from error
    except Exception as error:  # whatever a user's module does when it is imported
        raise InputError(
            f"policy {given!r}: the module fails with {type(error).__name__}: {error}.",
            f"Try python -c 'import {place}'.",
        ) from error
    kind: Any = getattr(module, name, None)
    refuse(
        (kind is None, f"policy {given!r}: module {place!r} has no class {name!r}.", "Check the spelling."),
        (
            not (isinstance(kind, type) and issubclass(kind, Policy)),
            f"policy {given!r}: {name} is not a policy.",
            "Make it a subclass of nl.policies.StaticPolicy or nl.policies.WorkerPolicy, with score(view).",
        ),
    )
    try:
        policy: Policy = kind()
    except TypeError as error:
        raise InputError(
            f"policy {given!r} cannot be made without arguments: {error}.",
            "Write score(view), and give every argument of __init__ a default.",
        ) from error
    if "name" not in vars(kind):
        policy.name = given
    return policy
