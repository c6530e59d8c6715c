"""All rules of a backtest, played and read out: those that count votes, and those that learn workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.backtesting.collected import (
    CollectedReadout,
    beliefs_of,
    by_dawid_skene,
    by_scores,
    everything,
    posteriors_of,
    votes_of,
)
from nextlabel.backtesting.crowd_rules import play_crowd_policies
from nextlabel.backtesting.options import BacktestOptions
from nextlabel.backtesting.played import PlayedRule, collected_curve, count_votes, followed, judged
from nextlabel.backtesting.readout import COUNTING, FITS, accuracy_of, with_all_labels
from nextlabel.backtesting.replays import FIXED, BacktestSetup, OutcomeCounts, replay_overlaps, replay_policy
from nextlabel.files.labels import LabelTable
from nextlabel.policies.base import Policy
from nextlabel.simulation.engine import Engine
from nextlabel.solve.progress import Progress, part


@dataclass(frozen=True, slots=True)
class Play:
    """What is played: the setting, options, budgets asked for, all budgets, overlaps, replications."""

    setting: BacktestSetup
    options: BacktestOptions
    readouts: tuple[str, ...]
    asked: list[int]
    grid: list[int]
    overlaps: tuple[int, ...]
    replications: int
    engine: Engine | None = None

    def budgets(self, policy: Policy) -> list[int]:
        """A policy that is planned for one budget plays only those asked for."""
        return self.asked if policy.planned_ahead else self.grid


@dataclass(frozen=True, slots=True)
class Played:
    """Every policy, the fixed overlaps, and the accuracy that all labels have by each read-out."""

    rules: list[PlayedRule]
    fixed: PlayedRule
    ceilings: dict[str, float]


def play_counting(play: Play, policies: Sequence[Policy], progress: Progress | None) -> Played:
    """Policies that count votes, on labels whose givers are not looked at, save by Dawid-Skene."""
    setting, pool = play.setting, play.setting.recorded
    counting = [name for name in COUNTING if name in play.readouts or name == "posterior"]
    keep = followed(len(pool), len(play.grid), play.replications)
    outcomes = [
        replay_policy(
            setting, policy, play.budgets(policy), play.replications, keep=keep, engine=play.engine,
            progress=part(progress, k, len(policies) + ("dawid-skene" in play.readouts)),
        )
        for k, policy in enumerate(policies)
    ]  # fmt: skip
    outcomes.append(replay_overlaps(setting, play.overlaps, play.replications, keep=keep, engine=play.engine))
    ties = play.options.ties
    rules = [count_votes(setting, one, counting, ties) for one in outcomes]
    ceilings = {
        name: accuracy_of(with_all_labels(name, pool, setting.prior, setting.threshold), pool.gold, ties)
        for name in counting
        if name in play.readouts
    }
    if "dawid-skene" in play.readouts:
        _read_dawid_skene(play, outcomes, rules, ceilings)
    return Played(rules[:-1], rules[-1], ceilings)


def _read_dawid_skene(
    play: Play, outcomes: Sequence[OutcomeCounts], rules: Sequence[PlayedRule], ceilings: dict[str, float]
) -> None:
    pool = play.setting.recorded
    read_out = by_dawid_skene(pool, play.options.ties)
    ceilings["dawid-skene"] = float(read_out(*everything(pool))[judged(pool)].mean())
    for one, rule in zip(outcomes, rules, strict=True):
        few = replace(one, taken=one.taken[:FITS])
        rule.curves["dawid-skene"] = collected_curve(
            play.setting, few, read_out, None if one.name == FIXED else play.asked
        )


def play_with_workers(
    play: Play, policies: Sequence[Policy], crowd: Sequence[str], table: LabelTable | None, progress: Progress | None
) -> Played:
    """Policies that learn workers, policies that count votes, and fixed overlaps, read out by who gave which label."""
    setting, pool = play.setting, play.setting.recorded
    learners = play_crowd_policies(
        setting, crowd, play.grid, play.options, play.replications, table, play.engine,
        _share(progress, len(crowd), len(crowd) + len(policies)),
    )  # fmt: skip
    readouts = collected_readouts(play)
    fixed = _overlap_outcomes(setting, play.overlaps, play.replications)
    outcomes, rules = [fixed], [PlayedRule(FIXED, fixed.budgets, fixed.used.mean(axis=0))]
    for k, policy in enumerate(policies):
        one = replay_policy(
            setting, policy, play.budgets(policy), play.replications, keep=play.replications, engine=play.engine,
            progress=part(progress, len(crowd) + k, len(crowd) + len(policies)),
        )  # fmt: skip
        outcomes.append(one)
        rules.append(count_votes(setting, one, [name for name in COUNTING if name in play.readouts], "half"))
    for one, rule in zip(outcomes, rules, strict=True):
        for name, read_out in readouts.items():
            if name not in rule.curves:
                few = replace(one, taken=one.taken[:FITS]) if name == "dawid-skene" else one
                only = play.asked if name == "dawid-skene" and one is not fixed else None
                rule.curves[name] = collected_curve(setting, few, read_out, only)
    ceilings = {name: float(read(*everything(pool))[judged(pool)].mean()) for name, read in readouts.items()}
    return Played([*learners, *rules[1:]], rules[0], ceilings)


def _share(progress: Progress | None, done: int, of: int) -> Progress | None:
    """Progress of the first ``done`` of ``of`` equal pieces, together."""
    return None if progress is None or done == 0 else lambda fraction: progress(fraction * done / of)


def collected_readouts(play: Play) -> dict[str, CollectedReadout]:
    """The read-outs asked for, as functions of the labels collected."""
    pool = play.setting.recorded
    known: dict[str, Callable[[], CollectedReadout]] = {
        "workers": lambda: by_scores(pool, beliefs_of),
        "majority": lambda: by_scores(pool, votes_of),
        "posterior": lambda: by_scores(pool, partial(posteriors_of, play.setting.prior, play.setting.threshold)),
        "dawid-skene": lambda: by_dawid_skene(pool, play.options.ties),
    }
    return {name: known[name]() for name in play.readouts if name in known}


def _overlap_outcomes(setting: BacktestSetup, overlaps: Sequence[int], replications: int) -> OutcomeCounts:
    """Every task is given its first k labels, or all it has."""
    taken = np.stack([np.minimum(setting.recorded.counts, k) for k in overlaps])
    each: Ints = np.tile(taken, (replications, 1, 1))
    return OutcomeCounts(FIXED, np.array(overlaps), np.zeros((0, 0, 0, 0), dtype=np.int64), each.sum(axis=2), each)
