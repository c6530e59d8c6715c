"""Campaigns whose answers are ratings: the settings at every door, what is read out, and files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.cli.app import run


def play(campaign: nl.Campaign, truth: dict[str, int], spam: int = 0, workers: int = 10) -> None:
    """Workers with biases and spreads answer until the budget is spent; the first ``spam`` answer at random."""
    rng = np.random.default_rng(0)
    bias = rng.choice([-1, 0, 0, 1], workers)
    for turn in range(10_000):
        j = turn % workers
        lease = campaign.ask(f"w{j}")
        if isinstance(lease, nl.results.NoTask):
            if lease.reason == "nothing_left_for_you":
                continue
            break
        step = truth[lease.payload["text"]]
        said = rng.integers(1, 6) if j < spam else np.clip(step + bias[j] + rng.integers(-1, 2), 1, 5)
        campaign.tell(lease, str(int(said)))


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_what_is_read_out_has_the_least_loss(tmp_path: Path, loss: Any) -> None:
    rng = np.random.default_rng(1)
    truth = {f"text {x}": int(rng.integers(1, 6)) for x in range(60)}
    with nl.Campaign.create(
        f"sqlite:///{tmp_path}/c.db", tasks=[{"text": text} for text in truth], budget=300, answer="rating",
        scale="1..5", loss=loss, turn_away=False,
    ) as campaign:  # fmt: skip
        assert campaign.status().settings.labels == ("1", "2", "3", "4", "5")
        play(campaign, truth, spam=3)
        results = list(campaign.results())
        steps, power = np.arange(1, 6), 2 if loss == "squared" else 1
        for one in results:
            beliefs = np.array(list(one.probabilities.values()))
            assert beliefs.sum() == pytest.approx(1.0) and one.probability == beliefs[int(one.label) - 1]
            expected = [float(beliefs @ np.abs(steps - s) ** power) for s in steps]
            assert expected[int(one.label) - 1] == pytest.approx(min(expected), abs=1e-9)
        error = np.mean([(int(one.label) - truth[one.payload["text"]]) ** 2 for one in results])
        counts = np.array([list(one.counts.values()) for one in results])
        plain = np.rint(counts @ steps / counts.sum(axis=1))
        assert error < np.mean((plain - [truth[one.payload["text"]] for one in results]) ** 2)
        campaign.change(at_most_wrong=0.5)
        campaign.freeze()  # what is frozen is what was read out, not the likeliest step
        assert {one.task: one.label for one in campaign.results()} == {one.task: one.label for one in results}
        agreement = campaign.agreement()
        assert agreement["level"] == "ordinal"


def test_the_command_line_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.csv").write_text("text\ngood\nbad\n")
    words = ["campaign", "create", "tasks.csv", "--budget", "4", "--id", "c", "--answer", "rating", "--scale", "0..10"]
    assert run([*words, "--json"]) == 0
    capsys.readouterr()
    with nl.Campaign.open("sqlite:///nextlabel.db", "c") as campaign:
        config = campaign.status().settings
        assert (config.answer, config.scale, config.loss) == ("rating", "0..10", "squared")
        assert config.labels == tuple(str(step) for step in range(11))
        lease = campaign.ask("ann")
        assert isinstance(lease, nl.results.Lease)
        with pytest.raises(nl.errors.InputError, match="'11' is not one of the campaign's"):
            campaign.tell(lease, "11")
        campaign.tell(lease, "7")
    assert run(["campaign", "export", "c", "--save", "results.csv"]) == 0
    with Path("results.csv").open() as stream:
        (told,) = (row for row in csv.DictReader(stream) if row["labels"] == "1")
    assert told["count_7"] == "1" and sum(float(told[f"p_{step}"]) for step in range(11)) == pytest.approx(
        1.0, abs=1e-4
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"answer": "rating", "scale": "5..1"}, "2 to 26 steps"),
        ({"answer": "rating", "scale": "1..100"}, "2 to 26 steps"),
        ({"answer": "rating", "scale": "five"}, "'five' is not a range"),
        ({"answer": "rating", "labels": ["no", "yes"]}, "have no other labels"),
        ({"scale": "1..5"}, "scale only has an effect with answer rating"),
        ({"loss": "absolute"}, "loss only has an effect with answer rating"),
        ({"answer": "melody"}, "should be 'choice', 'rating'"),
    ],
)
def test_bad_settings(settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(nl.errors.InputError, match=said):
        nl.Campaign.create(f"sqlite:///{tmp_path}/c.db", tasks=["a"], budget=3, **settings)


def test_over_http(tmp_path: Path) -> None:
    from service_fixtures import on_sqlite

    with on_sqlite(tmp_path) as service, service.http() as http:
        body = {"id": "rated", "budget": 3, "answer": "rating", "scale": "1..7", "loss": "absolute"}
        made = http.post("/campaigns", json=body)
        assert made.status_code == 201, made.text
        assert made.json()["settings"]["labels"] == [str(step) for step in range(1, 8)]
        http.post("/campaigns/rated/tasks", content=json.dumps({"payload": {"text": "a"}}))
        refused = http.post("/campaigns", json={**body, "id": "other", "scale": "7"})
        assert refused.status_code == 422 and "not a range" in refused.text


def test_the_form_of_the_browser() -> None:
    """The labels that the form suggests stand in nobody's way; a scale without ratings is refused."""
    from nextlabel.web.dashboard.routes.create import form_settings

    sent = {"budget": "10", "labels": "no\nyes", "answer": "rating", "scale": "1..7"}
    assert form_settings(sent, ["text"], 0.0).labels == tuple("1234567")
    assert form_settings({**sent, "answer": "", "scale": ""}, ["text"], 0.0).labels == ("no", "yes")
    with pytest.raises(nl.errors.InputError, match="scale only has an effect with answer rating"):
        form_settings({**sent, "answer": ""}, ["text"], 0.0)
