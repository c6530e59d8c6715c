"""What studies share: their options and outcome, who takes part, recorded sets of labels, and lines of figures.

The recorded labels of the paper's second experiment and ours are ``labels.csv`` and ``gold.csv`` of a set. The order
of their rows is kept: it is a task's 'file order'. RTE, TEMP and MRE are not part of this package: ``SOURCE`` says
where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.labels import read_gold, read_labels
from nextlabel.model.problem import Problem
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.index import Index
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import in_order
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.replay import CrowdRecord
from nextlabel.solve.index import index_table
from nextlabel.solve.progress import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Index accuracy that simulations need.
TOLERANCE = 1e-6

#: Sets of the paper's second experiment, and those whose workers are replayed.
SETS, CROWDS = ("rte", "temp"), ("rte", "temp", "mre")

SOURCE = (
    "RTE and TEMP are those of Snow, O'Connor, Jurafsky and Ng, 'Cheap and Fast - But is it Good?' (EMNLP 2008), MRE "
    "is the medical relation extraction of CrowdTruth (Dumitrache and others, 2018): save each as labels.csv (task, "
    "worker, label; MRE also started, submitted, batch) and gold.csv (task, label) in rte/, temp/ and mre/ of one "
    "folder, and give it with --data DIR."
)


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
    #: CrowdRecord sets that it needs (``datasets``).
    sets: tuple[str, ...] = ()


class Shared(Policy):
    """A policy whose tables are made once for each problem and used again by every run on it."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        for trait in Policy.__annotations__:
            setattr(self, trait, getattr(policy, trait))
        self._made: dict[tuple[Problem, int, int], list[ScoreTables]] = {}

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """The held policy's tables."""
        key = (setting.problem, setting.depth, setting.flight)
        if key not in self._made:
            self._made[key] = self.policy.scores(setting)
        return self._made[key]


def names(*, planned: bool = True, drawn: bool = True) -> list[str]:
    """Every policy but those that solve again, the index first; without those that plan ahead or draw, if so said."""
    some = [p for p in POLICIES.values() if not p.solves_again and planned >= p.planned_ahead and drawn >= p.draws]
    return sorted((policy.name for policy in some), key=lambda name: (name != "index", name))


def shared(policies: Iterable[str], index: Policy | None = None) -> list[Policy]:
    """The policies by name, tables shared between runs; ``index`` in the place of the usual index policy."""
    return [Shared(index if name == "index" and index is not None else make_policy(name)) for name in policies]


def index_for(problem: Problem, cap: int | None = None) -> Index:
    """The index policy with a table solved for the largest problem of a family: rows of small n serve them all."""
    return Index(index_table(problem, cap=cap, tolerance=TOLERANCE))


def pick(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def values_of(rows: Sequence[Row], key: str) -> list[Any]:
    """Distinct values in the order of their first row."""
    return list(dict.fromkeys(row[key] for row in rows))


def legend_beside(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend for all axes, right of them."""
    found: dict[str, Any] = {}
    for one in axes:
        handles, labels = one.get_legend_handles_labels()
        found.update(dict(zip(labels, handles, strict=True)))
    order = in_order(found)
    figure.legend([found[name] for name in order], order, loc="outside right center")


def draw_line(axes: Axes, rows: Sequence[Row], x: str, y: str, half: str, shift: float = 1.0, **more: Any) -> None:
    """A policy's curve with its 95% intervals."""
    axes.errorbar(
        [row[x] * shift for row in rows], [row[y] for row in rows], yerr=[row[half] or 0.0 for row in rows],
        capsize=2, elinewidth=1, **more,
    )  # fmt: skip


def check_set(data: str | Path | None, name: str) -> Path:
    """The folder of the set called ``name`` below the folder ``data``; refused if a file is missing."""
    if data is None:
        raise InputError(f"the labels of {name.upper()} are needed and no folder is given.", SOURCE)
    folder = Path(data) / name
    for file in ("labels.csv", "gold.csv"):
        if not (folder / file).is_file():
            raise FileFormatError(f"there is no file {folder / file}.", SOURCE)
    return folder


def find_set(data: str | Path | None, name: str) -> CrowdRecord:
    """The labels of a set with their workers and the truth, and with their times if it has them."""
    folder = check_set(data, name)
    table = read_labels(folder / "labels.csv")
    return CrowdRecord.from_table(table, read_gold(folder / "gold.csv", table).label)
