"""A budget in money: how many labels it buys, what a campaign costs so far and in all, controls inside or outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.client import Client
from nextlabel.errors import InputError
from service_fixtures import on_sqlite

TASKS = [{"id": f"t{k}", "text": "x", **({"gold": "1"} if k < 4 else {})} for k in range(20)]


def labelled(**settings: Any) -> nl.Campaign:
    """A campaign after twelve labels of two workers, some of them to control questions."""
    campaign = nl.Campaign.create("memory:", tasks=TASKS, policy="index", **settings)
    for _ in range(6):
        for worker in ("ann", "bob"):
            lease = campaign.ask(worker)
            assert lease
            campaign.tell(lease, "1")
    return campaign


@pytest.mark.parametrize("inside", [False, True])
def test_the_cost_has_pay_and_fee_and_says_where_controls_are(inside: bool) -> None:
    with labelled(budget="6 EUR", pay_per_label=0.1, platform_fee=0.25, gold_in_budget=inside) as campaign:
        status = campaign.status()
        cost = status.cost
        assert (status.budget, status.settings.currency, status.settings.gold_in_budget) == (48, "EUR", inside)
        controls = sum(one.free for one in campaign._service.store.workers(campaign.id))
        assert (controls == 0) is inside and status.spent + controls == 12
        assert cost is not None and cost.so_far == pytest.approx(12 * 0.125)
        assert cost.at_most == pytest.approx(6 + controls * 0.125) and cost.on_top == pytest.approx(controls * 0.125)
        assert ("from the budget" if inside else "on top: 0.") in cost.sentence
        paid = sum(one.amount for one in campaign.workers())
        assert cost.so_far == pytest.approx(paid * 1.25)
        assert campaign.verify().right
        assert campaign.change(budget="7.50 EUR").budget == 60
        assert campaign.change(budget="6 EUR", pay_per_label=0.2).budget == 24
        for budget, said in (
            ("5 USD", "one currency"),
            ("0.01 EUR", "buy no label"),
            ("5 euros", "one currency"),
            ("120,50 EUR", "whole number"),
            ("1,50 EUR", "whole number"),
        ):
            with pytest.raises(InputError, match=said):
                campaign.change(budget=budget)
        assert campaign.status().budget == 24


def test_money_includes_controls_unless_you_say_otherwise() -> None:
    with nl.Campaign.create("memory:", budget="EUR 1,000.50", pay_per_label=0.25) as campaign:
        settings = campaign.status().settings
        assert (settings.budget, settings.gold_in_budget) == (4002, True)
    for settings in ({"budget": "10 EUR"}, {"budget": "10 EUR", "pay_per_label": 1.0, "currency": "USD"}):
        with pytest.raises(InputError):
            nl.Campaign.create("memory:", **settings)  # type: ignore[arg-type]


def test_over_http_and_on_the_page(tmp_path: Path) -> None:
    from nextlabel.web.pages import mount_pages

    with on_sqlite(tmp_path, pages=mount_pages) as service, Client(service.url, service.token) as client:
        made = client.create(budget="12 EUR", pay_per_label=0.1, platform_fee=0.2, policy="index", labels=["no", "yes"])
        assert made.budget == 100 and made.cost is not None and made.cost.at_most == pytest.approx(12)
        assert client.change(made.id, budget="24 EUR").budget == 200
        with service.http() as http:
            for name, bad in (
                ("budget", "24 USD"), ("budget", "24"), ("budget", "many"), ("budget", "1 EUR EUR"),
                ("pay_per_label", 1.7e308),  # with a fee on top it would be infinite
            ):  # fmt: skip
                reply = http.patch(f"/campaigns/{made.id}", json={name: bad})
                assert reply.status_code == 422, reply.text
        with httpx.Client(base_url=service.url, timeout=60) as browser:
            browser.post("/sign-in", data={"token": service.token})
            page, form = browser.get(f"/campaigns/{made.id}").text, browser.get("/new").text
            upload = browser.post(
                "/new", files={"file": ("x.csv", b"id,text\na,x\n", "text/csv")}, follow_redirects=True
            )
        assert "Least that a label must add" in upload.text  # a share of an item's value, which is no money
        assert "<span>Cost of a label" not in form + upload.text and "No amount of money" in upload.text
        assert "0.00 EUR so far, 24.00 EUR with all of the budget, at 0.12 EUR (pay 0.1, fee 20%) a label" in page


def test_results_say_what_they_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = ["--db", str(tmp_path / "x.db")]
    assert run(["campaign", "create", "--budget", "12 EUR", "--pay-per-label", "0.1", "--id", "m", *db]) == 0
    assert run(["campaign", "status", "m", *db]) == 0
    assert "12.00 EUR with all of the budget" in " ".join(capsys.readouterr().out.split())
    assert run(["campaign", "export", "m", *db]) == 0
    assert "The labels cost 0.00 EUR so far, 12.00 EUR" in capsys.readouterr().err
    assert run(["campaign", "change", "m", "--budget", "24 EUR", *db]) == 0
    assert "may buy 240 labels" in capsys.readouterr().err
    assert run(["campaign", "change", "m", "--budget", "120,50 EUR", *db]) == 2
    assert "money with its currency in letters" in " ".join(capsys.readouterr().err.split())


def test_plan_in_money(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["plan", "--tasks", "10", "--prior", "1,1", "--replications", "10"]
    assert run([*words, "--budget", "3 EUR", "--pay-per-label", "0.1", "--out", "out"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "30 labels cost 3.00 EUR" in said and "3.00 EUR 3.00" in said
    assert run([*words, "--budget", "3 EUR"]) == 2
    assert "Give the pay per label" in capsys.readouterr().err
