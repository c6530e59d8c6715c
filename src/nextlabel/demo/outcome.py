"""The outcome of the demo: what was right, who was found out, and what fixed overlap would have cost.

Fixed overlap is played with the same people and the same items: n different people for each item, drawn as often as
they come, read out by majority and by Dawid and Skene's model as this library fits it (``learn_crowd``), which has the
model's labels too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.crowd.learn import LearntCrowd, learn_crowd
from nextlabel.crowd.skill import AGAINST, AT_CHANCE, Estimate
from nextlabel.demo.sample import CONTRARIAN, MODEL, MODEL_NAME, PEOPLE, SPAMMER, Answer, Item, prediction

#: Labels per item of fixed overlap, how often it is played, and the overlap that savings are said against.
OVERLAPS, PLAYED, USUAL = (1, 3, 5, 7), 4, 5
#: Points of the campaign's own curve.
POINTS = 24
#: What a worker of a kind is flagged as, if the crowd is seen as it is.
FLAGS = {SPAMMER: AT_CHANCE, CONTRARIAN: AGAINST}


@dataclass(frozen=True, slots=True)
class Found:
    """A worker as they are, and as the campaign saw them."""

    worker: str
    kind: str
    labels: int
    accuracy: float
    learnt: Estimate
    flags: tuple[str, ...]

    @property
    def as_they_are(self) -> bool:
        """Whether the flag of their kind was raised, and no other."""
        return self.flags == tuple(FLAGS[self.kind] for _ in range(self.kind in FLAGS))


@dataclass(frozen=True, slots=True)
class Overlap:
    """Fixed overlap under one read-out: the share right for each of OVERLAPS; labels at which the campaign was level
    with USUAL labels per item for good, None if it never was."""

    readout: str
    right: tuple[float, ...]
    level: int | None
    items: int

    @property
    def usual(self) -> float:
        """The share right with USUAL labels per item."""
        return self.right[OVERLAPS.index(USUAL)]

    @property
    def saved(self) -> float | None:
        """The share of labels that the campaign saves against USUAL labels per item."""
        return None if self.level is None else 1.0 - self.level / (USUAL * self.items)


@dataclass(frozen=True, slots=True)
class Outcome:
    """``curve`` has the share right after some numbers of labels, ``moments`` what the campaign itself expected."""

    items: int
    labels: int
    right: float
    expected: float
    workers: tuple[Found, ...]
    overlaps: tuple[Overlap, ...]
    curve: tuple[tuple[int, float], ...]
    moments: tuple[tuple[int, float], ...]

    @property
    def found_out(self) -> bool:
        """Whether everybody was seen as what they are."""
        return all(one.as_they_are for one in self.workers)


def outcome(
    sample: Sequence[Item], labelled: Mapping[str, str], people: Sequence[Answer], moments: Sequence[tuple[int, float]],
    seed: int, progress: Callable[[float], None],
) -> Outcome:  # fmt: skip
    """``labelled`` has the label of each item, ``people`` the answers that were bought, in order."""
    truth = {item.id: item.truth for item in sample}
    predicted = [(item.id, f"model:{MODEL_NAME}", prediction(item.text)) for item in sample]
    crowd = learn_crowd(_columns([*people, *predicted]))
    curve = []
    for n in np.unique(np.linspace(0.1 * len(people), len(people), POINTS).astype(int)).tolist():
        curve.append((n, _right(learn_crowd(_columns([*people[:n], *predicted])), truth)))
        progress(0.3 * n / len(people))
    return Outcome(
        items=len(sample),
        labels=len(people),
        right=float(np.mean([truth[task] == label for task, label in labelled.items()])),
        expected=moments[-1][1],
        workers=_found(crowd, predicted, truth),
        overlaps=fixed_overlap(sample, predicted, curve, seed, lambda share: progress(0.3 + 0.7 * share)),
        curve=tuple(curve),
        moments=tuple(moments),
    )


def fixed_overlap(
    sample: Sequence[Item], predicted: Sequence[Answer], curve: Sequence[tuple[int, float]], seed: int,
    progress: Callable[[float], None],
) -> tuple[Overlap, Overlap]:  # fmt: skip
    """Play fixed overlap with the same people: by majority, and by Dawid and Skene's model."""
    truth = {item.id: item.truth for item in sample}
    right = np.zeros((2, PLAYED, len(OVERLAPS)))
    for play in range(PLAYED):
        random = np.random.default_rng((seed, 1, play))
        given = [_answers(item, random) for item in sample]
        for column, n in enumerate(OVERLAPS):
            some = [answer for answers in given for answer in answers[:n]]
            right[0, play, column] = _majority_right(sample, given, n, random)
            right[1, play, column] = _right(learn_crowd(_columns([*some, *predicted])), truth)
        progress((play + 1) / PLAYED)
    mean: Floats = right.mean(axis=1)
    return tuple(  # type: ignore[return-value]
        Overlap(name, tuple(values), level(curve, values[OVERLAPS.index(USUAL)]), len(sample))
        for name, values in zip(("majority", "dawid-skene"), mean.tolist(), strict=True)
    )


def level(curve: Sequence[tuple[int, float]], right: float) -> int | None:
    """The number of labels from which on the curve stays at ``right`` or above."""
    found = None
    for labels, share in reversed(curve):
        if share < right:
            break
        found = labels
    return found


def _answers(item: Item, random: np.random.Generator) -> list[Answer]:
    """The answers of as many different people as the largest overlap needs; who works fast comes more often."""
    speed = np.array([person.speed for person in PEOPLE])
    order = random.choice(len(PEOPLE), max(OVERLAPS), replace=False, p=speed / speed.sum())
    return [(item.id, PEOPLE[j].name, PEOPLE[j].says(item.truth, float(random.random()))) for j in order]


def _majority_right(
    sample: Sequence[Item], given: Sequence[Sequence[Answer]], n: int, random: np.random.Generator
) -> float:
    """The share right by majority; a coin decides ties."""
    votes = np.array(
        [sum(answer == item.truth for _, _, answer in a[:n]) for item, a in zip(sample, given, strict=True)]
    )
    return float(np.mean(np.where(2 * votes == n, random.random(len(votes)) < 0.5, 2 * votes > n)))


def _columns(answers: Sequence[Answer]) -> dict[str, list[str]]:
    """As ``learn_crowd`` reads them."""
    return dict(zip(("task", "worker", "label"), map(list, zip(*answers, strict=True)), strict=True))


def _right(crowd: LearntCrowd, truth: Mapping[str, str]) -> float:
    """The share of items for which the most probable answer is the truth."""
    return float(np.mean([truth[task] == label for task, label in zip(crowd.task_names, crowd.predict(), strict=True)]))


def _found(crowd: LearntCrowd, predicted: Sequence[Answer], truth: Mapping[str, str]) -> tuple[Found, ...]:
    """Each worker as they are and as they were seen; the model's accuracy is that on these items."""
    model = float(np.mean([truth[task] == label for task, _, label in predicted]))
    known = {person.name: (person.kind, person.accuracy) for person in PEOPLE} | {predicted[0][1]: (MODEL, model)}
    return tuple(
        Found(one.name, known[one.name][0], one.labels, known[one.name][1], one.accuracy, one.flags)
        for one in crowd.workers
    )


def draw(found: Outcome, path: Path) -> None:
    """The share right against labels bought, and fixed overlap."""
    from nextlabel.reporting.style import BLUE, GREY, INK, drawing

    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(7.2, 4.2))
        axes.plot(*zip(*found.curve, strict=True), color=BLUE, label="this campaign")
        axes.plot(*zip(*found.moments, strict=True), color=BLUE, linestyle=":", label="what the campaign expected")
        marks = {"majority": ("s--", GREY), "dawid-skene": ("o--", INK)}
        names = {"majority": "majority", "dawid-skene": "Dawid-Skene"}
        for overlap in found.overlaps:
            style, color = marks[overlap.readout]
            axes.plot(
                [n * found.items for n in OVERLAPS], overlap.right, style, color=color, markersize=4,
                label=f"1, 3, 5, 7 labels for every item, {names[overlap.readout]}",
            )  # fmt: skip
        axes.set_xlabel("labels bought from people")
        axes.set_ylabel("share of items right")
        axes.legend(loc="lower right", frameon=False)
        axes.set_title(f"{found.items} items; a spammer, a contrarian, a model and six good people")
        figure.savefig(path, dpi=150, bbox_inches="tight")
        plt.close(figure)
