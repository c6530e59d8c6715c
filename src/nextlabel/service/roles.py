"""What the holder of a token may do.

========== ========================================================================================
role       may
========== ========================================================================================
requester  do everything
auditor    read everything: campaigns, results, the log, what each worker did; answer the items of an audit
viewer     read how campaigns stand and what they resulted in, but not the log and not who did what
========== ========================================================================================

Links for workers are credentials: only a requester sees them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nextlabel.campaign.access import Role


class Rights(NamedTuple):
    """What a role includes; ``sees_workers`` covers the log too, in which workers are named."""

    changes: bool
    sees_workers: bool


ROLES: dict[Role, Rights] = {
    "requester": Rights(changes=True, sees_workers=True),
    "auditor": Rights(changes=False, sees_workers=True),
    "viewer": Rights(changes=False, sees_workers=False),
}
#: Paths of the API, without its prefix, that a viewer may read.
_AUDIT = re.compile(r"/campaigns/[^/]+/audit/answers")
_VIEWABLE = re.compile(r"/(?:campaigns(?:/[^/]+(?:/(?:certificate|results|imports(?:/[^/]+)?))?)?|metrics)")


def may_call(role: Role, method: str, path: str) -> bool:
    """Whether a role may send this request to the API; ``path`` is without the API's prefix."""
    rights = ROLES[role]
    if rights.changes:
        return True
    if rights.sees_workers and method == "POST" and _AUDIT.fullmatch(path) is not None:
        return True
    return method in ("GET", "HEAD") and (rights.sees_workers or _VIEWABLE.fullmatch(path) is not None)
