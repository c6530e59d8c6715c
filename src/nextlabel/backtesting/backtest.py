"""What each policy would have made of labels that were really given, and how many of them it would have saved.

========= ============ ==========================================================================
symbol    code         meaning
========= ============ ==========================================================================
K         tasks        tasks that are replayed; a pilot's are not among them
U         budgets      labels to buy; the asked ones and a fine grid, for the savings
k         overlaps     odd numbers of labels for every task: an even one wastes its last label
d         threshold    the share of ones above which a task is a 1, for rules that count
========= ============ ==========================================================================

Where it is known who gave which label, policies that learn workers are replayed, and labels are read out by the model
of workers; nothing is held out and gold only judges. Where it is not, fifty random tasks, the pilot, give the prior of
rules that count. Labels come in random order unless told otherwise, none is used twice. Accuracy is against gold or,
without gold, against what all recorded labels say together, which flatters every rule.
Guarantee: exact for these recorded labels up to the orders replayed; intervals cover other orders and other tasks of
the same kind (``curves``), not another crowd. Cost: one campaign per policy and replication, and one fit of the workers
per replication and budget.

Rules that count votes and fixed overlaps are played by ``simulation.replay``, rules that learn workers by
``simulation.crowd_replay``, with the identities of those who gave each label.
``BacktestOptions`` say how labels are replayed and judged; ``choose_budgets`` which budgets are played.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from nextlabel.arrays import Floats, Ints
from nextlabel.backtesting.pilot import PilotFit, from_all_labels, hold_out
from nextlabel.backtesting.readout import (
    COUNTING,
    FITS,
    LEARNING,
    READOUTS,
    decisions,
    everything,
    needs_crowdkit,
    right_by,
    scores_of,
    winners,
)
from nextlabel.backtesting.result import Backtest, Curve, Key, PolicyAccuracy, Saving, resampled, saving
from nextlabel.errors import InputError
from nextlabel.files.features import Features, read_features
from nextlabel.files.labels import Gold, as_label_table, read_gold
from nextlabel.model.estimate import Estimate
from nextlabel.model.lattice import triangle_counts
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem, as_prior
from nextlabel.policies.base import Policy
from nextlabel.policies.crowd.policies import WorkerPolicy
from nextlabel.policies.index import Index
from nextlabel.policies.registry import make_policy
from nextlabel.prose import counted, listed
from nextlabel.simulation.crowd_replay import REPLAYS, CrowdReplayed, replay_crowd
from nextlabel.simulation.engine import Engine, backend
from nextlabel.simulation.replay import (
    ARRIVALS,
    AT_ONCE_RATE,
    FIXED,
    ORDERS,
    TIES,
    CrowdRecord,
    Outcomes,
    ReplaySetup,
    accuracy_of_tally,
    credits,
    replay_overlaps,
    replay_policy,
    to_recorded,
)
from nextlabel.solve.index import index_table
from nextlabel.solve.progress import Progress, part

#: Policies that learn workers as labels come in; counting policies that are compared with them, and without them.
CROWD = ("crowd", "crowd-uncertainty")
BESIDE_CROWD = ("index",)
#: Policies that count votes and look at no answer: labels of any number of answers can be replayed under them.
BLIND = ("uniform", "random")
WITHOUT_WORKERS = ("index", "okg", "okg-pending", "ucb1-tuned", "uncertainty", "uniform")
#: Tasks held out for a prior where one is needed and all labels together may not give it.
PILOT = 50
#: Replays of each policy where votes are counted; with workers as many as this many labels allow, in these limits.
COUNTING_REPLICATIONS, CROWD_LABELS, LEAST_REPLICATIONS, MOST_REPLICATIONS = 200, 100_000, 4, 10


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """How labels are replayed and judged.

    ``replay``: "task-first", "worker-first" or "timed", and ``turn_away``: whether workers may be; both are for
    policies that learn workers. ``pilot`` tasks are held out to learn the prior of counting policies by ``method``
    ("moments", "ml" or "mixture"), unless a prior is given; None: 50 where workers are not known, else none. With the
    usual rates labels come back at once; ``order`` of a task's labels: "random", "file" or "reversed"; ``ties`` count
    "half", or are decided "positive" or "negative"; ``readouts`` are some of ``readout.READOUTS``.
    """

    pilot: int | None = None
    method: str = "moments"
    arrival_rate: float = ARRIVALS
    completion_rate: float = AT_ONCE_RATE
    order: str = "random"
    ties: str = "half"
    readouts: Sequence[str] | None = None
    replay: str = "task-first"
    turn_away: bool = False

    def __post_init__(self) -> None:
        for what, given, known in (
            ("order", self.order, ORDERS),
            ("ties", self.ties, TIES),
            ("replay", self.replay, REPLAYS),
        ):
            if given not in known:
                raise InputError(f"{what} {given!r} is not known.", f"Use one of {', '.join(known)}.")
        for name in self.readouts or ():
            if name not in READOUTS:
                raise InputError(f"read-out {name!r} is not known.", f"Use one of {', '.join(READOUTS)}.")
        each_once("read-out", self.readouts or ())
        if self.turn_away and self.replay == "task-first":
            raise InputError(
                "nobody can be turned away when tasks are named first.",
                "Add --replay worker-first (or timed), or leave --turn-away out.",
            )

    @property
    def at_once(self) -> bool:
        """Whether labels come back at once."""
        return self.arrival_rate / self.completion_rate < 1e-3

    def default_policies(self, workers: bool, answers: int) -> tuple[str, ...]:
        """The policies of a set whose workers are known or not."""
        if not workers or not self._plain:
            return WITHOUT_WORKERS if answers == 2 else BLIND[:1]
        beside = BESIDE_CROWD if answers == 2 else BLIND[:1]
        return (*CROWD, *(beside if self.replay == "task-first" else ()))

    def default_readouts(self, crowd: bool, workers: bool, answers: int) -> tuple[str, ...]:
        """The read-outs of policies that learn workers, or of those that count."""
        if answers > 2 and not workers:
            return ("majority",)
        return ("workers", "majority") if crowd or answers > 2 else COUNTING

    @property
    def _plain(self) -> bool:
        """Whether policies that learn workers can be played like this."""
        return self.at_once and self.order == "random" and self.ties == "half"

    def check_crowd(self, names: Sequence[str], learners: bool) -> None:
        """Refuse what policies that learn workers are not replayed with."""
        if not learners and self.replay != "task-first":
            raise InputError(
                f"--replay {self.replay} is for policies that learn workers: {', '.join(CROWD)}.",
                "Add one with --policy, or leave --replay out.",
            )
        for wrong, what in (
            (not self.at_once, "labels in flight at a given rate: real times are replayed with --replay timed"),
            (self.order != "random", f"the order {self.order!r}: their labels come in random order"),
            (self.ties != "half", f"ties decided as {self.ties!r}: theirs count half"),
        ):
            if wrong and names:
                raise InputError(f"{names[0]} is not replayed with {what}.", "Leave that out, or this policy.")


def default_replications(labels: int) -> int:
    """Replays of each policy that learns workers: fewer of large sets, whose tasks say more than their orders."""
    return max(LEAST_REPLICATIONS, min(MOST_REPLICATIONS, CROWD_LABELS // max(1, labels)))


def each_once(what: str, names: Sequence[str]) -> None:
    """Refuse a name that is given twice."""
    for name in names:
        if list(names).count(name) > 1:
            raise InputError(f"{what} {name!r} is given twice.", "Give each one once.")


LABELS_PER_TASK = (2.0, 3.0, 4.0, 5.0)
#: Budgets of the grid, and labels per task up to which it goes if there are so many.
POINTS, LARGEST_OVERLAP = 25, 7
#: Labels per task of the grid of policies whose every budget is a campaign of its own; finest where most is saved.
CROWD_GRID = (1.0, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)
#: An overlap is compared with if so many of the tasks have the labels for it.
ENOUGH_TASKS = 0.5


def choose_budgets(
    setting: ReplaySetup,
    labels_per_task: Sequence[float] | None,
    budgets: Sequence[int] | None,
    *,
    crowd: bool = False,
) -> tuple[list[int], list[int], tuple[int, ...]]:
    """Budgets asked for, the grid with them, and the overlaps to compare with; ``crowd``: a coarser grid."""
    K, most = len(setting.recorded.gold), setting.most_labels
    if budgets is not None:
        asked = sorted(set(budgets))
    elif labels_per_task is not None:
        asked = sorted({round(x * K) for x in labels_per_task})
    else:
        asked = [round(x * K) for x in LABELS_PER_TASK if x * K <= most] or [most]
    for U in asked:
        if not 1 <= U <= most:
            raise InputError(
                f"a budget of {U:,} labels ({U / K:.3g} per task) is asked for, and the {K:,} replayed tasks have "
                f"{most:,} ({most / K:.3g} per task).",
                "Give fewer, e.g. --labels-per-task 3.",
            )
    top = max(asked[-1], min(LARGEST_OVERLAP * K, most))
    even = np.linspace(min(K, asked[0]), top, POINTS)
    if crowd:
        even = np.array([x * K for x in CROWD_GRID if x * K <= top])
    grid = np.unique(np.append(np.round(even), asked)).astype(np.int64)
    counts = setting.recorded.counts
    odd = range(1, min(setting.depth, -(-top // K)) + 1, 2)
    return asked, grid.tolist(), tuple(k for k in odd if k == 1 or (counts >= k).mean() >= ENOUGH_TASKS)


#: Replications in which every task is followed, and cells of the table that this makes.
MOST_FOLLOWED, MOST_CELLS = 20, 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class PlayedRule:
    """One rule over rising budgets (for overlaps: numbers of labels per task), with the labels that it used."""

    name: str
    budgets: Ints
    used: Floats
    curves: dict[str, Curve] = field(default_factory=dict)
    #: (B,) the accuracy that the model behind a read-out expects after these labels, where it has an opinion.
    believed: dict[str, Floats] = field(default_factory=dict)


def followed(tasks: int, budgets: int, replications: int) -> int:
    """Replications whose tasks can be followed one by one."""
    return max(2, min(MOST_FOLLOWED, replications, MOST_CELLS // max(1, tasks * budgets)))


def judged(recorded: CrowdRecord) -> Ints:
    """Rows of the tasks whose truth is known."""
    return np.flatnonzero(recorded.gold >= 0)


def count_votes(setting: ReplaySetup, played: Outcomes, readouts: Iterable[str], ties: str) -> PlayedRule:
    """Curves of the read-outs that look at a task's counts alone."""
    rows = judged(setting.recorded)
    curves, truth = {}, setting.recorded.gold[rows]
    for readout in readouts:
        credit = credits(decisions(readout, setting.prior, setting.threshold, setting.depth), ties)
        by_task = np.mean([credit[each[:, rows].T, truth[:, None]] for each in played.ends], axis=0)
        curves[readout] = Curve(accuracy_of_tally(played.tally, credit), by_task)
    above = setting.prior.above(setting.threshold, *triangle_counts(setting.depth))
    many = played.tally.sum(axis=(0, 3))
    believed = many @ np.maximum(above, 1.0 - above) / np.maximum(many.sum(axis=1), 1)
    return PlayedRule(played.name, played.budgets, played.used.mean(axis=0), curves, {"posterior": believed})


@dataclass(frozen=True, slots=True)
class Play:
    """What is played: the setting, options, budgets asked for, all budgets, overlaps, replications."""

    setting: ReplaySetup
    options: BacktestOptions
    readouts: tuple[str, ...]
    asked: list[int]
    grid: list[int]
    overlaps: tuple[int, ...]
    replications: int
    engine: Engine | None = None
    features: Features | None = None

    @property
    def counted(self) -> ReplaySetup:
        """The setting as rules that count votes see it; where there are more than two answers they look at none."""
        pool = self.setting.recorded
        if pool.labels.answers == 2:
            return self.setting
        labels = pool.labels._replace(answer=np.minimum(pool.labels.answer, 1), answers=2)
        return replace(self.setting, recorded=replace(pool, labels=labels, gold=np.minimum(pool.gold, 1)))

    def replay(self, policy: Policy, keep: int, progress: Progress | None) -> Outcomes:
        """A policy that counts votes; one that is planned for one budget plays only those asked for."""
        budgets, setting = self.asked if policy.planned_ahead else self.grid, self.counted
        return replay_policy(
            setting, for_budgets(setting, policy, budgets[-1]), budgets, self.replications, keep=keep,
            engine=self.engine, progress=progress,
        )  # fmt: skip

    def right(self, readout: str, drawn: Ints, taken: Ints) -> Floats:
        """(K,) what each task is worth, read out from the first ``taken`` of its ``drawn`` labels."""
        scores = scores_of(readout, self.setting, drawn, taken, self.features)
        return right_by(scores, self.setting.recorded.gold, self.options.ties)

    def collected_curve(self, readout: str, budgets: Ints, taken: Ints, only: Sequence[int] | None) -> Curve:
        """The curve of a read-out that sees who gave which label, at some budgets (nan at the others).

        ``taken`` (replications, budgets, K) are the labels of each task.
        """
        rows = judged(self.setting.recorded)
        by_order = np.full(taken.shape[:2], np.nan)
        by_task = np.zeros((len(rows), len(budgets)))
        for rep, each in enumerate(taken):
            drawn = self.setting.drawn(rep)
            for b, U in enumerate(budgets.tolist()):
                if only is None or U in only:
                    right = self.right(readout, drawn, each[b])[rows]
                    by_order[rep, b] = right.mean()
                    by_task[:, b] += right / len(taken)
        return Curve(by_order, by_task)


@dataclass(frozen=True, slots=True)
class Played:
    """Every policy, the fixed overlaps, and the accuracy that all labels have by each read-out."""

    rules: list[PlayedRule]
    fixed: PlayedRule
    ceilings: dict[str, float]


def play_rules(play: Play, policies: Sequence[Policy], crowd: Sequence[Policy], progress: Progress | None) -> Played:
    """Policies that learn workers, policies that count votes, and fixed overlaps.

    Posterior and majority are read off the counts of two answers; all else is read out of the labels collected.
    """
    setting, pool = play.setting, play.setting.recorded
    steps = len(crowd) + len(policies) + ("dawid-skene" in play.readouts)
    learners = play_crowd_policies(play, crowd, _share(progress, len(crowd), steps))
    counted = [name for name in COUNTING if pool.labels.answers == 2 and name in play.readouts]
    collected = [name for name in play.readouts if name not in counted]
    every = not {"dawid-skene"}.issuperset(collected)
    keep = play.replications if every else followed(len(pool.gold), len(play.grid), play.replications)
    outcomes = [play.replay(policy, keep, part(progress, len(crowd) + k, steps)) for k, policy in enumerate(policies)]
    outcomes.append(replay_overlaps(play.counted, play.overlaps, play.replications, keep=keep, engine=play.engine))

    def read_out(one: Outcomes) -> PlayedRule:
        rule, taken = count_votes(setting, one, counted, play.options.ties), one.taken if collected else one.ends
        curves: dict[str, Curve] = {}
        for name in play.readouts:
            slow = name == "dawid-skene"
            only = play.asked if slow and one.name != FIXED else None
            some = taken[:FITS] if slow else taken
            curves[name] = rule.curves.get(name) or play.collected_curve(name, one.budgets, some, only)
        return replace(rule, curves=curves)

    rules = [read_out(one) for one in outcomes]
    ceilings = {name: float(play.right(name, *everything(pool))[judged(pool)].mean()) for name in play.readouts}
    return Played([*learners, *rules[:-1]], rules[-1], ceilings)


def _share(progress: Progress | None, done: int, of: int) -> Progress | None:
    """Progress of the first ``done`` of ``of`` equal pieces, together."""
    return None if progress is None or done == 0 else lambda fraction: progress(fraction * done / of)


#: Labels of one task that the index models in full, and its accuracy; less of both when many labels are in flight.
CAP, TOLERANCE = 12, 1e-6
MANY_IN_FLIGHT, SMALLER_CAP, LOOSER = 5.0, 6, 1e-4


def for_budgets(setting: ReplaySetup, policy: Policy, budget: int) -> Policy:
    """The policy as it is; the index with one table for every budget up to that one, for all numbers of labels."""
    if not isinstance(policy, Index) or policy.table is not None:
        return policy
    one = Problem.identical(
        len(setting.recorded.gold), budget, setting.prior, setting.threshold,
        arrival_rate=setting.arrival_rate, completion_rate=setting.completion_rate,
    )  # fmt: skip
    many = one.rho >= MANY_IN_FLIGHT
    table = index_table(
        one, cap=min(setting.depth, SMALLER_CAP if many else CAP), tolerance=LOOSER if many else TOLERANCE
    )
    return Index(replace(table, classes=table.classes * len(setting.kinds)), name=policy.name)


def play_crowd_policies(play: Play, policies: Sequence[Policy], progress: Progress | None) -> list[PlayedRule]:
    """One rule for each policy that learns workers, read out by workers and by majority."""
    if not policies:
        return []
    how, record = play.options, play.setting.recorded
    # One campaign serves all budgets, if the policy does the same whatever the budget is; or else one each.
    alone = [policy.planned_ahead or how.replay != "task-first" for policy in policies]
    work = [
        (policy, some)
        for policy, apart in zip(policies, alone, strict=True)
        for some in ([[U] for U in play.grid] if apart else [play.grid])
    ]

    def replayed(policy: Policy, some: Sequence[int]) -> list[CrowdReplayed]:
        return replay_crowd(
            record, [policy], some, replay=how.replay, turn_away=how.turn_away, replications=play.replications,
            seed=play.setting.seed, features=play.features,
        )  # fmt: skip

    found: list[CrowdReplayed] = []
    with backend(play.engine or Engine()) as where:
        parallel = Parallel(return_as="generator", **where)
        for k, one in enumerate(parallel(delayed(replayed)(policy, some) for policy, some in work)):
            found += one
            if progress is not None:
                progress((k + 1) / len(work))
    rows = judged(play.setting.recorded)
    return [_rule(one.name, [each for each in found if each.policy == one.name], rows) for one in policies]


def check_times(recorded: CrowdRecord) -> None:
    """Refuse to replay times that are not known."""
    for what, flag, times in (
        ("begun", "--assigned-column", recorded.started),
        ("handed in", "--submitted-column", recorded.submitted),
    ):
        if times is None or not np.isfinite(times).all():
            lacking = 0 if times is None else int(np.count_nonzero(~np.isfinite(times)))
            missing = counted(lacking, "label lacks", "labels lack") if lacking else "no label has"
            raise InputError(
                f"--replay timed needs to know when every label was {what}, and {missing} that time.",
                f"Name the column with {flag}, or use --replay worker-first.",
            )


def _rule(name: str, found: Sequence[CrowdReplayed], rows: Ints) -> PlayedRule:
    ordered = sorted(found, key=lambda one: one.budget)
    curves = {
        readout: Curve(
            np.stack([one.accuracies(readout) for one in ordered], axis=1),
            np.stack([one.right[readout][:, rows].mean(axis=0) for one in ordered], axis=1),
        )
        for readout in ordered[0].right
    }
    return PlayedRule(
        name,
        np.array([one.budget for one in ordered], dtype=np.int64),
        np.array([one.labels_used.mean() for one in ordered], dtype=np.float64),
        curves,
        {"workers": np.array([one.expected.mean() for one in ordered], dtype=np.float64)},
    )


def accuracies(
    played: PlayedRule, readout: str, tasks: int, asked: Sequence[int], rivals: Sequence[PlayedRule | None]
) -> list[PolicyAccuracy]:
    """One policy's accuracy by one read-out at each of its budgets, paired with the rivals': index, first policy."""
    out = []
    curve = played.curves.get(readout)
    for b, U in enumerate(played.budgets.tolist() if curve is not None else ()):
        if curve is None or not curve.known(b):
            continue
        index, first = (_difference(played, other, readout, b) for other in rivals)
        used = float(played.used[b])
        out.append(
            PolicyAccuracy(
                policy=played.name if played.name != FIXED else f"overlap {U}",
                readout=readout,
                budget=U,
                labels_per_task=used / tasks,
                labels_used=used,
                accuracy=curve.at(b),
                minus_index=index,
                minus_first=first,
                believed=float(played.believed[readout][b]) if readout in played.believed else None,
                asked=U in asked,
            )
        )
    return out


def _difference(played: PlayedRule, rival: PlayedRule | None, readout: str, b: int) -> Estimate | None:
    """Accuracy less the rival's with the same budget, if that was played and read out the same way."""
    U = int(played.budgets[b])
    if rival is None or rival is played or readout not in rival.curves or U not in rival.budgets:
        return None
    other, at = rival.curves[readout], rival.budgets.tolist().index(U)
    return played.curves[readout].minus(other, b, at) if other.known(at) else None


def savings(found: Sequence[PlayedRule], fixed: PlayedRule, seed: int) -> list[Saving]:
    """Labels saved against every fixed overlap, by each read-out against each, where whole curves are known."""
    some: dict[Key, Curve] = {
        (one.name, readout): curve
        for one in (*found, fixed)
        for readout, curve in one.curves.items()
        if all(curve.known(b) for b in range(len(one.budgets)))
    }
    drawn, out = resampled(some, seed), []
    overlaps = [(b, k) for b, k in enumerate(fixed.budgets.tolist()) if k > 1]
    for one in found:
        for key in [key for key in some if key[0] == one.name]:
            for b, k in overlaps:
                for other in [other for name, other in some if name == fixed.name]:
                    level, levels = float(some[fixed.name, other].mean[b]), drawn[fixed.name, other][:, b]
                    labels = float(fixed.used[b])
                    numbers = saving(one.used, some[key].mean, drawn[key], level, levels, labels)
                    rest: dict[str, object] = dict(numbers)
                    out.append(Saving(one.name, key[1], k, other, level, labels, **rest))  # type: ignore[arg-type]
    return out


@dataclass(frozen=True, slots=True)
class Rules:
    """What is played: names in the order asked for, those that count, those that learn workers; how it is read out."""

    names: tuple[str, ...]
    counting: tuple[Policy, ...]
    crowd: tuple[Policy, ...]
    readouts: tuple[str, ...]

    @property
    def use_prior(self) -> bool:
        """Whether a policy or a read-out looks at the prior."""
        return "posterior" in self.readouts or any(policy.uses_prior for policy in self.counting)

    @property
    def know_workers(self) -> bool:
        """Whether anything is learnt about workers."""
        return bool(self.crowd) or self.read_out_workers

    @property
    def read_out_workers(self) -> bool:
        """Whether a read-out learns workers, and features if there are any."""
        return not set(LEARNING).isdisjoint(self.readouts)


def backtest(
    labels: Any,
    gold: Any = None,
    *,
    features: Any = None,
    policies: Sequence[Policy | str] | None = None,
    labels_per_task: Sequence[float] | None = None,
    budgets: Sequence[int] | None = None,
    prior: Prior | tuple[float, float] | None = None,
    threshold: float | None = None,
    replications: int | None = None,
    seed: int = 0,
    options: BacktestOptions | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Backtest:
    """Replay ``labels`` under every policy.

    ``labels`` is the path of a file, a data frame, a ``LabelTable`` or a ``CrowdRecord``; ``gold`` is the truth where
    it is known, a path, a data frame or what ``read_gold`` returned, and only judges. Budgets are labels per task or
    labels in all. With workers the policies are ``crowd``, ``crowd-uncertainty`` and ``index``, four to ten
    replications of each, and nothing is held out. Without them they are policies that count votes, 200 replications of
    each; without a ``prior`` some tasks are held out to learn it and, where gold clearly says so, the ``threshold``.
    ``features`` of the tasks, in a form of ``files.features``, are learnt from by policies and read-outs that learn
    workers.
    """
    begin = perf_counter()
    how = options or BacktestOptions()
    recorded = _recorded(labels, gold)
    rules = _rules(policies, how, recorded)
    known = None if features is None else read_features(features, recorded.tasks)
    _check_features(known, rules, how, recorded)
    if how.replay == "timed":
        check_times(recorded)
    count = _count(replications, rules, len(recorded))
    truth = "gold" if (recorded.gold >= 0).any() else "consensus"
    learnt = _learnt(recorded, rules, how, _two_answers(prior), threshold, seed)
    setting, undecided = _judged(
        ReplaySetup(
            recorded.subset(learnt.rest), learnt.prior, learnt.threshold, how.arrival_rate, how.completion_rate,
            how.order, seed,
        ),
        truth, rules,
    )  # fmt: skip
    pool = setting.recorded
    asked, grid, overlaps = choose_budgets(setting, labels_per_task, budgets, crowd=bool(rules.crowd))
    play = Play(setting, how, rules.readouts, asked, grid, overlaps, count, engine, known)
    played = play_rules(play, rules.counting, rules.crowd, progress)
    found = sorted(played.rules, key=lambda one: rules.names.index(one.name))
    index = next((one for one in found if one.name == "index"), None)
    points = [
        point
        for name in rules.readouts
        for one in found
        for point in accuracies(one, name, len(pool.gold), asked, (index, found[0]))
    ]
    fixed = [
        p
        for name in rules.readouts
        for p in accuracies(played.fixed, name, len(pool.gold), list(overlaps), (None, None))
    ]
    saved = [
        one
        for one in savings(found, played.fixed, seed)
        if one.readout in rules.readouts and one.overlap_readout in rules.readouts
    ]
    if progress is not None:
        progress(1.0)
    return Backtest(
        setting=setting,
        pilot=learnt,
        truth=truth,
        known=int((pool.gold >= 0).sum()),
        undecided=undecided,
        ties=how.ties,
        policies=rules.names,
        without_prior=tuple(policy.name for policy in rules.counting if not policy.uses_prior),
        readouts=rules.readouts,
        points=tuple(points),
        overlaps=tuple(fixed),
        ceilings=played.ceilings,
        savings=tuple(saved),
        replications=count,
        seconds=perf_counter() - begin,
        workers=int(np.unique(pool.labels.worker).size) if pool.named else None,
        crowd=tuple(policy.name for policy in rules.crowd),
        replay=how.replay,
        turn_away=how.turn_away,
        uses_prior=rules.use_prior or not rules.know_workers,
        features=None if known is None else known.name,
    )


def _two_answers(prior: Prior | tuple[float, float] | None) -> Prior | None:
    found = None if prior is None else as_prior(prior)
    if found is not None and found.answers != 2:
        raise InputError(f"a replay has two answers, and the prior is {found.describe()}.", "Give two weights: (1, 1).")
    return found


def _recorded(labels: Any, gold: Any) -> CrowdRecord:
    """The labels with the truth where it is known."""
    if isinstance(labels, CrowdRecord):
        recorded = labels
    else:
        table = as_label_table(labels)
        truth = gold if gold is None or isinstance(gold, Gold) else read_gold(gold, table)
        recorded = to_recorded(table, truth, any_answers=True)
    if len(np.unique(recorded.labels.answer)) < 2:
        raise InputError(
            "every label is the same answer, so that there is nothing to tell apart.",
            "Give labels with at least two different answers.",
        )
    return recorded


def _rules(policies: Sequence[Policy | str] | None, how: BacktestOptions, recorded: CrowdRecord) -> Rules:
    """Policies and read-outs, checked against what is known."""
    given = policies or how.default_policies(recorded.named, recorded.labels.answers)
    each_once("policy", [policy for policy in given if isinstance(policy, str)])
    chosen = [make_policy(policy) for policy in given]
    crowd = tuple(policy for policy in chosen if isinstance(policy, WorkerPolicy))
    counting = tuple(policy for policy in chosen if not isinstance(policy, WorkerPolicy))
    learners = [policy.name for policy in crowd]
    names = tuple(policy.name for policy in chosen)
    each_once("policy", list(names))
    for policy in counting:
        if policy.solves_again:
            raise InputError(f"the policy {policy.name} cannot be replayed.", "Use index or lagrangian.")
    usual = how.default_readouts(bool(crowd), recorded.named, recorded.labels.answers)
    readouts = tuple(how.readouts or usual)
    _check_workers(learners, readouts, how, recorded)
    how.check_crowd(learners or (["the read-out workers"] if "workers" in readouts else []), bool(learners))
    two = [policy.name for policy in counting if policy.name not in BLIND]
    if recorded.labels.answers > 2 and (two or "posterior" in readouts or "dawid-skene" in readouts):
        what = two[0] if two else "the read-out posterior or dawid-skene"
        raise InputError(
            f"the labels have {recorded.labels.answers} answers, and {what} knows two.",
            f"Name the one that counts as 1 with --positive, or use {', '.join((*CROWD, *BLIND))} and the read-outs "
            "workers and majority.",
        )
    if how.replay != "task-first" and counting:
        raise InputError(
            f"{counting[0].name} does not look at who is there, so that it cannot be replayed {how.replay}.",
            f"Use {', '.join(CROWD)}, or --replay task-first.",
        )
    if crowd and "posterior" in readouts:
        raise InputError(
            f"{crowd[0].name} has no read-out by posterior, which takes workers to be alike.",
            "Use the read-outs workers and majority.",
        )
    return Rules(names, counting, crowd, readouts)


def _check_workers(crowd: Sequence[str], readouts: Sequence[str], how: BacktestOptions, recorded: CrowdRecord) -> None:
    if "dawid-skene" in readouts:
        needs_crowdkit()
    who = [*crowd[:1], *(f"the read-out {name}" for name in (*LEARNING, "dawid-skene") if name in readouts)]
    if how.replay != "task-first":
        who.append(f"--replay {how.replay}")
    if who and not recorded.named:
        raise InputError(
            f"{who[0]} needs to know who gave each label, and the labels do not say.",
            "Name the column of workers with --worker-column.",
        )


def _check_features(features: Features | None, rules: Rules, how: BacktestOptions, recorded: CrowdRecord) -> None:
    if features is None:
        if "crowdlab" in rules.readouts or "activelab" in rules.names:
            what = "the policy activelab" if "activelab" in rules.names else "the read-out crowdlab"
            raise InputError(f"{what} learns from features of the tasks.", "Give them with --features.")
    elif not rules.know_workers:
        raise InputError(
            f"features are learnt from by {listed(CROWD)} and by the read-outs {listed(LEARNING)}, and none is played.",
            "Add one, or leave --features out.",
        )
    elif how.replay != "task-first" and "activelab" in rules.names:
        raise InputError(f"activelab is not replayed {how.replay}.", "Leave --replay out, or activelab.")
    elif how.replay == "timed":
        raise InputError(
            "--replay timed does not learn from features.", "Leave --features out, or replay worker-first."
        )
    elif (features.rows_of(recorded.tasks) < 0).all():
        raise InputError(f"{features.name} has no item that has labels.", "Give the tasks the names that labels have.")


def _count(replications: int | None, rules: Rules, labels: int) -> int:
    if replications is None:
        return default_replications(labels) if rules.know_workers else COUNTING_REPLICATIONS
    if replications < 2:
        raise InputError(f"{replications} replication has no interval.", "Give at least two, e.g. --replications 200.")
    return replications


def _learnt(
    recorded: CrowdRecord, rules: Rules, how: BacktestOptions, prior: Prior | None, threshold: float | None, seed: int
) -> PilotFit:
    """What rules that count are told beforehand."""
    if how.pilot is not None and not rules.use_prior and rules.know_workers:
        raise InputError(
            "a pilot gives rules that count votes their prior, and none of them is played.",
            "Leave --pilot-tasks out, or add a policy such as index.",
        )
    if (rules.know_workers or recorded.labels.answers > 2) and how.pilot is None:
        known = prior if rules.use_prior else as_prior((1, 1))
        return from_all_labels(recorded, known, threshold, how.method, seed)
    return hold_out(recorded, how.pilot or PILOT, prior, threshold, how.method, seed)


def _judged(setting: ReplaySetup, truth: str, rules: Rules) -> tuple[ReplaySetup, int]:
    """The tasks with what they are judged by, and how many of them all labels together leave undecided."""
    pool, undecided = setting.recorded, 0
    if truth == "consensus":
        readout = "workers" if rules.know_workers else "posterior" if pool.labels.answers == 2 else "majority"
        said = winners(scores_of(readout, setting, *everything(pool)))
        undecided = int((said < 0).sum())
        pool = replace(pool, gold=said)
    if not (pool.gold >= 0).any():
        raise InputError(
            "no replayed task has a known truth.", "Give gold for more tasks, or hold out fewer, or give no gold."
        )
    return replace(setting, recorded=pool), undecided
