"""The log: one line of JSON a request on stderr, tokens left out."""

from __future__ import annotations

import json
import logging
import re
import sys
from contextlib import nullcontext
from threading import Thread
from time import sleep
from typing import Any, TextIO

from nextlabel.service.times import iso

request_log = logging.getLogger("nextlabel.service")
#: Lines that wait to be written, and for how long.
MOST_LINES, EVERY_S = 200, 0.2
_TOKEN = re.compile(r"\b(?:[wj]1\.[\w.-]+|nl_[\w-]+)")


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {"time": iso(record.created), "level": record.levelname.lower()}
        line.update(getattr(record, "fields", {}))
        if "path" in line:
            line["path"] = _TOKEN.sub("***", str(line["path"]))
        message = record.getMessage()
        if message:
            line["message"] = _TOKEN.sub("***", message)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class BufferedLines(logging.Handler):
    """Writes many lines at once: each write lets another thread have the interpreter, and waits to get it back.

    Lines are at most ``EVERY_S`` seconds late, warnings and errors not at all.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self._stream = stream
        self._lines: list[str] = []
        Thread(target=self._flush_often, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        self._lines.append(self.format(record) + "\n")
        if record.levelno >= logging.WARNING or len(self._lines) >= MOST_LINES:
            self.flush()

    def flush(self) -> None:
        """Write what there is."""
        with self.lock or nullcontext():
            lines, self._lines = self._lines, []
            if lines:
                self._stream.write("".join(lines))
                self._stream.flush()

    def _flush_often(self) -> None:
        while True:
            sleep(EVERY_S)
            self.flush()


def log_request(fields: dict[str, Any], seconds: float) -> None:
    """The line of one request."""
    fields["ms"] = round(1000 * seconds, 2)
    request_log.info("", extra={"fields": fields})


def log_to_stderr(level: str) -> None:
    """Have this program's log written, ours and uvicorn's."""
    handler = BufferedLines(sys.stderr)
    for name in ("nextlabel.service", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper())
