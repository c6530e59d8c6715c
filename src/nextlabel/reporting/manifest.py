"""What is needed to make the same digits again: command, seed, commit, versions, CPU and BLAS kernel."""

from __future__ import annotations

import platform
import subprocess
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

#: Packages whose version can change a digit or a picture.
PACKAGES = ("numpy", "scipy", "numba", "joblib", "distributed", "matplotlib")


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
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
