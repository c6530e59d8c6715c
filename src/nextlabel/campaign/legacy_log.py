"""What logs of the first version leave unsaid, frozen for ever: it decided these things when a log was replayed.

Since then events say them: ``created`` the memory of the rates, ``tasks_added`` the places and limits of its tasks and
whether tasks are ranked by score, ``labelled`` and ``late`` whether the label was the task's last. Nothing here follows
later constants of the code; ``tests/campaign/logs`` holds logs of that version and the state that they lead to.
"""

from __future__ import annotations

from typing import Any, Final

#: Settings that the first version left out of no log, but later ones may add: their values in older logs.
LEGACY_SETTINGS: Final[dict[str, Any]] = {}
