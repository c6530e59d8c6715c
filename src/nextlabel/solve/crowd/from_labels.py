"""What any rule can still do with more labels of workers whose labels are recorded: the bound after the first labels.

======== ========= ======================================================================================
symbol   code      meaning
======== ========= ======================================================================================
A        channels  a whole crowd drawn from the posterior (``crowd.sampler``): channels and shares of the truths
p_x(A)   beliefs   what the recorded labels say about each task if that is the crowd
U        budget    labels still to buy
N        arrivals  workers still to come; worker j is one of them in N n_j / n cases, as in the record
======== ========= ======================================================================================

    E[ bound(A, p(A), U, N n_j / n) ]  <=  mean over the crowds drawn  +  t sd / sqrt(D)     (``averaged``)

The supply of a worker is random, and its mean is charged, which holds because it does not depend on the rule. With
N = U every arrival is given a task, with more a rule may turn workers away. Beliefs keep the channels as drawn; for
labels to come, near-equal workers are rounded to a better one where there are very many (``rounding``).
Guarantee: a confidence limit of the bound if the model is right: answers independent given the truth, the crowd's
prior as learnt from these labels, no better workers than these to come. ``converged`` says whether the chains that
drew the crowds agree; if not, nothing is guaranteed. Cost: some thousand passes over the labels, and one relaxation for
each crowd.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.crowd.fit import CrowdLabels, crowd_labels, fit_crowd
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.crowd.sampler import CrowdSample, sample_crowds
from nextlabel.errors import InputError
from nextlabel.files.labels import Gold, LabelTable, as_label_table, read_gold
from nextlabel.files.tables import Frame
from nextlabel.problem.tasks import whole
from nextlabel.solve.crowd.bound import CONFIDENCE, Crowd, average_bounds, few_types
from nextlabel.solve.crowd.relaxation import Types
from nextlabel.solve.progress import Progress

#: One crowd in so many of the sample is bounded, because each takes a relaxation.
EVERY = 3
#: Sweeps between two crowds; the longer ones if the chains do not agree after the shorter.
SWEEPS = (20, 100)
#: The share of the time that drawing takes, for the progress bar.
DRAWING = 0.2


@dataclass(frozen=True, slots=True)
class BoundFromLabels:
    """No rule gets more than ``per_task`` of the tasks right in expectation with ``budget`` more labels.

    ``now`` is the share expected to be right without them. ``confidence`` is that of the limit, which is of the mean
    over ``crowds`` crowds; ``r_hat`` and ``effective`` say how well the chains that drew them agree.
    """

    per_task: float
    value: float
    mean: float
    now: float
    budget: int
    arrivals: int
    price: float
    crowds: int
    r_hat: float
    effective: float
    converged: bool
    confidence: float
    assumes: str
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def sentences(self) -> list[str]:
        """What may be said of it."""
        out = [
            f"With {self.budget:,} more labels of these workers no rule gets more than {self.per_task:.2%} of the "
            f"tasks right in expectation (now {self.now:.2%}), if the model holds. {self.assumes}"
        ]
        if not self.converged:
            out.append(
                f"The chains that drew these crowds do not agree (R-hat {self.r_hat:.3g}, {self.effective:.0f} "
                "effective draws): do not rely on this bound."
            )
        return out


def bound_from_labels(
    labels: LabelTable | str | os.PathLike[str] | Frame,
    budget: int,
    gold: Gold | str | os.PathLike[str] | Frame | None = None,
    *,
    arrivals: int | None = None,
    prior: CrowdPrior | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> BoundFromLabels:
    """Bound what ``budget`` more labels can do, from the labels given so far and who gave them.

    ``labels`` and ``gold`` are as in ``learn_crowd``. ``arrivals`` is the number of workers still to come, who come as
    often as they did; by default as many as labels, so that nobody can be turned away. Without a ``prior`` that of the
    crowd as learnt from the labels is taken.
    """
    whole("budget", budget, 1, "Give the number of labels still to buy, e.g. --budget 1000.")
    coming = budget if arrivals is None else arrivals
    whole("arrivals", coming, 1, "Give the number of workers still to come, e.g. --arrivals 2000.")
    if coming < budget:
        raise InputError(
            f"{coming:,} arrivals cannot give {budget:,} labels.", "Give at least as many arrivals as labels to buy."
        )
    table = as_label_table(labels)
    known = gold if gold is None or isinstance(gold, Gold) else read_gold(gold, table)
    data = crowd_labels(table)
    truth = np.full(data.tasks, -1, dtype=np.int64) if known is None else known.label
    return bound_from_crowd_labels(data, truth, budget, arrivals=coming, prior=prior, seed=seed, progress=progress)


def bound_from_crowd_labels(
    data: CrowdLabels,
    truth: Ints,
    budget: int,
    *,
    arrivals: int,
    prior: CrowdPrior | None = None,
    every: int = EVERY,
    seed: int = 0,
    progress: Progress | None = None,
) -> BoundFromLabels:
    """The same from labels by number, tasks without labels among them; one crowd in ``every`` is bounded."""
    begin, coming = perf_counter(), arrivals
    sample = _draw(data, truth, prior or fit_crowd(data, truth).prior, seed)
    share = np.bincount(data.worker, minlength=data.workers) / len(data.task)
    members, free = np.ones(data.tasks), np.zeros(data.workers)
    crowds = [
        Crowd(sample.beliefs[d], members, few_types(Types(sample.channels[d], coming * share, free))[0])
        for d in range(0, len(sample), every)
    ]
    averaged = average_bounds(
        crowds,
        budget,
        effective=sample.effective,
        interior=data.answers == 2,
        progress=None if progress is None else lambda done: progress(DRAWING + (1.0 - DRAWING) * done),
    )
    per_task = min(averaged.limit.value / data.tasks, 1.0)
    return BoundFromLabels(
        per_task=per_task,
        value=per_task * data.tasks,
        mean=float(averaged.values.mean()) / data.tasks,
        now=float(sample.beliefs.mean(axis=0).max(axis=1).mean()),
        budget=budget,
        arrivals=coming,
        price=averaged.limit.price,
        crowds=len(crowds),
        r_hat=sample.r_hat,
        effective=sample.effective,
        converged=sample.converged,
        confidence=CONFIDENCE,
        assumes=_assumes(budget, coming, len(crowds)),
        seconds=perf_counter() - begin,
    )


def _draw(data: CrowdLabels, truth: Any, prior: CrowdPrior, seed: int) -> CrowdSample:
    """Crowds from the posterior; with more sweeps between them if the chains do not agree."""
    for sweeps in SWEEPS:
        sample = sample_crowds(data, truth, prior, every=sweeps, seed=seed)
        if sample.converged:
            break
    return sample


def _assumes(budget: int, arrivals: int, crowds: int) -> str:
    away = "nobody is turned away" if arrivals == budget else f"workers may be turned away, {arrivals:,} come"
    return (
        "Assumed: each worker answers by a channel of their own, independently given the truth; the workers of the "
        f"record keep coming as often as they did, and {away}; their channels are revealed, which can only help. The "
        f"number is the {CONFIDENCE:.0%} confidence limit of the mean over {crowds} crowds drawn from what the labels "
        "say about the workers. It is not corrected by an audit."
    )
