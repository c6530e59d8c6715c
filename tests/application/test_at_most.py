"""'At most' of a live campaign: whose labels it counts on, when it is made anew, and how to wait for it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.application import certificate as certificates
from nextlabel.cli.app import run
from nextlabel.errors import BusyError
from service_fixtures import on_sqlite

ITEMS, NAMES = 20, ("no", "yes")


def label(campaign: nl.Campaign, worker: str, labels: int, right: float = 0.9, seed: int = 0) -> int:
    """So many labels of a worker; item k is of kind k modulo 2."""
    rng, given = np.random.default_rng([seed, ord(worker[-1])]), 0
    while given < labels and (lease := campaign.ask(worker)):
        truth = int(lease.task[1:]) % 2
        campaign.tell(lease, NAMES[truth if rng.random() < right else 1 - truth])
        given += 1
    return given


def begun(url: str = "memory:", **settings: object) -> nl.Campaign:
    tasks = [{"id": f"t{k}", "text": "x"} for k in range(ITEMS)]
    return nl.Campaign.create(url, tasks, id="shop", labels=list(NAMES), **{"budget": 100, **settings})


def supply(campaign: nl.Campaign) -> dict[str, float]:
    found = campaign._service.run(campaign.id, certificates._Crowd.of)
    _, _, come = certificates.labels_to_come(found)
    return dict(zip(found.crowd.workers, come.labels.tolist(), strict=True))


def test_it_counts_on_those_who_can_still_label_and_on_nobody_else() -> None:
    with begun(turn_away=False) as campaign:
        campaign.add_predictions("m", [{"task": f"t{k}", "label": NAMES[k % 2]} for k in range(ITEMS)])
        assert label(campaign, "wa", ITEMS) == ITEMS
        for worker in ("wb", "wc", "wd"):
            label(campaign, worker, 6)
        campaign.block_worker("wd")
        come = supply(campaign)
        assert come["wa"] == come["wd"] == come["model:m"] == 0
        assert 0 < come["wb"] <= ITEMS - 6 and 0 < come["wc"] <= ITEMS - 6
        lease = campaign.ask("wb")
        assert lease and supply(campaign)["wb"] == pytest.approx(ITEMS - 6)  # the one in flight is among them
        campaign.block_worker("wb")
        campaign.block_worker("wc")
        found = campaign.certificate(wait=True)
        assert found.upper is None or found.upper >= found.now


def test_controls_are_neither_in_the_mean_nor_worth_a_label() -> None:
    with begun(gold_in_budget=True) as campaign:
        campaign.set_gold({f"t{k}": NAMES[k % 2] for k in range(10)})
        for worker in ("wa", "wb", "wc", "wd"):
            label(campaign, worker, 10)
        found = campaign._service.run(campaign.id, certificates._Crowd.of)
        labels, _, _ = certificates.labels_to_come(found)
        tested = float((found.crowd.gold[found.crowd.answers.task] >= 0).mean())
        assert tested > 0.1 and labels == pytest.approx(found.to_come * (1.0 - tested), abs=1)


def test_waiting_brings_all_of_it_and_dropped_labels_make_it_anew() -> None:
    with begun() as campaign:
        for worker in ("wa", "wb", "wc"):
            label(campaign, worker, 12)
        label(campaign, "wd", 8, right=0.5)
        found = campaign.certificate(wait=True)
        assert found.as_of_labels == found.upper_as_of == campaign.status().spent == 44
        assert found.upper is not None and found.now < found.upper <= 1.0
        assert found.forecast is not None and found.forecast <= found.upper and found.withheld == ""
        assert "95% sure" in found.assumes and "as of 44 labels" in found.assumes
        assert campaign.certificate(wait=True) is found
        campaign.block_worker("wd")
        campaign.drop_labels("wd")
        bounds = campaign._service.certificates.bounds
        state = campaign._service.run(campaign.id, certificates._Crowd.of)
        assert bounds._last["shop"].terms != state.terms
        after = campaign.certificate(wait=True)
        assert after.upper is not None and after.upper != found.upper and after.upper_as_of == 44


def test_somebody_who_does_not_wait_gets_it_a_little_later() -> None:
    with begun() as campaign:
        for worker in ("wa", "wb", "wc"):
            label(campaign, worker, 12)
        until = time.monotonic() + 300.0
        while (found := campaign.certificate()).upper is None and not found.withheld:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert found.upper_as_of == 36


def test_below_30_labels_it_says_why_there_is_none() -> None:
    with begun() as campaign:
        label(campaign, "wa", 12)
        found = campaign.certificate(wait=True)
        assert found.upper is None and found.withheld == "It is known after 30 labels."


def test_the_value_of_the_next_label_is_the_slope_of_the_forecast_and_does_not_jump_at_the_end() -> None:
    with begun(budget=60, turn_away=False) as campaign:
        for k, worker in enumerate(("wa", "wb", "wc", "wd") * 15):
            label(campaign, worker, 1, seed=k)
            if k in (35, 58):
                found = campaign.certificate(wait=True)
                assert found.price is not None and found.forecast is not None
                if found.left >= 3:
                    assert found.price == pytest.approx((found.forecast - found.now) * ITEMS / found.left, abs=1e-9)
                last = found.price
        end = campaign.certificate(wait=True)
        assert end.left == 0 and end.price is not None and abs(end.price - last) < 0.05


def test_a_lapsed_lease_may_still_bring_a_label_before_the_deadline() -> None:
    def most(lapse: bool) -> float:
        now = [1_700_000_000.0]
        with begun(policy="index", deadline=now[0] + 260.0, lease_seconds=5.0, clock=lambda: now[0]) as campaign:
            for k in range(24):
                now[0] += 8.0
                lease = campaign.ask(f"w{k % 4}")
                assert lease
                now[0] += 2.0
                campaign.tell(lease, "yes" if int(lease.task[1:]) % 2 else "no")
            for k in range(6):
                lease = campaign.ask(f"v{k}")
                assert lease
                if not lapse:
                    campaign.release(lease)
            campaign.ask("u")
            now[0] += 15.0
            found = campaign.certificate()
            assert "labels whose lease has lapsed may still come" in found.assumes and found.upper is not None
            return found.upper

    assert most(lapse=True) > most(lapse=False) + 0.001


def test_over_http_one_waits_some_seconds_or_learns_how_old_it_is(tmp_path: Path) -> None:
    with on_sqlite(tmp_path) as service, service.http() as http:
        id = service.campaign("crowd", tasks=ITEMS, policy="crowd", budget=100, turn_away=False)
        for worker in ("wa", "wb", "wc"):
            for _ in range(12):
                lease = service.campaign_service[id].ask(worker)
                assert lease
                service.campaign_service[lease.campaign].tell(lease.id, "yes" if int(lease.task[1:]) % 2 else "no")
        reply = http.get(f"/campaigns/{id}/certificate", params={"wait": 0})
        assert reply.status_code == 202 and reply.json() == {"as_of_labels": None}
        client = nl.Client(service.url, service.token, timeout=120)
        until = time.monotonic() + 300.0
        while True:
            try:
                found = client.certificate(id, wait=True)
                break
            except BusyError:
                assert time.monotonic() < until
        assert found.upper is not None and found.as_of_labels == found.upper_as_of == 36
        assert http.get(f"/campaigns/{id}/certificate", params={"wait": 30}).status_code == 200
        assert http.get(f"/campaigns/{id}/certificate", params={"wait": 31}).status_code == 422
        client.close()


def test_the_command_waits_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = f"{tmp_path / 'shop.db'}"
    with begun(db) as campaign:
        for worker in ("wa", "wb", "wc"):
            label(campaign, worker, 12)
    assert run(["campaign", "status", "shop", "--db", db, "--wait", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["now"] < found["upper"] <= 1.0 and found["upper_as_of"] == found["as_of_labels"] == 36
    assert run(["campaign", "status", "--db", db, "--wait"]) == 2
    assert "Give its id" in capsys.readouterr().err


def test_a_large_campaign_has_one_as_quickly() -> None:
    tasks = [{"id": f"t{k}"} for k in range(20_000)]
    with nl.Campaign.create("memory:", tasks, labels=list(NAMES), budget=60_000) as campaign:
        for worker in ("wa", "wb", "wc"):
            label(campaign, worker, 12)
        found = campaign.certificate(wait=True)
        assert found.upper is not None and found.now < found.upper <= 1.0


def test_ratings_have_none_and_say_so() -> None:
    tasks = [{"id": f"t{k}"} for k in range(ITEMS)]
    with nl.Campaign.create("memory:", tasks, answer="rating", scale="1..5", budget=60) as campaign:
        for worker in ("wa", "wb"):
            for _ in range(16):
                lease = campaign.ask(worker)
                assert lease
                campaign.tell(lease, "3")
        found = campaign.certificate(wait=True)
        assert found.upper is None and found.withheld == "There is none for ratings."
