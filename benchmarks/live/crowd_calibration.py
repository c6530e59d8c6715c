"""``python -m benchmarks.live.crowd_calibration``: what a campaign with the policy ``crowd`` expects, and what is so.

500 items, three answers, six workers who are right 92% of the time and one who guesses, 1,500 labels, default settings;
``--crowd`` has others. At each tenth of the budget, over the campaigns of all seeds:

- the share of the items that is right, the expected accuracy, and its bias: the mean of expected less right, with the
  standard error of that mean; what chance alone makes of one campaign, were the probabilities exact (a standard
  deviation); the campaigns in which the two are within 3 points; and the log loss of the probabilities, in nats per
  item: the less, the better;
- by tenths of the probabilities: mean probability less the share right, all campaigns together, with the standard
  error that chance alone has; and the campaigns in which each tenth with 30 items or more is within 5 points, beside
  the number of them in which that would be so if the probabilities were exact, found by drawing truths from them.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

import nextlabel as nl
from nextlabel.arrays import Floats, Ints

ITEMS, BUDGET = 500, 1500
#: Items in a tenth of the probabilities before it is looked at, and how far off it may be.
ENOUGH, NEAR = 30, 0.05
#: How far off the expected accuracy may be.
EXPECTED_NEAR = 0.03
#: Truths drawn for each campaign, to see what chance alone does.
DRAWS = 200


class Moment(NamedTuple):
    """The probabilities of the likeliest answers at one moment of a campaign, and whether these are right."""

    sure: Floats
    right: Floats


def one_coin(accuracies: Floats, answers: int) -> Floats:
    """(W, C, C) channels of workers who are right so often, whatever the truth."""
    wrong = (1.0 - accuracies) / (answers - 1)
    found = np.repeat(wrong, answers * answers).reshape(-1, answers, answers)
    found[:, range(answers), range(answers)] = accuracies[:, None]
    return found


def crowd_of(kind: str, rng: np.random.Generator) -> Floats:
    """(W, C, C) channels of a crowd."""
    if kind == "guesser":
        return one_coin(np.array([0.92] * 6 + [1 / 3]), 3)
    if kind == "guesser-two":
        return one_coin(np.array([0.92] * 6 + [0.5]), 2)
    if kind == "poor":
        return one_coin(np.array([0.6] * 6 + [1 / 3]), 3)
    if kind == "differing":
        return one_coin(np.clip(rng.beta(12, 3, 20), 0.34, 1.0), 3)
    if kind == "differing-five":
        return one_coin(np.clip(rng.beta(12, 3, 12), 0.2, 1.0), 5)
    if kind == "confused":  # each truth is answered differently by each worker
        rows = [rng.dirichlet(10 * np.roll([0.8, 0.1, 0.1], truth), 12) for truth in range(3)]
        return np.stack(rows, axis=1)
    raise ValueError(kind)


CROWDS = ("guesser", "guesser-two", "poor", "differing", "differing-five", "confused")


def play(kind: str, seed: int) -> tuple[list[Moment], str]:
    """What was believed at every tenth of the budget, and who is taken for the worst worker."""
    rng, now = np.random.default_rng(seed), 1.8e9
    channels = crowd_of(kind, rng)
    workers, answers = channels.shape[:2]
    truth = rng.integers(0, answers, ITEMS)
    names = [str(y) for y in range(answers)]
    items = [{"id": str(x)} for x in range(ITEMS)]
    moments, in_vain, told = list[Moment](), 0, 0
    with nl.Campaign.create("memory:", items, budget=BUDGET, labels=names, clock=lambda: now) as campaign:
        while in_vain < 200 and told < BUDGET:
            worker = int(rng.integers(workers))
            now += 8.0
            lease = campaign.ask(f"w{worker}")
            in_vain = 0 if lease else in_vain + 1  # whose labels are noise gets nothing
            if not lease:
                continue
            said = rng.choice(answers, p=channels[worker, truth[int(lease.task)]])
            campaign.tell(lease, names[int(said)])
            told += 1
            if told % (BUDGET // 10) == 0:
                crowd = campaign._service.crowd(campaign._service.store.row(campaign.id))
                assert crowd is not None
                sure = crowd.beliefs.max(axis=1)
                moments.append(Moment(sure, (crowd.beliefs.argmax(axis=1) == truth).astype(float)))
        assert crowd is not None
        accuracies = np.einsum("wcc,c->w", crowd.channels, crowd.shares)
        worst = int(np.argmin(accuracies))
    return moments, f"{crowd.workers[worst]} ({accuracies[worst]:.0%})"


def tenths(sure: Floats) -> Ints:
    """The tenth of the probabilities that each is in."""
    return np.minimum((10 * sure).astype(np.int64), 9)


def farthest(sure: Floats, right: Floats) -> Floats:
    """(n,) the largest distance between probability and share right over tenths with enough items, for ``right``
    (n, items)."""
    tenth, found = tenths(sure), np.zeros(len(right))
    for k in range(10):
        group = tenth == k
        if group.sum() >= ENOUGH:
            found = np.maximum(found, np.abs(sure[group].mean() - right[:, group].mean(axis=1)))
    return found


def budget_line(share: float, moments: list[Moment]) -> str:
    """One line of the first table."""
    apart = np.array([one.sure.mean() - one.right.mean() for one in moments])
    chance = np.sqrt(np.mean([(one.sure * (1.0 - one.sure)).mean() / ITEMS for one in moments]))
    error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.nan
    loss = -np.mean([np.log(np.where(one.right > 0, one.sure, np.maximum(1.0 - one.sure, 1e-12))) for one in moments])
    right, expected = (np.mean([part.mean() for part in parts]) for parts in zip(*_turned(moments), strict=True))
    return (
        f"| {share:.0%} | {right:.3f} | {expected:.3f} | {100 * apart.mean():+.1f} ± {100 * error:.1f} "
        f"| {100 * chance:.1f} | {100 * np.abs(apart).max():.1f} | {np.sum(np.abs(apart) <= EXPECTED_NEAR)} "
        f"| {loss:.4f} |"
    )


def _turned(moments: list[Moment]) -> list[tuple[Floats, Floats]]:
    return [(one.right, one.sure) for one in moments]


def tenths_line(share: float, moments: list[Moment]) -> str:
    """One line of the second table."""
    sure, right = np.concatenate([m.sure for m in moments]), np.concatenate([m.right for m in moments])
    tenth, cells = tenths(sure), []
    for k in range(3, 10):
        group = tenth == k
        if group.sum() < ENOUGH:
            cells.append("")
            continue
        apart = sure[group].mean() - right[group].mean()
        error = np.sqrt((sure[group] * (1.0 - sure[group])).sum()) / group.sum()
        cells.append(f"{100 * apart:+.1f} ± {100 * error:.1f} ({group.sum() / len(moments):.0f})")
    near = sum(farthest(one.sure, one.right[None])[0] <= NEAR for one in moments)
    rng = np.random.default_rng(0)
    drawn = [farthest(one.sure, (rng.random((DRAWS, ITEMS)) < one.sure).astype(float)) for one in moments]
    return f"| {share:.0%} | {' | '.join(cells)} | {near} | {(np.array(drawn) <= NEAR).mean() * len(moments):.0f} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crowd", choices=CROWDS, default="guesser")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    played = [play(given.crowd, seed) for seed in range(given.first, given.first + given.seeds)]
    print(f"crowd {given.crowd}, {given.seeds} campaigns; taken for the worst: {', '.join(one for _, one in played)}")
    by_tenth = list(zip(*(moments for moments, _ in played), strict=True))
    print("\n| budget spent | right | expected | bias, points | chance | largest difference ", end="")
    print("| within 3 points | log loss |")
    print("|---" * 8 + "|")
    for k, moments in enumerate(by_tenth, 1):
        print(budget_line(k / 10, list(moments)))
    print("\nprobability less share right, in points (items per campaign), by tenths of the probabilities\n")
    print("| budget spent | .3 | .4 | .5 | .6 | .7 | .8 | .9 | within 5 points | by chance |")
    print("|---" * 10 + "|")
    for k, moments in enumerate(by_tenth, 1):
        print(tenths_line(k / 10, list(moments)))


if __name__ == "__main__":
    main()
