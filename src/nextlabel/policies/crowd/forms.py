"""The allocator of a campaign with several questions per item (``crowd.questions``): one lease asks them all.

====== ============ ================= =====================================================================
symbol code         shape             meaning
====== ============ ================= =====================================================================
p      belief       (K, parts, C)     P(truth of part q of item x)
m      kind         (W,)              type of each worker: quarters of the crowd by how often they are right; strangers
W_n    worth        (parts, N + 1, G) expected chance that what is read out is right, after n labels of any workers
--     ahead        (parts, M, N, G)  the same after one label of type m and n of any
v_m    value        (M, K)            what one label by type m is worth for item x
====== ============ ================= =====================================================================

    v_m(x)  =  max over n < AHEAD of  sum over parts q of [E W_n(p_q after a label of m) - W_0(p_q)] / (n + 1)

so that the value of asking is the sum over the parts, and labels are not called worthless because the first of them
cannot change what is read out. With w labels in flight W_0 and W_n are W_w and W_(w+n). A part that is asked only after
an answer counts by the chance of that answer. While workers are strangers, items that were begun come first until they
have twice their equal part of the budget, because labels that nobody can compare teach nothing of workers.
Guarantee: heuristic, a function of the entries like any crowd's (``policies.crowd.allocator``). Nobody is turned away
but for noise. Cost: a step 50 us, a choice O(K), ``learn`` a fit of all labels and O(K parts).
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.noise import answers_at_random
from nextlabel.crowd.questions import RIGHT, Form, FormFit, FormLabels, fit_form
from nextlabel.policies.allocation import Outlook, Refusal
from nextlabel.policies.crowd.allocator import TRIAL_LABELS, GrowingCrowd
from nextlabel.policies.crowd.policies import REACH, STEP, Chain, belief_grid

#: Labels that are looked ahead, and those in flight that are told apart; types of workers; items valued at once.
AHEAD, FLIGHT, TYPES, TOGETHER = 5, 6, 4, 2000
#: How much more often a begun item comes first than any value, and what a label less is worth among equal values.
FIRST, FEWER = 1e3, 1e-9


class FormCrowd(GrowingCrowd):
    """Items, workers and what was given out; answers are codes. What the base plans for one question is not used."""

    def __init__(self, form: Form, seed: int = 0, right: float = RIGHT) -> None:
        super().__init__(np.full(2, 0.5), "crowd", seed)
        self.form, self.right = form, right
        self.fit: FormFit | None = None
        #: (W + 1,) how often each worker is right, and a stranger.
        self.right_rates = np.full(1, right)
        self._belief: Floats = np.zeros((0, 0, 0))
        self._value: Floats = np.zeros((0, 0))
        self._kind, self._due = np.zeros(0, dtype=np.int64), 0.0
        self._low = np.array([-REACH if part.answers == 2 else -np.log(part.answers - 1.0) for part in form.parts])
        self._points = np.array([len(belief_grid(part.answers)) for part in form.parts])
        self._worth: Floats = np.zeros(0)
        self._ahead: Floats = np.zeros(0)

    # What happens -------------------------------------------------------------------------------------------------

    def assign(self, lease: int, task: int, worker: int) -> None:
        """The worker has been given the task."""
        super().assign(lease, task, worker)
        self._moved(task)

    def complete(self, lease: int, answer: int) -> None:
        """The label of an entry has come in and counts, perhaps after it was gone."""
        super().complete(lease, answer)
        self._moved(int(self.campaign.history.task[lease]))

    def cancel(self, lease: int) -> None:
        """The label of an entry in flight is not expected any more, or does not count."""
        super().cancel(lease)
        self._moved(int(self.campaign.history.task[lease]))

    def reopen(self, lease: int) -> None:
        """An entry that has an answer, or is gone, is in flight again."""
        super().reopen(lease)
        self._moved(int(self.campaign.history.task[lease]))

    def know(self, task: int, answer: int) -> None:
        """The task's truth is known: it is given out no more, and tells about its workers."""
        super().know(task, answer)
        self._moved(task)

    def forget_truth(self, task: int) -> None:
        """The task's truth is not known any more."""
        super().forget_truth(task)
        self._moved(task)

    def _moved(self, task: int) -> None:
        """Believe what the task's labels say by the channels as they are, and value it anew."""
        if self.fit is None or task >= self._value.shape[1]:
            return
        history, fit, C = self.campaign.history, self.fit, self.form.answers
        entry, workers, codes = int(history.last[task]), list[int](), list[int]()
        while entry >= 0:
            if history.answer[entry] >= 0:
                workers.append(min(int(history.worker[entry]), len(fit.channels) - 1))
                codes.append(int(history.answer[entry]))
            entry = int(history.earlier[entry])
        logp = np.log(np.maximum(fit.share, 1e-300))
        if workers:
            said, parts = self.form.digits(codes), np.arange(len(self.form.parts))
            chance = fit.channels[np.array(workers)[:, None], parts, :, np.maximum(said, 0)]
            logp = logp + (np.log(np.maximum(chance, 1e-12)) * (said >= 0)[:, :, None]).sum(axis=0)
        odds = np.exp(logp - logp.max(axis=1, keepdims=True))
        self._belief[task] = odds / odds.sum(axis=1, keepdims=True)
        if self.gold[task] >= 0:
            self._belief[task] = np.eye(C)[np.maximum(self.form.digits(self.gold[task]), 0)]
        self._value[:, task] = self._values(np.array([task]))[:, 0]

    # Who gets which task ------------------------------------------------------------------------------------------

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The task for this worker, or why there is none; -1 is a worker nobody knows."""
        n, history = self._value.shape[1], self.campaign.history
        if n == 0:
            return "all_leased"
        value = self._value[self._kind[worker] if 0 <= worker < len(self._kind) else -1]
        count = self.came[:n] + self.flight[:n]
        value = value - FEWER * count
        if self.given < self._due:
            value = value + FIRST * ((count > 0) & (count < 2.0 * self.budget / max(self.tasks, 1)))
        had = history.task[: self.entries][history.worker[: self.entries] == worker]
        value[had[had < n]] = -np.inf
        if outlook.eligible is not None:
            kept = value[outlook.eligible]
            value = np.full(n, -np.inf)
            value[outlook.eligible] = kept
        x = int(value.argmax())
        if np.isfinite(value[x]):
            return x
        return "nothing_left_for_you" if np.isfinite(self._value[-1]).any() else "all_leased"

    def _values(self, tasks: Ints) -> Floats:
        """(M, n) what a label is worth, minus infinity where none may be given."""
        belief, parts = self._belief[tasks], np.arange(len(self.form.parts))
        two = np.array([part.answers == 2 for part in self.form.parts])
        p = np.clip(np.where(two, belief[:, :, 1], belief.max(axis=2)), 1e-9, 1.0 - 1e-9)
        place = np.rint((np.log(p / (1.0 - p)) - self._low) / STEP).astype(np.int64)
        place = np.clip(place, 0, self._points - 1)[:, :, None]
        flight = np.minimum(self.flight[tasks], FLIGHT)[:, None, None]
        after = self._ahead[parts[:, None], :, flight + np.arange(AHEAD), place]  # (n, parts, AHEAD, M)
        gain = after - self._worth[parts[:, None], flight, place][..., None]
        for k, part in enumerate(self.form.parts):
            if part.needs >= 0:
                gain[:, k] *= self._chance_of(part.needs, belief)[:, None, None]
        value = (gain.sum(axis=1) / np.arange(1.0, AHEAD + 1.0)[:, None]).max(axis=1)
        room = np.array([self._has_room(int(x)) for x in tasks]) if len(tasks) < 8 else self._rooms()[tasks]
        return np.asarray(np.where(room[:, None], value, -np.inf).T)

    def _chance_of(self, option: int, belief: Floats) -> Floats:
        """(n,) the probability of an option."""
        return np.asarray(self.form.flat(belief)[:, option])

    def _rooms(self) -> Bools:
        room = (self.flight < self._most_in_flight) & (self.came + self.flight < self._most_labels) & (self.gold < 0)
        room[self.tasks :] = False
        return np.asarray(room)

    # Learning -----------------------------------------------------------------------------------------------------

    def learn(self, version: int, given: int, left: int, arrivals: float | None = None, expert: float = 0.0) -> None:
        """Learn workers and tasks from all labels, and value the tasks for the labels to come."""
        self.given, self.budget = given, given + left
        labels = self.labels()
        there, task = np.unique(np.concatenate([labels.task, np.flatnonzero(self.gold >= 0)]), return_inverse=True)
        some = labels._replace(task=task[: len(labels.task)], tasks=len(there))
        self.fit = fit_form(self.form, some, self.gold[there], self.right)
        self._belief = np.tile(self.fit.share, (len(self.gold), 1, 1))
        self._belief[there] = self.fit.belief
        self._look_ahead(np.bincount(labels.worker, minlength=self.people).astype(np.float64))
        self._due = min(float(TRIAL_LABELS * max(int(np.count_nonzero(self.campaign.worked)), 1)), self.budget / 3.0)
        parts = [self._values(np.arange(x, min(x + TOGETHER, self.tasks))) for x in range(0, self.tasks, TOGETHER)]
        self._value = np.concatenate([np.zeros((self._ahead.shape[1], 0)), *parts], axis=1)

    def labels(self) -> FormLabels:
        """The labels that count."""
        history = self.campaign.history
        came = np.flatnonzero(history.answer[: self.entries] >= 0)
        codes = history.answer[came]
        digits = self.form.digits(codes)
        return FormLabels(history.task[came], history.worker[came], codes, digits, len(self.gold), self.people)

    def _look_ahead(self, weight: Floats) -> None:
        """Types of workers, and what labels lead to, by part."""
        assert self.fit is not None
        channels, C = self.fit.channels, np.array([part.answers for part in self.form.parts], dtype=np.int64)
        self.right_rates = ((np.trace(channels, axis1=2, axis2=3) - (self.form.answers - C)) / C).mean(axis=1)
        order = np.argsort(-self.right_rates[:-1], kind="stable")
        below = np.cumsum(weight[order]) - weight[order]
        self._kind = np.zeros(self.people, dtype=np.int64)
        self._kind[order] = np.minimum(TYPES * below / max(weight.sum(), 1.0), TYPES - 1).astype(np.int64)
        kinds = [np.flatnonzero((self._kind == m) & (weight > 0)) for m in range(TYPES)]
        means = [np.average(channels[k], axis=0, weights=weight[k]) if len(k) else channels[-1] for k in kinds]
        typical, share = np.stack([*means, channels[-1]]), np.array([*(weight[k].sum() for k in kinds), 1e-9])
        self._kind[weight == 0] = TYPES
        N, G, parts = FLIGHT + AHEAD, int(self._points.max()), len(self.form.parts)
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

    # What is asked ------------------------------------------------------------------------------------------------

    @property
    def chances(self) -> Floats:
        """(tasks, options) the probability of every option of every task."""
        known = self.fit is not None
        return self.form.flat(self._belief[: self.tasks]) if known else np.tile(self.start, (self.tasks, 1))

    @property
    def start(self) -> Floats:
        """(options,) the same of a usual task without labels."""
        share = np.full((len(self.form.parts), self.form.answers), 0.5) if self.fit is None else self.fit.share
        return np.asarray(self.form.flat(share[None])[0])

    def at_random(self) -> Bools:
        """(W,) whose answers to every question have nothing to do with what the others say."""
        assert self.fit is not None
        labels, out = self.labels(), np.ones(self.people, dtype=np.bool_)
        for question in range(len(self.form.questions)):
            columns = self.form.columns(question)
            answers, Q = self.form.parts[columns[0]].answers, len(columns)
            row, q = np.nonzero(labels.said[:, columns] >= 0)
            logp = np.log(np.maximum(self._belief[:, columns, :answers].reshape(-1, answers), 1e-300))
            channels = self.fit.channels[:-1, columns, :answers, :answers].mean(axis=1)
            said = labels.said[:, columns][row, q]
            if len(channels) < self.people:  # who has come since is unknown
                channels = np.concatenate([channels, np.repeat(channels[-1:], self.people - len(channels), axis=0)])
            if len(said):
                out &= answers_at_random(labels.task[row] * Q + q, labels.worker[row], said, logp, channels)
        return out if len(labels.task) else ~out
