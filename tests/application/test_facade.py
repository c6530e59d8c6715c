"""A campaign inside a program: what its methods take, and what they refuse in one sentence."""

from __future__ import annotations

import inspect
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import nextlabel as nl
from nextlabel.application import certificate as certificates
from nextlabel.application.service import CampaignService
from nextlabel.campaign.declaration import ChangeOptions, SettingOptions, declared, names, offer
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import ConflictError
from nextlabel.store.sql import open_store


def campaign(tasks: Any = ("a", "b", "c"), budget: int = 6, **settings: Any) -> nl.Campaign:
    return nl.Campaign.create("memory:", tasks, budget=budget, policy=settings.pop("policy", "okg"), **settings)


def test_keyword_arguments_are_the_declared_settings() -> None:
    assert set(names()) == set(SettingOptions.__annotations__)
    assert {name for name in names() if offer(name).changeable} == set(ChangeOptions.__annotations__)
    assert [name for name in names() if declared(name).is_required()] == ["budget"]
    created, changed = (
        inspect.signature(nl.Campaign.create).parameters,
        inspect.signature(nl.Campaign.change).parameters,
    )
    assert set(names()) < set(created) and created["strength"].default == 4.0
    assert set(changed) == {"self", *ChangeOptions.__annotations__}


def test_a_lease_or_its_id() -> None:
    with campaign() as c:
        lease = c.ask("ann")
        assert isinstance(lease, nl.results.Lease) and lease
        assert c.renew(lease).status == "leased"
        assert c.tell(lease, 1) == c.tell(lease.id, "1")
        assert c.undo(lease).status == "leased" and c.release(lease.id).status == "released"
        nothing = nl.results.NoTask(c.id, "paused")
        assert not nothing and nothing.sentence == "The campaign is paused."
        with pytest.raises(nl.errors.InputError, match="is not a lease"):
            c.tell(nothing, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("prior", [nl.Beta(2, 1), (2, 1), [2, 1], {"kind": "beta", "alpha": 2, "beta": 1}])
def test_priors_in_every_form(prior: Any) -> None:
    with campaign(prior=prior) as c:
        assert c.status().settings.prior == nl.Beta(2, 1)


@pytest.mark.parametrize("deadline", [datetime(2033, 5, 18, 3, 33, 20, tzinfo=UTC), "2033-05-18T03:33:20Z", 2e9])
def test_deadlines_in_every_form(deadline: Any) -> None:
    with campaign(deadline=deadline) as c:
        assert c.status().deadline == 2e9
        assert c.change(deadline=None).deadline is None
        assert c.change(deadline=deadline).deadline == 2e9


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"deadline": datetime(2033, 5, 18)}, "has no time zone"),
        ({"deadline": "soon"}, "is not a time"),
        ({"prior": "flat"}, "is not a pair of numbers"),
        ({"strength": 0}, "strength 0 is not a number of more than 0"),
        ({"accuracy": 1.0}, "accuracy 1.0 is not a number of more than 0.5 and less than 1"),
        ({"label_cost": -1}, "label cost -1 is not a number of at least 0"),
        ({"policy": 3}, "is not a policy"),
        ({"policy": "no_such_module:Rule"}, "no_such_module"),
        ({"tasks": "a text"}, "tasks are given as str"),
        ({"tasks": {"id": 1}}, "tasks are given as dict"),
        ({"tasks": 5}, "tasks are given as int"),
        ({"colour": "red"}, "unknown setting 'colour'"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(nl.errors.InputError, match=said):
        campaign(**settings)


def test_data_frames_are_tasks() -> None:
    frame = pd.DataFrame({"id": ["x", "y"], "text": ["one", None], "score": [0.2, float("nan")]})
    with campaign(frame) as c:  # a column is a score only if somebody says so
        assert {result.probability for result in c.results()} == {0.5}
    with campaign(frame, score_column="score") as c:
        results = {result.task: result for result in c.results()}
        lease = c.ask("ann")
        assert lease and set(lease.payload) == {"text"}
    assert results["x"].payload == {"text": "one", "score": 0.2} and results["y"].payload["text"] is None
    assert results["x"].probability > results["y"].probability == 0.5

    with campaign(pl.DataFrame({"id": ["p"], "text": ["one"]})) as c:
        assert [result.task for result in c.results()] == ["p"]


def test_a_policy_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rules.py").write_text(
        "import nextlabel as nl\n\n\nclass FewestLabels(nl.policies.StaticPolicy):\n    name = 'fewest'\n\n"
        "    def __init__(self, sign=-1.0):\n        self.sign = sign\n\n"
        "    def score(self, view):\n        return self.sign * view.given\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import my_rules  # type: ignore[import-not-found]

    with campaign(policy="my_rules:FewestLabels") as c:
        tasks = {lease.task for worker in "abc" if (lease := c.ask(worker))}
        assert tasks == {"0", "1", "2"}
    with campaign(policy=my_rules.FewestLabels()) as c:
        assert c.status().settings.policy == "my_rules:FewestLabels"
    with pytest.raises(nl.errors.InputError, match="cannot be made again from its name"):
        campaign(policy=my_rules.FewestLabels(sign=1.0))
    with campaign(policy=nl.policies.OKG()) as c:
        assert c.status().settings.policy == "okg"


def test_the_certificate_is_one_object_until_something_happens() -> None:
    with campaign() as c:
        first = c.certificate()
        assert isinstance(first, nl.results.Certificate) and c.certificate() is first
        assert first.curve[0][0] == -6 and first.gain(0) == pytest.approx(0.0, abs=1e-9)
        assert first.now <= first.upper <= first.ceiling


def test_the_certificate_of_a_closed_campaign_is_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "PATIENCE", 1e9)  # as if the first one had taken very long
    with campaign() as c:
        assert c.certificate().spent == 0
        while lease := c.ask(worker=f"w{c.status().spent}"):
            c.tell(lease, 1)
        assert c.status().closed_reason is not None and c.certificate().spent == c.status().spent > 0


@pytest.mark.slow
def test_mypy_narrows_what_ask_returns(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(
        "import nextlabel as nl\n\n"
        "campaign = nl.Campaign.create('memory:', ['a'], budget=3, prior=nl.Beta(2, 1))\n"
        "lease = campaign.ask(worker='ann')\n"
        "if lease:\n    reveal_type(lease)\nelse:\n    reveal_type(lease)\n"
        "nl.Campaign.create('memory:', budget=[3])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(snippet)], capture_output=True, text=True
    )
    lines = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    assert 'Revealed type is "nextlabel.campaign.replies.Lease"' in lines[0]
    assert 'Revealed type is "nextlabel.campaign.replies.NoTask"' in lines[1]
    assert 'expected "int | str"' in lines[2] and len(lines) == 3


def test_a_certificate_that_could_not_be_computed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    service = CampaignService(open_store("memory:"))
    id = service.create(CampaignSettings(budget=6, policy="okg"), tasks=["a", "b"]).id
    compute, go_wrong = certificates.compute_certificate, True

    def computed(*given: Any) -> Any:
        if go_wrong:
            raise ConflictError("not now.", "Later.")
        return compute(*given)

    monkeypatch.setattr(certificates, "compute_certificate", computed)
    with pytest.raises(ConflictError):
        service.certificates.soon(id).result()
    go_wrong = False
    assert (
        service.certificates.look(id) is None and not service.certificates.jobs._under_way
    )  # nothing has happened since
    monkeypatch.setattr(certificates, "OLDEST_S", 0.0)
    service.certificates.look(id)
    assert service.certificates.soon(id).result().tasks == 2
    service.table_cache.close()


def test_what_is_no_lease_is_said_to_be_none() -> None:
    with nl.Campaign.create("memory:", ["a"], budget=2, policy="uncertainty") as campaign:
        for wrong in ("nope", "a-b", ""):
            with pytest.raises(nl.errors.NotFoundError, match=f"{wrong!r} is not the id of a lease"):
                campaign.tell(wrong, "1")
