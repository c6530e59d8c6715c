"""The key that signs workers' links and cookies: in a file of its own, so that a copy of the database opens nothing.

================== =================================================================================
store              the key's place, unless ``NEXTLABEL_KEY_FILE`` names another
================== =================================================================================
SQLite             beside the database: ``labels.db.key``
PostgreSQL         ``~/.config/nextlabel/``, one file per database; machines that serve the same
                   database need the same file
memory             the process, with the store
================== =================================================================================

The file is made at the first start, for its owner alone. Without it, all links have to be made again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from nextlabel.campaign.ledger import Store
from nextlabel.errors import InputError
from nextlabel.service.settings import PREFIX
from nextlabel.store.sql import SqlStore

VARIABLE = f"{PREFIX}KEY_FILE"
#: Characters that a key must have at least.
SHORTEST = 32
#: Name of the setting that holds the key of a store in memory.
IN_MEMORY = "key"


def signing_key(store: Store, key_file: str = "") -> bytes:
    """The key of a store, made if there is none."""
    if key_file:
        return _read_or_make(Path(key_file))
    if isinstance(store, SqlStore):
        return _read_or_make(default_path(store))
    store.first_setting(IN_MEMORY, secrets.token_hex(32))
    return str(store.setting(IN_MEMORY)).encode()


def default_path(store: SqlStore) -> Path:
    """Where the key of a database is."""
    url = store.engine.url
    if store.kind == "sqlite":
        return Path(f"{url.database}.key").absolute()
    place = f"{url.host or url.query.get('host', '')}:{url.port or ''}/{url.database}"
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "nextlabel"
    with suppress(OSError):  # a folder that cannot be made is reported with the file below
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{hashlib.sha256(place.encode()).hexdigest()[:16]}.key"


def _read_or_make(path: Path) -> bytes:
    try:
        if not path.exists():
            _make(path)
        mode, key = path.stat().st_mode, path.read_bytes().strip()
    except OSError as error:
        raise InputError(
            f"the key file {path} cannot be read or made: {(error.strerror or str(error)).lower()}.",
            f"Name another one in {VARIABLE}.",
        ) from None
    if os.name == "posix" and mode & 0o007:
        raise InputError(f"the key file {path} can be read by everybody on this machine.", f"Run: chmod 600 {path}.")
    if len(key) < SHORTEST:
        raise InputError(
            f"the key file {path} has {len(key)} characters, and a key has at least {SHORTEST}.",
            "Restore it from a backup, or delete it: a new one is made, and links have to be made again.",
        )
    return key


def _make(path: Path) -> None:
    """Make the file whole or not at all; of several processes, the first one wins."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".nextlabel-key-")  # for its owner alone
    try:
        with os.fdopen(number, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
