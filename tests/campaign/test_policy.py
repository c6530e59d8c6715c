"""A live campaign decides as the simulator does: its log, replayed through the simulator's own kernels, gives the same
choices and ends in the same state."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from nextlabel.application.service import CampaignService
from nextlabel.application.table_cache import TableCache, load_or_solve_index
from nextlabel.campaign.policy_tables import load_of, table_problem
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.kernels.choice import BY_LEVELS, break_tie, score_by_levels, score_groups, scores_by_state
from nextlabel.kernels.events import TIE, stream_key, uniform
from nextlabel.model.beta import Beta
from nextlabel.model.problem import Problem
from nextlabel.model.simplex import simplex
from nextlabel.model.tasks import TaskState
from nextlabel.policies.allocation import TIES, chance, draw_key
from nextlabel.policies.base import Setting
from nextlabel.policies.index import Index
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.policies.rollout_arrays import make_policy_arrays, make_problem_arrays
from nextlabel.store.sql import open_store
from stores import Clock
from task_moves import assign, complete, take_back, withdraw

LIVE = sorted(name for name, policy in POLICIES.items() if policy.live)


class Still(TableCache):
    """A desk whose tables do not follow the rates, so that one set of them explains every choice."""

    def has(self, *what: object) -> bool:
        return False


def played(
    config: CampaignSettings, tasks: list[dict[str, object]], steps: int, seed: int
) -> tuple[CampaignService, str]:
    """A campaign in which workers come, answer, pass, vanish and change their mind."""
    clock, random = Clock(), Random(seed)
    campaign_service = CampaignService(open_store("memory:"), clock, Still())
    id = campaign_service.create(config, tasks=tasks).id
    held: dict[str, str] = {}
    for _ in range(steps):
        clock.forward(random.expovariate(1.0))
        worker = f"w{random.randrange(12)}"
        if worker not in held:
            lease = campaign_service[id].ask(worker)
            if lease:
                held[worker] = lease.id
        else:
            lease_id = held.pop(worker)
            fate = random.random()
            if fate < 0.8:
                told = campaign_service[lease_id].tell(lease_id, random.choice(["no", "yes", "yes"]))
                if fate < 0.1 and told.status == "labelled":
                    campaign_service[lease_id].undo(lease_id)
            elif fate < 0.9:
                campaign_service[lease_id].release(lease_id)
    campaign_service.table_cache.close()
    return campaign_service, id


@pytest.mark.parametrize("name", LIVE)
@pytest.mark.no_cover
def test_the_log_replayed_through_the_simulators_kernels_makes_the_same_choices(name: str) -> None:
    config = CampaignSettings(
        budget=90, labels=("no", "yes"), policy=name, lease_seconds=30.0, most_labels=8, most_in_flight=3, seed=5
    )
    tasks: list[dict[str, object]] = [{"id": f"a{k}"} for k in range(15)]
    tasks += [{"id": f"b{k}", "prior": [3, 1]} for k in range(15)]
    campaign_service, id = played(config, tasks, 400, 7)
    classes = [Beta(1, 1), Beta(3, 1)]
    assert list(campaign_service.store.classes(id)) == classes
    _, child, counts = simplex(2, 8)
    load = load_of(campaign_service.store.row(id), rho=config.rho)
    setting = Setting.of(table_problem(config, classes, load), 8, 3)
    policy = make_policy(name)
    if isinstance(policy, Index):
        policy = Index(load_or_solve_index(config, classes, config.rho)[0])
    arrays, tables = make_problem_arrays(setting, True), make_policy_arrays(setting, policy)
    by_state = scores_by_state(tables, arrays.level, arrays.limit, arrays.child)
    nodes = len(arrays.level)
    starts = (0, setting.views[0].nodes)

    state: list[TaskState] = []
    class_id: list[int] = []
    where: dict[str, int] = {}
    worked: dict[str, set[int]] = {}
    given = out = spent = choices = 0
    for event in campaign_service.store.events(id, 0, 10**6):
        data = event.data
        if event.kind == "tasks_added":
            class_id += [c for _, _, c in data["tasks"]]
            state += [TaskState(0, 0)] * len(data["tasks"])
        elif event.kind == "leased":
            mine = worked.setdefault(data["worker"], set())
            count = np.zeros(tables.static.shape[0] * nodes, dtype=np.int64)
            free = np.zeros_like(count)
            for x, (s, c) in enumerate(zip(state, class_id, strict=True)):
                if s.w < tables.static.shape[0] - (tables.mode != BY_LEVELS):
                    count[s.w * nodes + starts[c] + s.node] += 1
                    free[s.w * nodes + starts[c] + s.node] += x not in mine
            expected = _choice(
                tables,
                by_state,
                arrays.level,
                arrays.child,
                count,
                free,
                config.budget - spent - out,
                spent + out,
                given,
            )
            c, node, w = data["state"]
            assert state[data["task"]] == (node, w) and class_id[data["task"]] == c
            assert data["task"] not in mine
            assert w * nodes + starts[c] + node == expected
            mine.add(data["task"])
            where[data["lease"]] = data["task"]
            state[data["task"]] = assign(state[data["task"]])
            given, out, choices = given + 1, out + 1, choices + 1
        elif event.kind in ("labelled", "late", "expired", "released", "undone"):
            x = where[data["lease"]]
            if event.kind == "labelled":
                state[x] = complete(state[x], data["label"], child)
                out, spent = out - 1, spent + 1
            elif event.kind == "undone":
                state[x] = take_back(state[x], data["label"], counts)
                out, spent = out + 1, spent - 1
            elif event.kind == "late":
                state[x] = complete(assign(state[x]), data["label"], child) if data["counted"] else state[x]
                spent += data["counted"]
            else:
                state[x] = withdraw(state[x])
                out -= 1
    assert choices > 60
    assert [(task.node, task.w) for task in campaign_service.store.tasks(id, -1, 1000)] == state


def _choice(tables, by_state, level, child, count, free, n: int, ell: int, number: int) -> int:
    """What ``rollout.play_events`` does at an arrival, groups without a task for this worker taken out in turn."""
    shut: set[int] = set()
    everyone = np.array([*np.flatnonzero(count), np.count_nonzero(count)], dtype=np.int64)
    while True:
        states = [s for s in np.flatnonzero(count) if s not in shut]
        active = np.array([*states, len(states)], dtype=np.int64)
        scores = np.zeros(len(active) + 2 * len(tables.levels.level))
        if tables.mode == BY_LEVELS:  # the price is that of all tasks, also those that this worker has had
            best = score_by_levels(tables.levels, by_state.score, everyone, active, count, n, scores)
        else:
            best = score_groups(
                tables, by_state, level, child, active, active, count, n, ell, 0, 0.0, draw_key(5), scores
            )
        chosen = break_tie(tables, by_state, active, count, scores, best, np.zeros(0), ell, chance(5, TIES, number))
        if free[chosen] > 0:
            return int(chosen)
        shut.add(chosen)


def test_tables_follow_the_rates_that_are_learnt() -> None:
    """One worker a second, sixteen seconds a label: rho is learnt to be near 16, and matters near the end."""
    config = CampaignSettings(budget=1200, policy="okg-pending", labels=("no", "yes"))
    clock, random = Clock(), Random(3)
    campaign_service = CampaignService(open_store("memory:"), clock)
    id = campaign_service.create(config, tasks=[{"id": f"t{k}"} for k in range(60)]).id
    out: list[tuple[float, str]] = []
    for step in range(600):
        clock.forward(random.expovariate(1.0))
        for due, lease in [entry for entry in out if entry[0] <= clock.now]:
            campaign_service[lease].tell(lease, "yes")
            out.remove((due, lease))
        lease = campaign_service[id].ask(f"w{step}")
        if lease:
            out.append((clock.now + random.expovariate(1 / 16), lease.id))
        if step == 200:
            campaign_service.table_cache.prepare(config, campaign_service.store.classes(id), 16.0).result()
    tuned = [event.data for event in campaign_service.store.events(id, 0, 10**6) if event.kind == "tuned"]
    assert tuned and tuned[-1]["rho"] == 16.0
    first = next(event.seq for event in campaign_service.store.events(id, 0, 10**6) if event.kind == "tuned")
    before = [event for event in campaign_service.store.events(id, 0, first) if event.kind == "leased"]
    assert before[-1].data["left"] <= 64 * 16 + 1  # with more labels left rho would not matter
    assert tuned[-1]["arrival_rate"] == pytest.approx(1.0, rel=0.25)
    assert tuned[-1]["completion_rate"] == pytest.approx(1 / 16, rel=0.25)
    last = [event.data for event in campaign_service.store.events(id, 0, 10**6) if event.kind == "leased"][-1]
    assert last["rho"] == 16.0
    assert last["expires_at"] - clock.now == pytest.approx(6 * 16, rel=0.25)  # the lease time was learnt too
    campaign_service.table_cache.close()


def test_the_deadline_limits_the_labels_that_are_counted_on() -> None:
    """With workers every ten seconds and a hundred seconds left, ten more labels are planned for, not a thousand."""
    clock = Clock()
    campaign_service = CampaignService(open_store("memory:"), clock)
    config = CampaignSettings(budget=1000, policy="okg-pending", labels=("no", "yes"), deadline=clock.now + 500)
    id = campaign_service.create(config, tasks=[{"id": f"t{k}"} for k in range(50)]).id
    for step in range(40):
        campaign_service[id].tell(campaign_service[id].ask(f"w{step}").id, "yes")
        clock.forward(10)
    leased = [event.data for event in campaign_service.store.events(id, 0, 10**6) if event.kind == "leased"]
    assert leased[5]["left"] == 995
    assert leased[-1]["left"] == pytest.approx(11, abs=1)
    campaign_service.table_cache.close()


def test_index_tables_of_a_campaign_are_those_of_a_problem_that_size() -> None:
    """Neither the number of tasks nor the budget enters an index table, which is why live campaigns share them."""
    config = CampaignSettings(budget=50)
    table, _ = load_or_solve_index(config, [Beta(1, 1)], 0.25)
    other = Problem.identical(tasks=40, budget=60, prior=(1, 1))
    from nextlabel.solve.index import index_table

    small = index_table(other)
    for n in (1, 5, 40):
        for counts, w in (((0, 0), 0), ((1, 0), 0), ((1, 1), 1), ((2, 1), 0), ((0, 0), 2)):
            assert table.index(0, counts, w, n) == pytest.approx(small.index(0, counts, w, n), abs=2e-6)


def test_chance_is_the_simulators() -> None:
    for seed in (0, 7, 2**40 + 1):
        for what in (TIES, 1, 2):
            key = stream_key(seed, what, TIE)
            for number in (0, 1, 2, 1000, 123_456_789):
                assert chance(seed, what, number) == uniform(np.uint64(key), number, 0)
