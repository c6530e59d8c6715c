"""A small crowd with one who guesses, in live campaigns, and what must be the same of a model and one read anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.crowd_model import CrowdModel, new_model
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import CampaignState
from nextlabel.policies.allocation import Outlook

LABELS = ("a", "b", "c")
WORKERS = tuple(f"w{k}" for k in range(5))


def settings(**values: Any) -> CampaignSettings:
    usual: dict[str, Any] = {"budget": 60, "labels": LABELS, "policy": "crowd", "lease_seconds": 60.0, "most_labels": 5}
    return CampaignSettings.from_dict({**usual, **values})


def tasks(first: int, end: int) -> list[dict[str, Any]]:
    return [{"id": f"t{k}", "text": f"item {k}"} for k in range(first, end)]


def say(task: str, worker: str, rng: np.random.Generator) -> str:
    """Item k is of kind k modulo 3; the last worker guesses, the others are right nine times in ten."""
    right = int(task[1:]) % len(LABELS)
    if worker == WORKERS[-1] or rng.random() > 0.9:
        return LABELS[int(rng.integers(len(LABELS)))]
    return LABELS[right]


def read_anew(state: CampaignState) -> CrowdModel:
    """A model that has read the log alone."""
    return new_model(state, snapshot=False)


def model_of(service: CampaignService, id: str, fresh: bool) -> CrowdModel:
    """The model that the process has, or one that has read the log alone."""

    def look(commands: Commands) -> CrowdModel:
        commands.crowd_snapshot()
        state = commands.state
        assert state.crowd is not None
        if not fresh:
            return state.crowd
        return read_anew(state)

    return service.run(id, look)


def assert_same(one: CrowdModel, other: CrowdModel) -> None:
    """Not a bit of difference in what is believed, nor in what anybody would get next."""
    assert (one.seq, one.version, one.crowd.people) == (other.seq, other.version, other.crowd.people)
    for name in ("belief", "logp", "counts", "pseudo"):
        mine, theirs = (getattr(model.crowd.campaign.state, name) for model in (one, other))
        shorter = min(len(mine), len(theirs))
        assert np.array_equal(mine[:shorter], theirs[:shorter]), name
    assert np.array_equal(one.crowd.campaign.bins.members, other.crowd.campaign.bins.members)
    for worker in range(-1, one.crowd.people):
        for must in (True, False):
            outlook = Outlook(0, 1, must_serve=must)
            assert one.crowd.choose(worker, outlook) == other.crowd.choose(worker, outlook), worker


def assert_same_as_fresh(service: CampaignService, id: str) -> None:
    """The model of the process is the one that the log alone leads to, and the one from a snapshot of it."""

    def look(commands: Commands) -> None:
        model, restored = commands.crowd(), new_model(commands.state)
        assert_same(model, read_anew(commands.state))
        assert_same(model, restored)

    service.run(id, look)


def settled(service: CampaignService, id: str) -> None:
    """Wait until nothing is being learnt in the background."""
    refits = service.table_cache.refits
    if refits is not None:
        refits.later(id).result(300)
