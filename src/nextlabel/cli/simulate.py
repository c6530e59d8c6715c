"""``nextlabel simulate``: policies side by side on the same arrivals, durations and labels."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli.flag_values import parse_whole
from nextlabel.cli.output import JsonFlag, check_outputs, counted, print_json, print_table, say, working
from nextlabel.cli.problem_options import ProblemFlags, takes_problem
from nextlabel.cli.problem_text import describe, problem_fields
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.simulation.study import Study

DEFAULT_POLICIES = ("index", "okg", "uniform")


@takes_problem
def simulate(
    flags: ProblemFlags,
    context: typer.Context,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A policy; repeatable. Default: index, okg, uniform.", show_default=False),
    ] = None,
    replications: Annotated[str, typer.Option(metavar="N", help="Campaigns simulated for each policy.")] = "1000",
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same digits.")] = "0",
    jobs: Annotated[str, typer.Option(metavar="N", help="Cores of this machine to use.")] = "1",
    engine: Annotated[Literal["local", "dask"], typer.Option(help="This machine, or an existing Dask cluster.")] = (
        "local"
    ),
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="The Dask scheduler, e.g. tcp://HOST:8786.", show_default=False),
    ] = None,
    pending: Annotated[
        Literal["wait", "discard"],
        typer.Option(help="Labels in flight at the last arrival come in, or are dropped as published."),
    ] = "wait",
    prices: Annotated[
        Literal["scalar", "per-arrival"], typer.Option(help="Which bound gaps are measured to, as in bound.")
    ] = "scalar",
    most_labels: Annotated[
        str | None, typer.Option(metavar="N", help="Labels one task can be given at most.", show_default=False)
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write table, figure and manifest to this folder.", show_default=False),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare policies on a problem: means, paired differences, and the gap to the bound."""
    started, begin = datetime.now(UTC), perf_counter()
    problem = flags.read()
    count = parse_whole("--replications", replications, 1, "Give at least one replication, e.g. --replications 1000.")
    start = parse_whole("--seed", seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    cores = parse_whole("--jobs", jobs, 1, "Give the number of cores to use, e.g. --jobs 2.")
    most = None
    if most_labels is not None:
        most = parse_whole("--most-labels", most_labels, 1, "Give at least one label a task, e.g. --most-labels 64.")
    if scheduler is not None and engine != "dask":
        raise InputError(f"--scheduler {scheduler} is for the dask engine.", "Add --engine dask or leave it out.")
    if problem.budget < 1:
        raise InputError("budget is 0, so there is nothing to simulate.", "Give --budget 1 or more.")
    names = list(policy or DEFAULT_POLICIES)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"policy {name!r} is given twice.", "Give each policy once.")
    with working("Bounding") as progress:
        from nextlabel.policies.registry import make_policy
        from nextlabel.simulation.engine import Engine
        from nextlabel.simulation.report import write_report
        from nextlabel.simulation.study import simulate as run_study
        from nextlabel.solve.bound import upper_bound

        policies = [make_policy(name) for name in names]
        where = Engine(engine, cores, scheduler)
        folder = None if out is None else Path(out)
        check_outputs(out)
        bound = upper_bound(problem, prices, progress=progress)
    with working(f"Simulating {counted(count, 'replication')}") as progress:
        study = run_study(
            problem,
            policies,
            replications=count,
            seed=start,
            engine=where,
            pending=pending,
            bound=bound,
            most_labels=most,
            progress=progress,
        )
    seconds = perf_counter() - begin
    if folder is not None:
        typed = context.obj if isinstance(context.obj, list) else []
        command = shlex.join(["nextlabel", *map(str, typed)])
        more = {"prices": prices, "engine": engine, "jobs": cores, "most_labels": most}
        write_report(study, folder, command=command, started=started, seconds=seconds, **more)
    if as_json:
        print_json(_as_dict(study, prices, seconds))
    else:
        _show(study)
    _warn(study)
    if folder is not None:
        say(f"Wrote table, figure and manifest to {folder}.")


def _as_dict(study: Study, prices: str, seconds: float) -> dict[str, Any]:
    from nextlabel.simulation.report import difference_rows, policy_rows

    return {
        "bound_per_task": study.bound.per_task,
        "prices": prices,
        "policies": policy_rows(study),
        "differences": difference_rows(study),
        "replications": study.replications,
        "seed": study.seed,
        "pending": study.pending,
        "seconds": seconds,
        "problem": problem_fields(study.problem),
    }


def _show(study: Study) -> None:
    from nextlabel.simulation.report import difference_rows, policy_table, verdict

    header, rows = policy_table(study)
    spent = sum(result.seconds for result in study.results)
    caption = f"Bound {study.bound.per_task:.6f} per task; ± is the half-width of a 95% interval. {spent:.2f} s."
    if any(result.variance_ratio is not None for result in study.results):
        caption += " Ratio: how many times more replications the gap would need from the plain means."
    if study.pending == "discard":
        caption += " The bound is for waiting, so no gap is given: labels in flight at the last arrival were dropped."
    if study.problem.label_cost > 0:
        caption += " Values are net of what the labels cost."
    differences = difference_rows(study)
    title = f"Simulation of {counted(study.replications, 'replication')}: {describe(study.problem, study.pending)}"
    print_table(title, header, rows, caption if differences else f"{caption} {verdict(study)}")
    if differences:
        lines = [(row["name"], f"{row['mean_per_task']:+.6f} ±{row['half_width']:.6f}") for row in differences]
        print_table(f"Paired differences to {study.results[0].name}", ("policy", "per task"), lines, verdict(study))


def _warn(study: Study) -> None:
    capped = [result for result in study.results if result.cap_binds]
    if capped:
        names = ", ".join(result.name for result in capped)
        most = max(result.most_labels for result in capped)
        say(f"warning: {names} gave {most} labels to one task, the most allowed here; raise --most-labels.")
