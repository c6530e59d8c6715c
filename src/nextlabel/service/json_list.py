"""The values of a JSON list, one after the other, without holding the list."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import IO, Any

from nextlabel.errors import FileFormatError

#: Bytes read at once, and characters that one value may have.
CHUNK, LONGEST = 1 << 16, 1 << 20
_HINT = "Give a JSON list of tasks; nothing was taken in."
_SPACE = " \t\r\n"


def read_list(file: IO[bytes]) -> Iterator[Any]:
    """The values of the list that the file is."""
    text = _Text(file)
    if text.first() != "[":
        raise FileFormatError("the body is not a JSON list.", _HINT)
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
                raise FileFormatError(f"the list breaks off after task {place}.", _HINT)
            text.skip(1)
            if mark == "]":
                break
    if text.first():
        raise FileFormatError(f"something follows the list of {place} tasks.", _HINT)


class _Text:
    """The part of a file that was read and not used yet, from ``at`` on."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
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
                if self._over or len(self._rest) - self._at > LONGEST:
                    raise FileFormatError(f"task {place} is not JSON.", _HINT) from None
            if not self._more():
                self._over = True

    def _more(self) -> bool:
        data = self._file.read(CHUNK)
        self._over = self._over or not data
        try:
            new = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError:
            raise FileFormatError("the body is not UTF-8.", _HINT) from None
        self._rest, self._at = self._rest[self._at :] + new, 0
        return bool(data)
