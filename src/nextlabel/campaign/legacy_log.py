"""What logs of the first version leave unsaid, frozen for ever: that version decided it when a log was replayed.

Since then events say it: ``created`` the memory of the rates and what a crowd's core is worth, ``tasks_added`` the
places and limits of its tasks and whether tasks are ranked, ``labelled`` and ``late`` whether the label was the task's
last. Nothing here may follow later constants of the code; ``tests/campaign/logs`` holds logs of that version with the
state that they lead to.
"""

from __future__ import annotations

from typing import Any, Final

from nextlabel.campaign.rules import Limits

#: Values of settings that a log may lack because they were added later.
LEGACY_SETTINGS: Final[dict[str, Any]] = {
    "language": None, "show": ["*"], "gold_in_budget": False, "pay_per_label": 0.0, "most_labels_per_worker": None,
    "display_names": None, "instructions": "", "turn_away": False, "completion_code": "",
}  # fmt: skip
#: Observations that the rates remembered.
RATE_MEMORY: Final = 500
#: The policy ``crowd`` knew no core of workers who are alike.
CORE: Final = 0.0
#: With more priors than this all tasks, those there before included, were ranked and had at most so many labels, and
#: so many of them in flight.
FEW_PRIORS, MOST_LABELS, MOST_IN_FLIGHT = 64, 12, 4


def legacy_ranked(priors: int) -> bool:
    """Whether tasks were ranked one by one."""
    return priors > FEW_PRIORS


def legacy_limits(most_labels: int, most_in_flight: int, priors: int) -> Limits:
    """The limits of all tasks of a campaign with these settings and so many priors."""
    if not legacy_ranked(priors):
        return Limits(0, most_labels, most_in_flight)
    return Limits(0, min(most_labels, MOST_LABELS), min(most_in_flight, MOST_IN_FLIGHT))
