"""Uploaded files from which campaigns are created: kept for a day in a private folder of this machine.

All processes on one machine share the folder. Behind a load balancer, all requests of one browser must go to the same
machine while a campaign is created.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from nextlabel.errors import ConflictError, FileFormatError, NotFoundError
from nextlabel.files.delimited import DelimitedTable
from nextlabel.files.tasks import check_names
from nextlabel.service.links import LinkSigner

MAX_AGE_S = 86_400
#: Rows that are shown before a campaign is created.
PREVIEW = 8
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that has been read once: its columns, its number of rows without the header, the first rows, and notes."""

    id: str
    name: str
    columns: list[str]
    rows: int
    first: list[list[str]]
    notes: list[str]


class UploadedFiles:
    """Uploaded files, by ids that cannot be guessed."""

    def __init__(self, links: LinkSigner) -> None:
        mark = hashlib.sha256(links.sign("draft", []).encode()).hexdigest()[:16]
        self._folder = Path(tempfile.gettempdir()) / f"nextlabel-{mark}"

    def keep(self, file: IO[bytes], name: str) -> UploadedFile:
        """Read and keep a file; raises FileFormatError if it is not a table."""
        table = DelimitedTable(file, "the file")
        check_names(table.columns, "the file")
        first: list[list[str]] = []
        for batch in table.batches():
            first += [list(cells) for cells in islice(zip(*batch.columns, strict=True), PREVIEW - len(first))]
        report = table.report
        if report.rows == 0:
            raise FileFormatError("the file has a header and no rows.", "Add one row per task.")
        upload = UploadedFile(
            secrets.token_hex(16), name[:200], table.columns, report.rows, first, [f"{report.form}.", *report.notes()]
        )
        folder = self._prepared_folder()
        file.seek(0)
        with (folder / f"{upload.id}.csv").open("xb") as copy:
            shutil.copyfileobj(file, copy)
        (folder / f"{upload.id}.json").write_text(json.dumps(asdict(upload)), encoding="utf-8")
        return upload

    def find(self, id: str) -> UploadedFile:
        """A file that was kept."""
        path = self._path(id, "json")
        return UploadedFile(**json.loads(path.read_text(encoding="utf-8")))

    def open(self, upload: UploadedFile) -> IO[bytes]:
        """Open its content."""
        return self._path(upload.id, "csv").open("rb")

    def drop(self, upload: UploadedFile) -> None:
        """Delete it."""
        for end in ("csv", "json"):
            (self._folder / f"{upload.id}.{end}").unlink(missing_ok=True)

    def _path(self, id: str, end: str) -> Path:
        path = self._folder / f"{id}.{end}"
        if _ID.fullmatch(id) is None or not path.is_file():
            raise NotFoundError("the uploaded file is no longer here.", "Upload it again.")
        return path

    def _prepared_folder(self) -> Path:
        """The folder, private to this user, without expired files."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        about = self._folder.lstat()
        if hasattr(os, "getuid") and (
            about.st_uid != os.getuid() or about.st_mode & 0o077 or self._folder.is_symlink()
        ):
            raise ConflictError(
                "the folder for uploads is not private to this user.", "Set TMPDIR to a folder of your own."
            )
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another process may have deleted it
                if path.stat().st_mtime < time.time() - MAX_AGE_S:
                    path.unlink()
        return self._folder
