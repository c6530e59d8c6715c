"""What a worker may be like before a label of theirs is seen, and how frequent each truth may be.

====== ======= ======== ===========================================================
symbol code    shape    meaning
====== ======= ======== ===========================================================
a      pseudo  (C, C)   Dirichlet pseudo-counts of a channel: row = truth
b      share   (C,)     pseudo-tasks of each truth
k      hold    --       labels that each row's mean is worth while the crowd is learnt; inf: the crowd is known
====== ======= ======== ===========================================================

    row c of a channel ~ Dirichlet(a[c, :]),        shares of the truths ~ Dirichlet(b)

The default is weak and says that people are right more often than not: each row is worth six labels, four of them
right. Far weaker, and few labels make saints and liars of strangers; far stronger, and good workers go unnoticed.
A fit learns the mean of each row, what this crowd is like, held to the default as if that had been seen in ``hold`` =
60 labels. A worker's rows are shrunk towards the worker's own coin and towards that mean (``kernels.crowd_fit``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import InputError
from nextlabel.kernels.crowd_fit import HOLD

#: Pseudo-counts of right and of wrong answers in a row of a channel, and pseudo-tasks in all.
RIGHT, WRONG, TASKS = 4.0, 2.0, 10.0


@dataclass(frozen=True, slots=True, eq=False)
class CrowdPrior:
    """Dirichlet weights of a channel's rows (``pseudo``) and of the shares of the truths (``share``).

    A prior of one's own is taken as known unless ``hold`` says how many labels it is worth.
    """

    pseudo: Floats
    share: Floats
    hold: float = math.inf

    def __post_init__(self) -> None:
        pseudo, share = np.asarray(self.pseudo, dtype=np.float64), np.asarray(self.share, dtype=np.float64)
        C = share.size
        if share.ndim != 1 or C < 2 or pseudo.shape != (C, C):
            raise InputError(
                f"pseudo has the shape {pseudo.shape} and share the shape {share.shape}.",
                "For C answers (two or more) give C x C pseudo-counts and C pseudo-tasks.",
            )
        if not (np.isfinite(pseudo).all() and np.isfinite(share).all() and (pseudo > 0).all() and (share > 0).all()):
            raise InputError("a pseudo-count is not a positive number.", "Give positive, finite pseudo-counts.")
        if not self.hold >= 0:
            raise InputError(f"hold is {self.hold}.", "Give the number of labels, 0 or more, or inf.")
        object.__setattr__(self, "pseudo", pseudo)
        object.__setattr__(self, "share", share)

    @classmethod
    def default(cls, answers: int) -> CrowdPrior:
        """Each row worth six labels, four of them right; all truths alike, worth ten tasks.

        >>> CrowdPrior.default(2).pseudo.tolist()
        [[4.0, 2.0], [2.0, 4.0]]
        """
        if answers < 2:
            raise InputError(f"there is one answer to learn from: {answers}.", "Give labels with two answers or more.")
        pseudo = np.full((answers, answers), WRONG / (answers - 1))
        np.fill_diagonal(pseudo, RIGHT)
        return cls(pseudo, np.full(answers, TASKS / answers), HOLD)

    @property
    def answers(self) -> int:
        """Number of answers."""
        return int(self.share.size)
