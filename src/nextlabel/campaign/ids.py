"""Unique ids of campaigns and of their leases."""

from __future__ import annotations

import re
import secrets

from nextlabel.errors import InputError

#: What a campaign may be called in addresses.
PATTERN = r"[a-z0-9][a-z0-9_]{0,47}"


#: Random texts drawn ahead.
AT_ONCE = 512
_drawn: list[str] = []


def new_campaign_id() -> str:
    """A random id."""
    return "c" + secrets.token_hex(6)


def checked_campaign_id(id: object) -> str:
    """An id that a user chose."""
    if not isinstance(id, str) or re.fullmatch(PATTERN, id) is None:
        raise InputError(
            f"campaign id {str(id)[:60]!r} is not allowed.",
            "Use 1 to 48 small letters, digits and underscores, beginning with a letter or digit.",
        )
    return id


def lease_id(campaign: str, number: int) -> str:
    """Id of a lease: the campaign, the lease's number, and something that cannot be guessed."""
    return f"{campaign}-{number}-{_random_hex()}"


def prediction_id(campaign: str, number: int) -> str:
    """The id of a prediction's lease: numbered like any other, with nothing to be kept secret."""
    return f"{campaign}-{number}-model"


def is_prediction(lease: str) -> bool:
    """Whether a lease is a model's prediction."""
    return lease.endswith("-model")


def lease_number(lease: str) -> int:
    """The number of a lease in its campaign, from 0 on in the order in which leases were given out."""
    return int(lease.split("-", 2)[1])


def _random_hex() -> str:
    """Twelve random digits; the system is asked for many at once, which costs as much as asking for one."""
    try:
        return _drawn.pop()
    except IndexError:
        text = secrets.token_hex(6 * AT_ONCE)
        _drawn.extend(text[k : k + 12] for k in range(12, len(text), 12))
        return text[:12]


def campaign_of(lease: str) -> str:
    """The campaign that a lease belongs to."""
    return lease.partition("-")[0]
