"""Workers who come back: what ended campaigns taught about them is where the next one begins, and no more than that."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign.profiles import name_hash
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.cli.app import run
from nextlabel.errors import InputError, NotFoundError
from nextlabel.store.sql import open_store

TASKS = 24


def settings(**more: Any) -> CampaignSettings:
    return CampaignSettings.from_dict({"budget": 200, "labels": ["no", "yes"], "turn_away": False, "seed": 1, **more})


def truth(task: str) -> str:
    return "yes" if int(task[1:]) % 2 else "no"


def play(service: CampaignService, id: str, skills: dict[str, float], rounds: int, seed: int = 0) -> None:
    """Each worker in turn gives an answer that is right with that chance."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        for worker, skill in skills.items():
            lease = service[id].ask(worker)
            if isinstance(lease, Lease):
                right = truth(lease.task)
                service[lease.campaign].tell(
                    lease.id, right if rng.random() < skill else ("no" if right == "yes" else "yes")
                )


def ended(service: CampaignService, id: str = "first", skills: dict[str, float] | None = None) -> None:
    """A campaign that has ended, in which ann was good and bob was not."""
    people = skills or {"ann": 0.97, "bob": 0.5, "cis": 0.9, "dan": 0.9}
    service.create(settings(budget=80), id, [{"id": f"t{k}", "text": "x"} for k in range(TASKS)])
    play(service, id, people, TASKS)
    assert service.store.row(id).state == "closed"


def accuracy(service: CampaignService, id: str, worker: str) -> float:
    found = service.crowd(service.store.row(id))
    assert found is not None
    return float(np.einsum("c,wcc->w", found.shares, found.channels)[found.workers.index(worker)])


def test_a_worker_who_comes_back_is_known_and_a_replay_needs_no_profile(tmp_path: Path) -> None:
    service = CampaignService(open_store(f"sqlite:///{tmp_path / 'labels.db'}"))
    ended(service)
    for id, known in (("known", True), ("new", False)):
        service.create(settings(known_workers=known), id, [{"id": f"t{k}", "text": "x"} for k in range(TASKS)])
        play(service, id, {"ann": 0.97, "bob": 0.5, "eve": 0.9}, 3)
    assert accuracy(service, "known", "ann") > accuracy(service, "known", "bob") + 0.08
    assert accuracy(service, "known", "ann") > accuracy(service, "new", "ann")
    before = service.crowd(service.store.row("known"))
    service["first"].erase_worker("ann")
    for id, part in (("first", "profiles"), ("known", "known")):
        kept = service.run(id, lambda commands, part=part: json.loads(commands.state.source.kept(part) or b"{}"))
        assert kept and name_hash("ann") not in kept and name_hash("bob") in kept
    service.close()
    again = CampaignService(open_store(f"sqlite:///{tmp_path / 'labels.db'}"))
    after = again.crowd(again.store.row("known"))
    assert before is not None and after is not None
    assert np.allclose(before.channels, after.channels, atol=1e-9) and np.allclose(
        before.beliefs, after.beliefs, atol=1e-9
    )
    assert again["known"].verify().right
    again.close()


def test_a_worker_who_was_good_and_is_not_is_found_out_as_fast_as_a_stranger() -> None:
    service = CampaignService(open_store("memory:"))
    ended(service)
    for id, known in (("known", True), ("new", False)):
        service.create(settings(known_workers=known), id, [{"id": f"t{k}", "text": "x"} for k in range(TASKS)])
        play(service, id, {"ann": 0.5, "cis": 0.95, "dan": 0.95, "fay": 0.95, "gus": 0.95}, 30, seed=3)
    assert abs(accuracy(service, "known", "ann") - accuracy(service, "new", "ann")) < 0.03
    service.close()


def test_who_is_known_and_never_came_can_be_erased() -> None:
    service = CampaignService(open_store("memory:"))
    service.create(settings(known_workers=True), "known", [{"id": "t0"}])
    service.add_profiles("known", [{"worker": "ann", "truth": "no", "answer": "no", "count": 9}])
    with pytest.raises(InputError, match="names no worker"):
        service.add_profiles("known", [{"worker": "", "truth": "no", "answer": "no", "count": 9}])
    with pytest.raises(NotFoundError):
        service["gone"].erase_worker("ann")
    service["known"].erase_worker("ann")
    assert service.run("known", lambda commands: commands.state.source.kept("known")) == b"{}"
    with pytest.raises(NotFoundError):
        service["known"].erase_worker("ann")
    service.close()


def test_only_campaigns_of_the_same_owner_and_labels_teach() -> None:
    service = CampaignService(open_store("memory:"))
    ended(service)
    service.store.records.set_owner("first", "ann")
    for id, more, owner, known in (
        ("same", {}, "ann", True), ("other", {}, "bea", False), ("words", {"labels": ["No", "Yes"]}, "ann", False),
    ):  # fmt: skip
        service.create(settings(known_workers=True, **more), id, [{"id": "t0"}], owner=owner)
        lease = service[id].ask("ann")
        assert isinstance(lease, Lease)
        (event,) = (one for one in service.store.events(id, 0, 100) if one.kind == "leased")
        assert ("profile" in event.data) is known
    service.close()


def test_profiles_leave_and_come_in_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    service = CampaignService(open_store("sqlite:///a.db"))
    ended(service)
    service.close()
    assert run(["campaign", "export", "first", "--rows", "profiles", "--save", "p.csv", "--db", "a.db"]) == 0
    assert (tmp_path / "p.csv").read_text().startswith("worker,truth,answer,count\n")
    create = ["campaign", "create", "--budget", "9", "--labels", "no,yes", "--db", "b.db", "--id"]
    assert run([*create, "b", "--known-workers"]) == 0 and run([*create, "plain"]) == 0
    assert run(["campaign", "add", "b", "--profiles", "p.csv", "--db", "b.db"]) == 0
    assert run(["campaign", "add", "plain", "--profiles", "p.csv", "--db", "b.db"]) == 2
    (tmp_path / "bad.csv").write_text("worker,truth,answer,count\nann,no,perhaps,3\n")
    assert run(["campaign", "add", "b", "--profiles", "bad.csv", "--db", "b.db"]) == 2
    with sqlite3.connect("b.db") as database:
        assert b"ann" not in b"".join(str(row).encode() for row in database.execute("select * from workers"))
    database.close()
    service = CampaignService(open_store("sqlite:///b.db"))
    service.add_tasks("b", [{"id": "t1"}])
    assert isinstance(service["b"].ask("ann"), Lease)
    assert any("profile" in one.data for one in service.store.events("b", 0, 100))
    service.close()


def test_what_has_no_profiles_refuses_the_setting() -> None:
    for more in ({"policy": "index"}, {"answer": "rating", "labels": None}):
        with pytest.raises(InputError):
            CampaignSettings.from_dict({"budget": 1, "known_workers": True, **{k: v for k, v in more.items() if v}})
