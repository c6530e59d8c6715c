"""Live choices of which some mistakes are worse: what is asked, what is read out, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.cli.app import run

#: To say a (row) where b (column) is true costs five times what a right answer earns.
UTILITY = ((1.0, -5.0), (0.0, 1.0))
TEXT = "1,-5;0,1"


def new(tasks: int, *, reward: object = TEXT, policy: str = "crowd", **settings: object) -> nl.Campaign:
    given = {"labels": ["a", "b"], "budget": 60, **settings}
    items = [{"id": f"t{k}", "text": "x", "score": 0.5 if k % 2 else 0.14} for k in range(tasks)]
    return nl.Campaign.create("memory:", tasks=items, policy=policy, reward=reward, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["crowd", "crowd-uncertainty", "index"])
def test_the_answer_of_the_largest_expected_utility_is_read_out(policy: str) -> None:
    with new(30, policy=policy) as campaign:
        rng = np.random.default_rng(3)
        for _ in range(60):
            lease = campaign.ask(f"w{rng.integers(6)}")
            if lease:
                campaign.tell(lease, "ab"[rng.integers(2)])
        found = list(campaign.results())
        odd = 0
        for one in found:
            p = np.array([one.probabilities["a"], one.probabilities["b"]])
            best = int((np.array(UTILITY) @ p).argmax())
            assert one.label == "ab"[best] and one.probability == pytest.approx(p[best])
            odd += best != int(p.argmax())
        assert odd > 3 and campaign.verify().right
        assert campaign.certificate().now < 0.95


def test_the_certificate_counts_right_answers_and_says_what_they_are_worth() -> None:
    with new(20) as campaign:
        for k in range(40):
            lease = campaign.ask(f"w{k % 4}")
            if lease:
                campaign.tell(lease, "ab"[int(lease.task[1:]) % 2])
            if k == 10:
                worth = campaign.certificate(wait=True).worth
                assert worth is not None and worth.upper is None  # too few labels
        certificate = campaign.certificate(wait=True)
        assert 0 <= certificate.now <= 1 and certificate.upper is None and certificate.forecast is None
        assert "an item is worth" in certificate.rests_on and "see what an item is worth" in certificate.withheld
        worth = certificate.worth
        assert worth is not None and worth.upper is not None
        assert worth.now <= worth.upper <= worth.ceiling + 1e-9 and worth.ceiling == pytest.approx(1.0)
        assert certificate.upper_as_of == certificate.as_of_labels and "95% sure" in certificate.assumes
        assert f"at most {worth.upper:.4g}" in certificate._repr_html_()


@pytest.mark.parametrize(
    "reward", [{"kind": "utility", "matrix": [[1, -5], [0, 1], [0.5, 0.5]]}, "1,0,0;0,1,0;0,0,1", "squared-error"]
)
def test_what_has_no_answer_for_each_row_is_refused(reward: object) -> None:
    with pytest.raises(nl.errors.InputError):
        new(5, reward=reward)


def test_on_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.csv").write_text("id,text\n1,x\n2,y\n")
    words = ["campaign", "create", "tasks.csv", "--db", "labels.db", "--budget", "9", "--labels", "a,b"]
    for wrong, said in (("1,-5;0", "is not a matrix"), ("1,x;0,1", "is not a matrix"), ("1,0", "a row for each label")):
        assert run([*words, "--reward", wrong]) == 2
        assert said in capsys.readouterr().err
    assert run([*words, "--reward", TEXT, "--id", "one"]) == 0
    assert run(["campaign", "status", "one", "--db", "labels.db", "--json"]) == 0
    worth = json.loads(capsys.readouterr().out.rpartition("\n{\n")[2].join(["{", ""]))["worth"]
    assert worth["upper"] is None and worth["ceiling"] == 1.0
    with nl.Campaign.open("labels.db", "one") as campaign:
        assert campaign.status().settings.reward == nl.rewards.Utility(UTILITY)
