"""How a task is shown: its payload, and its answers as buttons with keys.

========================================================= ==================================================
payload                                                   shown as
========================================================= ==================================================
a string, or the field ``text`` of an object              large text
an http(s) address in a field called image, img, photo,   picture; likewise ``audio`` and ``video``
picture (``_url``), or ending in .png, .jpg ...
another http(s) address                                   link that opens in a new tab
other values of an object                                 name and value
lists, nested objects                                     JSON, indented
========================================================= ==================================================

A field ``alt`` is the image's alternative text. Only http and https addresses become links or media.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from nextlabel.campaign.settings import SIDES, CampaignSettings, is_pair
from nextlabel.crowd.questions import Form

#: Field names and endings of addresses that tell what kind of medium an address is.
NAMES = {
    "image": ("image", "img", "photo", "picture"),
    "audio": ("audio", "sound"),
    "video": ("video", "film"),
}

ENDS = {
    "image": (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg", ".bmp"),
    "audio": (".mp3", ".wav", ".ogg", ".oga", ".m4a", ".flac", ".opus"),
    "video": (".mp4", ".webm", ".ogv", ".mov"),
}
LEAD, ALT = "text", "alt"
SKIP_KEY, UNDO_KEY, INSTRUCTIONS_KEY = "s", "u", "?"
DIGITS = "123456789"


class PayloadPart(NamedTuple):
    """One part of a payload: ``kind`` is text, image, audio, video, link, value, json, or side, one of two items that
    are compared, with ``parts`` of its own; ``name`` may be empty.
    """

    kind: str
    name: str
    value: str
    alt: str = ""
    parts: Sequence[PayloadPart] = ()


def payload_parts(payload: Any) -> list[PayloadPart]:
    """The parts of a payload: text first, then media, then other fields in their order."""
    if not isinstance(payload, dict):
        return [_part("", payload, "")]
    if is_pair(payload):
        sides = [PayloadPart("side", side, "", parts=payload_parts(payload[side])) for side in SIDES]
        others = {name: value for name, value in payload.items() if name not in SIDES}
        return [*(payload_parts(others) if others else []), *sides]
    alt = payload.get(ALT)
    described = alt if isinstance(alt, str) else ""
    found = [_part(str(name), value, described) for name, value in payload.items()]
    if described and any(part.kind == "image" for part in found):
        found = [part for part in found if part.name != ALT]
    if len(found) == 1 and found[0].kind == "value":
        return [PayloadPart("text", "", found[0].value)]
    order = {"text": 0, "image": 1, "video": 1, "audio": 1}
    return sorted(found, key=lambda part: order.get(part.kind, 2))


def is_address(value: str) -> bool:
    """Whether a string is an http or https address that a browser would open as it is."""
    if not value.lower().startswith(("http://", "https://")) or not value.isprintable() or " " in value:
        return False
    try:
        return bool(urlsplit(value).hostname)
    except ValueError:
        return False


def _part(name: str, value: Any, alt: str) -> PayloadPart:
    if isinstance(value, dict | list):
        return PayloadPart("json", name, json.dumps(value, indent=2, ensure_ascii=False))
    if not isinstance(value, str):
        return PayloadPart("value", name, json.dumps(value))
    if is_address(value):
        kind = _medium(name.lower(), urlsplit(value).path.lower())
        return PayloadPart(kind, name, value, alt)
    if name.lower() in (LEAD, ""):
        return PayloadPart("text", "", value)
    return PayloadPart("value", name, value)


def _medium(name: str, path: str) -> str:
    base = name.removesuffix("_url").removesuffix("url")
    found = [kind for kind in ENDS if path.endswith(ENDS[kind])] + [kind for kind in NAMES if base in NAMES[kind]]
    return found[0] if found else "link"


class Choice(NamedTuple):
    """An answer as a button, or with the number -1 a field of a form; any of ``keys`` chooses it."""

    number: int
    label: str
    keys: tuple[str, ...]


def choices(config: CampaignSettings) -> list[Choice]:
    """The answers with their keys, none where they are numbers: an answer's own key (``Answer.keys``), or digits for
    the first nine and the first letter if no other label has it.
    """
    labels, answers, keys = config.shown_labels, config.answer_type, config.answer_type.keys()
    if isinstance(answers, Form):  # the question's name stands above
        texts = [label for one in answers.questions for label in one.labels]
        options = enumerate(texts if config.display_names is None else labels)
        fields = [next(options) if one.labels else (-1, "") for one in answers.questions for _ in one.labels or "-"]
        return [Choice(n, name, (key,) if key else ()) for (n, name), key in zip(fields, keys, strict=True)]
    if keys:
        return [Choice(n, name, (key,) if key else ()) for n, (name, key) in enumerate(zip(labels, keys, strict=True))]
    firsts = [label[0].lower() for label in labels]
    found = []
    for number, first in enumerate(firsts):
        digit = (DIGITS[number],) if number < len(DIGITS) else ()
        own = first.isalpha() and firsts.count(first) == 1 and first not in (SKIP_KEY, UNDO_KEY)
        found.append(Choice(number, labels[number], (*digit, first) if own else digit))
    return found
