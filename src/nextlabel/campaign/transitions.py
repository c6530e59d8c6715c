"""The life of a lease: one table.

::

                 renew
                 ┌──┐
                 ▼  │      tell
    ask ───►  leased ──────────────►  labelled
                │ │ ◄──────────────      undo, until the lease would have expired
         expire │ │ release
                ▼ ▼          tell
    expired, released ─────────────►  late
        ▲
        └── withdraw ── labelled, late    another tool deleted the label (``campaign.external_answers``)

======== ======== ====== =======================================================================
move     reserved spent  note
======== ======== ====== =======================================================================
ask      +1              only while reserved + spent < budget
tell     -1       +1     from leased; not counted if the budget was lowered below it meanwhile
expire   -1
release  -1
tell              +1     from expired or released: late, counted while reserved + spent < budget
undo     +1       -1
withdraw          -1     from labelled or late, at any time; the task may go to somebody else
======== ======== ====== =======================================================================

Repeating a command changes nothing and gets the same reply (``REPEATS``); everything else is a conflict.
"""

from __future__ import annotations

from typing import Final, Literal

from nextlabel.errors import ConflictError

LeaseStatus = Literal["leased", "labelled", "expired", "released", "late"]
LEASED: Final = "leased"
LABELLED: Final = "labelled"
EXPIRED: Final = "expired"
RELEASED: Final = "released"
LATE: Final = "late"

TRANSITIONS: Final[dict[tuple[LeaseStatus, str], LeaseStatus]] = {
    (LEASED, "tell"): LABELLED,
    (LEASED, "renew"): LEASED,
    (LEASED, "expire"): EXPIRED,
    (LEASED, "release"): RELEASED,
    (EXPIRED, "tell"): LATE,
    (RELEASED, "tell"): LATE,
    (LABELLED, "undo"): LEASED,
    (LABELLED, "withdraw"): RELEASED,
    (LATE, "withdraw"): RELEASED,
}

#: Moves that were made before, or that time made: nothing changes, and the reply is the same.
REPEATS: Final = frozenset({
    (LABELLED, "tell"), (LATE, "tell"), (RELEASED, "release"), (EXPIRED, "release"), (LEASED, "withdraw"),
    (RELEASED, "withdraw"), (EXPIRED, "withdraw"),
})  # fmt: skip


def after(status: LeaseStatus, move: str) -> LeaseStatus | None:
    """The status that follows, None for a repetition, or a ConflictError."""
    if (status, move) in TRANSITIONS:
        return TRANSITIONS[status, move]
    if (status, move) in REPEATS:
        return None
    allowed = sorted(m for s, m in TRANSITIONS if s == status and m not in ("expire", "withdraw"))
    raise ConflictError(
        f"the lease is {status}: {move} is not possible.",
        f"Possible: {', '.join(allowed)}." if allowed else "Nothing more can be done with it.",
    )
