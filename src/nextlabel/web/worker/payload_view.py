"""How a task's payload is shown: as text, picture, sound, film, link, named fields or, failing all, as JSON.

========================================================= ==================================================
payload                                                   shown as
========================================================= ==================================================
a text, or the field ``text`` of a table                  large text
an http(s) address in a field called image, img, photo,   picture; likewise ``audio`` and ``video``
picture (``_url``), or ending in .png, .jpg ...
another http(s) address                                   link that opens elsewhere
other values of a table                                   name and value
lists, tables inside tables                               JSON, indented
========================================================= ==================================================

A field ``alt`` describes the picture to those who do not see it. Nothing but http and https becomes an address.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

#: Names of fields and ends of addresses that say what an address is of.
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


class Part(NamedTuple):
    """One piece of an item: ``kind`` is text, image, audio, video, link, value or json; ``name`` may be empty."""

    kind: str
    name: str
    value: str
    alt: str = ""


def parts_of(payload: Any) -> list[Part]:
    """The pieces of a payload: text first, then media, then fields in their order."""
    if not isinstance(payload, dict):
        return [_part("", payload, "")]
    alt = payload.get(ALT)
    described = alt if isinstance(alt, str) else ""
    found = [_part(str(name), value, described) for name, value in payload.items()]
    if described and any(part.kind == "image" for part in found):
        found = [part for part in found if part.name != ALT]
    if len(found) == 1 and found[0].kind == "value":
        return [Part("text", "", found[0].value)]
    order = {"text": 0, "image": 1, "video": 1, "audio": 1}
    return sorted(found, key=lambda part: order.get(part.kind, 2))


def is_address(value: str) -> bool:
    """Whether a text is an http or https address that a browser would go to as it stands."""
    if not value.lower().startswith(("http://", "https://")) or not value.isprintable() or " " in value:
        return False
    try:
        return bool(urlsplit(value).hostname)
    except ValueError:
        return False


def _part(name: str, value: Any, alt: str) -> Part:
    if isinstance(value, dict | list):
        return Part("json", name, json.dumps(value, indent=2, ensure_ascii=False))
    if not isinstance(value, str):
        return Part("value", name, json.dumps(value))
    if is_address(value):
        kind = _medium(name.lower(), urlsplit(value).path.lower())
        return Part(kind, name, value, alt)
    if name.lower() in (LEAD, ""):
        return Part("text", "", value)
    return Part("value", name, value)


def _medium(name: str, path: str) -> str:
    base = name.removesuffix("_url").removesuffix("url")
    for kind, ends in ENDS.items():
        if path.endswith(ends):
            return kind
    for kind, names in NAMES.items():
        if base in names:
            return kind
    return "link"
