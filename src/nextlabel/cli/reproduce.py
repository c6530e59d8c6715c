"""``nextlabel reproduce``: the paper's experiments and our extensions of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nextlabel.cli.options import SEED, EngineFlags, argument, flag, switch, verb, whole
from nextlabel.cli.output import say, tabled, working
from nextlabel.errors import InputError
from nextlabel.reporting.report import Report

if TYPE_CHECKING:
    from studies.study import StudyOptions


#: Studies of recorded labels.
WITH_DATA = ("fig2", "guarantee", "features", "workers")


def _study(*names: str) -> tuple[str, Callable[[Mapping[str, Any]], bool]]:
    """What flags of some studies go with."""
    return f"{', '.join(names[:-1])} or {names[-1]}", lambda typed: typed["study"] in names


@verb()
def reproduce(
    engine: EngineFlags,
    study: Literal[
        "fig1",
        "fig2",
        "delay",
        "exact",
        "auto",
        "growth",
        "beyond",
        "indexability",
        "guarantee",
        "features",
        "workers",
        "all",
    ] = argument("STUDY", "The study to run."),
    data: str | None = flag(
        "DIR",
        "For fig2 and workers: the folder with rte/, temp/ and mre/ (labels.csv, gold.csv).",
        needs=_study(*WITH_DATA, "all"),
    ),
    quick: bool = switch("Few replications and small problems, for a first look."),
    out: str = flag("DIR", "Write tables and figures to this folder, one subfolder per study.", "out"),
    seed: int = SEED,
    replications: int | None = whole("N", 2, "1000", "Replications. Default: the study's own number."),
    tasks: int | None = whole(
        "K", 2, "100", "For delay and auto: only this number of tasks.", needs=_study("delay", "auto", "all")
    ),
) -> Report:
    """Run a study again: a figure, a table (CSV) and a manifest for each."""
    where = engine.made()
    _find_studies()
    from studies.reproduce import STUDIES, check
    from studies.reproduce import reproduce as run_study
    from studies.study import StudyOptions

    config = StudyOptions(quick=quick, seed=seed, engine=where, replications=replications, data=data, tasks=tasks)
    chosen: list[str] = list(STUDIES) if study == "all" else [study]
    lacking = check(chosen, config, out)
    for name, error in lacking.items():
        say(f"{name} is left out: {error}")
    done = []
    for name in [one for one in chosen if one not in lacking]:
        command = _command(name, config)
        with working(f"Reproducing {name}: {STUDIES[name].about}") as progress:
            done.append(run_study(name, config, out, command, progress))
    studies = [{"name": d.name, "files": [str(f) for f in d.files], "rows": d.rows, "seconds": d.seconds} for d in done]
    rows = [(d.name, f"{len(d.rows):,}", f"{d.seconds:.1f}", str(d.files[0].parent)) for d in done]
    about = "Each folder holds a figure (PNG), its numbers (CSV) and a manifest.json with versions, seed and command."
    return tabled("Reproduced", ("study", "rows", "seconds", "folder"), rows, about, {"studies": studies})


def _find_studies() -> None:
    """Make ``studies/`` importable: beside the package's source, or in the current folder."""
    places = (Path(__file__).resolve().parents[3], Path.cwd())
    place = next((place for place in places if (place / "studies" / "reproduce.py").is_file()), None)
    if place is None:
        raise InputError(
            "the studies are in the folder studies/ of nextlabel's source, not in the installed package.",
            "Run this command in a checkout of the source or in an unpacked source distribution.",
        )
    if str(place) not in sys.path:
        sys.path.append(str(place))


def _command(name: str, config: StudyOptions) -> str:
    """The command that makes this study again."""
    few = [] if config.replications is None else ["--replications", str(config.replications)]
    some = ["--tasks", str(config.tasks)] if name == "delay" and config.tasks is not None else []
    data, quick = ["--data", "DIR"] if name in WITH_DATA else [], ["--quick"] if config.quick else []
    return " ".join(["nextlabel", "reproduce", name, "--seed", str(config.seed), *data, *quick, *few, *some])
