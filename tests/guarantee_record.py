"""Check a guarantee's record as a stranger would: by the script of 40 lines, which knows nothing of nextlabel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[1] / "examples" / "guarantee" / "check.py"


def proved(record: dict[str, Any] | Path, folder: Path, *flags: str) -> str:
    """What the script says of a record, or of a file with one; without the site's packages."""
    if isinstance(record, dict):
        file = folder / "checked.json"
        file.write_text(json.dumps(record))
    else:
        file = record
    call = [sys.executable, "-I", "-S", str(SCRIPT), str(file), *flags]
    made = subprocess.run(call, capture_output=True, text=True, check=False)
    return made.stdout if made.returncode == 0 else made.stderr
