"""Campaigns for pairs: items become pairs, the pair that does most for the order comes next, and items are ranked."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kendalltau

import nextlabel as nl
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.crowd_model import first_model
from nextlabel.cli.app import run
from nextlabel.simulation.answers import drawn_pairs

ITEMS = [{"id": f"i{k}", "text": f"poem {k}"} for k in range(8)]


def compare(campaign: nl.Campaign, score: Any, labels: int, seed: int = 0) -> None:
    """Six workers compare by Bradley and Terry's model, the last of them says anything."""
    rng = np.random.default_rng(seed)
    for turn in range(labels):
        lease = campaign.ask(f"w{turn % 6}")
        if not lease:
            continue
        i, j = (int(name[1:]) for name in lease.task.split(" | "))
        ahead = rng.random() < (0.5 if turn % 6 == 5 else expit(score[i] - score[j]))
        campaign.tell(lease, "first" if ahead else "second")


def test_items_become_pairs_and_are_ranked() -> None:
    score = np.random.default_rng(3).normal(0.0, 3.0, 10)
    with nl.Campaign.create("memory:", ITEMS, budget=150, answer="pair") as campaign:
        assert campaign.status().tasks == 28
        payload = next(iter(campaign.results())).payload
        assert set(payload) == {"first", "second", "items"} and payload["first"]["text"].startswith("poem")
        lease = campaign.ask("ann")
        assert lease and set(lease.payload) == {"first", "second"}, "what items are called is not shown"
        campaign.release(lease)
        compare(campaign, score, 60)
        campaign.add_tasks([{"id": "i8", "text": "poem 8"}, {"id": "i9", "text": "poem 9"}, ITEMS[0]])
        assert campaign.status().tasks == 45
        compare(campaign, score, 90, seed=1)
        found = campaign.order()
        assert [one["rank"] for one in found["items"]] == list(range(1, 11)) and 0.0 < found["discordant"] < 0.3
        said = {one["item"]: one["score"] for one in found["items"]}
        assert kendalltau([said[f"i{k}"] for k in range(10)], score)[0] > 0.6
        for one in campaign.results():
            i, j = one.payload["items"]
            assert one.label == ("first" if said[i] > said[j] else "second") or one.probabilities["tie"] > 0.1
            assert sum(one.probabilities.values()) == pytest.approx(1.0)
        workers = {one.worker: one for one in campaign.workers()}
        assert workers["w5"].accuracy < min(workers[f"w{k}"].accuracy for k in range(5))
        assert campaign.certificate().withheld == "There is none for the order of items."
        service, id = campaign._service, campaign.id
        assert service[id].verify().right
        before = campaign.order()
        service[id].rebuild()
        assert campaign.order() == before


def test_a_model_that_is_restored_knows_the_same() -> None:
    """A snapshot has entries and no pairs: these are read from the campaign's tasks again."""
    with nl.Campaign.create("memory:", ITEMS, budget=150, answer="pair") as campaign:
        compare(campaign, np.linspace(2.0, -2.0, 8), 60)

        def scores(commands: Commands) -> list[np.ndarray]:
            state, found = commands.state, []
            assert state.crowd is not None
            other = first_model(state.row.config)
            assert other.restore(state.crowd.dump(), state.row.seq)
            data = state.crowd.begin_refit(state.row, state.row.last_at)
            for model in (state.crowd, other):
                model.learn(state, data)
                pairs = model.snapshot(state).pairs
                assert pairs is not None
                found.append(pairs.fit.score)
            return found

        one, other = campaign._service.run(campaign.id, scores)
        assert len(one) == 8 and np.array_equal(one, other)


def test_who_is_among_the_best_is_asked_more() -> None:
    """With top, more of the comparisons are of items around the place where the best end."""
    score, near = np.linspace(4.0, -4.0, 8), []
    for settings in ({}, {"top": 2}):
        with nl.Campaign.create("memory:", ITEMS, budget=120, answer="pair", **settings) as campaign:  # type: ignore[arg-type]
            compare(campaign, score, 140)
            tasks = [label.task.split(" | ") for label in campaign.labels()]
            near.append(np.mean([{"i1", "i2"} & set(one) != set() for one in tasks]))
    assert near[1] > near[0]


def test_pairs_of_ones_own_and_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.csv").write_text("prompt,first,second\nhello,hi,good day\nbye,ciao,hi\n")
    make = ["campaign", "create", "pairs.csv", "--answer", "pair", "--budget", "9", "--id", "c"]
    assert run([*make, "--labels", "first,second"]) == 0, capsys.readouterr()
    with nl.Campaign.open("sqlite:///nextlabel.db", "c") as campaign:
        lease = campaign.ask("ann")
        assert lease and set(lease.payload) == {"prompt", "first", "second"}
        with pytest.raises(nl.errors.InputError, match="not one of the campaign's"):
            campaign.tell(lease, "tie")
        campaign.tell(lease, "second")
    assert run(["campaign", "export", "c", "--rows", "items", "--save", "order.csv"]) == 0
    with Path("order.csv").open() as file:
        assert {row["item"] for row in csv.DictReader(file)} == {"hi", "good day", "ciao"}
    for tasks, settings, said in (
        (["a"], {}, "nothing to compare it with"),
        ([{"first": "a", "second": "a"}], {}, "compared with itself"),
        ([str(k) for k in range(302)], {}, "are not made pairs of"),
        (["a", "b"], {"policy": "index"}, "does not ask for pairs"),
        (["a", "b"], {"accuracy": 0.8}, "takes no accuracy"),
        (["a", "b"], {"labels": ("x", "y")}, "no other labels"),
    ):
        with pytest.raises(nl.errors.InputError, match=said):
            nl.Campaign.create("memory:", tasks, budget=3, answer="pair", **settings)  # type: ignore[arg-type]
    with (
        nl.Campaign.create("memory:", ["a"], budget=3) as other,
        pytest.raises(nl.errors.ConflictError, match="compare"),
    ):
        other.order()


def test_chosen_pairs_do_more_for_the_order_than_even_ones() -> None:
    """Replayed with the live allocator; twice as many random ones are in ``benchmarks.pairs``."""
    rng = np.random.default_rng(1)
    data = [drawn_pairs(rng.normal(0.0, 3.0, 16), np.full(8, 0.95), rng) for _ in range(3)]
    tau = {
        rule: np.mean([one.figure(one.read(one.buy(160, rule, 0), "learnt")) for one in data])  # type: ignore[arg-type]
        for rule in ("value", "even")
    }
    assert tau["value"] > tau["even"]
