"""The rules for workers who differ, by name; ``policies.crowd.allocator`` does their work."""

from __future__ import annotations

from nextlabel.errors import InputError
from nextlabel.policies.base import Policy, ScoreTables, Setting


class CrowdPolicy(Policy):
    """A rule that looks at who has come, and so has no table by the state of the task alone."""

    in_flight = "all of it, in expectation"
    by_table = False
    knows_workers = True

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Refused: there is nobody to tell apart."""
        raise InputError(
            f"the policy {self.name} is for workers who differ, and the problem does not say who they are.",
            "Add [[workers]] tables with accuracy and supply to the problem file, or use index.",
        )


class Crowd(CrowdPolicy):
    """Follows the relaxation with a price for each type of worker, solved again as labels come in."""

    name = "crowd"
    priced = True
    planned_ahead = True
    solves_again = True


class CrowdUncertainty(CrowdPolicy):
    """The task whose truth is least certain, whoever the worker is."""

    name = "crowd-uncertainty"
