"""What an index table says: the index of every state, by class, arrivals left and time; kept in one file.

=========== ========= ================== ==================================================================
symbol      code      shape              meaning
=========== ========= ================== ==================================================================
lam*        rows      (n, states, layers) greatest price at which 'assign' is optimal, n arrivals left
tau_k       tau       (layers,)          time left (one layer, inf, when T is infinite); with ``spare`` -x instead
--          beyond    (w, nodes)         index past the cap: no-delay continuation, any n
=========== ========= ================== ==================================================================

``solve.index.table`` makes it and says how exact it is.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.simplex import node_of_counts, simplex
from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.kernels.inputs import make_grid
from nextlabel.solve.core_states import core_columns, over_own_lattice
from nextlabel.solve.index import spare as spare_time

FORMAT = "nextlabel index table 1"
#: Of tables with layers of time to spare, which earlier versions cannot read.
SPARE_FORMAT = "nextlabel index table 2"


@dataclass(frozen=True, slots=True)
class ClassIndex:
    """Index rows of one class, on its lumped lattice."""

    first: Ints
    node_of: Ints
    rows: Floats
    beyond: Floats
    cap: int
    flight: int
    settled: int
    error: float
    answers: int = 2
    #: No root above these was missed (``proof``).
    proved: bool = False

    def times(self, factor: float) -> ClassIndex:
        """The indices in another unit."""
        return replace(self, rows=factor * self.rows, beyond=factor * self.beyond, error=factor * self.error)

    def core(self, flight: int, own: Ints) -> Ints:
        """(flight + 1, nodes) column of ``rows`` of [w, node] over the class's own lattice, -1 where there is none."""
        return core_columns(self.first, self.node_of, self.cap, self.flight, flight, own)

    def dense_beyond(self, flight: int, own: Ints) -> Floats:
        """(flight + 1, nodes) the index of [w, node] past the cap, over the class's own lattice; 0 where it ends."""
        return over_own_lattice(self.beyond, self.first, self.node_of, flight, own)

    def dense(self, n: int, layer: int, labels: int) -> Floats:
        """(labels + 1, nodes) index of [w, node] over the class's own lattice of depth ``labels``."""
        own = simplex(self.answers, labels)[0]
        out = self.dense_beyond(labels, own)
        core = self.core(labels, own)
        inside = core >= 0
        out[inside] = self.rows[min(n, len(self.rows)) - 1, core[inside], layer]
        return out

    def at(self, n: int, layer: int, node: int, w: int) -> float:
        """Index of one state (node of the class's own lattice)."""
        if node >= len(self.node_of):
            return 0.0
        i = int(self.node_of[node])
        level = int(np.searchsorted(self.first, i, side="right")) - 1
        if w < self.flight and level + w < self.cap:
            off = make_grid(self.first, self.cap, self.flight).off
            return float(self.rows[min(n, len(self.rows)) - 1, off[w] + i, layer])
        return float(self.beyond[min(w, len(self.beyond) - 1), i])


@dataclass(frozen=True, slots=True)
class IndexTable:
    """Indices of all classes of a problem."""

    tau: Floats
    classes: tuple[ClassIndex, ...]
    budget: int
    left: int
    #: If there is a deadline after the last arrival: what the layers ``tau`` stand for.
    spare: spare_time.Spare | None = None

    @property
    def settled(self) -> int:
        """Arrivals left from which no row changes any more."""
        return max(c.settled for c in self.classes)

    @property
    def error(self) -> float:
        """Estimated error of the indices (layers of time; finite horizon)."""
        return max(c.error for c in self.classes)

    @property
    def proved(self) -> bool:
        """Whether every index up to the cap is proved to be the greatest root, and not just the greatest one found."""
        return all(c.proved for c in self.classes)

    def index(self, c: int, counts: Sequence[int], w: int, n: int, tau: float = math.inf) -> float:
        """Index of class ``c``, w labels in flight, n arrivals and time tau left.

        ``counts`` are the labels come in: (ones, zeros), or one number an answer if there are more than two.
        """
        if len(counts) != self.classes[c].answers:
            raise ProblemError(
                f"the state has {len(counts)} counts for {self.classes[c].answers} answers.",
                "Give the number of labels of each answer.",
            )
        if not 1 <= n <= self.left:
            raise ProblemError(f"the table has no row for {n} arrivals left.", f"Ask for 1 to {self.left}.")
        node = node_of_counts(counts)
        if self.spare is not None and self.spare.at(n, tau) < self.tau[0] * (1.0 + 1e-9):
            raise ProblemError(
                f"the table has no entry for {n} arrivals left and a time of {tau:g}: a campaign that starts with the "
                f"whole budget and horizon does not come there.",
                f"Solve the table for a budget of {n} and a horizon of {tau:g}.",
            )
        k, share = self._layer(n, tau)
        left = self.classes[c].at(n, k, node, w)
        return left if share == 0.0 else (1.0 - share) * left + share * self.classes[c].at(n, k + 1, node, w)

    def policy_index(self, c: int, n: int, tau: float) -> Floats:
        """(U + 1, nodes) index of [w, node] for ``solve.exact.index_value``."""
        k, share = self._layer(n, tau)
        left = self.classes[c].dense(n, k, self.budget)
        return left if share == 0.0 else (1.0 - share) * left + share * self.classes[c].dense(n, k + 1, self.budget)

    def save(self, path: str | Path) -> None:
        """Write the table to one file (NumPy archive), whole or not at all."""
        path = Path(path)
        arrays: dict[str, np.ndarray] = {"tau": self.tau}
        form = FORMAT if self.spare is None else SPARE_FORMAT
        meta: dict[str, object] = {"format": form, "budget": self.budget, "left": self.left, "classes": []}
        if self.spare is not None:
            meta["spare"] = [self.spare.arrivals, self.spare.rate]
        entries = []
        for c, one in enumerate(self.classes):
            for name in ("first", "node_of", "rows", "beyond"):
                arrays[f"{name}_{c}"] = getattr(one, name)
            names = ("cap", "flight", "settled", "error", "answers", "proved")
            entries.append({name: getattr(one, name) for name in names})
        meta["classes"] = entries
        arrays["meta"] = np.array(json.dumps(meta))
        try:
            handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            raise FileFormatError(
                f"cannot write {path}: {error.strerror}.", "Give a path in a folder that exists."
            ) from error
        try:
            with os.fdopen(handle, "wb") as stream:
                np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
            os.replace(partial, path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | Path) -> IndexTable:
        """Read a table that ``save`` wrote."""
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as data:
                meta = json.loads(str(data["meta"]))
                if meta["format"] not in (FORMAT, SPARE_FORMAT):
                    raise FileFormatError(
                        f"{path} has the format {meta['format']!r}.",
                        f"This version reads {FORMAT!r} and {SPARE_FORMAT!r}.",
                    )
                spare = spare_time.Spare(*map(float, meta["spare"])) if "spare" in meta else None
                classes = tuple(
                    ClassIndex(
                        data[f"first_{c}"], data[f"node_of_{c}"], data[f"rows_{c}"], data[f"beyond_{c}"], **entry
                    )
                    for c, entry in enumerate(meta["classes"])
                )
                return cls(data["tau"], classes, int(meta["budget"]), int(meta["left"]), spare)
        except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
            raise FileFormatError(f"{path} is not an index table.", "Make one with nextlabel index --save.") from error

    def _layer(self, n: int, tau: float) -> tuple[int, float]:
        """Layer at or below ``tau``, with n arrivals left, and the share of the next one."""
        if len(self.tau) == 1:
            return 0, 0.0
        if self.spare is not None:
            tau = self.spare.at(n, tau)
        k = min(max(int(np.searchsorted(self.tau, tau, side="right")) - 1, 0), len(self.tau) - 2)
        return k, float(min(max((tau - self.tau[k]) / (self.tau[k + 1] - self.tau[k]), 0.0), 1.0))
