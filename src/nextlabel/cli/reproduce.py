"""``nextlabel reproduce``: the paper's experiments and our extensions of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nextlabel.cli.flag_values import parse_whole
from nextlabel.cli.output import JsonFlag, print_json, print_table, working

if TYPE_CHECKING:
    from nextlabel.experiments.study import StudyOptions


def reproduce(
    study: Annotated[
        Literal["fig1", "fig2", "delay", "exact", "growth", "beyond", "all"], typer.Argument(help="Which study.")
    ],
    data: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder with rte/ and temp/ (labels.csv, gold.csv).", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few replications and small problems: a look.")] = False,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder to write to, one subfolder a study.")] = "out",
    seed: Annotated[str, typer.Option(metavar="N", help="Seed of all randomness.")] = "0",
    jobs: Annotated[str, typer.Option(metavar="N", help="Cores to use.")] = "2",
    replications: Annotated[
        str | None, typer.Option(metavar="N", help="Replications in the place of the study's own.", show_default=False)
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(metavar="K", help="delay: only this number of tasks.", show_default=False)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a study again: a figure, a table (CSV) and a manifest for each."""
    from nextlabel.experiments.reproduce import STUDIES, check
    from nextlabel.experiments.reproduce import reproduce as run_study
    from nextlabel.experiments.study import StudyOptions
    from nextlabel.simulation.engine import Engine

    config = StudyOptions(
        quick=quick,
        seed=parse_whole("--seed", seed, 0, "Give a whole number from 0, e.g. --seed 0."),
        engine=Engine(jobs=parse_whole("--jobs", jobs, 1, "Give the number of cores to use, e.g. --jobs 2.")),
        replications=None
        if replications is None
        else parse_whole("--replications", replications, 2, "Give at least two, e.g. --replications 1000."),
        data=data,
        tasks=None
        if tasks is None
        else parse_whole("--tasks", tasks, 2, "Give the number of tasks, e.g. --tasks 100."),
    )
    chosen: list[str] = list(STUDIES) if study == "all" else [study]
    check(chosen, config, out)
    done = []
    for name in chosen:
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


def _command(name: str, config: StudyOptions) -> str:
    """The command that makes this study again."""
    words = ["nextlabel", "reproduce", name, "--seed", str(config.seed)]
    if name == "fig2":
        words += ["--data", "DIR"]
    if config.quick:
        words.append("--quick")
    if config.replications is not None:
        words += ["--replications", str(config.replications)]
    if name == "delay" and config.tasks is not None:
        words += ["--tasks", str(config.tasks)]
    return " ".join(words)
