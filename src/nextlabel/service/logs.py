"""The log: one line of JSON per request on stderr, without tokens."""

from __future__ import annotations

import json
import logging
import re
import sys
from contextlib import nullcontext
from logging.handlers import MemoryHandler
from threading import Thread
from time import sleep
from typing import Any, TextIO

from nextlabel.wording import iso, without_passwords

request_log = logging.getLogger("nextlabel.service")
#: The most lines that are held back before they are written, and for how many seconds.
BUFFERED_LINES, FLUSH_INTERVAL_S = 200, 0.2
_TOKEN = re.compile(r"\b(?:[wjaf]\d\.[\w.-]+|nl_[\w-]+)")  # as ``service.links`` and ``service.access`` make them


def without_secrets(text: str) -> str:
    """A text without tokens and without the passwords of addresses."""
    return without_passwords(_TOKEN.sub("***", text))


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {"time": iso(record.created), "level": record.levelname.lower()}
        line.update(getattr(record, "fields", {}))
        if "path" in line:
            line["path"] = without_secrets(str(line["path"]))
        message = record.getMessage()
        if message:
            line["message"] = without_secrets(message)
        if record.exc_info:
            line["exception"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(line)


class BufferedHandler(MemoryHandler):
    """Writes many lines at once: each write gives up the interpreter lock and has to wait to get it back.

    Lines are at most ``FLUSH_INTERVAL_S`` seconds late; warnings and errors are written at once.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(BUFFERED_LINES, logging.WARNING)
        self.setFormatter(JsonFormatter())
        self._stream = stream
        Thread(target=self._flush_often, name="log", daemon=True).start()

    def flush(self) -> None:
        """Write all lines that were held back."""
        with self.lock or nullcontext():
            records, self.buffer = self.buffer, []
            if records:
                self._stream.write("".join(f"{self.format(record)}\n" for record in records))
                self._stream.flush()

    def _flush_often(self) -> None:
        while True:
            sleep(FLUSH_INTERVAL_S)
            self.flush()


def log_to_stderr(level: str) -> None:
    """Send this process's log, ours and uvicorn's, to stderr."""
    handler = BufferedHandler(sys.stderr)
    for name in ("nextlabel", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper())
