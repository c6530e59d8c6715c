"""Priors, rewards and types of workers as plain tables, the way problem files have them, and back.

============ ===================================== ==============================================
kind         keys                                  is
============ ===================================== ==============================================
beta         alpha, beta                           Beta; short form ``[2, 1]``
dirichlet    weights                               Dirichlet; short form ``[1, 1, 1]``
mixture      weights, betas (pairs)                BetaMixture
histogram    edges, weights                        Histogram
logit-normal mean, sd                              LogitNormal
one-coin     probability, accuracy                 OneCoin
fact         probability, or probabilities         Fact, for problems with workers
score        probability, strength                 Beta(strength p, strength (1 - p)); read, never written
accuracy     value (1)                             Accuracy; short form ``"accuracy"``
utility      matrix, abstain (none)                Utility
squared-error scale (1)                            SquaredError; short form ``"squared-error"``
============ ===================================== ==============================================

Keys are checked here, numbers by the constructors.

Types of workers:

=========== ==================================================================
key         meaning
=========== ==================================================================
accuracy    P(right), every wrong answer alike; or
confusion   one row for each truth, one column for each answer; or
prior       Dirichlet weights of these rows, where the channel is not known
supply      labels of this type in all; or arrival_rate
count       workers who share them (1)
cost        what a label costs (0)
=========== ==================================================================

Whole problems as TOML files: reading refuses anything that it does not understand.
"""

from __future__ import annotations

import math
import tomllib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

from nextlabel.crowd.answers import Rating
from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.files.tables import TableSummary
from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.density import Histogram, LogitNormal
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.fact import Fact, OneCoin
from nextlabel.model.prior import Prior
from nextlabel.model.problem import PiecewiseRate, Problem, WorkerType, as_prior, one_coin
from nextlabel.model.rewards import Accuracy, Reward, SquaredError, Utility
from nextlabel.model.tasks import DEFAULT_COLUMN, TaskClass, beta_of_score, read_scores, score_classes

Table = dict[str, Any]
WORKER_KEYS = ("sd", "accuracy", "confusion", "prior", "supply", "arrival_rate", "count", "cost")


class Kind(NamedTuple):
    """How one kind is made from a table that has all of ``needs`` and perhaps some of ``may``."""

    make: Callable[..., Any]
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()

    @classmethod
    def of(cls, made: Any) -> Kind:
        """That of a class whose fields are the keys."""
        keys = {field.name: field.default is MISSING for field in fields(made)}
        lists = [field.name for field in fields(made) if field.type == "tuple[float, ...]"]

        def make(**table: Any) -> Any:
            return made(**table | {key: _list(table, key) for key in lists})

        return cls(make, *(tuple(key for key in keys if keys[key] == needed) for needed in (True, False)))


def known_keys(table: Table, allowed: tuple[str, ...], where: str) -> None:
    """Refuse a key that is not among the allowed ones, by name."""
    unknown = sorted(set(table) - set(allowed))
    if unknown:
        raise FileFormatError(f"unknown key {unknown[0]!r} in {where}.", f"Allowed keys: {', '.join(allowed)}.")


def _mixture(**table: Any) -> BetaMixture:
    betas = _list(table, "betas")
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in betas):
        raise ProblemError(f"betas {betas!r} are not pairs of numbers.", "Write e.g. betas = [[8, 2], [1, 1]].")
    return BetaMixture(_list(table, "weights"), tuple(Beta(*pair) for pair in betas))


def _fact(**table: Any) -> Fact:
    if len(table) != 1:
        raise ProblemError(
            "a fact has a probability (of truth 1) or probabilities (one for each answer), one of the two.",
            'Write e.g. prior = {kind = "fact", probability = 0.5}.',
        )
    return Fact(table["probability"]) if "probability" in table else Fact.of(table["probabilities"])


PRIORS = {
    "beta": Kind.of(Beta),
    "mixture": Kind(_mixture, ("weights", "betas")),
    **{made.kind: Kind.of(made) for made in (Histogram, LogitNormal, Dirichlet, OneCoin)},
    "fact": Kind(_fact, (), ("probability", "probabilities")),
    "score": Kind(beta_of_score, ("probability", "strength")),
}
REWARDS = {made.kind: Kind.of(made) for made in (Accuracy, Utility, SquaredError)}


def prior_from(value: Any) -> Prior:
    """The prior that a list of weights or a table with a kind stands for."""
    if isinstance(value, dict):
        prior: Prior = _make("prior", PRIORS, value, 'prior = {kind = "beta", alpha = 2, beta = 1}')
        return prior
    if (
        not isinstance(value, list)
        or len(value) < 2
        or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
    ):
        raise ProblemError(
            f"prior {value!r} is not a pair of numbers.",
            "Write e.g. prior = [1, 1], one weight for each answer if there are more, or a table with a kind.",
        )
    return as_prior(tuple(value))


def parse_matrix(text: str) -> list[list[float]]:
    """Rows with semicolons between them, numbers with commas between them."""
    try:
        return [[float(cell) for cell in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise ProblemError(
            f"utility {text!r} is not a matrix.",
            'Give one row per decision with one number per truth: "1,-5;0,1".',
        ) from None


def reward_from(value: Any) -> Reward:
    """The reward that a name, a utility in one line or a table with a kind stands for."""
    if isinstance(value, str):
        value = {"kind": "utility", "matrix": parse_matrix(value)} if "," in value else {"kind": value}
    if not isinstance(value, dict):
        raise ProblemError(f"reward {value!r} is not a reward.", 'Write e.g. reward = "accuracy".')
    reward: Reward = _make("reward", REWARDS, value, 'reward = {kind = "accuracy", value = 10}')
    return reward


def prior_table(prior: Prior) -> Table | list[float]:
    """What ``prior_from`` reads as this prior; the short form where there is one."""
    match prior:
        case Beta():
            return [prior.alpha, prior.beta]
        case Dirichlet() if prior.answers > 2:
            return list(prior.weights)
        case BetaMixture():
            rest: Table = {"weights": list(prior.weights), "betas": [[c.alpha, c.beta] for c in prior.components]}
        case Fact():
            two = prior.probability is not None
            rest = {"probability": prior.probability} if two else {"probabilities": list(prior.probabilities)}
        case _:
            rest = _said(prior, PRIORS)
    return {"kind": prior.kind, **rest}


def reward_table(reward: Reward) -> Table | str:
    """What ``reward_from`` reads as this reward; its name alone where nothing else needs saying."""
    rest = _said(reward, REWARDS)
    return {"kind": reward.kind, **rest} if rest else reward.kind


def _said(one: Any, kinds: dict[str, Kind] | None = None) -> Table:
    """The fields of an object that are not as they are by default, tuples as lists; it must be of one of the kinds."""
    if kinds is not None and one.kind not in kinds:
        what = "prior" if kinds is PRIORS else "reward"
        raise ProblemError(f"the {what} {one.describe()} has no form in a problem file.", f"Use a built-in {what}.")
    values = ((field, getattr(one, field.name)) for field in fields(one))
    return {field.name: _lists(value) for field, value in values if value != field.default}


def _lists(value: Any) -> Any:
    return [_lists(one) for one in value] if isinstance(value, tuple) else value


def _make(what: str, kinds: dict[str, Kind], table: Table, example: str) -> Any:
    name = table.get("kind")
    if not isinstance(name, str) or name not in kinds:
        message = f"a {what} has no kind" if name is None else f"{what} kind {name!r} is not known"
        raise ProblemError(f"{message}.", f"Known kinds: {', '.join(kinds)}, e.g. {example}.")
    kind = kinds[name]
    known_keys(table, ("kind", *kind.needs, *kind.may), f"a {what} of kind {name!r}")
    for key in kind.needs:
        if key not in table:
            raise ProblemError(f"a {what} of kind {name!r} has no {key}.", f"It needs {' and '.join(kind.needs)}.")
    return kind.make(**{key: value for key, value in table.items() if key != "kind"})


def _list(table: Table, key: str) -> tuple[Any, ...]:
    value = table[key]
    if not isinstance(value, list | tuple):
        raise ProblemError(f"{key} {value!r} are not a list.", f"Write e.g. {key} = [1, 2, 3].")
    return tuple(value)


def worker_type(entry: dict[str, Any], answers: int) -> WorkerType:
    """One [[workers]] table, for tasks with that many answers."""
    given = [key for key in ("accuracy", "confusion", "prior") if key in entry]
    if len(given) != 1:
        said = f"has {' and '.join(given)}" if given else "does not say how its workers answer"
        raise ProblemError(f"a [[workers]] table {said}.", "Give accuracy, confusion or prior, one of them.")
    rest = {key: value for key, value in entry.items() if key not in ("accuracy", "confusion")}
    if given == ["prior"]:
        return WorkerType(**rest)
    return WorkerType(one_coin(entry["accuracy"], answers) if "accuracy" in entry else entry["confusion"], **rest)


def answers_text(worker: WorkerType) -> str:
    """How the workers of a type answer, in a few words."""
    about = "about " if worker.prior is not None else ""
    right = worker.mean_channel.diagonal()
    if all(math.isclose(p, right[0]) for p in right):
        return f"right with probability {about}{right[0]:.4g}"
    return f"right with probability {about}{', '.join(f'{p:.4g}' for p in right)} by truth"


def worker_table(worker: WorkerType) -> dict[str, Any]:
    """What ``worker_type`` reads as this type; the accuracy alone where that says it all."""
    rest = _said(worker)
    channel = rest.pop("channel", None)
    if channel is None:
        return {"prior": rest.pop("prior")} | rest
    alike = one_coin(channel[0][0], worker.answers) == worker.channel
    return ({"accuracy": channel[0][0]} if alike else {"confusion": channel}) | rest


PROBLEM_KEYS = (
    "budget", "arrival_rate", "arrival_period", "completion_rate", "horizon", "label_cost", "tasks", "workers",
    "question",
)  # fmt: skip
TASK_KEYS = ("count", "sd", "prior", "threshold", "reward", "scores")
#: Keys of [question] beside the answer.
OPTIONS: dict[str, tuple[str, ...]] = {
    "choice": (), "rating": ("scale", "loss"), "number": (), "multi": ("labels",), "pair": (),
}  # fmt: skip
#: Labels that are asked together at most.
MOST_LABELS = 26
SCORE_KEYS = ("file", "column", "strength", "accuracy")

#: Is called with a sentence about a change to the input.
Say = Callable[[str], None]


def load_problem(path: str | Path) -> Problem:
    """Read and check a TOML problem file."""
    return problem_from_table(read_problem_table(path))


def read_problem_table(path: str | Path) -> dict[str, Any]:
    """The file as a table with known keys only; nothing is checked beyond their names."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileFormatError(f"cannot read {path}: {reason}.", "Give the path of a TOML problem file.") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not UTF-8 text.", "Save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{path} is not TOML: {error}.", "See docs/guide.md for an example.") from error
    known_keys(table, PROBLEM_KEYS, str(path))
    question = table.get("question", {})
    kind = question.get("answer", "choice") if isinstance(question, dict) else question
    if kind not in OPTIONS:
        raise FileFormatError(
            f"the answer to the question in {path} is {kind!r}.",
            f"Write answer = and one of {', '.join(OPTIONS)}.",
        )
    known_keys(question, ("answer", *OPTIONS[kind]), f"[question] of {path} with answer {kind}")
    if kind == "multi":
        labels_asked(question.get("labels"))
    for name, keys, one in (("tasks", TASK_KEYS, "class"), ("workers", WORKER_KEYS, "type")):
        entries = table.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise FileFormatError(
                f"{name!r} in {path} is not an array of tables.", f"Write [[{name}]] above each {one}."
            )
        for entry in entries:
            known_keys(entry, keys, f"[[{name}]] of {path}")
    for entry in table.get("tasks", []):
        scores = entry.get("scores")
        if isinstance(scores, dict) and isinstance(scores.get("file"), str):
            scores["file"] = str(path.parent / scores["file"])
    return table


def asked(table: dict[str, Any]) -> str:
    """What the problem asks for: a choice, a rating, a number (``solve.numbers``), several labels or pairs."""
    return str(table.get("question", {}).get("answer", "choice"))


def labels_asked(labels: object) -> int:
    """How many labels a question with answer multi has."""
    if isinstance(labels, bool) or not isinstance(labels, int) or not 1 <= labels <= MOST_LABELS:
        raise ProblemError(f"[question] has labels = {labels!r}.", f"Give a whole number from 1 to {MOST_LABELS}.")
    return labels


def _rated(table: dict[str, Any]) -> dict[str, Any]:
    """Prior and reward of items that are rated: what the largest loss is above the expected one."""
    if asked(table) != "rating":
        return {}
    kind = Rating.parse(table["question"].get("scale"), table["question"].get("loss"))
    worth = (kind.losses.max() - kind.losses).T.tolist()
    return {"prior": [1] * kind.width, "reward": {"kind": "utility", "matrix": worth}}


def problem_from_table(
    table: dict[str, Any], say: Say = warnings.warn, reports: list[TableSummary] | None = None
) -> Problem:
    """The Problem that a table of known keys describes.

    ``say`` is called for scores that were moved; ``reports`` takes up what was met in each file of scores.
    """
    if asked(table) in ("number", "pair"):
        commands = "simulate" if asked(table) == "pair" else "bound, exact or simulate"
        raise ProblemError(f"the question is for {asked(table)}s, which this command cannot plan.", f"Use {commands}.")
    if any("sd" in entry for name in ("tasks", "workers") for entry in table.get(name, [])):
        raise ProblemError("sd is for numbers and pairs.", 'Write [question] with answer = "number", or leave sd out.')
    if asked(table) in ("rating", "multi") and any("reward" in entry for entry in table.get("tasks", [])):
        raise ProblemError(
            f"a question with answer {asked(table)} says itself what its answers are worth.",
            "Leave out the reward, and --reward, --value and --utility.",
        )
    if "budget" not in table:
        raise ProblemError("the problem has no budget.", "Give --budget N or budget = N in the file.")
    notes: list[str] = []
    read = [] if reports is None else reports
    usual = _rated(table)
    parts = [task_classes({**usual, **entry}, notes.append, read) for entry in table.get("tasks", [])]
    classes = parts[0] if len(parts) == 1 else tuple(one for part in parts for one in part)
    rest: dict[str, Any] = {k: table[k] for k in ("completion_rate", "horizon", "label_cost") if k in table}
    rate = _rate(table)
    if rate is not None:
        rest["arrival_rate"] = rate
    answers = classes[0].answers if classes else 2
    workers = tuple(worker_type(entry, answers) for entry in table.get("workers", []))
    problem = Problem(classes, table["budget"], workers=workers, **rest)
    for note in notes:
        say(note)
    return problem


def task_classes(entry: dict[str, Any], say: Say, reports: list[TableSummary]) -> Sequence[TaskClass]:
    """One [[tasks]] table: a class, or one for each different score of a file."""
    threshold, reward = entry.get("threshold", 0.5), reward_from(entry.get("reward", "accuracy"))
    if "scores" not in entry:
        if "count" not in entry:
            raise ProblemError("a [[tasks]] table has no count.", "Add e.g. count = 50.")
        return (TaskClass(entry["count"], prior_from(entry.get("prior", [1, 1])), threshold, reward),)
    for key in ("count", "prior"):
        if key in entry:
            raise ProblemError(
                f"a [[tasks]] table with scores has a {key} too.", f"Leave {key} out: the scores are the priors."
            )
    scores = entry["scores"]
    if not isinstance(scores, dict) or not isinstance(scores.get("file"), str):
        raise ProblemError("scores have no file.", 'Write e.g. scores = {file = "items.csv", strength = 4}.')
    known_keys(scores, SCORE_KEYS, "scores")
    read = read_scores(scores["file"], str(scores.get("column", DEFAULT_COLUMN)))
    reports.append(read.report)
    if read.moved:
        say(read.note(scores["file"]))
    return score_classes(
        read.values,
        strength=scores.get("strength"),
        accuracy=scores.get("accuracy"),
        threshold=threshold,
        reward=reward,
    )


def problem_to_toml(problem: Problem) -> str:
    """The text of a file from which ``load_problem`` makes the same problem, to the last digit."""
    import tomli_w

    return tomli_w.dumps(problem_table(problem))


def problem_table(problem: Problem) -> dict[str, Any]:
    """What ``problem_from_table`` reads as this problem."""
    rate, optional = problem.arrival_rate, {"horizon": problem.finite, "label_cost": problem.label_cost > 0}
    rates: Table = {"arrival_rate": rate}
    if isinstance(rate, PiecewiseRate):
        rates = {"arrival_rate": _lists(rate.pieces), "arrival_period": rate.period}
        rates = {key: value for key, value in rates.items() if value != math.inf}
    return {
        "budget": problem.budget,
        **rates,
        "completion_rate": problem.completion_rate,
        **{key: getattr(problem, key) for key, said in optional.items() if said},
        "tasks": [_task_table(entry) for entry in problem.classes],
        **({"workers": list(map(worker_table, problem.workers))} if problem.workers else {}),
    }


def _task_table(entry: TaskClass) -> dict[str, Any]:
    reward = reward_table(entry.reward)
    return {
        "count": entry.count,
        **({"threshold": entry.threshold} if entry.prior.thresholded else {}),
        "prior": prior_table(entry.prior),
        **({} if reward == "accuracy" else {"reward": reward}),
    }


def _rate(table: dict[str, Any]) -> Any:
    """The arrival rate as Problem takes it; None if there is none."""
    rate = table.get("arrival_rate")
    if isinstance(rate, list):
        period = {"period": table["arrival_period"]} if "arrival_period" in table else {}
        return PiecewiseRate(tuple(rate), **period)
    if "arrival_period" in table:
        raise ProblemError(
            "a period needs an arrival rate in pieces.", "Write e.g. arrival_rate = [[0, 2.0], [16, 0.2]]."
        )
    return rate
