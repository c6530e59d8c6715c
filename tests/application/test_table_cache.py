"""Tables by campaign: how many are kept, how often they are made, for which rho, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nextlabel.application import table_cache
from nextlabel.application.table_cache import TableCache, load_or_solve_index, work_of
from nextlabel.campaign.policy_tables import PolicyTables, table_problem
from nextlabel.campaign.rates import MOST_RHO
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.model.beta import Beta
from nextlabel.model.problem import Problem
from nextlabel.policies.base import Setting
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import make_policy_arrays
from nextlabel.solve.index import IndexTable, index_table
from nextlabel.solve.progress import Progress

PATIENCE_S = 60.0
#: Small tables, quickly made.
PLAIN = CampaignSettings(budget=10, policy="okg", most_labels=6, most_in_flight=3)
PRIORS = [Beta(1.0 + k / 100, 1.0) for k in range(80)]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[PolicyTables]:
    """Every set of tables that is made."""
    log: list[PolicyTables] = []
    plain = table_cache.make_tables

    def noted(*arguments: Any) -> Any:
        found = plain(*arguments)
        log.append(found[0])
        return found

    monkeypatch.setattr("nextlabel.application.table_cache.make_tables", noted)
    return log


@pytest.fixture
def cache() -> Iterator[TableCache]:
    found = TableCache()
    yield found
    found.close()


def test_eighty_priors_in_turn_have_their_tables_made_once(cache: TableCache, made: list[PolicyTables]) -> None:
    for _ in range(3):
        for prior in PRIORS:
            cache.prepare(PLAIN, [prior], 0.25).result()
            assert cache.ready(PLAIN, [prior], 0.25).load.rho == 0.25
    assert len(made) == 80


def test_memory_is_bounded_and_sets_that_are_wanted_in_turn_do_not_chase_one_another_out(
    made: list[PolicyTables],
) -> None:
    """Room for 64 of 80 sets: were the oldest to go, each would go just before it is wanted again."""
    size = PolicyTables.of(PLAIN, PRIORS[:1], 0.25, make_policy("okg")).nbytes
    cache, rounds = TableCache(memory=64 * size), 10
    for _ in range(rounds):
        for prior in PRIORS:
            cache.prepare(PLAIN, [prior], 0.25).result()
            assert sum(tables.nbytes for tables in cache._tables.values()) == cache._kept <= 64 * size
    cache.close()
    assert len(made) - 80 < 0.6 * 80 * (rounds - 1)


def test_a_set_larger_than_the_memory_is_kept_alone(made: list[PolicyTables]) -> None:
    cache = TableCache(memory=1)
    for prior in (PRIORS[0], PRIORS[0], PRIORS[1], PRIORS[1]):
        cache.prepare(PLAIN, [prior], 0.25).result()
    cache.close()
    assert len(made) == 2 and len(cache._tables) == 1


def test_more_labels_in_flight_than_the_limit_use_the_tables_of_the_limit(
    cache: TableCache, made: list[PolicyTables]
) -> None:
    tables = cache.prepare(PLAIN, PRIORS[:1], 1e6).result()
    assert tables.load.rho == MOST_RHO
    assert cache.ready(PLAIN, PRIORS[:1], 128.0) is cache.ready(PLAIN, PRIORS[:1], MOST_RHO) is tables
    assert cache.has(PLAIN, PRIORS[:1], 1e300) and len(made) == 1


def test_an_index_is_solved_for_the_limit_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[float] = []
    small = index_table(Problem.identical(4, 5))

    def noted(problem: Problem, progress: Progress | None = None) -> IndexTable:
        solved.append(problem.rho)
        return small

    monkeypatch.setattr(table_cache, "solve_table", noted)
    config = CampaignSettings(budget=10, policy="index")
    for rho in (0.25, MOST_RHO, 128.0, 1e6):
        load_or_solve_index(config, PRIORS[:1], rho)
    assert solved == [0.25, MOST_RHO, MOST_RHO, MOST_RHO]
    costs = [work_of(config, PRIORS[:1], rho) for rho in (1.0, 8.0, MOST_RHO, 1e6)]
    assert costs[0] < costs[1] < costs[2] == costs[3]
    assert work_of(PLAIN, PRIORS[:1], 1.0) < costs[0] < work_of(config, PRIORS[:2], 1.0)


def test_a_campaign_of_many_priors_does_not_hold_up_another(cache: TableCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of 64 priors are under way when a second campaign needs those of one: it has them in between."""
    begun, go, slices = threading.Event(), threading.Event(), []
    small = index_table(Problem.identical(4, 5))

    def slow(problem: Problem, progress: Progress) -> IndexTable:
        begun.set()
        assert go.wait(PATIENCE_S)
        slices.append(problem)
        progress(0.5)
        return small

    monkeypatch.setattr(table_cache, "solve_table", slow)
    greedy = cache.prepare(CampaignSettings(budget=10, name="greedy", policy="index"), PRIORS[:64], 1e6)
    assert begun.wait(PATIENCE_S)
    plain = cache.prepare(PLAIN, PRIORS[:1], 0.25)
    seen: list[int] = []
    plain.add_done_callback(lambda _: seen.append(len(slices)))
    go.set()
    plain.result(PATIENCE_S)
    greedy.result(PATIENCE_S)
    assert seen == [1] and len(slices) == 64


def test_tables_made_prior_by_prior_are_those_made_at_once() -> None:
    config, slices = CampaignSettings(budget=10, policy="thompson", most_labels=5, most_in_flight=2), []
    tables = PolicyTables.of(config, PRIORS[:3], 1.0, make_policy("thompson"), lambda: slices.append(1))
    setting = Setting.of(table_problem(config, PRIORS[:3], 1.0), 5, 2)
    whole = make_policy_arrays(setting, make_policy("thompson"))
    assert len(slices) == 3
    np.testing.assert_array_equal(tables.tables.quantiles, whole.quantiles)
    np.testing.assert_array_equal(tables.tables.facts, whole.facts)
