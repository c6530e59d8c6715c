"""The studies by name, and running them: rows, figure, manifest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from nextlabel.errors import InputError
from nextlabel.reporting.artifacts import Row, check_folder, manifest, to_eight_digits, write_files
from nextlabel.solve.progress import Progress
from studies import auto, beyond, delay, exact, features, fig1, fig2, growth, guarantee, indexability, workers
from studies.study import CROWDS, SETS, Experiment, StudyOptions, check_set

STUDIES: dict[str, Experiment] = {
    study.name: study
    for study in (
        Experiment("fig1", "the paper's first experiment", fig1.run, fig1.draw),
        Experiment("fig2", "the paper's second experiment, on recorded labels", fig2.run, fig2.draw, SETS),
        Experiment("delay", "policies when many labels are in flight", delay.run, delay.draw),
        Experiment("exact", "every policy against the exact optimum", exact.run, exact.draw),
        Experiment("auto", "where the default rule loses, and how its gap grows", auto.run, auto.draw),
        Experiment("growth", "total gap as the campaign grows", growth.run, growth.draw),
        Experiment("beyond", "mixtures, three answers, money", beyond.run, beyond.draw),
        Experiment(
            "indexability", "states whose decision reopens as the price grows", indexability.run, indexability.draw
        ),
        Experiment("guarantee", "labels with a guarantee on recorded labels", guarantee.run, guarantee.draw, CROWDS),
        Experiment(
            "features", "items teach: labels and features together", features.run, features.draw, ("labelme", "rte")
        ),
        Experiment("workers", "workers who differ, simulated and recorded", workers.run, workers.draw, CROWDS),
    )
}


@dataclass(frozen=True, slots=True)
class Reproduced:
    """What one study left."""

    name: str
    files: tuple[Path, ...]
    rows: list[Row]
    seconds: float


def check(studies: list[str], config: StudyOptions, out: str | Path) -> dict[str, InputError]:
    """Refuse what cannot work before anything is computed: a folder that cannot be written to, missing data.

    Of several studies those that lack data are returned, with what they lack.
    """
    check_folder(out)
    lacking: dict[str, InputError] = {}
    for study in studies:
        try:
            for name in STUDIES[study].sets:
                check_set(config.data, name)
        except InputError as error:
            lacking[study] = error
    if len(lacking) == len(studies):
        raise next(iter(lacking.values()))
    return lacking


def reproduce(name: str, config: StudyOptions, out: str | Path, command: str, progress: Progress) -> Reproduced:
    """Run one study and write ``out``/``name``/."""
    started, begin = datetime.now(UTC), perf_counter()
    study = STUDIES[name]
    outcome = study.run(config, progress)
    figure = study.draw(outcome.rows)
    seconds = perf_counter() - begin
    about = {"study": name, "quick": config.quick, "jobs": config.engine.jobs, **outcome.notes}
    fields = manifest(command=command, seed=config.seed, started=started, seconds=seconds, **about)
    rows = to_eight_digits(outcome.rows)
    files = write_files(Path(out) / name, {f"{name}.png": figure, f"{name}.csv": rows, "manifest.json": fields})
    return Reproduced(name, tuple(files), outcome.rows, seconds)
