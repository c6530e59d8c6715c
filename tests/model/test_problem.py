"""Problem, TaskClass and the TOML form: what is allowed, what is refused, and that nothing is lost in between."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextlabel import Beta, Problem, TaskClass, load_problem
from nextlabel.errors import FileFormatError, InputError, NextlabelError, ProblemError, SolverError, TooLargeError
from nextlabel.model.tables import problem_from_table

EXAMPLE = """
budget = 200
arrival_rate = 0.5
completion_rate = 0.4
# horizon = 60.0
[[tasks]]
count = 50
prior = [1, 1]
threshold = 0.5
[[tasks]]
count = 50
prior = [3, 1]
threshold = 0.6
"""

positives = st.floats(1e-6, 1e6)
betas = st.builds(Beta, positives, positives)
classes = st.builds(TaskClass, st.integers(1, 10**6), betas, st.floats(1e-6, 1 - 1e-6))
problems = st.builds(
    Problem,
    st.lists(classes, min_size=1, max_size=4).map(tuple),
    st.integers(0, 10**7),
    positives,
    positives,
    positives | st.just(math.inf),
)


def as_toml(problem: Problem) -> str:
    lines = [f"budget = {problem.budget}"]
    lines += [f"{key} = {getattr(problem, key)!r}" for key in ("arrival_rate", "completion_rate", "horizon")]
    for c in problem.classes:
        lines += ["[[tasks]]", f"count = {c.count}", f"prior = [{c.prior.alpha!r}, {c.prior.beta!r}]"]
        lines += [f"threshold = {c.threshold!r}"]
    return "\n".join(lines)


def write(folder: Path, text: str) -> Path:
    path = folder / "problem.toml"
    path.write_text(text, encoding="utf-8")
    return path


class TestProblem:
    def test_defaults_are_the_papers(self) -> None:
        problem = Problem.identical(tasks=10, budget=12)
        assert problem.classes == (TaskClass(10, Beta(1, 1), 0.5),)
        assert (problem.arrival_rate, problem.completion_rate, problem.horizon) == (0.1, 0.4, math.inf)
        assert problem.rho == pytest.approx(0.25)
        assert not problem.finite

    def test_prior_as_a_pair_or_as_a_beta(self) -> None:
        assert Problem.identical(3, 4, prior=(4, 2)) == Problem.identical(3, 4, prior=Beta(4, 2))

    def test_whole_floats_are_whole(self) -> None:
        problem = Problem.identical(tasks=3, budget=4.0)  # type: ignore[arg-type]
        assert problem.budget == 4
        assert isinstance(problem.budget, int)

    def test_with_budget_leaves_the_rest(self) -> None:
        problem = Problem.identical(3, 4, arrival_rate=2.0, horizon=5.0)
        assert problem.with_budget(9) == Problem.identical(3, 9, arrival_rate=2.0, horizon=5.0)

    def test_is_frozen(self) -> None:
        with pytest.raises(FrozenInstanceError):
            Problem.identical(3, 4).budget = 5  # type: ignore[misc]

    @given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=20), st.randoms())
    def test_from_priors_groups_equal_priors(self, priors: list[tuple[int, int]], random: Any) -> None:
        problem = Problem.from_priors(priors, budget=5)
        assert problem.tasks == len(priors)
        assert len(problem.classes) == len(set(priors))
        random.shuffle(priors)
        assert set(Problem.from_priors(priors, budget=5).classes) == set(problem.classes)

    @pytest.mark.parametrize("budget", [-1, 1.5, math.nan, math.inf, True, "12", None])
    def test_budget_refused(self, budget: Any) -> None:
        with pytest.raises(ProblemError, match="budget"):
            Problem.identical(3, budget)

    @pytest.mark.parametrize("tasks", [0, -1, 1.5, math.nan, True, "12", None])
    def test_tasks_refused(self, tasks: Any) -> None:
        with pytest.raises(ProblemError, match="number of tasks"):
            Problem.identical(tasks, 3)

    def test_no_classes_refused(self) -> None:
        with pytest.raises(ProblemError, match="no tasks"):
            Problem((), 3)

    @pytest.mark.parametrize("rate", [0, -0.1, math.nan, math.inf, True, "fast", None])
    @pytest.mark.parametrize("name", ["arrival_rate", "completion_rate"])
    def test_rates_refused(self, name: str, rate: Any) -> None:
        with pytest.raises(ProblemError, match=name.replace("_", " ")):
            Problem.identical(3, 4, **{name: rate})

    @pytest.mark.parametrize("horizon", [0, -1, math.nan, -math.inf, True, "soon", None])
    def test_horizon_refused(self, horizon: Any) -> None:
        with pytest.raises(ProblemError, match="horizon"):
            Problem.identical(3, 4, horizon=horizon)

    @pytest.mark.parametrize("threshold", [0, 1, -0.1, 1.1, math.nan, True, "half", None])
    def test_threshold_refused(self, threshold: Any) -> None:
        with pytest.raises(ProblemError, match="threshold"):
            TaskClass(3, Beta(1, 1), threshold)

    @pytest.mark.parametrize("prior", [(0, 1), (1, 0), (-1, 1), (math.nan, 1), (1, math.inf)])
    def test_prior_refused(self, prior: tuple[float, float]) -> None:
        with pytest.raises(ProblemError, match="prior"):
            Beta(*prior)


class TestToml:
    def test_the_example(self, tmp_path: Path) -> None:
        problem = load_problem(write(tmp_path, EXAMPLE))
        assert problem == Problem(
            (TaskClass(50, Beta(1, 1), 0.5), TaskClass(50, Beta(3, 1), 0.6)), 200, arrival_rate=0.5, completion_rate=0.4
        )
        assert problem.tasks == 100

    @given(problems)
    def test_round_trip(self, problem: Problem) -> None:
        import tomllib

        assert problem_from_table(tomllib.loads(as_toml(problem))) == problem

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("budget = 3\nbugdet = 4\n[[tasks]]\ncount = 1", "unknown key 'bugdet'"),
            ("budget = 3\n[[tasks]]\ncount = 1\ncolour = 2", "unknown key 'colour'"),
            ("budget = 3\n[[tasks]]\nprior = [1, 1]", "no count"),
            ("budget = 3\n[[tasks]]\ncount = 1\nprior = [1]", "not a pair"),
            ("budget = 3\n[[tasks]]\ncount = 1\nprior = 'flat'", "not a pair"),
            ("budget = 3\n[[tasks]]\ncount = 1\nprior = [true, 1]", "not a pair"),
            ("budget = 3\n[[tasks]]\ncount = 1\nprior = [0, 1]", "prior 0,1"),
            ("budget = 3\n[[tasks]]\ncount = 1\nthreshold = 1.0", "threshold 1.0"),
            ("budget = 3.5\n[[tasks]]\ncount = 1", "budget is 3.5"),
            ("[[tasks]]\ncount = 1", "no budget"),
            ("budget = 3", "no tasks"),
            ("budget = 3\ntasks = 4", "array of tables"),
            ("budget = ", "not TOML"),
        ],
    )
    def test_refused(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(InputError, match=words.replace("[", r"\[")) as caught:
            load_problem(write(tmp_path, text))
        assert caught.value.hint

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileFormatError, match=r"nowhere\.toml"):
            load_problem(tmp_path / "nowhere.toml")

    def test_not_text(self, tmp_path: Path) -> None:
        path = tmp_path / "problem.toml"
        path.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(FileFormatError, match="UTF-8"):
            load_problem(path)


class TestErrors:
    def test_one_root(self) -> None:
        for kind in (InputError, ProblemError, FileFormatError, TooLargeError, SolverError):
            assert issubclass(kind, NextlabelError)

    def test_hint_follows_the_message(self) -> None:
        assert str(ProblemError("budget is -1.", "Give 0 or more.")) == "budget is -1. Give 0 or more."
        assert str(ProblemError("budget is -1.")) == "budget is -1."
