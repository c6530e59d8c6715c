"""``python -m benchmarks.live.at_most_holds``: is a live campaign's 'at most' one, and how far above a known crowd's?

Small campaigns of ``--items`` items and three labels an item with the default settings, in the settings below; eight
workers with accuracies drawn from .6 to .95 ask in a random order. At four tenths of the budget the certificate is read
(``wait=True``); then the campaign goes on to its end. Printed for each setting, over ``--seeds`` campaigns: the mean of
'at most', of the share of the items (but controls) that came out right, and of their difference with its standard
error; in how many campaigns more came out right than 'at most', which chance alone brings about in some; the bound for
somebody who is told the crowd (its channels, with the same labels to come); and 'at most' less that.

With ``utility`` all of this is what an item is worth, in place of the share that is right.
``index-lapsed`` has the policy ``index`` and a deadline; there the known crowd is that of the certificate.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

import nextlabel as nl
from nextlabel.application import certificate as certificates
from nextlabel.solve.crowd.relaxation import Types, relax
from nextlabel.solve.crowd.single_task import Rewards

SETTINGS = (
    "plain", "everything", "blocked", "dropped", "predictions", "scores", "controls", "serve-all", "turning-away",
    "lapsed", "index-lapsed", "three-answers", "utility",
)  # fmt: skip
LABELS, READ, STEP_S = 3, 0.4, 5.0
#: What an answer (row) is worth if something (column) is true, in the setting ``utility``.
UTILITY = np.array([[1.0, -5.0], [0.0, 1.0]])


class Outcome(NamedTuple):
    """'At most' when it was read, the share right in the end, and the bound for somebody who is told the crowd."""

    upper: float
    right: float
    known: float
    labels: int


class Clock:
    """A clock that moves when it is told to."""

    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Game:
    """One campaign and its crowd."""

    def __init__(self, setting: str, items: int, seed: int) -> None:
        items *= 2 if setting == "controls" else 1
        self.rng, self.clock, self.setting = np.random.default_rng([seed, items]), Clock(), setting
        self.answers = 3 if setting == "three-answers" else 2
        self.names = [chr(ord("a") + k) for k in range(self.answers)]
        self.truth = self.rng.integers(0, self.answers, items)
        self.accuracy = self.rng.uniform(0.6, 0.95, 8)
        if setting in ("blocked", "dropped", "turning-away"):
            self.accuracy[: 2 if setting != "turning-away" else 4] = 0.5
        self.controls = items // 2 if setting == "controls" else 0
        scores = np.where(self.truth == 1, self.rng.beta(3, 1.5, items), self.rng.beta(1.5, 3, items))
        tasks = [
            {"id": f"t{k}", "text": "x", **({"score": float(scores[k])} if setting == "scores" else {})}
            for k in range(items)
        ]
        more: dict[str, Any] = {"turn_away": False} if setting == "serve-all" else {}
        if setting == "utility":
            more = {"reward": nl.rewards.Utility(UTILITY.tolist())}
        if "lapsed" in setting:
            more |= {"deadline": self.clock.now + 1.3 * LABELS * items * STEP_S, "lease_seconds": STEP_S - 1.0}
        if setting == "index-lapsed":
            more |= {"policy": "index", "prior": {"kind": "one-coin", "probability": 0.5, "accuracy": 0.8}}
            self.accuracy[:] = 0.8
        self.budget = LABELS * (items - self.controls)
        self.campaign = nl.Campaign.create(
            "memory:", tasks, labels=self.names, budget=self.budget, clock=self.clock, seed=seed, **more,
        )  # fmt: skip
        if self.controls:
            self.campaign.set_gold({f"t{k}": self.names[self.truth[k]] for k in range(self.controls)})
        self.late: list[tuple[Any, str]] = []
        if setting == "predictions":
            rows = [{"task": f"t{k}", "label": self.said(k, 0.8)} for k in range(items)]
            self.campaign.add_predictions("m", rows)

    def said(self, item: int, accuracy: float) -> str:
        """An answer."""
        truth = int(self.truth[item])
        if self.rng.random() >= accuracy:
            truth = int((truth + self.rng.integers(1, self.answers)) % self.answers)
        return self.names[truth]

    def step(self, worker: int) -> bool:
        """One ask and its answer, which in one case of six comes after the lease where leases lapse."""
        self.clock.now += STEP_S
        if self.late and self.rng.random() < 0.2:
            lease, answer = self.late.pop(0)
            self.campaign.tell(lease, answer)
        lease = self.campaign.ask(f"w{worker}")
        if not lease:
            return False
        answer = self.said(int(lease.task[1:]), float(self.accuracy[worker]))
        if "lapsed" in self.setting and self.rng.random() < 1 / 6:
            self.late.append((lease, answer))
            return True
        self.campaign.tell(lease, answer)
        return True

    def run(self, until: int) -> None:
        """Go on until so many labels are there, or nobody gets an item any more."""
        idle = 0
        while self.campaign.status().spent < until and idle < 200:
            worker = int(self.rng.integers(len(self.accuracy)))
            if self.setting == "everything" and self.campaign.status().spent < len(self.truth):
                worker = 7
            idle = 0 if self.step(worker) else idle + 1

    def play(self) -> Outcome:
        """The whole campaign."""
        with self.campaign as campaign:
            self.run(round(READ * self.budget))
            if self.setting in ("blocked", "dropped"):
                for name in ("w0", "w1"):
                    campaign.block_worker(name)
                    if self.setting == "dropped":
                        campaign.drop_labels(name)
            certificate = campaign.certificate(wait=True)
            upper = certificate.upper if certificate.worth is None else certificate.worth.upper
            known = upper if self.setting == "index-lapsed" else self.known()
            self.run(self.budget)
            for lease, answer in self.late:
                campaign.tell(lease, answer)
            results = {row.task: row.label for row in campaign.results()}
            worth = UTILITY if self.setting == "utility" else np.eye(self.answers)
            said = [self.names.index(results[f"t{k}"]) for k in range(self.controls, len(self.truth))]
            right = worth[said, self.truth[self.controls :]]
            return Outcome(upper or np.nan, float(np.mean(right)), known or np.nan, campaign.status().spent)

    def known(self) -> float:
        """The bound for somebody who is told the channels, from the same labels and with the same labels to come."""
        found = self.campaign._service.run(self.campaign.id, certificates._Crowd.of)
        C, crowd = self.answers, found.crowd
        accuracy = np.array(
            [0.8 if name.startswith("model:") else self.accuracy[int(name[1:])] for name in crowd.workers]
        )
        channels = np.repeat((1.0 - accuracy) / (C - 1), C * C).reshape(-1, C, C)
        channels[:, range(C), range(C)] = accuracy[:, None]
        odds = crowd.prior_offset.copy()
        np.add.at(odds, crowd.answers.task, np.log(channels[crowd.answers.worker, :, crowd.answers.answer]))
        beliefs = np.exp(odds - odds.max(axis=1, keepdims=True))[crowd.gold < 0]
        beliefs /= beliefs.sum(axis=1, keepdims=True)
        labels, _, supply = certificates.labels_to_come(found)
        types, K = Types(channels, supply.labels, np.zeros(len(channels))), len(beliefs)
        rewards = Rewards((UTILITY,), np.zeros(K, dtype=np.int64)) if self.setting == "utility" else None
        grid = 250 if C == 2 else None
        return relax(beliefs, np.ones(K), types, labels, grid=grid, tolerance=1e-4, rewards=rewards).value / K


def main() -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=SETTINGS, nargs="+", default=SETTINGS)
    given = parser.parse_args()
    print("| setting | at most | right in the end | at most less right | above it | crowd known | at most less known |")
    print("|---" * 7 + "|")
    for setting in given.only:
        rows = np.array([Game(setting, given.items, seed).play() for seed in range(given.seeds)])
        upper, right, known, _ = rows.T
        apart, error = upper - right, (upper - right).std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.nan
        print(
            f"| {setting} | {upper.mean():.3f} | {right.mean():.3f} "
            f"| {100 * apart.mean():+.1f} ± {100 * error:.1f} points | {(apart < 0).sum()} of {len(rows)} "
            f"| {known.mean():.3f} | {100 * (upper - known).mean():+.1f} points |",
            flush=True,
        )


if __name__ == "__main__":
    main()
