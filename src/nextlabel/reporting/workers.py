"""The report of a learnt crowd: the figure, the tables and the sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.crowd.agreement import Agreement
from nextlabel.crowd.learn import RECORDED, LearntCrowd, LearntWorker
from nextlabel.crowd.skill import AGAINST, AT_CHANCE, CHANGED, COPYING, FAILS, ONLY_CONTROLS, SAME, Estimate
from nextlabel.reporting.artifacts import to_eight_digits
from nextlabel.reporting.report import Report, Table, read_sentences
from nextlabel.reporting.style import BLUE, GREY, INK, ORANGE, PINK, RED, drawing
from nextlabel.wording import counted, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colour and marker of a worker by the first flag that applies; without one, blue dots.
LOOKS = {
    FAILS: (RED, "P"),
    ONLY_CONTROLS: (RED, "*"),
    COPYING: (PINK, "D"),
    AGAINST: (ORANGE, "v"),
    AT_CHANCE: (RED, "X"),
    CHANGED: (ORANGE, "h"),
    SAME: (INK, "s"),
}
PLAIN = (BLUE, "o")

#: Workers with an interval of their own on the left: those with the most labels.
MOST_BARS = 60
#: Workers with a picture of their confusion table.
MOST_TABLES = 7
#: Workers in the table outside a page: those with the most labels, and those who are flagged.
SHOWN = 20
#: What is told of an audit.
AUDITED = ("accuracy", "low", "high", "tasks", "audited", "right", "method")


def worker_table(found: LearntCrowd, title: str) -> Table:
    """Every worker, with the intervals of every number; outside a page some of them, with that of the accuracy."""
    two = [f"{name} if {name}" for name in reversed(found.answers)] if len(found.answers) == 2 else []
    rows, brief = [], []
    for k, one in enumerate(found.workers):
        first, last = (
            [str(one.name), f"{one.labels:,}", _brief(one.accuracy)],
            [f"{one.worth:.3f}", ", ".join(one.flags)],
        )
        pair = [x for x in (one.sensitivity, one.specificity) if x is not None]
        rows.append([*first, *map(_brief, pair), *last])
        if k < SHOWN or one.flags:
            brief.append([*first, *(f"{x.mean:.2f}" for x in pair), *last])
    return Table(title, ["worker", "labels", "accuracy", *two, "worth", "stands out"], rows, brief=brief)


def _brief(estimate: Estimate) -> str:
    low, high = (f"{end:.2f}".removeprefix("0") for end in (estimate.low, estimate.high))
    return f"{estimate.mean:.2f} ({low}-{high})"


def worker_rows(found: LearntCrowd) -> list[dict[str, Any]]:
    """One row for each worker, as files have it."""
    rows = []
    for one in found.workers:
        row: dict[str, Any] = {"worker": one.name, "labels": one.labels}
        named = {"accuracy": one.accuracy, "balanced_accuracy": one.balanced}
        for truth, row_of in zip(found.answers, one.confusion, strict=True):
            named |= {f"says_{answer}_when_{truth}": x for answer, x in zip(found.answers, row_of, strict=True)}
        for name, estimate in named.items():
            row |= {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        row |= {"bits": one.bits, "worth": one.worth, "flags": "; ".join(one.flags)}
        rows.append(row | {"controls": one.controls, "controls_right": one.controls_right})
    return to_eight_digits(rows)


def sentences(found: LearntCrowd) -> list[str]:
    """What was learnt, in plain English."""
    flags = Counter(flag for one in found.workers for flag in one.flags)
    no, yes = found.answers[0], found.answers[-1]
    two = f"'{yes} if {yes}', '{no} if {no}': how often they say so if it is true; " if len(found.answers) == 2 else ""
    shares = listed([f"{name} {share:.0%}" for name, share in zip(found.answers, found.fit.share, strict=True)])
    said = listed([f"{flag} ({many})" for flag, many in flags.most_common()])
    looked = (
        f"{counted(found.pairs, 'pair')} of workers with 10 shared tasks or more looked at for copying"
        f"{'' if found.copying else ' and nothing was found'}; the chance of one false alarm or more is at most 1%."
    )
    return [
        f"accuracy: chance that a label is right on tasks like these, with a 95% interval; {two}worth: tasks that one "
        "more label is expected to set right, on the task where it helps most.",
        f"Shares of the truths: {shares}.",
        *([f"Workers who stand out: {said}."] if flags else []),
        *(
            f"{one.workers[0]} and {one.workers[1]} gave the same answer to {one.alike} of the {one.shared} tasks that "
            f"both labelled; skill and hard tasks explain at most {one.excused:.1f} (p {one.p_value:.1g})."
            for one in found.copying
        ),
        *([looked] if found.pairs > 0 else []),
        *(
            f"{listed(group)} agree too well, pair by pair: they may be one person, or copy from one."
            for group in found.groups
        ),
        *accuracy_sentences(found),
        *found.notes,
    ]


def accuracy_sentences(found: LearntCrowd) -> list[str]:
    """How many labels are right: as known truths say, or what agreement alone suggests."""
    out = [] if found.contradiction is None else found.contradiction.sentences()
    known, own = found.audit, found.expected
    if known is not None:
        one = (
            f"{known.right:,} of {counted(known.audited, 'task')} with a known truth would be right if it were not "
            "known (cross-fitted: each is judged by its labels and its workers' other labels). "
            f"Accuracy {known.accuracy:.1%}, with a 95% interval from {known.low:.1%} to {known.high:.1%}, if these "
            "tasks were drawn at random."
        )
        if found.contradiction is None and known.audited < known.tasks:
            one += f" From agreement alone the model expected {own.mean:.1%}."
        return [*out, one]
    return [
        *out,
        f"Agreement {own.mean:.1%} ({own.low:.1%} to {own.high:.1%}): the accuracy that the model expects from how "
        f"workers agree. No truth is known; on recorded crowds the truth was {RECORDED} lower. Find out the truth of "
        "30 to 60 tasks drawn at random and give it (--gold, or 'nextlabel audit').",
    ]


def workers_report(
    found: LearntCrowd,
    alike: Agreement,
    title: str,
    more: Sequence[str] = (),
    read: Sequence[Mapping[str, Any]] = (),
    **fields: Any,
) -> Report:
    """The report of a crowd and how far it agrees.

    ``title`` is that of its table; ``more`` sentences follow, and what was ``read`` from files.
    """
    table = worker_table(found, title)
    hidden = len(table.rows) - len(table.shown)
    rest = f"{counted(hidden, 'worker')} more with fewer labels, not flagged: --json, --out and --report show all.\n"
    flagged = sum(1 for one in found.workers if one.flags)
    counts = [
        counted(len(found.workers), "worker"),
        counted(len(found.task_names), "task"),
        counted(int(found.labels_per_task.sum()), "label"),
    ]
    return Report(
        title=", ".join(counts),
        tables=[table],
        sentences=[*sentences(found), *alike.sentences(), *more],
        heading="Who the workers are",
        lead=f"{', '.join(counts)}.",
        facts=[
            (
                f"{found.expected_accuracy:.1%}",
                "agreement: no truth is known"
                if found.audit is None
                else "of the labels are right, as known truths say",
            ),
            (f"{flagged:,}", "workers stand out"),
        ],
        figures=[
            (
                lambda: workers_figure(found),
                "Accuracy of each worker with its 95% interval; and what each worker gets right.",
            ),
            (
                lambda: confusions_figure(found),
                "Confusion tables: how often each answer is given (columns) to each truth (rows), as learnt.",
            ),
            *_learner_figures(found),
        ],
        sections={"What was read": read_sentences(read)},
        notes=[rest] if hidden else [],
        fields={**crowd_fields(found), "agreement": alike.as_dict(), **fields, "read": read},
        files=lambda: {
            "workers.csv": worker_rows(found),
            "tasks.csv": list(found.tasks()),
            "agreement.csv": alike.rows(),
            "workers.png": workers_figure(found),
            "confusions.png": confusions_figure(found),
        },
    )


def crowd_fields(found: LearntCrowd) -> dict[str, Any]:
    """The numbers of a crowd."""
    taught, learner, audit = found.taught, found.learner, found.audit
    word = taught and {
        "bits": taught.bits,
        "log_loss_without": learner and taught.without,
        "log_loss_with": learner and taught.with_,
        "agrees": learner and learner.accuracy,
    }
    return {
        **({} if word is None else {"features": word}),
        "labels": int(found.labels_per_task.sum()),
        "answers": list(found.answers),
        "share": found.fit.share.tolist(),
        "crowd": found.fit.prior.pseudo.tolist(),
        "expected_accuracy": found.expected_accuracy,
        "expected": dict(zip(("mean", "low", "high"), map(float, found.expected[:3]), strict=True)),
        "audit": audit and {name: getattr(audit, name) for name in AUDITED},
        "contradiction": None if found.contradiction is None else found.contradiction.sentences(),
        "groups": [list(group) for group in found.groups],
        "copying": [asdict(one) for one in found.copying],
        "pairs_looked_at": found.pairs,
        "evidence": found.evidence,
        "converged": found.converged,
        "iterations": found.fit.iterations,
        "notes": list(found.notes),
        "workers": [one.as_dict() for one in found.workers],
        "tasks": list(found.tasks()),
    }


def workers_figure(found: LearntCrowd) -> Figure:
    """Accuracy of each worker with its interval on the left; what they say to either truth on the right."""
    from matplotlib.lines import Line2D

    with drawing(1, 2, figsize=(11.0, 4.8), width_ratios=(1.25, 1)) as (figure, (left, right)):
        _accuracies(left, found)
        _answers(right, found)
        looks = dict(_look(one) for one in found.workers)
        handles = [Line2D([], [], color=c, marker=m, linestyle="", alpha=0.8) for c, m in looks.values()]
        figure.legend(handles, list(looks), loc="outside lower center", ncols=len(looks))
    return figure


def _learner_figures(found: LearntCrowd) -> list[tuple[Callable[[], Figure], str]]:
    """How sure people, the learner and both are, where features say something."""
    taught = found.taught
    if taught is None or taught.prior is None:
        return []
    parts = {"people alone": taught.alone.beliefs, "learner alone": taught.prior, "both": found.fit.beliefs}

    def figure() -> Figure:
        with drawing(figsize=(6.0, 4.0)) as (drawn, axes):
            for name, beliefs in parts.items():
                sure = np.sort(beliefs.max(axis=1))[::-1]
                axes.plot(100 * np.arange(1, len(sure) + 1) / len(sure), sure, label=name)
            axes.set(xlabel="tasks, the surest first, %", ylabel="probability of the likeliest answer", ylim=(0, 1.02))
            axes.legend()
        return drawn

    return [(figure, "How sure people's labels alone are of each task, the learner of its features alone, and both.")]


def confusions_figure(found: LearntCrowd) -> Figure:
    """The confusion tables of a stranger in this crowd and of the workers with the most labels, as pictures."""
    stranger = found.fit.prior.pseudo / found.fit.prior.pseudo.sum(axis=1, keepdims=True)
    some = [("a stranger", stranger), *((f"{one.name}", one.channel) for one in found.workers[:MOST_TABLES])]
    names, wide = [str(name) for name in found.answers], min(len(some), 4)
    tall = -(-len(some) // wide)
    with drawing(tall, wide, figsize=(11.0, 2.9 * tall), squeeze=False) as (figure, grid):
        for axes, (name, table) in zip(grid.flat, some, strict=False):
            axes.imshow(table, vmin=0.0, vmax=1.0, cmap="Blues")
            axes.set(title=name, xticks=range(len(names)), yticks=range(len(names)))
            axes.set(xticklabels=names, yticklabels=names)
            axes.grid(visible=False)
            for at, share in np.ndenumerate(table) if len(names) <= 6 else ():
                axes.text(at[1], at[0], f"{share:.2f}", ha="center", va="center", color="w" if share > 0.6 else INK)
        for axes in grid.flat[len(some) :]:
            axes.set_axis_off()
    return figure


def _look(one: LearntWorker) -> tuple[str, tuple[str, str]]:
    flag = next((flag for flag in LOOKS if flag in one.flags), "")
    return flag or "nothing stands out", LOOKS.get(flag, PLAIN)


def _accuracies(axes: Axes, found: LearntCrowd) -> None:
    some = sorted(found.workers[:MOST_BARS], key=lambda one: -one.accuracy.mean)
    for place, one in enumerate(some):
        colour, marker = _look(one)[1]
        axes.plot([place, place], [one.accuracy.low, one.accuracy.high], color=colour, linewidth=1.2, alpha=0.6)
        axes.plot(place, one.accuracy.mean, marker=marker, color=colour, linestyle="")
    everyone = len(some) == len(found.workers)
    which = "all workers" if everyone else f"the {len(some)} workers with the most labels"
    title = "How often a label is right, with 95% intervals"
    axes.set(xlabel=f"{which}, the best first", ylabel="accuracy", ylim=(0, 1.02), xticks=[], title=title)


def _answers(axes: Axes, found: LearntCrowd) -> None:
    """Sensitivity against specificity; for more than two answers, bits against labels."""
    most = max(one.labels for one in found.workers)
    for one in sorted(found.workers, key=lambda one: bool(one.flags)):
        colour, marker = _look(one)[1]
        if one.sensitivity is not None and one.specificity is not None:
            x, y = one.specificity.mean, one.sensitivity.mean
        else:
            x, y = float(one.labels), one.bits
        size = 12 + 130 * one.labels / most
        axes.scatter(x, y, s=size, color=colour, marker=marker, alpha=0.6, linewidths=0, zorder=3)
    if len(found.answers) == 2:
        no, yes = found.answers
        axes.plot([0, 1], [1, 0], color=GREY, linestyle=":", linewidth=1.2)
        axes.annotate("answers that say nothing", (0.6, 0.37), rotation=-45, ha="center", va="center", color=GREY)
        axes.set_aspect("equal")
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), title="What they get right; large: many labels")
        axes.set(xlabel=f"says {no} when the truth is {no}", ylabel=f"says {yes} when the truth is {yes}")
    else:
        ends, title = (-0.02, float(np.log2(len(found.answers)))), "What a label says about the truth"
        axes.set(xscale="log", xlabel="labels given", ylabel="bits per label", ylim=ends, title=title)
