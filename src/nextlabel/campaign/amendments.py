"""Settings that may change while a campaign runs: how a new value is checked, and what was changed since its creation.

Budget, deadline and lease time have counters of their own in the campaign's row. Of the others the row keeps what was
changed (``CampaignRow.amended``, one line of JSON), and its ``config`` has these values in place of the first ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from nextlabel.campaign.setting_checks import (
    check_names_fit,
    check_turning_away,
    checked_budget,
    checked_completion_code,
    checked_deadline,
    checked_display_names,
    checked_instructions,
    checked_language,
    checked_lease_seconds,
    checked_name,
    checked_pay,
    checked_question,
    checked_quota,
    checked_show,
    checked_switch,
)
from nextlabel.campaign.settings import CampaignSettings, tuples_of, unchecked
from nextlabel.errors import ConflictError, InputError

if TYPE_CHECKING:
    from nextlabel.campaign.rows import CampaignRow

#: Checks of the settings that have a counter of their own, and of all others that may change.
COUNTED: Final[dict[str, Callable[[Any], Any]]] = {
    "budget": checked_budget, "deadline": checked_deadline, "lease_seconds": checked_lease_seconds,
}  # fmt: skip
AMENDABLE: Final[dict[str, Callable[[Any], Any]]] = {
    "pay_per_label": checked_pay, "most_labels_per_worker": checked_quota, "name": checked_name,
    "question": checked_question, "display_names": checked_display_names, "instructions": checked_instructions,
    "language": checked_language, "show": checked_show, "turn_away": partial(checked_switch, "turn_away"),
    "completion_code": checked_completion_code,
}  # fmt: skip
NOTHING: Final = "{}"


def checked_change(name: str, value: Any) -> Any:
    """The new value of a setting, if it may change."""
    check = COUNTED.get(name) or AMENDABLE.get(name)
    if check is None:
        raise InputError(f"{name[:60]!r} cannot be changed.", f"It can be {', '.join([*COUNTED, *AMENDABLE])}.")
    return check(value)


def changes_of(row: CampaignRow, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of new values those that change something, checked, in the types of JSON."""
    new: dict[str, Any] = {}
    for name, value in values.items():
        checked: Any = checked_change(name, value)
        if checked != getattr(row if name in COUNTED else row.config, name):
            new[name] = list(checked) if isinstance(checked, tuple) else checked
    check_names_fit(new.get("display_names"), row.config.labels)
    check_turning_away(new.get("turn_away", False), row.config.policy)
    if new.get("budget", row.budget) < row.spent:
        raise ConflictError(
            f"{row.spent} labels have been bought already, more than a budget of {new['budget']}.",
            f"Give at least {row.spent}.",
        )
    return new


def amended_with(amended: str, changes: Mapping[str, Any]) -> str:
    """What was changed so far, and now."""
    new = {name: value for name, value in changes.items() if name in AMENDABLE}
    return json.dumps({**json.loads(amended), **new}, sort_keys=True) if new else amended


@lru_cache(maxsize=1024)
def amend(config: CampaignSettings, amended: str) -> CampaignSettings:
    """The settings with what was changed since."""
    if amended == NOTHING:
        return config
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    changed = json.loads(amended)
    return unchecked({**values, **changed, **tuples_of(changed)})
