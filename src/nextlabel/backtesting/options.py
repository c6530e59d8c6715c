"""How labels are replayed and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nextlabel.backtesting.readout import READOUTS
from nextlabel.backtesting.replays import ARRIVALS, AT_ONCE_RATE
from nextlabel.errors import InputError
from nextlabel.simulation.replay import ORDERS, TIES


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """How labels are replayed and judged.

    ``pilot`` tasks are held out to learn the prior by ``method`` ("moments", "ml" or "mixture"), unless a prior is
    given. With the usual rates labels come back at once; ``order`` of a task's labels: "random", "file" or "reversed";
    ``ties`` count "half", or are decided "positive" or "negative"; ``readouts``: "posterior", "majority",
    "dawid-skene".
    """

    pilot: int = 50
    method: str = "moments"
    arrival_rate: float = ARRIVALS
    completion_rate: float = AT_ONCE_RATE
    order: str = "random"
    ties: str = "half"
    readouts: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for what, given, known in (("order", self.order, ORDERS), ("ties", self.ties, TIES)):
            if given not in known:
                raise InputError(f"{what} {given!r} is not known.", f"Use one of {', '.join(known)}.")
        for name in self.readouts or ():
            if name not in READOUTS:
                raise InputError(f"read-out {name!r} is not known.", f"Use one of {', '.join(READOUTS)}.")
        each_once("read-out", self.readouts or ())


def each_once(what: str, names: Sequence[str]) -> None:
    """Refuse a name that is given twice."""
    for name in names:
        if list(names).count(name) > 1:
            raise InputError(f"{what} {name!r} is given twice.", "Give each one once.")
