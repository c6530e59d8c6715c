"""How a worker who has no item goes back to the platform that sent them.

=========== ==========================================================================================================
way         for whom
=========== ==========================================================================================================
link        those whose link had ``completion=``; participants of Prolific with the campaign's completion code
code        everybody with the campaign's completion code, to copy it where the link does not work
assignment  those in a frame of Mechanical Turk: a form that hands the assignment back
nothing     those whom a platform pays by code or assignment, and who have not labelled anything on this visit
=========== ==========================================================================================================

A code and an assignment are worth money, so they are there for work alone: at least one label since the visit began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from nextlabel.integrations import mturk, prolific
from nextlabel.web.worker.actions import WorkerView
from nextlabel.web.worker.session import WorkerSession

if TYPE_CHECKING:
    from nextlabel.web.worker.frame import FrameSession


class WayOut(NamedTuple):
    """What a worker without an item is shown; ``nothing`` if they may not finish because there is no work of theirs."""

    link: str = ""
    site: str = ""
    code: str = ""
    assignment: mturk.Assignment | None = None
    nothing: bool = False

    def __bool__(self) -> bool:
        return bool(self.link or self.code or self.assignment)


def way_out(session: WorkerSession | FrameSession, view: WorkerView, final: bool) -> WayOut:
    """The way of a worker; ``final`` if no waiting changes that there is no item."""
    given = view.labels_given or 0
    earned = given > session.before
    if session.assignment is not None:
        return WayOut(assignment=session.assignment) if earned else WayOut(nothing=final)
    if session.completion:
        known = final or given > 0
        return WayOut(session.completion, urlsplit(session.completion).hostname or "") if known else WayOut()
    if not view.completion_code or session.joined is None:
        return WayOut()
    if not earned:
        return WayOut(nothing=final)
    if session.worker.startswith(prolific.PREFIX):
        return WayOut(prolific.completion_address(view.completion_code), prolific.SITE, view.completion_code)
    return WayOut(code=view.completion_code)
