"""What a worker may say about a task beside the answer: a short text for the requester, kept with the lease.

It comes with an answer or with a skip, in the same event. Another answer to the same lease, after an undo, replaces it.
"""

from __future__ import annotations

from typing import Any

from nextlabel.campaign.declaration import LONGEST_COMMENT
from nextlabel.errors import InputError


def checked_comment(comment: Any) -> str | None:
    """The comment with lines that end as Unix ends them; None if it is empty."""
    if comment is None:
        return None
    text = comment.replace("\r\n", "\n").replace("\r", "\n").strip() if isinstance(comment, str) else None
    if text is None or len(text) > LONGEST_COMMENT or "\x00" in text or not _is_unicode(text):
        raise InputError(f"a comment is a text of at most {LONGEST_COMMENT} characters.", "Give a shorter text.")
    return text or None


def comment_data(comment: str | None) -> dict[str, str]:
    """What an event says about a comment: nothing if there is none."""
    return {} if comment is None else {"comment": comment}


def _is_unicode(text: str) -> bool:
    """Whether there is no half of a pair of surrogates in it, which no database takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
