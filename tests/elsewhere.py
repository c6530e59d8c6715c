"""``make test-elsewhere``: the numerical tests once more, as other machines would run them.

A machine differs from this one in the instructions that Numba may use and in the BLAS kernel that OpenBLAS picks for
its processor; both move last bits. So the tests that could notice run again: those marked ``numerical`` (by file, in
``tests/numerical.py``, which says why these) and not ``slow``. Commands, plans, backtests and campaigns are made of
what these tests run; most of the time goes into compiling the kernels once more. They run

- in code that Numba compiled for any x86-64 (``NUMBA_CPU_NAME=generic``, with a cache folder of its own), together with
  OpenBLAS's oldest kernel: the machine that is least like this one;
- with every other OpenBLAS kernel that this processor can run and that ``make test`` has not used here: those of them
  that reach code that multiplies matrices. Compiled kernels do not, so neither do index tables and sweeps of one task.

``python tests/elsewhere.py [--list] [--workers N] [PYTEST OPTIONS]``
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from numerical import NUMERICAL, WITH_BLAS

ROOT = Path(__file__).resolve().parent.parent
#: OpenBLAS's name of a kernel, and the processor flags that it needs, from the oldest to the newest.
CORES = {
    "PRESCOTT": {"pni"},
    "HASWELL": {"avx2", "fma"},
    "ZEN": {"avx2", "fma"},
    "SKYLAKEX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
}
TESTS = "numerical and not slow"
ASK = (
    "import numpy, scipy.linalg, threadpoolctl;"
    "print(*sorted({i['architecture'] for i in threadpoolctl.threadpool_info() if i['user_api'] == 'blas'}))"
)


class Machine(NamedTuple):
    """One way to run the tests: what it is called, the environment that makes it, where the tests are."""

    name: str
    environment: dict[str, str]
    places: tuple[str, ...]


def flags() -> set[str]:
    """What this processor can do, by Linux's names; empty where the system does not tell."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    return next((set(line.split(":", 1)[1].split()) for line in text.splitlines() if line.startswith("flags")), set())


def kernel(environment: dict[str, str]) -> str:
    """The BLAS kernels that NumPy and SciPy load in this environment, by OpenBLAS's own account."""
    command = [sys.executable, "-c", ASK]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def machines(cache: Path) -> list[Machine]:
    """The machines to play, each with a BLAS kernel that no earlier one and not ``make test`` has had."""
    here, able = kernel({}), flags()
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
    found, seen = [], {here}
    print(f"this machine: BLAS kernel {here}", flush=True)
    for name, needed in CORES.items():
        environment = {"OPENBLAS_CORETYPE": name}
        loaded = kernel(environment) if needed <= able else ""
        if not needed <= able:
            print(f"{name}: left out, this processor has no {', '.join(sorted(needed - able))}", flush=True)
        elif not found:
            found.append(Machine(f"generic code, {name} ({loaded})", environment | generic, NUMERICAL))
        elif loaded in seen:
            print(f"{name}: left out, OpenBLAS loads {loaded} for it, which has run already", flush=True)
        else:
            found.append(Machine(f"{name} ({loaded})", environment, WITH_BLAS))
        seen.add(loaded)
    return found


def main() -> int:
    """Run the tests on each machine; the exit status of the first that fails."""
    parser = argparse.ArgumentParser(description="The numerical tests as other machines would run them.")
    parser.add_argument("--list", action="store_true", help="name the machines and run nothing")
    parser.add_argument("--workers", default="auto", help="processes of pytest-xdist (auto)")
    options, more = parser.parse_known_args()
    status = 0
    times = []
    with tempfile.TemporaryDirectory(prefix="nextlabel-generic-") as cache:
        for machine in machines(Path(cache)):
            print(f"\n=== {machine.name}: tests marked '{TESTS}' in {', '.join(machine.places)}", flush=True)
            if options.list:
                continue
            command = [sys.executable, "-m", "pytest", "-q", "-n", options.workers, "--dist", "worksteal"]
            began = time.monotonic()
            code = subprocess.run(
                [*command, "-m", TESTS, *(f"tests/{place}" for place in machine.places), *more],
                cwd=ROOT,
                env=os.environ | machine.environment,
            ).returncode
            times.append(f"{machine.name}: {'passed' if code == 0 else 'FAILED'} in {time.monotonic() - began:.0f} s")
            status = status or code
    print("\n" + "\n".join(times), flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
