"""``nextlabel reproduce``: the paper's experiments and our extensions of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nextlabel.cli.options import JOBS, EngineKind, Jobs, Json, Scheduler, Seed, engine_of, refuse_idle, text, whole
from nextlabel.cli.output import print_json, print_table, say, working
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from studies.study import StudyOptions


def reproduce(
    context: typer.Context,
    study: Annotated[
        Literal[
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
        ],
        typer.Argument(help="The study to run."),
    ],
    data: Annotated[
        str | None,
        text("--data", "DIR", "For fig2 and workers: the folder with rte/, temp/ and mre/ (labels.csv, gold.csv)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few replications and small problems, for a first look.")
    ] = False,
    out: Annotated[
        str,
        typer.Option("--out", metavar="DIR", help="Write tables and figures to this folder, one subfolder per study."),
    ] = "out",
    seed: Seed = 0,
    jobs: Jobs = JOBS,
    engine: EngineKind = "local",
    scheduler: Scheduler = None,
    replications: Annotated[
        int | None, whole("--replications", "N", 2, "1000", "Replications. Default: the study's own number.")
    ] = None,
    tasks: Annotated[
        int | None, whole("--tasks", "K", 2, "100", "For delay and auto: only this number of tasks.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a study again: a figure, a table (CSV) and a manifest for each."""
    if study not in ("fig2", "guarantee", "features", "workers", "all"):
        refuse_idle(context, ["data"], "fig2, guarantee, features, workers or all")
    if study not in ("delay", "auto", "all"):
        refuse_idle(context, ["tasks"], "delay, auto or all")
    where = engine_of(context, engine, jobs, scheduler)
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
    if as_json:
        print_json(
            {
                "studies": [
                    {"name": d.name, "files": [str(f) for f in d.files], "rows": d.rows, "seconds": d.seconds}
                    for d in done
                ]
            }
        )
        return
    rows = [(d.name, f"{len(d.rows):,}", f"{d.seconds:.1f}", str(d.files[0].parent)) for d in done]
    print_table(
        "Reproduced",
        ("study", "rows", "seconds", "folder"),
        rows,
        "Each folder holds a figure (PNG), its numbers (CSV) and a manifest.json with versions, seed and command.",
    )


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
    typed = ["nextlabel", "reproduce", name, "--seed", str(config.seed)]
    if name in ("fig2", "guarantee", "features", "workers"):
        typed += ["--data", "DIR"]
    if config.quick:
        typed.append("--quick")
    if config.replications is not None:
        typed += ["--replications", str(config.replications)]
    if name == "delay" and config.tasks is not None:
        typed += ["--tasks", str(config.tasks)]
    return " ".join(typed)
