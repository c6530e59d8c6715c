"""What ``nextlabel prior`` recommends is accepted as it is printed: by backtest, plan, bound and campaigns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nextlabel.application.service import Campaign
from nextlabel.cli.app import run
from nextlabel.cli.options import parse_prior
from nextlabel.errors import ProblemError
from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.tables import prior_from


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Easy tasks and hopeless ones: a mixture."""
    rng = np.random.default_rng(4)
    theta = np.where(rng.random(300) < 0.5, 0.95, 0.5)
    rows = [f"t{x},w{j},{int(rng.random() < theta[x])}" for x in range(300) for j in range(9)]
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def line(labels: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["prior", str(labels), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["use"] == "mixture"
    found: str = answer["toml"]
    return found


@pytest.mark.slow
def test_the_recommended_mixture_goes_everywhere(
    labels: Path, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = prior_from(parse_prior(line))
    assert isinstance(wanted, BetaMixture)
    few = ["--replications", "3", "--json"]
    words = ["backtest", str(labels), "--policy", "index", "--labels-per-task", "3", "--prior", line, *few]
    assert run(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert prior_from(answer["prior"]) == wanted and answer["prior_from"] == "given"
    assert run(["plan", "--tasks", "30", "--budget", "90", "--prior", line, *few]) == 0
    by_flag = json.loads(capsys.readouterr().out)
    assert by_flag["problem"]["priors"] == ["mixture"]
    problem = tmp_path / "problem.toml"
    problem.write_text(f"budget = 90\n[[tasks]]\ncount = 30\n{line}\n", encoding="utf-8")
    assert run(["plan", "--problem", str(problem), *few]) == 0
    assert json.loads(capsys.readouterr().out)["curve"] == by_flag["curve"]
    db = f"sqlite:///{tmp_path / 'labels.db'}"
    assert run(["campaign", "create", "--budget", "90", "--prior", line, "--db", db, "--json"]) == 0
    with Campaign.open(db) as campaign:
        assert prior_from(next(campaign.events()).data["config"]["prior"]) == wanted


def test_a_backtest_can_learn_a_mixture_itself(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--policy", "index", "--labels-per-task", "3", "--method", "mixture", "--pilot-tasks", "120"]
    assert run(["backtest", str(labels), *words, "--replications", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["prior"]["kind"] == "mixture" and "as a mixture" in answer["prior_from"]


@pytest.mark.parametrize(
    "text",
    [
        'prior = {kind = "mixture", weights = [0.25, 0.75], betas = [[8, 2], [1, 1]]}',
        '{kind = "mixture", weights = [0.25, 0.75], betas = [[8, 2], [1, 1]]}',
        '{"kind": "mixture", "weights": [0.25, 0.75], "betas": [[8, 2], [1, 1]]}',
    ],
)
def test_forms_of_a_table(text: str) -> None:
    assert prior_from(parse_prior(text)) == BetaMixture((0.25, 0.75), (Beta(8, 2), Beta(1, 1)))


@pytest.mark.parametrize("text", ["[1, 2]", "prior = [1, 2]", "1,2"])
def test_forms_of_two_weights(text: str) -> None:
    assert prior_from(parse_prior(text)) == Beta(1, 2)


@pytest.mark.parametrize("text", ["{kind = mixture}", "prior = {", "[1, 2", "{}[]"])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(ProblemError, match="cannot be read as a table"):
        parse_prior(text)


@pytest.mark.parametrize("prior", [Beta(8, 2), BetaMixture((0.3, 0.7), (Beta(8, 2), Beta(1, 3)))])
def test_probabilities_of_the_truth_are_those_of_the_lattice(prior: Beta | BetaMixture) -> None:
    _, truth = prior.believe(0.4, 12)
    level = np.repeat(np.arange(13), np.arange(1, 14))
    ones = np.concatenate([np.arange(m + 1) for m in range(13)])
    assert prior.above(0.4, level, ones) == pytest.approx(truth[:, 1], abs=1e-12)
