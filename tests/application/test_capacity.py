"""What fits: measured on a campaign that is deleted again, and a model of processes."""

from __future__ import annotations

from pathlib import Path

import pytest

import nextlabel as nl
from nextlabel.application import capacity as module
from nextlabel.application.capacity import Capacity, capacity
from nextlabel.application.service import CampaignService
from nextlabel.cli.app import run
from nextlabel.store.sql import open_store


def test_it_is_measured_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TASKS", 200)
    url = f"sqlite:///{tmp_path / 'labels.db'}"
    with nl.Campaign.create(url, tasks=["a", "b"], budget=4, id="mine") as campaign:
        campaign.ask("ann")
    service = CampaignService(open_store(url))
    found = capacity(service, 0.0)
    assert (found.campaigns, found.tasks, found.leases) == (1, 2, 1)
    assert found.pairs >= module.BATCH / 2 and found.wall > 0 and found.processor > 0
    assert [row.id for row in service.store.campaigns()] == ["mine"]
    service.close()


def test_processes_add_up_until_the_cores_are_used() -> None:
    found = Capacity(1, 2, 3, 0.1, 100, wall=0.002, processor=0.0005, cores=2)
    rates = [found.pairs_per_second(processes, database=0.0005) for processes in (1, 2, 4, 8)]
    assert rates == pytest.approx([500, 1000, 2000, 2000])
    assert found.workers(10) == pytest.approx(5000) and "the disk or the database" in " ".join(found.sentences())
    assert "with the policy index" in found.sentences()[0]


def test_the_flag_is_about_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["campaign", "status", "mine", "--capacity", "--db", str(tmp_path / "x.db")]) == 2
    assert "Leave the id" in capsys.readouterr().err
