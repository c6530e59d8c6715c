"""What workers see of a campaign: its name, question, labels, instructions, language and columns, each checked here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nextlabel.campaign.declaration import (
    LANGUAGES,
    LONGEST_CODE,
    LONGEST_INSTRUCTIONS,
    LONGEST_LABEL,
    LONGEST_NAME,
    LONGEST_QUESTION,
    MOST_ANSWERS,
    SETTINGS,
)
from nextlabel.errors import InputError


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
