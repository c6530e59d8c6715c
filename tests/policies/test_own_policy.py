"""A policy of one's own: by object, by ``module:Class``, and what is said when it does not do what a policy does."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.errors import InputError
from nextlabel.policies.registry import make_policy

EXAMPLES = Path(__file__).parents[2] / "examples"
OWN = "first_to_lead:FirstToLead"
BROKEN = """
import numpy as np
import nextlabel as nl

class Shape(nl.policies.StaticPolicy):
    def score(self, view):
        return np.zeros(view.nodes)

class Nan(nl.policies.StaticPolicy):
    def score(self, view):
        return np.where(view.given > 1, np.nan, 0.0)

class Words(nl.policies.StaticPolicy):
    def score(self, view):
        return "largest first"

class Lists(nl.policies.Policy):
    def scores(self, setting):
        return [np.zeros((2, 2))]

class Needs(nl.policies.StaticPolicy):
    def __init__(self, lead):
        self.lead = lead
    def score(self, view):
        return np.zeros(view.given.shape)

class Half(nl.policies.StaticPolicy):
    pass

class Fewest(nl.policies.StaticPolicy):
    def score(self, view):
        return -1.0 * view.given

def function(view):
    return 0
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a module of policies that are wrong in one way each; no trace of it is left."""
    path, loaded = list(sys.path), set(sys.modules)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong_policies.py").write_text(BROKEN)
    (tmp_path / "fails_at_once.py").write_text("1 / 0\n")
    (tmp_path / "needs_more.py").write_text("import no_such_package\n")
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - loaded:
        if name in ("wrong_policies", "fails_at_once", "needs_more", "first_to_lead", "gain_by_worker"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("no_such_module:Class", "there is no module 'no_such_module'"),
        ("wrong_policies:Missing", "module 'wrong_policies' has no class 'Missing'"),
        ("wrong_policies:function", "function is not a policy"),
        ("wrong_policies:np", "np is not a policy"),
        ("wrong_policies:Needs", "cannot be made without arguments"),
        ("wrong_policies:Half", "cannot be made without arguments"),
        ("fails_at_once:Class", "the module fails with ZeroDivisionError"),
        ("needs_more:Class", "No module named 'no_such_package'"),
        (":Class", "is not module:Class"),
        ("wrong policies:Class", "is not module:Class"),
        ("wrong_policies:", "is not module:Class"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_cannot_be_loaded_is_said_in_one_sentence(given: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        make_policy(given)
    assert words in str(caught.value) and repr(given) in str(caught.value) and caught.value.hint


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("wrong_policies:Shape", "returns scores of shape"),
        ("wrong_policies:Nan", "scores that are not finite numbers"),
        ("wrong_policies:Words", "scores with a str"),
        ("wrong_policies:Lists", "a list of 1 ScoreTables is needed"),
    ],
)
@pytest.mark.usefixtures("here")
def test_wrong_scores_are_refused(given: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    problem = nl.Problem.identical(tasks=3, budget=4)
    for call in (lambda: nl.simulate(problem, [given], replications=2), lambda: nl.policy_value(problem, given)):
        with pytest.raises(InputError, match="wrong_policies:"):
            call()
    assert run(["simulate", "--tasks", "3", "--budget", "4", "--policy", given, "--replications", "2"]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


@pytest.mark.usefixtures("here")
def test_wrong_scores_are_refused_where_tasks_have_priors_of_their_own() -> None:
    classes = tuple(nl.TaskClass(1, nl.Beta(1 + k / 100, 1)) for k in range(70))
    with pytest.raises(InputError, match="returns scores of shape"):
        nl.simulate(nl.Problem(classes, 80), ["wrong_policies:Shape"], replications=2)


def test_something_else_is_no_policy() -> None:
    with pytest.raises(InputError, match="is not a policy"):
        make_policy(nl.policies.OKG)  # type: ignore[arg-type]


@pytest.mark.usefixtures("here")
def test_the_same_rule_plays_the_same_digits() -> None:
    problem = nl.Problem.identical(tasks=5, budget=9, arrival_rate=1.0)
    study = nl.simulate(problem, ["wrong_policies:Fewest", "uniform"], replications=20)
    assert [result.name for result in study.results] == ["wrong_policies:Fewest", "uniform"]
    assert np.array_equal(study.results[0].rewards, study.results[1].rewards)
    assert nl.policy_value(problem, "wrong_policies:Fewest").value == nl.policy_value(problem, "uniform").value


def test_the_example_goes_through_simulate_and_backtest(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    theta = rng.beta(2, 1, 40)
    lines = [f"t{x},w{j},{int(rng.random() < theta[x])}" for x in range(40) for j in range(7)]
    (here / "labels.csv").write_text("\n".join(["task,worker,label", *lines]) + "\n")
    monkeypatch.chdir(EXAMPLES)
    assert run(["simulate", "--tasks", "9", "--budget", "20", "--policy", OWN, "--replications", "5", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["policies"][0]
    assert row["name"] == "first-to-lead" and row["labels_used"] == 20
    words = ["--policy", OWN, "--policy", "uniform", "--pilot-tasks", "10", "--replications", "5", "--json"]
    assert run(["backtest", str(here / "labels.csv"), *words]) == 0
    rows = json.loads(capsys.readouterr().out)["accuracy"]
    assert {"first-to-lead", "uniform"} <= {row["policy"] for row in rows}


def test_a_policy_that_knows_workers_runs_a_live_campaign(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It learns its workers as ``crowd`` does, may turn them away, and a store opened again decides the same."""
    monkeypatch.chdir(EXAMPLES)
    own, store = "gain_by_worker:GainByWorker", str(here / "own.db")
    campaign = nl.Campaign.create(store, tasks=[f"t{x}" for x in range(12)], budget=60, policy=own, turn_away=True)
    rng = np.random.default_rng(0)
    for k in range(40):
        worker = k % 4
        lease = campaign.ask(worker=f"w{worker}")
        if lease:
            campaign.tell(lease, label=1 if worker < 3 else int(rng.integers(2)))
    accuracy = {report.worker: report.accuracy for report in campaign.workers()}
    assert accuracy["w0"] > accuracy["w3"]
    opened = nl.Campaign.open(store, campaign.id)
    assert [one.label for one in opened.results()] == [one.label for one in campaign.results()]
    assert opened.verify().right


def test_a_policy_that_counts_draws_or_plans_has_no_exact_value() -> None:
    problem = nl.Problem.identical(tasks=2, budget=3)
    for name in ("ucb1-tuned", "thompson", "lagrangian", "resolve"):
        with pytest.raises(InputError, match="counts, draws or plans"):
            nl.policy_value(problem, name)
    with pytest.raises(InputError, match="label cost"):
        nl.policy_value(nl.Problem.identical(tasks=2, budget=3, label_cost=0.1), "okg")
    assert nl.policy_value(problem, nl.policies.IndexPolicy()).value <= nl.exact_value(problem).value + 1e-9
