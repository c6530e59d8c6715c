"""The allocator of a campaign with several questions per item (``crowd.questions``): one lease asks them all.

====== ============ ================= =====================================================================
symbol code         shape             meaning
====== ============ ================= =====================================================================
p      belief       (K, parts, C)     P(truth of part q of item x)
m      kind         (W,)              type of each worker: quarters of the crowd by how often they are right; strangers
W_n    worth        (parts, N + 1, G) expected chance that what is read out is right, after n labels of any workers
--     ahead        (parts, M, N, G)  the same after one label of type m and n of any
t_m    precise      (measures, M + 1) precision of a label by type m, and of the crowd's on average
v_m    value        (M, K)            what one label by type m is worth for item x
====== ============ ================= =====================================================================

    v_m(x)  =  max over n < AHEAD of  sum over parts q of [E W_n(p_q after a label of m) - W_0(p_q)] / (n + 1)

All count in one unit, answers that are right: of a number with precision v W_n is the chance erf(c sqrt(v / 2)) to be
within the tolerance c of its range, and n labels and one of type m take v to v + n t + t_m, whatever they say
(``solve.numbers``). So the value of asking is the sum over parts and measures, and labels are not called worthless
because the first of them cannot change what is read out. With w labels in flight W_0 and W_n are W_w and W_(w+n). What
is asked only after an answer counts by the chance of that answer. While workers are strangers, items that were begun
come first until they have twice their equal part of the budget, because labels that nobody can compare teach nothing of
workers.
Guarantee: heuristic, a function of the entries like any crowd's (``policies.crowd.allocator``). Nobody is turned away
but for noise. Cost: a step 50 us, a choice O(K), ``learn`` a fit of all labels and O(K parts).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import erf

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.answers import Answer, Number, Pair, Rating
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.noise import answers_at_random
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.crowd.questions import RIGHT, Form, FormFit, FormLabels, Measure, Part, fit_form, measured
from nextlabel.policies.crowd.allocator import TRIAL_LABELS, GrowingCrowd
from nextlabel.policies.crowd.policies import REACH, STEP, Chain, belief_grid
from nextlabel.policies.crowd.valued import (
    NumberCrowd,
    PairCrowd,
    RatingCrowd,
    ValuedCrowd,
    number_beliefs,
    number_rates,
)

#: Labels that are looked ahead, and those in flight that are told apart; types of workers; items valued at once.
AHEAD, FLIGHT, TYPES, TOGETHER = 5, 6, 4, 2000
#: How much more often a begun item comes first than any value.
FIRST = 1e3


class FormCrowd(ValuedCrowd):
    """Items with several questions; answers are codes."""

    kind: Form

    def __init__(self, kind: Form, seed: int = 0, right: float = RIGHT) -> None:
        super().__init__(kind, seed)
        self.right, self.right_rates = right, np.full(1, right)
        self.fit: FormFit | None = None
        self._belief: Floats = np.zeros((0, 0, 0))
        self._normal: Floats = np.zeros((len(kind.measures), 0, 2))
        self._value: Floats = np.zeros((0, 0))
        self._kind, self._due = np.zeros(0, dtype=np.int64), 0.0
        self._low = np.array([-REACH if part.answers == 2 else -np.log(part.answers - 1.0) for part in kind.parts])
        self._points = np.array([len(belief_grid(part.answers)) for part in kind.parts], dtype=np.int64)
        self._worth: Floats = np.zeros(0)
        self._ahead: Floats = np.zeros(0)
        self._precise: Floats = np.zeros((0, 0))

    def _moved(self, task: int) -> None:
        """Believe what the task's labels say by the channels as they are, and value it anew."""
        assert self.fit is not None
        fit, C, came = self.fit, self.kind.answers, [one for one in self.entries_of(task) if one[1] >= 0]
        logp = np.log(np.maximum(fit.share, 1e-300))
        workers, codes = np.array(came, dtype=np.int64).reshape(-1, 2).T
        if came:
            parts = np.arange(len(self.kind.parts))
            said = self.kind.digits(codes)[:, : len(parts)]
            chance = fit.channels[np.minimum(workers, len(fit.channels) - 1)[:, None], parts, :, np.maximum(said, 0)]
            logp = logp + (np.log(np.maximum(chance, 1e-12)) * (said >= 0)[:, :, None]).sum(axis=0)
        odds = np.exp(logp - logp.max(axis=1, keepdims=True))
        self._belief[task] = odds / odds.sum(axis=1, keepdims=True)
        if self.kind.measures:
            here = CrowdLabels(np.zeros_like(codes), workers, codes, 1, self.people, 2)
            self._normal[:, task] = self._normals(here, self.gold[[task]])[:, 0]
        if self.gold[task] >= 0:
            known = self.kind.digits(self.gold[task])[: len(self.kind.parts)]
            self._belief[task] = np.eye(C)[np.maximum(known, 0)]
        self._value[:, task] = self._worths(np.array([task]))[:, 0]

    # What a label is worth ----------------------------------------------------------------------------------------

    def _values(self, worker: int) -> Floats:
        """(tasks,) what a label of the worker's is worth, with begun items first while workers are strangers."""
        n, value = self.learnt_tasks, self._value[self._kind[worker] if 0 <= worker < len(self._kind) else -1]
        if self.given >= self._due:
            return np.asarray(value)
        count = self.came[:n] + self.flight[:n]
        return np.asarray(value + FIRST * ((count > 0) & (count < 2.0 * self.budget / max(self.tasks, 1))))

    def _worths(self, tasks: Ints) -> Floats:
        """(M, n) what a label by each type is worth."""
        belief, parts = self._belief[tasks], np.arange(len(self.kind.parts))
        place = self._places(belief)[:, :, None]
        flight = np.minimum(self.flight[tasks], FLIGHT)[:, None, None]
        after = self._ahead[parts[:, None], :, flight + np.arange(AHEAD), place]  # (n, parts, AHEAD, M)
        gain = after - self._worth[parts[:, None], flight, place][..., None]
        gain *= self._asked(belief, self.kind.parts)[:, :, None, None]
        if self.kind.measures:
            near = self._asked(belief, self.kind.measures)[:, :, None, None] * self._gained(tasks)
            gain = np.concatenate([gain, near], axis=1)
        return np.asarray((gain.sum(axis=1) / np.arange(1.0, AHEAD + 1.0)[:, None]).max(axis=1).T)

    def _places(self, belief: Floats) -> Ints:
        """(n, parts) the points of the grids of beliefs that are nearest."""
        two = np.array([part.answers == 2 for part in self.kind.parts])
        p = np.clip(np.where(two, belief[:, :, 1], belief.max(axis=2)), 1e-9, 1.0 - 1e-9)
        place = np.rint((np.log(p / (1.0 - p)) - self._low) / STEP).astype(np.int64)
        return np.asarray(np.clip(place, 0, self._points - 1))

    def _gained(self, tasks: Ints) -> Floats:
        """(n, measures, AHEAD, M) by how much likelier each number is right after a label by each type and others."""
        own, mean = self._precise[:, None, None, :-1], self._precise[:, None, None, -1:]
        flight = np.minimum(self.flight[tasks], FLIGHT)[:, None, None]
        precision = self._normal[:, tasks, 1, None, None] ** -2.0 + flight * mean
        near = np.array([one.number.tolerance for one in self.kind.measures]).reshape(-1, 1, 1, 1)
        after = precision + own + np.arange(AHEAD)[:, None] * mean
        gain = erf(near * np.sqrt(after / 2.0)) - erf(near * np.sqrt(precision / 2.0))
        return np.asarray(np.moveaxis(gain, 0, 1))

    def _asked(self, belief: Floats, asked: Sequence[Part | Measure]) -> Floats:
        """(n, parts or measures) the chance that each is asked."""
        flat = np.concatenate([self.kind.flat(belief), np.ones((len(belief), 1))], axis=1)
        return np.asarray(flat[:, [one.needs for one in asked]])

    def _normals(self, labels: CrowdLabels, gold: Ints) -> Floats:
        """(measures, tasks, 2) mean and standard deviation of each number by these labels, a known one for certain."""
        found = np.zeros((len(self.kind.measures), labels.tasks, 2))
        fits = (None,) * len(found) if self.fit is None else self.fit.numbers
        digits = self.kind.digits(np.maximum(gold, 0))[:, len(self.kind.parts) :]
        for m, data in enumerate(measured(self.kind, self._forms(labels))):
            one = self.kind.measures[m].number
            found[m] = number_beliefs(one, fits[m], data)
            for task in np.flatnonzero((gold >= 0) & (digits[:, m] >= 0)):
                found[m, task] = one.known(int(digits[task, m]))
        found[:, :, 1] = np.maximum(found[:, :, 1], 1e-9)
        return found

    def forecast(self) -> Callable[[int], float] | None:
        """How much larger the share of right answers is expected to be when so many labels more are given evenly."""
        open_ = np.flatnonzero(self.gold[: self.learnt_tasks] < 0)
        belief = self._belief[open_]
        if self.fit is None or not len(belief):
            return None
        place, worth, parts = self._places(belief), self._worth, np.arange(len(self._points))
        asked, measured = self._asked(belief, self.kind.parts), self._asked(belief, self.kind.measures).T
        precision, near = self._normal[:, open_, 1] ** -2.0, [one.number.tolerance for one in self.kind.measures]

        def share(n: int) -> float:
            v = precision + n * self._precise[:, -1:]
            right = (worth[parts, min(n, FLIGHT + AHEAD), place] * asked).sum()
            right += (erf(np.reshape(near, (-1, 1)) * np.sqrt(v / 2.0)) * measured).sum()
            return float(right / (asked.sum() + measured.sum()))

        def after(labels: int) -> float:
            each, rest = divmod(labels, len(place))
            gain = share(each) + rest / len(place) * (share(each + 1) - share(each)) - share(0)
            return max(gain, 0.0)  # beliefs are rounded to those of a grid

        return after

    # Learning -----------------------------------------------------------------------------------------------------

    def _learn(self, labels: CrowdLabels) -> None:
        """Learn workers and tasks from all labels, and value the tasks for the labels to come."""
        there, task = np.unique(np.concatenate([labels.task, np.flatnonzero(self.gold >= 0)]), return_inverse=True)
        some = self._forms(labels)._replace(task=task[: len(labels.task)], tasks=len(there))
        self.fit = fit_form(self.kind, some, self.gold[there], self.right)
        self._belief = np.tile(self.fit.share, (len(self.gold), 1, 1))
        self._belief[there] = self.fit.belief
        self._normal = self._normals(labels, self.gold)
        self._look_ahead(np.bincount(labels.worker, minlength=self.people).astype(np.float64))
        self._due = min(float(TRIAL_LABELS * max(int(np.count_nonzero(self.campaign.worked)), 1)), self.budget / 3.0)
        parts = [self._worths(np.arange(x, min(x + TOGETHER, self.tasks))) for x in range(0, self.tasks, TOGETHER)]
        self._value = np.concatenate([np.zeros((self._ahead.shape[1], 0)), *parts], axis=1)

    def _forms(self, labels: CrowdLabels) -> FormLabels:
        digits = self.kind.digits(labels.answer)
        return FormLabels(labels.task, labels.worker, labels.answer, digits, labels.tasks, labels.workers)

    def _look_ahead(self, weight: Floats) -> None:
        """Types of workers, and what labels lead to, by part."""
        assert self.fit is not None
        channels, C = self.fit.channels, np.array([part.answers for part in self.kind.parts], dtype=np.int64)
        rates = [(np.trace(channels, axis1=2, axis2=3) - (self.kind.answers - C)) / C]
        for one, fit in zip(self.kind.measures, self.fit.numbers, strict=True):
            usual = np.full(len(channels), self.right)
            rates.append((usual if fit is None else number_rates(one.number, fit))[:, None])
        self.right_rates = np.concatenate(rates, axis=1).mean(axis=1)
        order = np.argsort(-self.right_rates[:-1], kind="stable")
        below = np.cumsum(weight[order]) - weight[order]
        self._kind = np.zeros(self.people, dtype=np.int64)
        self._kind[order] = np.minimum(TYPES * below / max(weight.sum(), 1.0), TYPES - 1).astype(np.int64)
        kinds = [np.flatnonzero((self._kind == m) & (weight > 0)) for m in range(TYPES)]
        means = [np.average(channels[k], axis=0, weights=weight[k]) if len(k) else channels[-1] for k in kinds]
        typical, share = np.stack([*means, channels[-1]]), np.array([*(weight[k].sum() for k in kinds), 1e-9])
        self._kind[weight == 0] = TYPES
        self._precise = np.array([
            self._precisions(m, kinds, weight) for m in range(len(self.kind.measures))
        ]).reshape(-1, TYPES + 2)  # fmt: skip
        N, G, parts = FLIGHT + AHEAD, int(self._points.max(initial=1)), len(self.kind.parts)
        self._worth, self._ahead = np.zeros((parts, N + 1, G)), np.zeros((parts, N, TYPES + 1, G))
        for k, answers in enumerate(C.tolist()):
            chain = Chain(np.ascontiguousarray(typical[:, k, :answers, :answers]))
            to, chance = chain.tables
            worth, g = chain.reward, int(self._points[k])
            self._worth[k, 0, :g] = worth
            for n in range(N):
                self._ahead[k, n, :, :g] = (chance * worth[to]).sum(axis=2)
                worth = share @ self._ahead[k, n, :, :g] / share.sum()
                self._worth[k, n + 1, :g] = worth
        self._ahead = np.ascontiguousarray(self._ahead.transpose(0, 2, 1, 3))

    def _precisions(self, measure: int, kinds: Sequence[Ints], weight: Floats) -> Floats:
        """(TYPES + 2,) what a label by each type of workers, by a stranger and on average adds to a number's precision.

        Without any label to learn from, as much as the range says of an item.
        """
        fit, number = None if self.fit is None else self.fit.numbers[measure], self.kind.measures[measure].number
        if fit is None:
            return np.full(TYPES + 2, 12.0 / (number.ends[1] - number.ends[0]) ** 2)
        own = fit.precisions(np.append(np.arange(len(weight)), -1)) / fit.scale[3] ** 2
        means = [np.average(own[k], weights=weight[k]) if len(k) else own[-1] for k in kinds]
        return np.array([*means, own[-1], np.average(own[:-1], weights=weight) if weight.sum() else own[-1]])

    # What is asked ------------------------------------------------------------------------------------------------

    def read(self, tasks: int) -> Floats:
        """(tasks, width) the probability of every option, and how many labels chose it."""
        share = np.full((len(self.kind.parts), self.kind.answers), 0.5) if self.fit is None else self.fit.share
        found, labels, options = np.zeros((tasks, self.kind.width)), self.labels(tasks), len(self.kind.options)
        found[:, :options], n = self.kind.flat(share[None]), min(tasks, self.learnt_tasks)
        if self.fit is not None:
            found[:n, :options] = self.kind.flat(self._belief[:n])
        for m, normal in enumerate(self._normals(labels, self.gold[:tasks])):
            found[:, 2 * options + 2 * m : 2 * options + 2 * m + 2] = normal
        np.add.at(found[:, options : 2 * options], labels.task, self.kind.options_of(labels.answer))
        return found

    def at_random(self) -> Bools:
        """(W,) whose answers to every question have nothing to do with what the others say."""
        assert self.fit is not None
        labels, out = self._forms(self.labels(len(self.gold))), np.ones(self.people, dtype=np.bool_)
        for fit in filter(None, self.fit.numbers):
            out &= np.append(fit.at_random, np.zeros(max(self.people - len(fit.gain), 0), dtype=np.bool_))[: len(out)]
        for columns in filter(None, map(self.kind.columns, range(len(self.kind.questions)))):
            answers, Q = self.kind.parts[columns[0]].answers, len(columns)
            row, q = np.nonzero(labels.said[:, columns] >= 0)
            logp = np.log(np.maximum(self._belief[:, columns, :answers].reshape(-1, answers), 1e-300))
            channels = self.fit.channels[:-1, columns, :answers, :answers].mean(axis=1)
            said = labels.said[:, columns][row, q]
            if len(channels) < self.people:  # who has come since is unknown
                channels = np.concatenate([channels, np.repeat(channels[-1:], self.people - len(channels), axis=0)])
            if len(said):
                out &= answers_at_random(labels.task[row] * Q + q, labels.worker[row], said, logp, channels)
        return out if len(labels.task) else ~out


def new_crowd(
    kind: Answer, seed: int, share: Floats | None = None, rule: str = "crowd", prior: CrowdPrior | None = None,
    *, top: int | None = None, right: float = RIGHT,
) -> GrowingCrowd:  # fmt: skip
    """The allocator of a live campaign for such answers, which knows nothing yet; of a form workers are ``right``."""
    if isinstance(kind, Form):
        return FormCrowd(kind, seed, right)
    if isinstance(kind, Pair):
        return PairCrowd(kind, seed, top)
    if isinstance(kind, Number):
        return NumberCrowd(kind, seed)
    start = np.ones(kind.width) if share is None else share
    if isinstance(kind, Rating):
        return RatingCrowd(kind, start, rule, seed, prior)
    found = GrowingCrowd(start, rule, seed, prior)
    found.settings = replace(found.settings, utility=kind.utility)
    return found
