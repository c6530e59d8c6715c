"""The studies: each leaves a figure, a table and a manifest, or nothing; the same digits for any number of jobs."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nextlabel.cli.app import run
from nextlabel.errors import InputError
from nextlabel.model.problem import Problem
from nextlabel.policies.base import Setting
from nextlabel.policies.exact_value import policy_value
from nextlabel.policies.registry import make_policy
from nextlabel.reporting.artifacts import Row
from nextlabel.simulation.engine import Engine
from nextlabel.solve.index import index_table
from studies import auto, delay, exact, fig1, fig2, growth, indexability, reproduce, study, workers
from studies.study import StudyOptions
from tolerances import BOUND, PRINTED

ROOT = Path(__file__).resolve().parents[1]


def silent(fraction: float) -> None:
    assert 0.0 <= fraction <= 1.0 + 1e-9


def config(jobs: int = 1, replications: int = 3, data: Path | None = None) -> StudyOptions:
    return StudyOptions(True, 0, Engine(jobs=jobs), replications, None if data is None else str(data))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies cut down to seconds: small sizes, few policies."""
    few = ["index", "kg", "okg", "random", "uniform"]
    for module in (delay, exact, fig1, fig2, growth):
        monkeypatch.setattr(module, "names", lambda **_: few)
    monkeypatch.setattr(fig1, "TASKS", (4, 10))
    monkeypatch.setattr(growth, "QUICK_TASKS", (10, 20))
    monkeypatch.setattr(delay, "QUICK_TASKS", (4,))
    for part, few_of_it in (("TASKS", (10,)), ("LOADS", (2.0,)), ("QUICK_CELLS", 1), ("QUICK_GROWTH", (10, 20))):
        monkeypatch.setattr(auto, part, few_of_it)
    monkeypatch.setattr(exact, "QUICK_PROBLEMS", ((2, 3, 0.1), (2, 3, 1.0)))
    monkeypatch.setattr(indexability, "QUICK_PROBLEMS", ((2, 4),))
    monkeypatch.setattr(fig2, "QUICK_RATIOS", (1.2, 3.0))
    for name in ("QUICK_TASKS", "QUICK_SPREADS", "QUICK_LOADS"):
        monkeypatch.setattr(workers, name, getattr(workers, name)[-1:])
    monkeypatch.setattr(workers, "QUICK_MIDDLE", 20)
    monkeypatch.setattr(workers, "QUICK_TASKS", (20,))
    monkeypatch.setattr(workers, "SIMULATED", ("crowd", "uniform"))
    monkeypatch.setattr(workers, "REPLAYED", ("crowd", "uniform"))
    monkeypatch.setattr(fig2, "HELD_OUT", 10)
    monkeypatch.setattr(fig2, "index_for", lambda problem, cap: study.index_for(problem.with_budget(40), 4))


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    """Made-up sets in the places of RTE, TEMP, MRE (with times) and LabelMe, and features of two of them."""
    rng = np.random.default_rng(0)
    for name in ("rte", "temp", "mre", "labelme"):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        theta = rng.beta(2, 2, 40)
        labels = [f"t{x},w{j},{int(rng.random() < theta[x])}" for x in range(40) for j in range(10)]
        header = "task,worker,label"
        if name == "mre":
            header += ",started,submitted,batch"
            times = [(f"2026-01-01T{k // 60:02d}:{k % 60:02d}:{s:02d}" for s in (0, 30)) for k in range(len(labels))]
            labels = [",".join([label, *when, "b1"]) for label, when in zip(labels, times, strict=True)]
        (folder / "labels.csv").write_text("\n".join([header, *labels]) + "\n")
        (folder / "gold.csv").write_text("\n".join(["task,label", *(f"t{x},{int(theta[x] > 0.5)}" for x in range(40))]))
        for file, title, cell in (("items.csv", "text", "some text"), ("features.csv", "f0", "0.5")):
            (folder / file).write_text("\n".join([f"task,{title}", *(f"t{x},{cell}" for x in range(40))]))
    return tmp_path / "data"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name == "workers" else name for name in reproduce.STUDIES]
)
def test_every_study_leaves_its_three_files(
    name: str, tmp_path: Path, crowd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["reproduce", name, "--quick", "--replications", "2", "--out", str(out), "--json"]
    words += ["--data", str(crowd)] if reproduce.STUDIES[name].sets else []
    assert run(words) == 0
    folder = out / name
    assert sorted(file.name for file in folder.iterdir()) == sorted([f"{name}.png", f"{name}.csv", "manifest.json"])
    assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    answer = json.loads(capsys.readouterr().out)["studies"][0]
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(answer["rows"]) > 0
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["command"].startswith(f"nextlabel reproduce {name} --seed 0")
    assert manifest["seed"] == 0 and "numba" in manifest["versions"] and manifest["seconds"] >= 0
    assert manifest["cpu"] and manifest["blas"] and set(manifest) >= {"commit", "platform", "python"}
    assert str(tmp_path) not in (folder / "manifest.json").read_text()
    if name == "fig2":
        assert len(manifest["sets"]["rte"]["held_out"]) == 10
        assert {row["tasks"] for row in rows if row["set"] == "rte"} == {"10", "30"}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["fig1", "fig2", "growth"])
@pytest.mark.slow
def test_the_same_rows_for_any_number_of_jobs(name: str, crowd: Path) -> None:
    one, two = (reproduce.STUDIES[name].run(config(jobs, 9, crowd), silent).rows for jobs in (1, 2))
    assert one == two


@pytest.mark.usefixtures("small")
def test_fig1_has_the_bound_and_the_optimum_of_ten_tasks() -> None:
    rows = fig1.run(config(), silent).rows
    best = [row for row in rows if row["policy"] == "optimum" and row["tasks"] == 10]
    assert {row["stop"] for row in best} == {"wait", "discard"}
    assert next(row["mean"] for row in best if row["stop"] == "wait") == pytest.approx(0.75625, abs=PRINTED)
    assert rows[-1]["bound"] == pytest.approx(0.759375, abs=BOUND)
    plotted = [row for row in rows if row["paper"] is not None]
    assert {(row["policy"], row["stop"]) for row in plotted} == {("index", "discard"), ("okg", "discard")}


def test_table_policies_have_the_exact_values_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """METHODS: K=3, U=6, r=1: optimum, index (ties averaged) and OKG with random ties."""
    monkeypatch.setattr(exact, "QUICK_PROBLEMS", ((3, 6, 1.0),))
    monkeypatch.setattr(exact, "names", lambda: ["index", "okg", "kg"])
    rows = {row["policy"]: row for row in exact.run(config(), silent).rows}
    assert rows["okg"]["optimum"] == pytest.approx(2.342366, abs=BOUND)
    assert rows["index"]["value"] == pytest.approx(2.335372, abs=PRINTED)
    assert rows["okg"]["value"] == pytest.approx(2.306015, abs=BOUND)
    assert all(row["how"] == "exact" and row["loss_percent"] >= -1e-9 for row in rows.values())


def test_the_state_that_reopens_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theory, section 9: at rho = 25 nothing seen, two in flight, four arrivals left has two candidates."""
    monkeypatch.setattr(indexability, "QUICK_PROBLEMS", ((3, 6),))
    calm, _, busy = indexability.run(config(replications=20), silent).rows
    assert (calm["states"], calm["reopening"], calm["widest"]) == (80, 0, 0.0)
    assert (busy["states"], busy["reopening"]) == (80, 1)
    assert busy["widest"] == pytest.approx(0.0175007 - 0.0076750, abs=2e-5)
    assert busy["optimum"] == pytest.approx(2.314178, abs=BOUND)
    assert busy["changed_percent"] == 0.0 and busy["least"] == pytest.approx(busy["greatest"], abs=1e-12)


def test_the_two_rules_can_differ() -> None:
    """K=3, U=12, rho=25: some decisions do, and the least price is the worse rule by 1.2e-4."""
    problem = Problem.identical(3, 12, arrival_rate=10.0)
    greatest = index_table(problem, cap=12, flight=12)
    least, reopens, reachable = indexability.least_prices(problem, greatest)
    assert (reopens.sum(), reachable.sum()) == (17, 784)
    share, half = indexability.changed_decisions(problem, greatest, least, 300, 0)
    assert share == pytest.approx(0.0322, abs=2.5 * half)


def test_a_shared_index_table_of_a_larger_problem_plays_the_same() -> None:
    small = Problem.identical(3, 6, arrival_rate=1.0)
    own = policy_value(small, index_table(small).policy_index).value
    table = study.index_for(Problem.identical(30, 60, arrival_rate=1.0), 6).table
    assert table is not None
    setting = Setting.of(small, 6, 6)
    scores = study.Index(table).scores(setting)[0]
    assert policy_value(small, lambda c, n, tau: scores.with_left(n)).value == pytest.approx(own, abs=1e-6)


@pytest.mark.usefixtures("small")
def test_cells_are_added_to_a_file_until_none_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"PRIORS": {"Beta(2, 1)": auto.PRIORS["Beta(2, 1)"]}, "RATIOS": (1.5,), "DEADLINES": (1.3, np.inf)}
    for part, few_of_it in {**few, "GROWTH": (10, 20), "REPLICATIONS": 3, "RESOLVES": 3}.items():
        monkeypatch.setattr(auto, part, few_of_it)
    file = tmp_path / "auto.csv"
    monkeypatch.setattr(sys, "argv", ["auto", str(file), "--seed", "5"])
    auto.main()
    rows, text = auto.read_rows(file), file.read_bytes()
    assert {row["part"].split()[0] for row in rows} == {"cells", "growth", "resolve"}
    assert {row["policy"] for row in rows if row["deadline"] < np.inf} == {
        "auto",
        "lagrangian",
        "okg-pending",
        "okg-idle",
    }
    told = json.loads(file.with_suffix(".manifest.json").read_text())
    assert (told["cells"], told["against_resolve"], told["of"], told["seed"]) == (2, 1, 2, 5)
    auto.main()
    assert file.read_bytes() == text and file.with_suffix(".png").exists()


def test_saved_labels_are_read_off_uniforms_curve() -> None:
    def row(policy: str, budget: int, accuracy: float) -> Row:
        return {"policy": policy, "budget": budget, "accuracy": accuracy, "labels_saved_percent": None}

    rows = [row("uniform", 100, 0.7), row("uniform", 200, 0.69), row("uniform", 300, 0.8)]
    rows += [row("index", 100, 0.75), row("okg", 100, 0.9), row("kg", 100, 0.6)]
    fig2._fill_saved(rows)
    assert rows[3]["labels_saved_percent"] == pytest.approx(50.0)  # uniform needs 200
    assert rows[4]["labels_saved_percent"] is None and rows[5]["labels_saved_percent"] is None


def test_tables_are_shared_between_runs() -> None:
    calls = []

    class Counting(type(make_policy("okg"))):  # type: ignore[misc]
        def scores(self, setting: object) -> object:
            calls.append(setting)
            return super().scores(setting)

    policy = study.Shared(Counting())
    setting = Setting.of(Problem.identical(2, 3))
    assert policy.scores(setting) is policy.scores(Setting.of(Problem.identical(2, 3)))
    assert len(calls) == 1 and policy.name == "okg"


def test_without_data_nothing_is_computed_and_the_source_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("fig2", "workers"):
        assert run(["reproduce", name, "--quick", "--out", str(tmp_path / "out")]) == 2
    capsys.readouterr()
    assert run(["reproduce", "guarantee", "--quick", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert "EMNLP 2008" in error and "--data DIR" in error
    assert not (tmp_path / "out").exists()
    assert run(["reproduce", "fig2", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "labels.csv" in capsys.readouterr().err


def test_all_leaves_out_what_lacks_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {name: reproduce.STUDIES[name] for name in ("indexability", "fig2")}
    monkeypatch.setattr(reproduce, "STUDIES", few)
    assert run(["reproduce", "all", "--quick", "--out", str(tmp_path / "out"), "--json"]) == 0
    said = capsys.readouterr()
    assert [one["name"] for one in json.loads(said.out)["studies"]] == ["indexability"]
    assert "fig2 is left out: the labels of RTE are needed and no folder is given." in said.err
    assert "EMNLP 2008" in said.err


def test_an_installed_package_says_where_the_studies_are(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "nextlabel", tmp_path / "site" / "nextlabel", ignore=shutil.ignore_patterns("*.nb?"))
    call = [sys.executable, "-c", "from nextlabel.cli.app import main; main()", "reproduce", "exact", "--quick"]
    here = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    said = subprocess.run(call, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
    assert said.returncode == 2 and "studies/ of nextlabel's source" in " ".join(said.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        reproduce.check(["exact"], config(), tmp_path / "out")


@pytest.mark.parametrize(
    "words", [["fig3"], ["fig1", "--seed", "-1"], ["fig1", "--jobs", "0"], ["fig1", "--seed", "x"]]
)
def test_bad_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", *words]) == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.usefixtures("small")
def test_a_study_that_fails_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nextlabel.reporting.artifacts.json.dumps", fail)
    with pytest.raises(KeyboardInterrupt):
        reproduce.reproduce("exact", config(), tmp_path, "x", silent)
    assert list(tmp_path.iterdir()) == []
