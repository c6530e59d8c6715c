"""Answers that another tool keeps: the campaign follows it in every store, and what it learnt follows from its log."""

from __future__ import annotations

import numpy as np
import pytest

from live_crowds import read_anew
from nextlabel.application.service import Campaign, CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.external_answers import SKIPPED
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import InputError, NotFoundError
from nextlabel.policies.allocation import Outlook
from stores import everything

TASKS = 12


def campaign(service: CampaignService, budget: int = 20) -> str:
    settings = {"budget": budget, "labels": ("no", "yes"), "policy": "crowd", "lease_seconds": 60.0}
    return service.create(CampaignSettings.from_dict(settings), "outside", [{"id": f"t{k}"} for k in range(TASKS)]).id


def test_what_was_learnt_follows_from_the_log(service: CampaignService) -> None:
    id = campaign(service)
    for worker in ("ann", "bob", "cy"):
        lease = service[id].ask(worker)
        assert lease
        assert service[id].set_answer(worker, lease.task, "yes")
    lease = service[id].ask("ann")
    assert lease
    others = [f"t{k}" for k in range(TASKS) if f"t{k}" != lease.task]
    service[id].set_answer("dora", others[0], "no")  # nobody has given her anything
    service[id].set_answer("dora", others[0], "yes")
    service[id].set_answer("dora", others[1], "no")
    service[id].set_answer("dora", others[1], None)
    service[id].set_answer("dora", others[2], SKIPPED)
    service.add_tasks(id, [{"id": "new"}])  # nothing has been learnt of it yet
    told = service[id].set_answer("bob", "new", "yes")
    assert told is not None and (told.status, told.counted) == ("late", True)
    service[id].set_answer("ann", lease.task, "no")

    def models(commands: Commands) -> tuple[CrowdModel, CrowdModel]:
        return commands.crowd(), read_anew(commands.state)

    streamed, read = service.run(id, models)
    for name in ("belief", "logp", "counts"):
        mine, theirs = (getattr(model.crowd.campaign.state, name) for model in (streamed, read))
        shorter = min(len(mine), len(theirs))
        assert np.array_equal(mine[:shorter], theirs[:shorter]), name
    for worker in ("ann", "dora", "somebody new"):
        number = service.run(id, lambda commands, worker=worker: commands.state.numbers.get(worker, -1))  # type: ignore[misc]
        assert streamed.crowd.choose(number, Outlook(0, 1)) == read.crowd.choose(number, Outlook(0, 1))
    assert service[id].verify().right
    before = everything(service.store, id)
    service[id].rebuild()
    assert everything(service.store, id) == before
    assert service.store.row(id).spent == 6  # three first ones, ann's second, dora's one and bob's on the new task


def test_the_budget_follows_what_is_deleted_and_nobody_overspends_it() -> None:
    with Campaign.create("memory:", [{"id": f"t{k}"} for k in range(TASKS)], budget=2, labels=["no", "yes"]) as one:
        assert one.set_answer("ann", "t0", "no") and one.set_answer("bob", "t0", "yes")
        assert one.status().state == "closed"
        over = one.set_answer("cy", "t0", "yes")
        assert over is not None and over.counted is False  # kept, and not counted
        changed = one.set_answer("ann", "t0", "yes")
        assert changed is not None and changed.counted is True  # it takes its own place
        assert (one.status().spent, one.status().state) == (2, "closed")
        one.set_answer("bob", "t0", None)
        assert (one.status().spent, one.status().state) == (1, "open")
        lease = one.ask("dora")
        assert lease and one.tell(lease, "no").counted
        assert one.ask("bob").__class__.__name__ == "NoTask"
        assert sorted((label.worker, label.label, label.counted) for label in one.labels()) == [
            ("ann", "yes", True), ("cy", "yes", False), ("dora", "no", True),
        ]  # fmt: skip
        with pytest.raises(NotFoundError, match="no task 'x'"):
            one.set_answer("ann", "x", "no")
        with pytest.raises(InputError, match="is not one of the campaign's"):
            one.set_answer("ann", "t1", "perhaps")
