"""What a study leaves behind: a figure, a table and a manifest, each whole or not there at all."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import os
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nextlabel.errors import InputError
from nextlabel.experiments.study import ExperimentOutcome, Row, StudyOptions
from nextlabel.simulation.report import write_csv
from nextlabel.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIBRARIES = ("numpy", "scipy", "numba", "joblib", "matplotlib")
DPI, COLOURS = 110, 128


def make_folder(out: str | Path) -> Path:
    """The folder to write to, made if need be, refused before any work is done if nothing can be written there."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}.", "Give another --out DIR.") from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"nothing can be written to {folder}.", "Give another --out DIR.")
    return folder


def write(folder: Path, name: str, outcome: ExperimentOutcome, figure: Figure, manifest: Row) -> list[Path]:
    """``name``.png, ``name``.csv and manifest.json: written beside their place and moved there when all are done."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".nextlabel-") as scratch:
        partial = Path(scratch)
        save_png(figure, partial / f"{name}.png")
        rows = [{key: _cell(value) for key, value in row.items()} for row in outcome.rows]
        write_csv(rows, partial / f"{name}.csv")
        text = json.dumps({**manifest, **outcome.notes}, indent=2, default=str)
        (partial / "manifest.json").write_text(text + "\n", encoding="utf-8")
        files = [folder / f"{name}.png", folder / f"{name}.csv", folder / "manifest.json"]
        for file in files:
            (partial / file.name).replace(file)
    return files


def save_png(figure: Figure, path: Path) -> None:
    """A PNG with a palette: a third of the size, and no eye can tell."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=DPI, metadata={"Software": None})
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, format="PNG", optimize=True)


def read_rows(path: str | Path) -> list[Row]:
    """Rows of a study's table, numbers as numbers, empty cells as None."""
    with Path(path).open(newline="", encoding="utf-8") as stream:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(stream)]


def manifest(name: str, config: StudyOptions, command: str, seconds: float) -> Row:
    """Versions, seed, command and time."""
    return {
        "study": name,
        "command": command,
        "seed": config.seed,
        "quick": config.quick,
        "jobs": config.engine.jobs,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "versions": {
            "nextlabel": __version__,
            "python": platform.python_version(),
            **{library: importlib.metadata.version(library) for library in LIBRARIES},
        },
    }


def _cell(value: object) -> object:
    if value is None:
        return ""
    return f"{value:.8g}" if isinstance(value, float) else value


def _value(text: str) -> object:
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
