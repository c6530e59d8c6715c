"""What a study is: a name, a run that makes rows, and a drawing of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nextlabel.reporting.tables import Row
from nextlabel.simulation.engine import Engine
from nextlabel.solve.progress import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class StudyOptions:
    """How to run a study: in full or quickly, from which seed, where, and on whose data."""

    quick: bool = False
    seed: int = 0
    engine: Engine = field(default_factory=Engine)
    replications: int | None = None
    data: str | None = None
    #: Only problems with this many tasks, for the studies that take several.
    tasks: int | None = None

    def count(self, full: int, quick: int) -> int:
        """Replications to run: what the user asked for, else the study's own number."""
        return self.replications or (quick if self.quick else full)


@dataclass(frozen=True)
class ExperimentOutcome:
    """Rows of a study, all with the same keys, and what else the manifest should say."""

    rows: list[Row]
    notes: Row = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One study."""

    name: str
    about: str
    run: Callable[[StudyOptions, Progress], ExperimentOutcome]
    draw: Callable[[list[Row]], Figure]
    #: Recorded sets that it needs (``datasets``).
    sets: tuple[str, ...] = ()
