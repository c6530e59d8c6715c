"""What all tests share: Hypothesis's profiles, a folder in memory, markers, their order, the recorded labels.

Profiles: ``ci`` is the default and repeats itself; ``HYPOTHESIS_PROFILE=thorough`` looks further.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import httpx
import pytest
from hypothesis import settings

from nextlabel.cli import output
from numerical import NUMERICAL
from order import long_modules_first

# Modules, tests and their parameters are a million objects that stay: looking through them for cycles again and again
# took a fifth of the time.
gc.set_threshold(50_000, 20, 20)

# No deadline: the first call of a kernel compiles it.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Hundreds of tests commit to databases, and each commit waits until the disk has written it; memory answers at once.
# TMPDIR names another folder. Containers often have a small /dev/shm: it has to have room.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# Keys of databases that have no file of their own (service.links) stay out of the home folder.
os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="nextlabel-config-")
atexit.register(shutil.rmtree, os.environ["XDG_CONFIG_HOME"], ignore_errors=True)

# A request that takes longer than httpx's five seconds is slow, not wrong.
waits = httpx._config.DEFAULT_TIMEOUT_CONFIG
waits.connect = waits.read = waits.write = waits.pool = 300.0

# A client reads the certificates of all authorities when it is made, 20 ms of processor, and tests make thousands.
make_context = cache(lambda made_for, **given: httpx.create_ssl_context(**given))
httpx._transports.default.create_ssl_context = lambda **given: make_context(
    (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")), **given
)

# Whether a cache is empty, or a machine slow, must not decide what a command's tests find on stderr.
logging.getLogger("nextlabel.kernels").setLevel(logging.ERROR)
output.SAY_S = 3600.0

HERE = Path(__file__).resolve().parent
#: Lines of ``rte/labels.csv``: a header and ten labels for each of 800 tasks.
RTE_ROWS = 8001


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for name in (
        "long",
        "label_studio",
        "mlflow",
    ):  # only when asked for: ``make test-long``, ``make test-mlflow``, ...
        if name not in config.getoption("markexpr"):
            left_out = [item for item in items if item.get_closest_marker(name)]
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]
    numerical = {
        path for path in {item.path for item in items} if any(path.is_relative_to(HERE / n) for n in NUMERICAL)
    }
    for item in items:
        if item.path in numerical:
            item.add_marker(pytest.mark.numerical)
        if item.get_closest_marker("slow"):
            # Tracing makes Python twice as slow; what takes long repeats lines that shorter tests run too.
            item.add_marker(pytest.mark.no_cover)
    items[:] = long_modules_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with the recorded labels (``rte/labels.csv``, ...), which carry no licence and so are not in the
    repository: ``NEXTLABEL_DATA``, or ``../shared/data`` beside the checkout."""
    folder = Path(os.environ.get("NEXTLABEL_DATA", HERE.parents[1] / "shared" / "data"))
    file = folder / "rte" / "labels.csv"
    if not file.is_file() or len(file.read_bytes().splitlines()) != RTE_ROWS:
        pytest.skip(
            f"the recorded labels (Snow et al., EMNLP 2008) that the figures are for are not at {folder}; "
            "NEXTLABEL_DATA names another folder"
        )
    return folder
