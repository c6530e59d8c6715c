"""What a backtest found."""

from __future__ import annotations

from dataclasses import dataclass, field

from nextlabel.backtesting.pilot import PilotFit
from nextlabel.backtesting.replays import BacktestSetup
from nextlabel.backtesting.savings import Saving
from nextlabel.problem.estimate import Estimate


@dataclass(frozen=True, slots=True)
class PolicyAccuracy:
    """One policy with one budget and one read-out."""

    policy: str
    readout: str
    budget: int
    labels_per_task: float
    labels_used: float
    accuracy: Estimate
    #: Accuracy less the index's, and less the first policy's, on the same tasks in the same replications.
    minus_index: Estimate | None
    minus_first: Estimate | None
    #: The accuracy that the model behind the read-out expects after these labels; None for votes.
    believed: float | None
    asked: bool


@dataclass(frozen=True, slots=True)
class Backtest:
    """Curves, fixed overlaps, the ceiling, and labels saved."""

    setting: BacktestSetup = field(repr=False)
    pilot: PilotFit = field(repr=False)
    truth: str
    known: int
    undecided: int
    ties: str
    policies: tuple[str, ...]
    #: Policies that choose without looking at the prior.
    without_prior: tuple[str, ...]
    readouts: tuple[str, ...]
    points: tuple[PolicyAccuracy, ...] = field(repr=False)
    overlaps: tuple[PolicyAccuracy, ...] = field(repr=False)
    ceilings: dict[str, float]
    savings: tuple[Saving, ...] = field(repr=False)
    replications: int
    seconds: float
    #: Workers who gave the labels; None if that is not known.
    workers: int | None = None
    #: Policies that learn workers, the replay that they were in, and whether they could turn workers away.
    crowd: tuple[str, ...] = ()
    replay: str = "task-first"
    turn_away: bool = False
    #: Whether a policy or a read-out looks at prior and threshold.
    uses_prior: bool = True

    def __str__(self) -> str:
        from nextlabel.backtesting.tables import backtest_text

        return backtest_text(self)

    def _repr_html_(self) -> str:
        from nextlabel.backtesting.tables import backtest_html

        return backtest_html(self)

    @property
    def tasks(self) -> int:
        """K."""
        return len(self.setting.recorded)

    @property
    def rho(self) -> float:
        """Labels in flight; 0 where they come back at once."""
        rho = self.setting.arrival_rate / self.setting.completion_rate
        return 0.0 if rho < 1e-3 else rho

    def find(self, readout: str, policy: str, budget: int) -> PolicyAccuracy | None:
        """The accuracy of one policy with one budget, if it was played."""
        for one in self.points:
            if (one.readout, one.policy, one.budget) == (readout, policy, budget):
                return one
        return None
