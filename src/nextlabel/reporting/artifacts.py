"""What a run leaves in a folder: tables, figures and a manifest, all of them or none."""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nextlabel.errors import InputError
from nextlabel.files.write import write_csv
from nextlabel.reporting.style import needs_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI, COLOURS = 110, 128
Row = dict[str, Any]

#: Packages whose version can change a digit or a picture.
PACKAGES = ("numpy", "scipy", "numba", "joblib", "distributed", "matplotlib")


def check_folder(folder: str | Path) -> Path:
    """Refuse, before any work is done, a folder that cannot be written to, and figures that cannot be drawn."""
    needs_figures()
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is not a folder.", "Give the name of a folder to write to.")
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError(f"{path} cannot be written to.", "Give another folder.")
    return path


def write_files(folder: Path, files: Mapping[str, Any]) -> list[Path]:
    """Rows to ``*.csv``, figures to ``*.png``, mappings to ``*.json``: moved to ``folder`` when all are complete."""
    check_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, prefix=".nextlabel-") as scratch:
            partial = Path(scratch)
            for name, content in files.items():
                _write(content, partial / name)
            folder.mkdir(exist_ok=True)
            return [(partial / name).replace(folder / name) for name in files]
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}.", "Give another folder.") from error


def save_png(figure: Figure, path: Path) -> None:
    """A PNG with a palette: a third of the size, and no eye can tell."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=DPI, metadata={"Software": None})
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, format="PNG", optimize=True)


def _write(content: Any, path: Path) -> None:
    if path.suffix == ".csv":
        write_csv(content, path)
    elif path.suffix == ".png":
        save_png(content, path)
    else:
        path.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")


def to_eight_digits(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows with floats shortened to eight significant digits, for files that are committed."""
    return [{key: f"{x:.8g}" if isinstance(x, float) else x for key, x in row.items()} for row in rows]


def manifest(*, command: str, seed: int, started: datetime, seconds: float, **more: Any) -> dict[str, Any]:
    """The manifest of one run; ``more`` is what the run itself has to say."""
    return {
        "command": command,
        "seed": seed,
        **more,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu(),
        "blas": blas_kernels(),
        "versions": versions(),
    }


def commit() -> str | None:
    """The commit of this source tree, with ``-dirty`` if files were changed since; None for an installed package."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / ".git").exists():
        return None
    call = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(call, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def cpu() -> str:
    """The processor's own name, or its architecture where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def blas_kernels() -> list[str]:
    """Library, version and kernel of every BLAS in use: another kernel may change the last bits of a sum."""
    import scipy.linalg  # noqa: F401  (SciPy brings a BLAS of its own)
    from threadpoolctl import threadpool_info

    found = [info for info in threadpool_info() if info["user_api"] == "blas"]
    return sorted(
        {f"{info['internal_api']} {info['version']} {info.get('architecture', '')}".strip() for info in found}
    )


def versions() -> dict[str, str]:
    """Versions of nextlabel and of the packages that are installed."""
    from nextlabel.version import __version__

    found = {"nextlabel": __version__}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
