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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.backtesting.pilot import PilotFit, hold_out
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
from nextlabel.errors import one_of, refuse
from nextlabel.files.features import Features, read_features
from nextlabel.files.labels import as_gold, as_label_table
from nextlabel.model.estimate import Estimate
from nextlabel.model.lattice import triangle_counts
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem, as_prior
from nextlabel.policies.base import Policy
from nextlabel.policies.crowd.policies import WorkerPolicy
from nextlabel.policies.index import Index
from nextlabel.policies.registry import make_policy
from nextlabel.simulation.crowd_replay import REPLAYS, CrowdReplayed, Schedule, replay_crowd
from nextlabel.simulation.engine import Engine, run_chunks
from nextlabel.simulation.replay import (
    ARRIVALS,
    AT_ONCE_RATE,
    FIXED,
    ORDERS,
    TIES,
    CrowdRecord,
    Outcomes,
    ReplaySetup,
    credits,
    labels_at,
    replay_overlaps,
    replay_policy,
    to_recorded,
)
from nextlabel.solve.index import index_table
from nextlabel.solve.progress import Progress, part
from nextlabel.wording import listed

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
        one_of("order", self.order, ORDERS)
        one_of("ties", self.ties, TIES)
        one_of("replay", self.replay, REPLAYS)
        for name in self.readouts or ():
            one_of("read-out", name, READOUTS)
        each_once("read-out", self.readouts or ())
        refuse((
            self.turn_away and self.replay == "task-first",
            "nobody can be turned away when tasks are named first.",
            "Add --replay worker-first (or timed), or leave --turn-away out.",
        ))  # fmt: skip

    @property
    def not_for_learners(self) -> tuple[tuple[bool, str], ...]:
        """What policies that learn workers are not replayed with, each with whether it is so."""
        in_flight = self.arrival_rate / self.completion_rate >= 1e-3
        return (
            (in_flight, "labels in flight at a given rate: real times are replayed with --replay timed"),
            (self.order != "random", f"the order {self.order!r}: their labels come in random order"),
            (self.ties != "half", f"ties decided as {self.ties!r}: theirs count half"),
        )


def default_replications(labels: int) -> int:
    """Replays of each policy that learns workers: fewer of large sets, whose tasks say more than their orders."""
    return max(LEAST_REPLICATIONS, min(MOST_REPLICATIONS, CROWD_LABELS // max(1, labels)))


def each_once(what: str, names: Sequence[str]) -> None:
    """Refuse a name that is given twice."""
    for name in names:
        refuse((list(names).count(name) > 1, f"{what} {name!r} is given twice.", "Give each one once."))


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
        refuse((
            not 1 <= U <= most,
            f"a budget of {U:,} labels ({U / K:.3g} per task) is asked for, and the {K:,} replayed tasks have "
            f"{most:,} ({most / K:.3g} per task).",
            "Give fewer, e.g. --labels-per-task 3.",
        ))  # fmt: skip
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


class Rules(NamedTuple):
    """What is played: policies that learn workers, those that count votes, all names as asked for, and the read-outs.

    ``use_prior``: a policy or a read-out looks at the prior; ``know_workers``: something is learnt about workers.
    """

    crowd: Sequence[Policy]
    counting: Sequence[Policy]
    names: tuple[str, ...]
    readouts: tuple[str, ...]
    use_prior: bool
    know_workers: bool


@dataclass(frozen=True, slots=True, eq=False)
class PlayedRule:
    """One rule over rising budgets (for overlaps: numbers of labels per task), with the labels that it used."""

    name: str
    budgets: Ints
    used: Floats
    curves: dict[str, Curve]
    #: (B,) the accuracy that the model behind a read-out expects after these labels, where it has an opinion.
    believed: dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Play:
    """What is played: setting, options, rules, budgets asked for, all budgets, overlaps, replications."""

    setting: ReplaySetup
    options: BacktestOptions
    rules: Rules
    asked: list[int]
    grid: list[int]
    overlaps: tuple[int, ...]
    replications: int
    engine: Engine | None = None
    features: Features | None = None

    @property
    def judged(self) -> Ints:
        """Rows of the tasks whose truth is known."""
        return np.flatnonzero(self.setting.recorded.gold >= 0)

    def right(self, readout: str, drawn: Ints, taken: Ints) -> Floats:
        """What each judged task is worth, read out from the first ``taken`` of its ``drawn`` labels."""
        scores = scores_of(readout, self.setting, drawn, taken, self.features)
        return right_by(scores, self.setting.recorded.gold, self.options.ties)[self.judged]

    def collected_curve(self, readout: str, budgets: Ints, taken: Ints, only: Sequence[int]) -> Curve:
        """The curve of a read-out that sees who gave which label, at ``only`` some of the budgets (nan at others).

        ``taken`` (replications, budgets, K) are the labels of each task.
        """
        by_order = np.full(taken.shape[:2], np.nan)
        by_task = np.zeros((len(self.judged), len(budgets)))
        for rep, each in enumerate(taken):
            drawn = self.setting.drawn(rep)
            for b in np.flatnonzero(np.isin(budgets, only)).tolist():
                right = self.right(readout, drawn, each[b])
                by_order[rep, b] = right.mean()
                by_task[:, b] += right / len(taken)
        return Curve(by_order, by_task)

    def rules_that_count(self, progress: Progress | None) -> list[PlayedRule]:
        """Policies that count votes, and fixed overlaps last; one that is planned for one budget plays those asked for.

        Posterior and majority are read off the counts of two answers; all else is read out of the labels collected.
        """
        setting, pool, depth = self.setting, self.setting.recorded, self.setting.depth
        if pool.labels.answers > 2:  # they look at no answer
            labels = pool.labels._replace(answer=np.minimum(pool.labels.answer, 1), answers=2)
            setting = replace(setting, recorded=replace(pool, labels=labels, gold=np.minimum(pool.gold, 1)))
        counted = [name for name in COUNTING if pool.labels.answers == 2 and name in self.rules.readouts]
        collected = set(self.rules.readouts).difference(counted)
        above = setting.prior.above(setting.threshold, *triangle_counts(depth))
        tables = [
            credits(decisions(name, setting.prior, setting.threshold, depth), self.options.ties) for name in counted
        ]
        worth = np.array([*tables, np.maximum(above, 1.0 - above)[:, None].repeat(2, axis=1)])
        keep = max(2, min(MOST_FOLLOWED, self.replications, MOST_CELLS // max(1, len(pool.gold) * len(self.grid))))
        keep = self.replications if collected.difference({"dawid-skene"}) else keep
        outcomes, policies = [], self.rules.counting
        for k, policy in enumerate(policies):
            budgets, mine = self.asked if policy.planned_ahead else self.grid, part(progress, k, len(policies))
            rule = for_budgets(setting, policy, budgets[-1])
            outcomes.append(
                replay_policy(
                    setting, rule, budgets, self.replications, worth, keep=keep, engine=self.engine, progress=mine
                )
            )
        outcomes.append(
            replay_overlaps(setting, self.overlaps, self.replications, worth, keep=keep, engine=self.engine)
        )
        return [self._read_out(one, dict(zip(counted, tables, strict=True))) for one in outcomes]

    def _read_out(self, one: Outcomes, counted: dict[str, Floats]) -> PlayedRule:
        """The curves of one rule, by what its counts are worth or by who gave which label."""
        curves, truth = dict[str, Curve](), self.setting.recorded.gold[self.judged]
        for name in self.rules.readouts:
            if name in counted:
                ends = [counted[name][each[:, self.judged].T, truth[:, None]] for each in one.ends]
                curves[name] = Curve(one.worth[:, :, list(counted).index(name)], np.mean(ends, axis=0))
            else:
                slow = name == "dawid-skene"
                only = self.asked if slow and one.name != FIXED else one.budgets.tolist()
                taken = labels_at(one.ends[:FITS] if slow else one.ends)
                curves[name] = self.collected_curve(name, one.budgets, taken, only)
        expected = {"posterior": one.worth[:, :, -1].mean(axis=0)}
        return PlayedRule(one.name, one.budgets, one.used.mean(axis=0), curves, expected)

    def rules_that_learn(self, progress: Progress | None) -> list[PlayedRule]:
        """Policies that learn workers.

        One campaign serves all budgets, if the policy does the same whatever the budget is; or else one each.
        """
        how, work = self.options, list[tuple[Policy, list[int]]]()
        for policy in self.rules.crowd:
            apart = policy.planned_ahead or how.replay != "task-first"
            work += [(policy, [U]) for U in self.grid] if apart else [(policy, self.grid)]

        def chunk(first: int, count: int) -> tuple[Any, ...]:
            found = np.empty(count, dtype=object)
            for k, (policy, some) in enumerate(work[first : first + count]):
                found[k] = replay_crowd(
                    self.setting.recorded, [policy], some, replay=how.replay, turn_away=how.turn_away,
                    replications=self.replications, seed=self.setting.seed, features=self.features,
                )  # fmt: skip
            return (found,)

        parts = run_chunks(self.engine or Engine(), chunk, len(work), progress)[0] if work else ()
        every = [one for part in parts for one in part]
        return [self._learnt([one for one in every if one.policy == policy.name]) for policy in self.rules.crowd]

    def _learnt(self, found: Sequence[CrowdReplayed]) -> PlayedRule:
        """One policy that learns workers, at all its budgets."""
        curves = {
            readout: Curve(
                np.stack([one.accuracies(readout) for one in found], axis=1),
                np.stack([one.right[readout][:, self.judged].mean(axis=0) for one in found], axis=1),
            )
            for readout in self.rules.readouts
            if readout in found[0].right
        }
        used, expected = (
            np.array([getattr(one, name).mean() for one in found], dtype=np.float64)
            for name in ("labels_used", "expected")
        )
        return PlayedRule(found[0].policy, np.array([one.budget for one in found]), used, curves, {"workers": expected})


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


def accuracies(
    played: PlayedRule, readout: str, tasks: int, asked: Sequence[int], rivals: Sequence[PlayedRule | None]
) -> list[PolicyAccuracy]:
    """One policy's accuracy by one read-out at each of its budgets, paired with the rivals': index, first policy."""
    curve, believed = played.curves.get(readout), played.believed.get(readout)
    if curve is None:
        return []
    return [
        PolicyAccuracy(
            policy=played.name if played.name != FIXED else f"overlap {U}",
            readout=readout,
            budget=U,
            labels_per_task=float(played.used[b]) / tasks,
            labels_used=float(played.used[b]),
            accuracy=curve.at(b),
            minus_index=_difference(played, rivals[0], readout, b),
            minus_first=_difference(played, rivals[1], readout, b),
            believed=None if believed is None else float(believed[b]),
            asked=U in asked,
        )
        for b, U in enumerate(played.budgets.tolist())
        if curve.known(b)
    ]


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
        if not np.isnan(curve.by_order[0]).any()
    }
    drawn, out, rivals = resampled(some, seed), [], [key for key in some if key[0] == fixed.name]
    for one in found:
        for key in [key for key in some if key[0] == one.name]:
            for b, k in enumerate(fixed.budgets.tolist()):
                for rival in rivals if k > 1 else ():
                    level, levels, labels = float(some[rival].mean[b]), drawn[rival][:, b], float(fixed.used[b])
                    numbers: dict[str, Any] = saving(one.used, some[key].mean, drawn[key], level, levels, labels)
                    out.append(Saving(*key, k, rival[1], level, labels, **numbers))
    return out


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
    how, recorded = options or BacktestOptions(), _recorded(labels, gold)
    rules = _rules(policies, how, recorded)
    known = None if features is None else read_features(features, recorded.tasks)
    _check_features(known, rules, how, recorded)
    if how.replay == "timed":
        Schedule.of(recorded, 1)  # refuses labels without times
    refuse((
        replications is not None and replications < 2,
        f"{replications} replication has no interval.",
        "Give at least two, e.g. --replications 200.",
    ))  # fmt: skip
    count = replications or (default_replications(len(recorded)) if rules.know_workers else COUNTING_REPLICATIONS)
    truth = "gold" if (recorded.gold >= 0).any() else "consensus"
    learnt = _learnt(recorded, rules, how, prior, threshold, seed)
    rates = how.arrival_rate, how.completion_rate
    setting, undecided = _judged(
        ReplaySetup(recorded.subset(learnt.rest), learnt.prior, learnt.threshold, *rates, how.order, seed), truth, rules
    )
    pool, crowd = setting.recorded, len(rules.crowd)
    budgeted = choose_budgets(setting, labels_per_task, budgets, crowd=crowd > 0)
    play = Play(setting, how, rules, *budgeted, count, engine, known)
    steps = crowd + len(rules.counting) + ("dawid-skene" in rules.readouts)
    learners = play.rules_that_learn(None if progress is None else lambda done: progress(done * crowd / steps))
    *counters, fixed = play.rules_that_count(
        None if progress is None else lambda done: progress((crowd + done * len(rules.counting)) / steps)
    )
    found = sorted([*learners, *counters], key=lambda one: rules.names.index(one.name))
    index = next((one for one in found if one.name == "index"), None)
    points, overlaps = (
        tuple(
            point
            for name in rules.readouts
            for one in some
            for point in accuracies(one, name, len(pool.gold), asked, rivals)
        )
        for some, asked, rivals in ((found, play.asked, (index, found[0])), ([fixed], play.overlaps, (None, None)))
    )
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
        points=points,
        overlaps=overlaps,
        ceilings={name: float(play.right(name, *everything(pool)).mean()) for name in rules.readouts},
        savings=tuple(savings(found, fixed, seed)),
        replications=count,
        seconds=perf_counter() - begin,
        workers=int(np.unique(pool.labels.worker).size) if pool.named else None,
        crowd=tuple(policy.name for policy in rules.crowd),
        replay=how.replay,
        turn_away=how.turn_away,
        uses_prior=rules.use_prior or not rules.know_workers,
        features=None if known is None else known.name,
    )


def _recorded(labels: Any, gold: Any) -> CrowdRecord:
    """The labels with the truth where it is known."""
    if isinstance(labels, CrowdRecord):
        recorded = labels
    else:
        table = as_label_table(labels)
        recorded = to_recorded(table, as_gold(gold, table), any_answers=True)
    refuse((
        len(np.unique(recorded.labels.answer)) < 2,
        "every label is the same answer, so that there is nothing to tell apart.",
        "Give labels with at least two different answers.",
    ))  # fmt: skip
    return recorded


def _rules(policies: Sequence[Policy | str] | None, how: BacktestOptions, recorded: CrowdRecord) -> Rules:
    """Policies and read-outs, checked against what is known."""
    many, timed = recorded.labels.answers, how.replay != "task-first"
    counted = WITHOUT_WORKERS if many == 2 else BLIND[:1]
    if recorded.named and not any(wrong for wrong, _ in how.not_for_learners):
        beside = BESIDE_CROWD if many == 2 else BLIND[:1]
        counted = (*CROWD, *(() if timed else beside))
    chosen = [make_policy(policy) for policy in policies or counted]
    each_once("policy", [policy.name for policy in chosen])
    learn = [policy for policy in chosen if isinstance(policy, WorkerPolicy)]
    count = [policy for policy in chosen if not isinstance(policy, WorkerPolicy)]
    crowd, counting = [policy.name for policy in learn], [policy.name for policy in count]
    read = ("workers", "majority") if crowd or many > 2 else COUNTING
    readouts = tuple(how.readouts or (read if many == 2 or recorded.named else ("majority",)))
    if "dawid-skene" in readouts:
        needs_crowdkit()
    again = [policy.name for policy in count if policy.solves_again]
    who = [*crowd, *(f"the read-out {name}" for name in (*LEARNING, "dawid-skene") if name in readouts)]
    learners = crowd or ["the read-out workers"] * ("workers" in readouts)
    two = [name for name in counting if name not in BLIND]
    two += ["the read-out posterior or dawid-skene"] * (not {"posterior", "dawid-skene"}.isdisjoint(readouts))
    refuse(
        (again, f"the policy {listed(again[:1])} cannot be replayed.", "Use index or lagrangian."),
        (
            (who or timed) and not recorded.named,
            f"{[*who, f'--replay {how.replay}'][0]} needs to know who gave each label, and the labels do not say.",
            "Name the column of workers with --worker-column.",
        ),
        (
            timed and not crowd,
            f"--replay {how.replay} is for policies that learn workers: {', '.join(CROWD)}.",
            "Add one with --policy, or leave --replay out.",
        ),
        *(
            (
                wrong and learners,
                f"{listed(learners[:1])} is not replayed with {what}.",
                "Leave that out, or this policy.",
            )
            for wrong, what in how.not_for_learners
        ),
        (
            many > 2 and two,
            f"the labels have {many} answers, and {listed(two[:1])} knows two.",
            f"Name the one that counts as 1 with --positive, or use {', '.join((*CROWD, *BLIND))} and the read-outs "
            "workers and majority.",
        ),
        (
            timed and counting,
            f"{listed(counting[:1])} does not look at who is there, so that it cannot be replayed {how.replay}.",
            f"Use {', '.join(CROWD)}, or --replay task-first.",
        ),
        (
            crowd and "posterior" in readouts,
            f"{listed(crowd[:1])} has no read-out by posterior, which takes workers to be alike.",
            "Use the read-outs workers and majority.",
        ),
    )
    use_prior = "posterior" in readouts or any(policy.uses_prior for policy in count)
    know_workers = bool(crowd) or not set(LEARNING).isdisjoint(readouts)
    return Rules(learn, count, tuple(policy.name for policy in chosen), readouts, use_prior, know_workers)


def _check_features(features: Features | None, rules: Rules, how: BacktestOptions, recorded: CrowdRecord) -> None:
    activelab = "activelab" in rules.names
    if features is None:
        what = "the policy activelab" if activelab else "the read-out crowdlab"
        wanted = activelab or "crowdlab" in rules.readouts
        refuse((wanted, f"{what} learns from features of the tasks.", "Give them with --features."))
        return
    refuse(
        (
            not rules.know_workers,
            f"features are learnt from by {listed(CROWD)} and by the read-outs {listed(LEARNING)}, and none is played.",
            "Add one, or leave --features out.",
        ),
        (
            how.replay != "task-first" and activelab,
            f"activelab is not replayed {how.replay}.",
            "Leave --replay out, or activelab.",
        ),
        (
            how.replay == "timed",
            "--replay timed does not learn from features.",
            "Leave --features out, or replay worker-first.",
        ),
        (
            (features.rows_of(recorded.tasks) < 0).all(),
            f"{features.name} has no item that has labels.",
            "Give the tasks the names that labels have.",
        ),
    )


def _learnt(
    recorded: CrowdRecord, rules: Rules, how: BacktestOptions, given: Prior | tuple[float, float] | None,
    threshold: float | None, seed: int,
) -> PilotFit:  # fmt: skip
    """What rules that count are told beforehand."""
    prior = None if given is None else as_prior(given)
    if prior is not None:
        what = f"a replay has two answers, and the prior is {prior.describe()}."
        refuse((prior.answers != 2, what, "Give two weights: (1, 1)."))
    refuse((
        how.pilot is not None and not rules.use_prior and rules.know_workers,
        "a pilot gives rules that count votes their prior, and none of them is played.",
        "Leave --pilot-tasks out, or add a policy such as index.",
    ))  # fmt: skip
    if (rules.know_workers or recorded.labels.answers > 2) and how.pilot is None:
        return hold_out(recorded, 0, prior if rules.use_prior else as_prior((1, 1)), threshold, how.method, seed)
    return hold_out(recorded, how.pilot or PILOT, prior, threshold, how.method, seed)


def _judged(setting: ReplaySetup, truth: str, rules: Rules) -> tuple[ReplaySetup, int]:
    """The tasks with what they are judged by, and how many of them all labels together leave undecided."""
    pool, undecided = setting.recorded, 0
    if truth == "consensus":
        readout = "workers" if rules.know_workers else "posterior" if pool.labels.answers == 2 else "majority"
        said = winners(scores_of(readout, setting, *everything(pool)))
        undecided = int((said < 0).sum())
        pool = replace(pool, gold=said)
    refuse((
        not (pool.gold >= 0).any(),
        "no replayed task has a known truth.",
        "Give gold for more tasks, or hold out fewer, or give no gold.",
    ))  # fmt: skip
    return replace(setting, recorded=pool), undecided
