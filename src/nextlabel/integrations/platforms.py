"""The platforms that workers may come from, by name; a new one is a subclass of ``Platform`` that is named here."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema

from nextlabel.errors import InputError
from nextlabel.integrations.mturk import MechanicalTurk
from nextlabel.integrations.platform import Platform
from nextlabel.integrations.prolific import Prolific


class Participants(Platform):
    """Any platform that adds ``participant=`` to the link."""

    name, title, worker = "participant", "Other platforms", "participant"


class Joined(Platform):
    """Whoever adds ``worker=`` to the link."""

    name, title, worker = "joined", "Plain links", "worker"


PLATFORMS: Final[dict[str, Platform]] = {
    platform.name: platform for platform in (Prolific(), MechanicalTurk(), Participants(), Joined())
}


def platform_of(worker: str) -> Platform | None:
    """The platform that a worker's name belongs to; None for those with a personal link."""
    return PLATFORMS.get(worker.partition(":")[0]) if ":" in worker else None


def find_platform(name: str) -> Platform:
    """The platform of that name."""
    if name not in PLATFORMS:
        raise InputError(f"{name[:40]!r} is not a platform.", f"Give one of {', '.join(PLATFORMS)}.")
    return PLATFORMS[name]


PlatformName = Annotated[
    str,
    AfterValidator(lambda name: find_platform(name).name),
    WithJsonSchema({"type": "string", "enum": list(PLATFORMS)}),
]
