"""Workers who come in random order of their supply: the recursion over multisets of tasks, exact for tiny problems.

====== ======== ==================================================================
symbol code     meaning
====== ======== ==================================================================
s      tasks    states of all tasks, as a multiset
n      supply   labels that each type can still give
u      budget   labels that may still be bought
R      worth    what a task in a state is worth when nothing more comes
====== ======== ==================================================================

All orders are alike, so that the next worker is of type m with probability n_m / sum n. They may be turned away, which
uses no budget; labels come in at once.

    W(s, n, u) = sum_m (n_m / sum n) max{ W(s, n - e_m, u),
                                          max_x -cost_m + sum_y P(y | x, m) W(s after y on x, n - e_m, u - 1) }

and W = sum_x R(x) when no worker or no budget is left. A policy takes its own choice in place of the maximum.
Guarantee: exact up to rounding. Cost: one value for each multiset, supply and budget that can occur; they grow very
fast with the arrivals, and more than ``most_states`` are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nextlabel.errors import TooLargeError


class Turn(NamedTuple):
    """A worker of type ``m`` is here: what turning them away is worth, and what giving them a task in a state is."""

    tasks: tuple[Any, ...]
    supply: tuple[int, ...]
    budget: int
    m: int
    wait: Callable[[], float]
    give: Callable[[Any], float]


def best(turn: Turn) -> float:
    """The optimal choice."""
    return max(turn.wait(), *(turn.give(x) for x in dict.fromkeys(turn.tasks)))


@dataclass(slots=True)
class RandomOrder:
    """The recursion, with every value kept; ``after`` has the answers of a type in a state with where they lead."""

    worth: Callable[[Any], float]
    after: Callable[[Any, int], Sequence[tuple[float, Any]]]
    cost: Sequence[float]
    most_states: int
    choose: Callable[[Turn], float] = best
    known: dict[tuple[tuple[Any, ...], tuple[int, ...], int], float] = field(default_factory=dict)

    def value(self, tasks: tuple[Any, ...], supply: tuple[int, ...], budget: int) -> float:
        """W; ``tasks`` are in order."""
        if not budget or not any(supply):
            return sum(map(self.worth, tasks))
        state = tasks, supply, budget
        if state not in self.known:
            total = sum(left * self._turn(m, *state) for m, left in enumerate(supply) if left)
            if len(self.known) >= self.most_states:
                raise TooLargeError(
                    f"the problem has more than {self.most_states:,} joint states of tasks and workers.",
                    "Use fewer tasks, types or labels, or bound instead of exact.",
                )
            self.known[state] = total / sum(supply)
        return self.known[state]

    def _turn(self, m: int, tasks: tuple[Any, ...], supply: tuple[int, ...], budget: int) -> float:
        rest = (*supply[:m], supply[m] - 1, *supply[m + 1 :])

        def give(x: Any) -> float:
            k, worth = tasks.index(x), -float(self.cost[m])
            for chance, y in self.after(x, m):
                worth += chance * self.value(tuple(sorted((*tasks[:k], y, *tasks[k + 1 :]))), rest, budget - 1)
            return worth

        return self.choose(Turn(tasks, supply, budget, m, lambda: self.value(tasks, rest, budget), give))
