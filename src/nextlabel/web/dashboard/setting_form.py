"""Fields of forms for a campaign's settings, made from their declaration: which there are, their texts, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from nextlabel.campaign.declaration import LANGUAGES, Offer, bounds, declared, kind, literals, names, offer, spoken
from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import InputError
from nextlabel.money import currency_of
from nextlabel.web.dashboard.formatting import stamp

#: Characters from which a text has a field of several lines, and of many.
AREA, TALL = 1_000, 10_000


@dataclass(frozen=True, slots=True)
class SettingField:
    """One field, as the template writes it."""

    name: str
    text: str
    offer: Offer
    widget: Literal["text", "area", "tall", "lines", "tick", "choice", "time", "whole", "number"]
    help: str
    example: str
    most: int | None
    choices: Mapping[str, str]


def setting_field(name: str, text: str) -> SettingField:
    """The field of a setting; one with few values offers all but the usual one."""
    info, longest = declared(name), None if kind(name) is tuple else bounds(name).get("max_length")
    example = info.examples[0] if info.examples and kind(name) is not tuple else ""
    choices = {code: LANGUAGES.get(code, code) for code in literals(name) if code != info.default}
    widget = _widget(name, longest or 0)
    return SettingField(name, text, offer(name), widget, str(info.description), str(example), longest, choices)


def _widget(name: str, longest: int) -> Any:
    if name == "deadline" or literals(name):
        return "time" if name == "deadline" else "choice"
    if kind(name) is str:
        return "tall" if longest > TALL else "area" if longest > AREA else "text"
    return "text" if name == "budget" else KINDS[kind(name)][0]


def offered(form: Literal["workers", "terms"], *, changing: bool = False) -> list[str]:
    """The settings that a part of a form asks for."""
    return [name for name in names() if offer(name).form == form and (offer(name).changeable or not changing)]


def current(row: CampaignRow, settings: Iterable[str]) -> dict[str, str]:
    """The texts of some settings as they stand."""
    return {name: setting_text(name, getattr(row.config, name)) for name in settings}


def setting_text(name: str, value: Any) -> str:
    """A setting as its field shows it."""
    if value is None:
        return ""
    return stamp(value)[:16] if name == "deadline" else KINDS[kind(name)][1](value)


def read_setting(name: str, text: str) -> Any:
    """The setting that a field's text says; an empty one is the default."""
    text = text.replace("\r\n", "\n").strip()
    if not text and kind(name) is not bool and not declared(name).is_required():
        return declared(name).default
    if name == "deadline":
        return read_time(text)
    return text if name == "budget" and currency_of(text) else KINDS[kind(name)][2](text, spoken(name))


def changed_settings(before: Mapping[str, str], fields: Mapping[str, str]) -> dict[str, Any]:
    """The settings whose fields were sent with another text than was shown."""
    sent = {name: fields[name].replace("\r\n", "\n").strip() for name in before if name in fields}
    return {name: read_setting(name, text) for name, text in sent.items() if text != before[name]}


def read_whole(text: str, what: str) -> int:
    """A whole number, with or without separators."""
    plain = text.replace(",", "").replace(" ", "").replace("\u202f", "").strip()
    if not plain.isdecimal() or len(plain) > 15:
        raise InputError(f"{what} {text[:40]!r} is not a whole number.", "Give e.g. 1200.")
    return int(plain)


def read_number(text: str, what: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} {text[:40]!r} is not a number.", "Give e.g. 0.05.") from None


def read_time(text: str) -> float | None:
    """A time in UTC; None if the field is empty."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"deadline {text[:40]!r} is not a time.", "Give e.g. 2026-07-01T12:00.") from None


#: By the kind of a setting: its field, how that shows a value, and what a text in it says.
KINDS: Final[dict[type, tuple[str, Callable[[Any], str], Callable[[str, str], Any]]]] = {
    bool: ("tick", lambda on: "on" if on else "", lambda text, _: text == "on"),
    int: ("whole", str, read_whole),
    float: ("number", "{:g}".format, read_number),
    tuple: ("lines", "\n".join, lambda text, _: [line.strip() for line in text.splitlines() if line.strip()]),
    str: ("text", str, lambda text, _: text),
}
