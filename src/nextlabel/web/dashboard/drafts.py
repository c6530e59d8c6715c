"""Files on their way to a campaign: kept for a day in a folder of this machine that nobody else can read.

Processes of one machine share the folder. Several machines behind one address need requests of one browser to go to
the same one while a campaign is made.
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
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from nextlabel.errors import ConflictError, FileFormatError, NotFoundError
from nextlabel.files.delimited import DelimitedTable
from nextlabel.files.tasks import check_names
from nextlabel.service.links import LinkSigner

KEPT_S = 86_400
#: Rows that are shown before a campaign is made.
PREVIEW = 8
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that was read through once: its columns, how many rows follow the header, the first of them, and what was
    met on the way.
    """

    id: str
    name: str
    columns: list[str]
    rows: int
    first: list[list[str]]
    notes: list[str]


class UploadedFiles:
    """Files by a name that cannot be guessed."""

    def __init__(self, links: LinkSigner) -> None:
        mark = hashlib.sha256(links.sign("draft", []).encode()).hexdigest()[:16]
        self._folder = Path(tempfile.gettempdir()) / f"nextlabel-{mark}"

    def keep(self, file: IO[bytes], name: str) -> UploadedFile:
        """Read a file through and keep it; a FileFormatError says what is wrong with it."""
        table = DelimitedTable(file, "the file")
        check_names(table.columns, "the file")
        first: list[list[str]] = []
        for batch in table.batches():
            first += [list(cells) for cells in islice(zip(*batch.columns, strict=True), PREVIEW - len(first))]
        report = table.report
        if report.rows == 0:
            raise FileFormatError("the file has a header and no rows.", "Add one row for each task.")
        draft = UploadedFile(
            secrets.token_hex(16), name[:200], table.columns, report.rows, first, [f"{report.form}.", *report.notes()]
        )
        folder = self._made()
        file.seek(0)
        with (folder / f"{draft.id}.csv").open("xb") as copy:
            shutil.copyfileobj(file, copy)
        (folder / f"{draft.id}.json").write_text(json.dumps(asdict(draft)), encoding="utf-8")
        return draft

    def find(self, id: str) -> UploadedFile:
        """A draft that was kept."""
        path = self._path(id, "json")
        return UploadedFile(**json.loads(path.read_text(encoding="utf-8")))

    def open(self, draft: UploadedFile) -> IO[bytes]:
        """Its file."""
        return self._path(draft.id, "csv").open("rb")

    def drop(self, draft: UploadedFile) -> None:
        """Forget it."""
        for end in ("csv", "json"):
            (self._folder / f"{draft.id}.{end}").unlink(missing_ok=True)

    def _path(self, id: str, end: str) -> Path:
        path = self._folder / f"{id}.{end}"
        if _ID.fullmatch(id) is None or not path.is_file():
            raise NotFoundError("the file that you chose is not here any more.", "Choose it again.")
        return path

    def _made(self) -> Path:
        """The folder, ours alone, without what is old."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        about = self._folder.lstat()
        if hasattr(os, "getuid") and (
            about.st_uid != os.getuid() or about.st_mode & 0o077 or self._folder.is_symlink()
        ):
            raise ConflictError("the folder for files belongs to somebody else.", "Set TMPDIR to a folder of your own.")
        for path in self._folder.iterdir():
            if path.stat().st_mtime < time.time() - KEPT_S:
                path.unlink(missing_ok=True)
        return self._folder
