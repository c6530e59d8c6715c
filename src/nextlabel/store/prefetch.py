"""What the commands of a transaction need, read at once for all of its campaigns.

====================================== ============================================================
a command                              needs
====================================== ============================================================
names a lease                          the lease, its task, and who has held that task
is sent by a worker                    the worker's tally
asks for a task                        the worker's open leases, what is counted of the tasks that they have
                                       held, and the tasks of each state
====================================== ============================================================

A command that needs more reads it when it gets there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nextlabel.campaign.needs import Need
from nextlabel.campaign.rows import WorkerRow
from nextlabel.store import questions
from nextlabel.store.prepared import Row, Runner
from nextlabel.store.row_mapping import lease_from, worker_from

if TYPE_CHECKING:
    from nextlabel.store.sql_ledger import SqlLedger

Ledgers = Mapping[int, "SqlLedger"]


def prefetch(runner: Runner, needs: Sequence[tuple[SqlLedger, Sequence[Need]]]) -> None:
    """Read what is needed."""
    if sum(len(some) for _, some in needs) < 2:
        return  # one command reads what it needs itself
    ledgers = {ledger.number: ledger for ledger, _ in needs}
    named = {need.lease: ledger for ledger, some in needs for need in some if need.lease is not None}
    ids = sorted(id for id, ledger in named.items() if not _is_known(ledger, id))
    workers = [pair for pair in _pairs(needs, asking=False) if pair[1] not in ledgers[pair[0]].rows.workers]
    asking = _pairs(needs, asking=True)
    new = [pair for pair in asking if pair[1] not in ledgers[pair[0]].rows.open]
    stale = [ledger.number for ledger, _ in needs if ledger.cached.groups is None]
    wanted: list[tuple[Any, questions.Question, dict[str, Any]]] = []
    dialect = runner.dialect_name
    if ids:
        wanted.append((_take_leases, questions.leases_by_id(dialect), {"ids": ids}))
        wanted.append((_take_tasks, questions.tasks_of_leases(dialect), {"ids": ids}))
    if workers:
        wanted.append((_take_workers, questions.workers_by_name(dialect), questions.as_columns(workers)))
    if new:
        wanted.append((_take_open, questions.open_leases(dialect), questions.as_columns(new)))
    if asking:
        wanted.append((_take_counts, questions.held_counts_of_many(dialect), questions.as_columns(asking)))
    wanted.append((_take_counted, questions.campaigns_with_counts(dialect), {"campaigns": sorted(ledgers)}))
    if stale:
        wanted.append((_take_states, questions.states_of_many(dialect), {"campaigns": stale}))
    answers = runner.ask_all([(question, parameters) for _, question, parameters in wanted])
    for number in stale:
        ledgers[number].cached.groups = {}
    for (take, _, _), rows in zip(wanted, answers, strict=True):
        take(dialect, ledgers, rows)
    _settle(ledgers, workers, asking, set(named))


def _pairs(needs: Sequence[tuple[SqlLedger, Sequence[Need]]], asking: bool) -> list[tuple[int, str]]:
    """Campaigns and workers, of those who ask or of all, in the order of their commands."""
    pairs = {
        (ledger.number, need.worker): None
        for ledger, some in needs
        for need in some
        if need.worker is not None and (need.asks or not asking)
    }
    return list(pairs)


def _is_known(ledger: SqlLedger, id: str) -> bool:
    """Whether a lease, its task and who has held that are in memory."""
    lease = ledger.rows.leases.get(id)
    return lease is not None and lease.task in ledger.rows.tasks and lease.task in ledger.rows.holders


def _take_leases(dialect: str, ledgers: Ledgers, rows: Sequence[Row]) -> None:
    for campaign, *lease in rows:
        if campaign in ledgers:  # the lease may be another campaign's: then it does not exist in this one
            ledgers[campaign].rows.know_lease(lease_from(tuple(lease)))


def _take_tasks(dialect: str, ledgers: Ledgers, rows: Sequence[Row]) -> None:
    for campaign, *task, holders in rows:
        if campaign in ledgers:
            ledgers[campaign].read_task(tuple(task), questions.holders_of(dialect, holders))


def _take_workers(dialect: str, ledgers: Ledgers, rows: Sequence[Row]) -> None:
    for campaign, *worker in rows:
        ledgers[campaign].rows.know_worker(worker_from(tuple(worker)))


def _take_open(dialect: str, ledgers: Ledgers, rows: Sequence[Row]) -> None:
    for campaign, *lease in rows:
        ledgers[campaign].rows.know_lease(lease_from(tuple(lease)))


def _take_counts(dialect: str, ledgers: Ledgers, rows: Sequence[Row]) -> None:
    for campaign, worker, klass, node, w, count in rows:
        ledgers[campaign].held_counts.know(worker, {(klass, node, w): count})


def _take_counted(dialect: str, ledgers: Ledgers, rows: Sequence[Row]) -> None:
    counted = {campaign for (campaign,) in rows}
    for campaign, ledger in ledgers.items():
        ledger.held_counts.know_whether(campaign in counted)


def _take_states(dialect: str, ledgers: Ledgers, rows: Sequence[Row]) -> None:
    for campaign, klass, node, w, count in rows:
        groups = ledgers[campaign].cached.groups
        assert groups is not None
        groups[klass, node, w] = count


def _settle(
    ledgers: Ledgers, workers: Sequence[tuple[int, str]], asking: Sequence[tuple[int, str]], ending: set[str]
) -> None:
    """What was not found is not there: workers without a tally are new, and no other leases are open.

    Who has no open lease, or only one that a command is about, is expected to get a task.
    """
    for campaign, worker in workers:
        ledgers[campaign].rows.know_worker(WorkerRow(worker))
    expected: dict[int, list[str]] = {}
    for campaign, worker in asking:
        ledgers[campaign].held_counts.know(worker, {})
        rows = ledgers[campaign].rows
        if worker not in rows.open:
            rows.know_open(worker, [lease for lease in rows.leases.values() if lease.worker == worker])
        if rows.open[worker].keys() <= ending:
            expected.setdefault(campaign, []).append(worker)
    for campaign, names in expected.items():
        ledgers[campaign].candidates.expect(names)
