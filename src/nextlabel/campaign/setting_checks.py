"""Checks of single settings: each returns the value as it is kept, or says in a sentence what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from nextlabel.campaign.declaration import (
    LANGUAGES,
    LEASE_RANGE,
    LONGEST_CODE,
    LONGEST_INSTRUCTIONS,
    LONGEST_LABEL,
    LONGEST_NAME,
    LONGEST_QUESTION,
    MOST_ANSWERS,
    SETTINGS,
)
from nextlabel.errors import InputError, ProblemError
from nextlabel.policies.base import Policy
from nextlabel.policies.registry import CROWD_POLICIES, POLICIES, knows_workers, make_policy
from nextlabel.problem.tasks import whole

_TIME_HINT = "Give e.g. 2026-07-01T12:00:00Z, a datetime with a time zone, or seconds since 1970."


def checked_budget(budget: Any) -> int:
    """Labels that may be bought."""
    return whole("budget", budget, 1, "Give the number of labels that may be bought, e.g. 1200.")


def checked_deadline(deadline: Any) -> float | None:
    """Seconds since 1970, from such a number, a datetime or an ISO text with a time zone; or None."""
    if deadline is None:
        return None
    if isinstance(deadline, str):
        try:
            deadline = datetime.fromisoformat(deadline.strip())
        except ValueError:
            raise InputError(f"deadline {deadline[:40]!r} is not a time.", _TIME_HINT) from None
    if isinstance(deadline, datetime):
        if deadline.tzinfo is None:
            raise InputError(f"deadline {deadline.isoformat()!r} has no time zone.", _TIME_HINT)
        deadline = deadline.timestamp()
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not 0 < deadline < 1e11:
        raise InputError(f"deadline {deadline!r} is not a time.", _TIME_HINT)
    return float(deadline)


def checked_lease_seconds(seconds: Any) -> float | None:
    """Seconds that a worker may hold a task, or none to learn them."""
    if seconds is None:
        return None
    low, high = LEASE_RANGE
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not low <= seconds <= high:
        raise InputError(
            f"lease time {seconds!r} is not a number of seconds from {low:g} to {high:g}.",
            "Give e.g. 600, or leave it out to have it learnt.",
        )
    return float(seconds)


def checked_pay(pay: Any) -> float:
    """What a worker is paid for a label."""
    found = in_range("pay_per_label", pay)
    assert found is not None
    return found


def checked_switch(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputError(f"{name} {str(value)[:40]!r} is not true or false.", "Give true or false.")
    return value


def check_turning_away(turn_away: bool, policy: str) -> None:
    """Refuse to turn workers away where nobody knows what a worker's label is worth."""
    if turn_away and not knows_workers(policy):
        raise InputError(
            f"policy {policy!r} takes workers to be alike and cannot tell whom to turn away.",
            "Use the policy crowd, or leave turn_away out.",
        )


def checked_quota(labels: Any) -> int | None:
    """Labels that one worker may give, or none for no limit."""
    return None if labels is None else whole("most_labels_per_worker", labels, 1, "Give e.g. 100, or leave it out.")


def at_most(name: str, value: Any, most: int, clip: bool) -> int:
    """A whole number; one that is too large is refused, or cut with ``clip``."""
    number = whole(name, value, 1, f"Give a whole number from 1 to {most}.")
    if number > most and not clip:
        raise ProblemError(f"{name} is {number}, more than can be planned for.", f"Give at most {most}.")
    return min(number, most)


def in_range(name: str, value: Any) -> float | None:
    """A number within the bounds of its declaration; None where that is the default."""
    setting = SETTINGS[name]
    if value is None and setting.default is None:
        return None
    said, bounds = name.replace("_", " "), setting.bounds
    low, high = bounds.get("ge", bounds.get("gt", -math.inf)), bounds.get("le", bounds.get("lt", math.inf))
    fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high and value < math.inf
    if not fits or ("gt" in bounds and value == low) or ("lt" in bounds and value == high):
        least = f"at least {low:g}" if "ge" in bounds else f"more than {low:g}"
        most = "" if high == math.inf else f" and less than {high:g}"
        raise ProblemError(f"{said} {value!r} is not a number of {least}{most}.", f"Give e.g. {setting.example}.")
    return float(value)


def policy_name(policy: Any) -> str:
    """How the log names a policy: a built-in name, or ``module:Class`` for one of the user's own, or an instance."""
    if isinstance(policy, str):
        return policy
    if not isinstance(policy, Policy):
        raise InputError(f"policy {policy!r} is not a policy.", "Give a name such as index, or module:Class.")
    kind = type(policy)
    known: dict[str, type[Policy]] = {**POLICIES, **CROWD_POLICIES}
    name = policy.name if known.get(policy.name) is kind else f"{kind.__module__}:{kind.__qualname__}"
    if kind.__module__ == "__main__" or repr(vars(make_policy(name))) != repr(vars(policy)):
        raise InputError(
            f"policy {name!r} cannot be made again from its name.",
            "Put the class into a module that can be imported, with a constructor that needs no arguments.",
        )
    return name


def checked_labels(labels: Any) -> tuple[str, ...]:
    """Two or more different names."""
    hint = 'Give two or more names, e.g. ["no", "yes"].'
    if isinstance(labels, str) or not isinstance(labels, list | tuple):
        raise InputError("labels are not a list of names.", hint)
    names = tuple(_text("a label", name, LONGEST_LABEL) for name in labels)
    if not 2 <= len(names) <= MOST_ANSWERS:
        raise InputError(f"the campaign has {len(names)} labels: give 2 to {MOST_ANSWERS}.", hint)
    if "" in names or len(set(names)) < len(names):
        raise InputError("a label is empty or there twice.", hint)
    return names


def checked_display_names(names: Any) -> tuple[str, ...] | None:
    """What workers read in place of the labels, one name for each in their order; none to show the labels."""
    if names is None:
        return None
    hint = 'Give one name for each label, in their order, e.g. ["No, never", "Yes"].'
    if isinstance(names, str) or not isinstance(names, list | tuple):
        raise InputError("the display names are not a list of names.", hint)
    shown = tuple(_text("a display name", name, LONGEST_LABEL) for name in names)
    if "" in shown or len(set(shown)) < len(shown):
        raise InputError("a display name is empty or there twice.", hint)
    return shown


def check_names_fit(names: Sequence[str] | None, labels: Sequence[str]) -> None:
    """Refuse display names of another number than the labels."""
    if names is not None and len(names) != len(labels):
        raise InputError(
            f"{len(names)} display names were given for {len(labels)} labels.",
            f"Give one name for each of {', '.join(labels)}, in this order.",
        )


def checked_name(name: Any) -> str:
    """What the campaign is called; may be empty."""
    return _text("name", name, LONGEST_NAME)


def checked_question(question: Any) -> str:
    """What workers are asked; may be empty."""
    return _text("question", question, LONGEST_QUESTION)


def checked_instructions(instructions: Any) -> str:
    """Markdown that workers read before their first task; may be empty. Lines end as Unix ends them."""
    text = _text("instructions", instructions, LONGEST_INSTRUCTIONS, "Keep them to what a worker reads.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def checked_language(language: Any) -> str | None:
    """A language of the workers' page, or none to follow each worker's browser."""
    if language is not None and language not in LANGUAGES:
        known = ", ".join(f"{code} ({name})" for code, name in LANGUAGES.items())
        raise InputError(f"language {str(language)[:40]!r} is not one of the workers' page.", f"Give one of {known}.")
    return None if language is None else str(language)


def checked_completion_code(code: Any) -> str:
    """What workers show a platform when they have finished; may be empty."""
    text = _text("completion code", code, LONGEST_CODE, "Give the platform's code, e.g. C1A2B3C4.")
    if text and re.fullmatch(r"[A-Za-z0-9_-]+", text) is None:
        raise InputError(
            f"completion code {text!r} has other characters than letters, digits, - and _.",
            "Give the platform's code, e.g. C1A2B3C4.",
        )
    return text


def checked_show(columns: Any) -> tuple[str, ...] | None:
    """Columns that workers are shown, or none to have those left out that look personal."""
    if columns is None:
        return None
    hint = 'Give their names, e.g. ["text", "city"], or ["*"] for all.'
    if isinstance(columns, str) or not isinstance(columns, list | tuple):
        raise InputError("the columns to show are not a list of names.", hint)
    names = tuple(dict.fromkeys(_text("a column's name", name, LONGEST_NAME) for name in columns))
    if not names or "" in names or len(names) > SETTINGS["show"].bounds["max_length"]:
        raise InputError("no column is shown to workers, or one has no name.", hint)
    return names


def _text(what: str, value: Any, longest: int, hint: str = "Give a shorter text.") -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > longest or "\x00" in value:
        raise InputError(f"{what} is not a text of at most {longest} characters.", hint)
    return value.strip()
