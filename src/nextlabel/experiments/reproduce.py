"""The studies by name, and running them: rows, figure, manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from nextlabel.experiments import beyond, delay, exact, fig1, fig2, figures, figures_beyond, growth
from nextlabel.experiments.datasets import SETS, find_set
from nextlabel.experiments.study import Experiment, Row, StudyOptions
from nextlabel.reporting.artifacts import make_folder, manifest, write
from nextlabel.reporting.style import drawing
from nextlabel.solve.progress import Progress

STUDIES: dict[str, Experiment] = {
    study.name: study
    for study in (
        Experiment("fig1", "the paper's first experiment", fig1.run, figures.fig1),
        Experiment(
            "fig2", "the paper's second experiment, on recorded labels", fig2.run, figures.fig2, needs_data=True
        ),
        Experiment("delay", "policies when many labels are in flight", delay.run, figures.delay),
        Experiment("exact", "every policy against the exact optimum", exact.run, figures.exact),
        Experiment("growth", "total gap as the campaign grows", growth.run, figures.growth),
        Experiment("beyond", "mixtures, three answers, money", beyond.run, figures_beyond.beyond),
    )
}


@dataclass(frozen=True, slots=True)
class Reproduced:
    """What one study left."""

    name: str
    files: tuple[Path, ...]
    rows: list[Row]
    seconds: float


def check(studies: list[str], config: StudyOptions, out: str | Path) -> Path:
    """Refuse what cannot work before anything is computed: data that are not there, a folder that cannot be written."""
    with drawing():
        pass
    if any(STUDIES[name].needs_data for name in studies):
        for name in SETS:
            find_set(config.data, name)
    return make_folder(out)


def reproduce(name: str, config: StudyOptions, out: str | Path, command: str, progress: Progress) -> Reproduced:
    """Run one study and write ``out``/``name``/."""
    begin = perf_counter()
    study = STUDIES[name]
    outcome = study.run(config, progress)
    figure = study.draw(outcome.rows)
    folder = make_folder(Path(out) / name)
    seconds = perf_counter() - begin
    files = write(folder, name, outcome, figure, manifest(name, config, command, seconds))
    return Reproduced(name, tuple(files), outcome.rows, seconds)
