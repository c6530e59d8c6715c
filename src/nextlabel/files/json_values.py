"""The values of a JSON list or of JSON lines, one after the other, without holding all of them.

JSON is UTF-8, with or without a byte order mark. A value may have ``longest`` characters.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import IO, Any

from nextlabel.errors import FileFormatError

#: Bytes read at once, and characters that one value may have.
CHUNK, LONGEST = 1 << 16, 1 << 20
_SPACE = " \t\r\n"


def read_json_lines(stream: IO[bytes], name: str, longest: int = LONGEST) -> Iterator[Any]:
    """One JSON value per line; empty lines are left out."""
    place = line = 0
    while text := stream.readline(longest + 1):
        line += 1
        if len(text) > longest:
            raise FileFormatError(f"line {line:,} of {name} is longer than {longest:,} bytes.", "Give shorter lines.")
        text = text.removeprefix(codecs.BOM_UTF8) if line == 1 else text
        if not text.strip():
            continue
        place += 1
        try:
            value = json.loads(text)
        except UnicodeDecodeError:
            raise FileFormatError(f"line {line:,} of {name} is not UTF-8.", "Save it as UTF-8.") from None
        except (ValueError, RecursionError):
            raise FileFormatError(f"line {line:,} of {name} is not JSON.", "Give one JSON value per line.") from None
        yield value


def read_json_list(stream: IO[bytes], name: str, longest: int = LONGEST) -> Iterator[Any]:
    """The values of the list that the file is."""
    text = _Text(stream, name, longest)
    start = text.first()
    if start != "[":
        is_what = "is not a JSON list" if start else "is empty"
        raise FileFormatError(f"{name} {is_what}.", "Give a list in square brackets.")
    text.skip(1)
    place = 0
    if text.first() == "]":
        text.skip(1)
    else:
        while True:
            place += 1
            yield text.value(place)
            mark = text.first()
            if mark not in (",", "]"):
                raise FileFormatError(f"{name} breaks off after value {place:,}.", "Give a complete JSON list.")
            text.skip(1)
            if mark == "]":
                break
    if text.first():
        raise FileFormatError(f"something follows the list of {place:,} values in {name}.", "Give one JSON list.")


class _Text:
    """The part of a file that was read and not used yet, from ``_at`` on."""

    def __init__(self, stream: IO[bytes], name: str, longest: int) -> None:
        self._stream, self._name, self._longest = stream, name, longest
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._rest, self._at, self._over = "", 0, False
        self._json = json.JSONDecoder()

    def first(self) -> str:
        """The next character that is no space, or nothing at the end."""
        while True:
            while self._at < len(self._rest) and self._rest[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._rest):
                return self._rest[self._at]
            if not self._more():
                return ""

    def skip(self, count: int) -> None:
        """Use up some characters."""
        self._at += count

    def value(self, place: int) -> Any:
        """The next value; it is complete only when something follows it."""
        self.first()
        while True:
            try:
                found, end = self._json.raw_decode(self._rest, self._at)
                if end < len(self._rest) or self._over:
                    self._at = end
                    return found
            except (ValueError, RecursionError):
                if self._over or len(self._rest) - self._at > self._longest:
                    why = "is not JSON" if self._over else f"is longer than {self._longest:,} characters or not JSON"
                    raise FileFormatError(f"value {place:,} of {self._name} {why}.", "Give a JSON list.") from None
            if not self._more():
                self._over = True

    def _more(self) -> bool:
        data = self._stream.read(CHUNK)
        self._over = self._over or not data
        try:
            new = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError:
            raise FileFormatError(f"{self._name} is not UTF-8.", "Save it as UTF-8.") from None
        self._rest, self._at = self._rest[self._at :] + new, 0
        return bool(data)
