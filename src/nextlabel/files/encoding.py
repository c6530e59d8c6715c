"""Which encoding a text file has: found by looking through all of it once, in bounded memory.

A byte order mark decides for UTF-8 or UTF-16. Without one the file is UTF-8 if all of it is; else, if nothing before
the first offending byte looks like UTF-8 either, it is Windows-1252, or Latin-1 where Windows-1252 has no character.
A file that is UTF-8 in one place and not in another is damaged and refused. Cost: about a second per gigabyte.
"""

from __future__ import annotations

import codecs
from typing import IO

from nextlabel.errors import FileFormatError

#: Bytes read at once, and bytes that a line may have.
CHUNK, LONGEST_LINE = 1 << 16, 1 << 20
#: Names of the encodings by their codecs.
SHOWN = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252", "latin-1": "Latin-1"}
#: Bytes that stand for no character in Windows-1252.
_UNDEFINED = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
_HINT = "Save it as UTF-8; a spreadsheet calls that 'CSV UTF-8'."


def find_encoding(stream: IO[bytes], name: str) -> str:
    """The codec of a file, which is left at its start; a null character or an endless line is refused."""
    stream.seek(0)
    start = stream.read(3)
    stream.seek(0)
    codec = "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    decoder = codecs.getincrementaldecoder(codec)()
    certain = codec == "utf-16" or start == codecs.BOM_UTF8
    line, since_break, more = 1, 0, True
    while more:
        chunk = stream.read(CHUNK)
        more = bool(chunk)
        try:
            text = decoder.decode(chunk, final=not more)
        except UnicodeDecodeError as error:
            if certain or not error.object[: error.start].isascii():
                line += error.object[: error.start].count(b"\n")
                raise FileFormatError(f"line {line:,} of {name} is not {SHOWN[codec]}.", _HINT) from None
            return _single_byte(stream)
        certain = certain or not chunk.isascii()
        if "\x00" in text:
            line += text[: text.index("\x00")].count("\n")
            raise FileFormatError(f"line {line:,} of {name} has a null character.", _HINT)
        last_break = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        since_break = len(chunk) - 1 - last_break + (since_break if last_break < 0 else 0)
        if since_break > LONGEST_LINE:
            raise FileFormatError(
                f"line {line:,} of {name} is longer than {LONGEST_LINE:,} bytes.", "Give shorter lines."
            )
        line += text.count("\n")
    stream.seek(0)
    return codec


def _single_byte(stream: IO[bytes]) -> str:
    stream.seek(0)
    codec = "cp1252"
    while chunk := stream.read(CHUNK):
        if any(byte in chunk for byte in _UNDEFINED):
            codec = "latin-1"
            break
    stream.seek(0)
    return codec
