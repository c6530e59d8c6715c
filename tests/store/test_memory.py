"""The store in memory looks at few rows, however many there are: operations are counted, not seconds."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from nextlabel.campaigns.service import CampaignService
from nextlabel.store.memory import MemoryStore
from stores import Clock, service_of_store, simple


def operations(tasks: int, **prior: Any) -> int:
    """Python's operations in the store during ten pairs of an ask and a tell, with labels and leases there before."""
    service = service_of_store(MemoryStore(), Clock())
    given = [{"id": f"t{k}", "text": "x", **{name: value(k) for name, value in prior.items()}} for k in range(tasks)]
    id = service.create(simple(budget=10 * tasks), tasks=given).id
    for k in range(tasks // 2):
        pair(service, id, f"old {k % 50}")
    counted = 0

    def count(frame: FrameType, kind: str, argument: Any) -> Any:
        nonlocal counted
        if kind == "call":
            frame.f_trace_opcodes = "nextlabel/store" in frame.f_code.co_filename
            frame.f_trace_lines = False
        elif kind == "opcode":
            counted += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        for k in range(10):
            pair(service, id, f"ann {k}")
    finally:
        sys.settrace(before)
        service.close()
    return counted


def pair(service: CampaignService, id: str, worker: str) -> None:
    lease = service.ask(id, worker)
    assert lease
    service.tell(lease.id, "yes")


def test_a_pair_does_not_look_at_all_tasks() -> None:
    few, many = operations(100), operations(1600)
    assert 0 < many < 2 * few


def test_nor_where_tasks_are_ranked() -> None:
    few, many = (operations(tasks, score=lambda k: 0.2 + 0.005 * (k % 100)) for tasks in (100, 1600))
    assert 0 < many < 2 * few
