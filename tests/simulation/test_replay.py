"""Recorded labels: reading them, learning from history, and replaying them without using a label twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelled_crowds import of_padded, padded
from nextlabel.backtesting.pilot import choose_threshold, hold_out
from nextlabel.errors import FileFormatError, InputError
from nextlabel.kernels.events import FILE, ORDER, RANDOM, REVERSED, RecordedLabels, draw_recorded, stream_key, uniform
from nextlabel.model.beta import Beta
from nextlabel.model.prior_learning import learn_prior
from nextlabel.model.problem import Problem
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.index import Index
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.policies.rollout_arrays import Rollout, make_policy_arrays, make_problem_arrays
from nextlabel.simulation import replay as replay_module
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.replay import CrowdRecord, ReplaySetup
from nextlabel.solve.index import index_table
from studies.fig2 import Replayed, replay
from studies.study import find_set
from tolerances import PRINTED


def crowd(tasks: int = 30, most: int = 6, seed: int = 1, *, uneven: bool = False) -> CrowdRecord:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, (tasks, most))
    counts = rng.integers(1, most + 1, tasks) if uneven else np.full(tasks, most)
    labels[np.arange(most)[None, :] >= counts[:, None]] = -1
    return padded(tuple(f"t{x}" for x in range(tasks)), labels, rng.integers(0, 2, tasks))


def draw(
    recorded: CrowdRecord, order: int, replication: int = 0, K: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    rows = np.zeros(K or len(recorded.gold), dtype=np.int64)
    out = np.zeros((len(rows), recorded.said.shape[1]), dtype=np.int64)
    draw_recorded(recorded.said, recorded.counts, 7, replication, order, rows, out)
    return rows, out


# --- orders ---------------------------------------------------------------------------------------


def test_file_order_keeps_and_reversed_turns_round() -> None:
    recorded = crowd(uneven=True)
    rows, kept = draw(recorded, FILE)
    _, turned = draw(recorded, REVERSED)
    for k, x in enumerate(rows):
        m = recorded.counts[x]
        assert list(kept[k, :m]) == list(recorded.said[x, :m])
        assert list(turned[k, :m]) == list(recorded.said[x, :m])[::-1]
        assert (kept[k, m:] == -1).all() and (turned[k, m:] == -1).all()


def test_random_order_permutes_each_tasks_labels_and_is_fresh_in_every_replication() -> None:
    recorded = crowd(tasks=200, most=8)
    recorded = padded(recorded.tasks, np.tile(np.arange(8), (200, 1)), recorded.gold)
    rows, one = draw(recorded, RANDOM, 0)
    _, two = draw(recorded, RANDOM, 1)
    assert sorted(rows) == list(range(200))
    assert (np.sort(one, axis=1) == np.arange(8)).all()
    assert (one != two).any()
    # each label is first equally often: 200 tasks x 50 replications, within five standard errors
    first = np.bincount(np.concatenate([draw(recorded, RANDOM, i)[1][:, 0] for i in range(50)]), minlength=8)
    assert np.abs(first / 10_000 - 1 / 8).max() < 5 * np.sqrt(1 / 8 * 7 / 8 / 10_000)


def test_fewer_tasks_are_a_part_of_the_same_draw() -> None:
    recorded = crowd(tasks=50)
    all_rows, all_labels = draw(recorded, RANDOM)
    rows, labels = draw(recorded, RANDOM, K=10)
    assert (rows == all_rows[:10]).all() and (labels == all_labels[:10]).all()


def test_the_draw_is_a_sort_of_the_tasks_uniforms() -> None:
    recorded = crowd(tasks=50)
    key = stream_key(7, 3, ORDER)
    rows, _ = draw(recorded, RANDOM, 3, K=20)
    assert list(rows) == list(np.argsort([uniform(key, x, 0) for x in range(50)])[:20])


# --- no label twice -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["index", "okg", "uniform", "random", "uncertainty"])
def test_what_comes_in_is_the_beginning_of_each_tasks_labels(name: str) -> None:
    """The node a task ends in counts exactly its first labels, so none was used twice and none was made up."""
    recorded = crowd()
    K, most = len(recorded.gold), recorded.said.shape[1]
    setting = Setting.of(Problem.identical(K, 100, arrival_rate=4.0), most, most)
    labels = RecordedLabels(recorded.said, recorded.counts, np.zeros(most + 1, dtype=np.int64), FILE)
    arrays, tables = make_problem_arrays(setting, True), make_policy_arrays(setting, make_policy(name))
    out, ends = Rollout(arrays, tables, recorded=labels).play(3, 0, 1, K)
    view = setting.views[0]
    seen, ones = view.level[ends[0, 0]], view.ones[ends[0, 0]]
    assert seen.sum() == out[0, 0, 1] == 100
    assert list(ones) == [int(recorded.said[x, : seen[x]].sum()) for x in range(K)]


@pytest.mark.parametrize("policy", [Index(cap=2), "uniform", "random"])
def test_a_task_that_runs_out_is_no_longer_offered(policy: Policy | str) -> None:
    recorded = crowd(tasks=12, most=3, uneven=True)
    total = int(recorded.counts.sum())
    found = replay(ReplaySetup(recorded), [policy], budget=total + 20, replications=5)[0]
    assert found.labels_used == total
    assert found.most_labels == recorded.counts.max()
    votes = recorded.shares()
    right = np.where(votes == 0.5, 0.5, (votes > 0.5) == recorded.gold)
    assert found.accuracy.mean == pytest.approx(right.mean())


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"lagrangian", "resolve"}))
def test_every_policy_replays(name: str) -> None:
    found = replay(ReplaySetup(crowd()), [name], budget=60, tasks=20, replications=3)[0]
    assert found.labels_used == 60
    assert 0.0 <= found.accuracy.mean <= 1.0


def test_the_same_digits_for_any_number_of_jobs() -> None:
    recorded = crowd(uneven=True)
    one, two = (
        replay(
            ReplaySetup(recorded),
            ["okg", "random"],
            budget=[50, 30],
            tasks=20,
            replications=23,
            engine=Engine(jobs=jobs),
        )
        for jobs in (1, 3)
    )
    assert all(same(a, b) for a, b in zip(one, two, strict=True))


# --- several budgets ------------------------------------------------------------------------------

#: Fewer labels than one task has, a few, twice the same, more than there are; in no order.
BUDGETS = (60, 4, 35, 60, 200, 23, 1)


class ByTheEnd(Policy):
    """Scores drawn once that change with the last few arrivals, and with the budget if it is told to."""

    name = "by-the-end"
    in_flight = "all of it"

    def __init__(self, rows: int, *, told: bool = False, planned: bool = False) -> None:
        self.rows, self.told, self.planned = rows, told, planned

    def scores(self, setting: Setting) -> list[ScoreTables]:
        out = []
        for view in setting.views:
            rng = np.random.default_rng(setting.problem.budget if self.told else 5)
            shape = (view.flight + 1, view.nodes)
            core = np.arange(view.given.size).reshape(shape)
            plan = np.cumsum(rng.random((setting.problem.budget, core.size)), axis=0) if self.planned else None
            scores = rng.integers(0, 3, (self.rows, core.size, 1)).astype(np.float64)
            out.append(ScoreTables(rng.random(shape), scores, core, planned=plan))
        return out


def same(a: Replayed, b: Replayed) -> bool:
    numbers = (a.name, a.budget, a.labels_used, a.most_labels) == (b.name, b.budget, b.labels_used, b.most_labels)
    return numbers and bool((a.accuracies == b.accuracies).all())


def check_budgets(
    recorded: CrowdRecord, policy: Policy | str, budgets: tuple[int, ...] = BUDGETS, **options: int
) -> None:
    """All budgets at once are digit for digit what each gives alone; labels are in flight when they end."""
    setup = ReplaySetup(recorded, arrival_rate=4.0)
    together = replay(setup, [policy], budget=budgets, **options)
    alone = [one for b in budgets for one in replay(setup, [policy], budget=b, **options)]
    assert [one.budget for one in together] == list(budgets)
    assert all(same(a, b) for a, b in zip(together, alone, strict=True))


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"index", "lagrangian", "resolve"}))
def test_all_budgets_at_once_are_each_alone(name: str, uneven: bool) -> None:
    budgets = (4, 23) if name == "auto" else BUDGETS  # which solves an index for each
    check_budgets(crowd(uneven=uneven), name, budgets, tasks=20, replications=4)


def test_an_index_plays_all_budgets_at_once() -> None:
    table = index_table(Problem.identical(20, 200, arrival_rate=4.0), cap=6)
    assert len(table.classes[0].rows) > 1
    check_budgets(crowd(), Index(table), tasks=20, replications=4)


@pytest.mark.parametrize("rows", [1, 2, 7, 90])
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("planned", [False, True])
def test_tables_that_change_towards_the_end(rows: int, told: bool, planned: bool) -> None:
    check_budgets(crowd(), ByTheEnd(rows, told=told, planned=planned), tasks=20, replications=4)


@pytest.mark.parametrize(
    ("policy", "campaigns"),
    [
        (make_policy("okg"), 2),  # a budget of 4 has a smaller lattice
        (make_policy("thompson"), 2),
        (ByTheEnd(7), 2),
        (ByTheEnd(7, told=True), 4),
        (ByTheEnd(7, planned=True), 4),
    ],
)
def test_budgets_with_the_same_tables_are_one_campaign(
    policy: Policy, campaigns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []
    chunk = replay_module.replay_chunk

    def count(setup: ReplaySetup, sweep: Rollout, *rest: int) -> object:
        played.append(sweep.budgets)
        return chunk(setup, sweep, *rest)

    monkeypatch.setattr(replay_module, "replay_chunk", count)
    replay(ReplaySetup(crowd()), [policy], budget=[23, 4, 35, 60], replications=1)
    assert len(played) == campaigns
    assert sorted(b for budgets in played for b in budgets) == [4, 23, 35, 60]


def test_several_policies_come_one_after_the_other() -> None:
    found = replay(ReplaySetup(crowd()), ["okg", "uniform"], budget=[9, 7], replications=2)
    assert [(one.name, one.budget) for one in found] == [("okg", 9), ("okg", 7), ("uniform", 9), ("uniform", 7)]
    with pytest.raises(InputError, match="no budget"):
        replay(ReplaySetup(crowd()), ["okg"], budget=[])


# --- the recorded sets ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "half", "positive", "negative"), [("rte", 0.8969, 0.875, 0.91875), ("temp", 0.9361, 0.9329, 0.9394)]
)
def test_all_labels_end_in_the_majority_vote(
    data: Path, name: str, half: float, positive: float, negative: float
) -> None:
    recorded = find_set(data, name)
    for ties, value in (("half", half), ("positive", positive), ("negative", negative)):
        found = replay(ReplaySetup(recorded), ["uniform"], budget=10 * len(recorded.gold), replications=2, ties=ties)[0]
        assert found.accuracy.mean == pytest.approx(value, abs=PRINTED)
        assert found.labels_used == 10 * len(recorded.gold)


@pytest.mark.parametrize("name", ["okg", "thompson"])
def test_budgets_of_the_paper_at_once(data: Path, name: str) -> None:
    check_budgets(find_set(data, "rte"), name, budgets=(960, 2400, 6400), replications=2)


def test_a_pilot_learns_from_its_fifty_tasks_only(data: Path) -> None:
    recorded = find_set(data, "rte")
    one = hold_out(recorded, 50, None, None, "moments", 0)
    held = np.setdiff1d(np.arange(len(recorded.gold)), one.rest)
    assert len(held) == 50 and len(one.rest) == 750
    alone = learn_prior(of_padded(recorded.said[held]), "moments")
    assert one.prior == alone.prior and one.best_cut == choose_threshold(recorded.subset(held)).best
    assert (hold_out(recorded, 50, None, None, "moments", 0).rest == one.rest).all()
    assert (hold_out(recorded, 50, None, None, "moments", 1).rest != one.rest).any()


# --- history --------------------------------------------------------------------------------------


def test_moments_find_the_prior_that_made_the_labels() -> None:
    rng = np.random.default_rng(0)
    theta = rng.beta(2.0, 3.0, 20_000)
    labels = (rng.random((20_000, 10)) < theta[:, None]).astype(np.int64)
    prior = learn_prior(of_padded(labels), "moments").prior
    assert isinstance(prior, Beta)
    assert prior.alpha == pytest.approx(2.0, rel=0.05) and prior.beta == pytest.approx(3.0, rel=0.05)


def test_the_threshold_is_the_best_cut_nearest_to_a_half() -> None:
    labels = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [0, 0, 0, 0, 1], [1, 1, 1, 0, 0]])
    recorded = padded(tuple("abcd"), labels, np.array([0, 1, 0, 0]))
    assert choose_threshold(recorded).best == pytest.approx(0.7)
    easy = padded(tuple("ab"), labels[1:3], np.array([1, 0]))
    assert choose_threshold(easy).best == 0.5


@pytest.mark.parametrize("size", [1, 30])
def test_a_pilot_has_two_tasks_and_leaves_one(size: int) -> None:
    with pytest.raises(InputError, match="at least 2 that leaves tasks to replay"):
        hold_out(crowd(), size, None, None, "moments", 0)


# --- bad input ------------------------------------------------------------------------------------


def test_labels_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "rte").mkdir()
    (tmp_path / "rte" / "labels.csv").write_text("task,worker,label\na,w1,1\na,w2,0\nb,w1,0\n")
    (tmp_path / "rte" / "gold.csv").write_text("task,label\nb,0\n")
    recorded = find_set(tmp_path, "rte")
    assert recorded.tasks == ("a", "b")
    assert recorded.said.tolist() == [[1, 0], [0, -1]]
    assert recorded.counts.tolist() == [2, 1] and recorded.gold.tolist() == [-1, 0]


def test_missing_files_say_where_the_sets_come_from(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"no file .*rte.labels\.csv.*EMNLP 2008.*--data DIR"):
        find_set(tmp_path, "rte")
    with pytest.raises(InputError, match="EMNLP 2008"):
        find_set(None, "rte")


def test_unknown_orders_ties_and_too_many_tasks_are_refused() -> None:
    recorded = crowd()
    with pytest.raises(InputError, match="random, file, reversed"):
        replay(ReplaySetup(recorded, order="sorted"), ["okg"], budget=5)
    with pytest.raises(InputError, match="half, positive, negative"):
        replay(ReplaySetup(recorded), ["okg"], budget=5, ties="coin")
    with pytest.raises(InputError, match="31 tasks are asked for"):
        replay(ReplaySetup(recorded), ["okg"], budget=5, tasks=31)


def test_an_uneven_prior_and_threshold_decide_by_the_posterior() -> None:
    """One label each: positive iff P(theta > d | label) > 1/2."""
    labels = np.array([[1], [0]])
    recorded = padded(("a", "b"), labels, np.array([1, 1]))
    sure = replay(ReplaySetup(recorded, prior=Beta(20, 1)), ["uniform"], budget=2, replications=2)[0]
    assert sure.accuracy.mean == 1.0
    strict = replay(ReplaySetup(recorded, prior=Beta(1, 1), threshold=0.9), ["uniform"], budget=2, replications=2)[0]
    assert strict.accuracy.mean == 0.0
