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

Types of workers as plain tables, the way problem files have them, and back.

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

Keys are checked here, numbers by ``WorkerType``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from nextlabel.beliefs.beta import Beta, BetaMixture
from nextlabel.beliefs.density import Histogram, LogitNormal
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.beliefs.fact import Fact, OneCoin
from nextlabel.beliefs.prior import Prior
from nextlabel.beliefs.rewards import Accuracy, Reward, SquaredError, Utility
from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.problem.problem import as_prior
from nextlabel.problem.tasks import beta_of_score
from nextlabel.problem.workers import WorkerType, one_coin

Table = dict[str, Any]
WORKER_KEYS = ("sd", "accuracy", "confusion", "prior", "supply", "arrival_rate", "count", "cost")
WAYS = ("accuracy", "confusion", "prior")


class Kind(NamedTuple):
    """How one kind is made from a table that has all of ``needs`` and perhaps some of ``may``."""

    make: Callable[[Table], Any]
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


def known_keys(table: Table, allowed: tuple[str, ...], where: str) -> None:
    """Refuse a key that is not among the allowed ones, by name."""
    unknown = sorted(set(table) - set(allowed))
    if unknown:
        raise FileFormatError(f"unknown key {unknown[0]!r} in {where}.", f"Allowed keys: {', '.join(allowed)}.")


def _mixture(table: Table) -> BetaMixture:
    betas = _list(table, "betas")
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in betas):
        raise ProblemError(f"betas {betas!r} are not pairs of numbers.", "Write e.g. betas = [[8, 2], [1, 1]].")
    return BetaMixture(_list(table, "weights"), tuple(Beta(*pair) for pair in betas))


def _fact(table: Table) -> Fact:
    if len(table) != 1:
        raise ProblemError(
            "a fact has a probability (of truth 1) or probabilities (one for each answer), one of the two.",
            'Write e.g. prior = {kind = "fact", probability = 0.5}.',
        )
    return Fact(table["probability"]) if "probability" in table else Fact.of(table["probabilities"])


PRIORS = {
    "beta": Kind(lambda t: Beta(t["alpha"], t["beta"]), ("alpha", "beta")),
    "mixture": Kind(_mixture, ("weights", "betas")),
    "histogram": Kind(lambda t: Histogram(_list(t, "edges"), _list(t, "weights")), ("edges", "weights")),
    "logit-normal": Kind(lambda t: LogitNormal(t["mean"], t["sd"]), ("mean", "sd")),
    "dirichlet": Kind(lambda t: Dirichlet(_list(t, "weights")), ("weights",)),
    "one-coin": Kind(lambda t: OneCoin(t["probability"], t["accuracy"]), ("probability", "accuracy")),
    "fact": Kind(lambda t: _fact(t), (), ("probability", "probabilities")),
    "score": Kind(lambda t: beta_of_score(t["probability"], t["strength"]), ("probability", "strength")),
}

REWARDS = {
    "accuracy": Kind(lambda t: Accuracy(**t), (), ("value",)),
    "utility": Kind(lambda t: Utility(**t), ("matrix",), ("abstain",)),
    "squared-error": Kind(lambda t: SquaredError(**t), (), ("scale",)),
}


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


def reward_from(value: Any) -> Reward:
    """The reward that a name or a table with a kind stands for."""
    if isinstance(value, str):
        value = {"kind": value}
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
        case Dirichlet():
            rest: Table = {"weights": list(prior.weights)}
        case BetaMixture():
            rest = {"weights": list(prior.weights), "betas": [[c.alpha, c.beta] for c in prior.components]}
        case Histogram():
            rest = {"edges": list(prior.edges), "weights": list(prior.weights)}
        case LogitNormal():
            rest = {"mean": prior.mean, "sd": prior.sd}
        case Fact():
            two = prior.probability is not None
            rest = {"probability": prior.probability} if two else {"probabilities": list(prior.probabilities)}
        case OneCoin():
            rest = {"probability": prior.probability, "accuracy": prior.accuracy}
        case _:
            raise ProblemError(f"the prior {prior.describe()} has no form in a problem file.", "Use a built-in prior.")
    return {"kind": prior.kind, **rest}


def reward_table(reward: Reward) -> Table | str:
    """What ``reward_from`` reads as this reward; its name alone where nothing else needs saying."""
    match reward:
        case Accuracy():
            rest: Table = {} if reward.value == 1.0 else {"value": reward.value}
        case SquaredError():
            rest = {} if reward.scale == 1.0 else {"scale": reward.scale}
        case Utility():
            rest = {"matrix": [list(row) for row in reward.matrix]}
            if reward.abstain is not None:
                rest["abstain"] = reward.abstain
        case _:
            raise ProblemError(f"the reward {reward.describe()} has no form in a problem file.", "Use a built-in one.")
    return {"kind": reward.kind, **rest} if rest else reward.kind


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
    return kind.make({key: value for key, value in table.items() if key != "kind"})


def _list(table: Table, key: str) -> tuple[Any, ...]:
    value = table[key]
    if not isinstance(value, list | tuple):
        raise ProblemError(f"{key} {value!r} are not a list.", f"Write e.g. {key} = [1, 2, 3].")
    return tuple(value)


def worker_type(entry: dict[str, Any], answers: int) -> WorkerType:
    """One [[workers]] table, for tasks with that many answers."""
    given = [key for key in WAYS if key in entry]
    if len(given) != 1:
        said = f"has {' and '.join(given)}" if given else "does not say how its workers answer"
        raise ProblemError(f"a [[workers]] table {said}.", "Give accuracy, confusion or prior, one of them.")
    rest = {key: value for key, value in entry.items() if key not in WAYS}
    if "accuracy" in entry:
        return WorkerType(one_coin(entry["accuracy"], answers), **rest)
    if "confusion" in entry:
        return WorkerType(entry["confusion"], **rest)
    return WorkerType(prior=entry["prior"], **rest)


def answers_text(worker: WorkerType) -> str:
    """How the workers of a type answer, in a few words."""
    about = "about " if worker.prior is not None else ""
    right = worker.mean_channel.diagonal()
    if all(math.isclose(p, right[0]) for p in right):
        return f"right with probability {about}{right[0]:.4g}"
    return f"right with probability {about}{', '.join(f'{p:.4g}' for p in right)} by truth"


def worker_table(worker: WorkerType) -> dict[str, Any]:
    """What ``worker_type`` reads as this type; the accuracy alone where that says it all."""
    table: dict[str, Any] = {}
    if worker.channel is None:
        table["prior"] = [list(row) for row in worker.prior or ()]
    elif one_coin(worker.channel[0][0], worker.answers) == worker.channel:
        table["accuracy"] = worker.channel[0][0]
    else:
        table["confusion"] = [list(row) for row in worker.channel]
    if worker.supply is not None:
        table["supply"] = worker.supply
    if worker.arrival_rate is not None:
        table["arrival_rate"] = worker.arrival_rate
    if worker.count != 1:
        table["count"] = worker.count
    if worker.cost > 0:
        table["cost"] = worker.cost
    return table
