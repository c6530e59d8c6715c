"""What a run leaves in a folder: tables, figures and a manifest, all of them or none."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nextlabel.errors import InputError
from nextlabel.files.write import write_csv
from nextlabel.reporting.style import needs_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI, COLOURS = 110, 128


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
