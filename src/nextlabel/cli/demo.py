"""``nextlabel demo``: a whole campaign on this machine, from sample items to the certificate."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.cli.options import Json, Seed, positive, whole
from nextlabel.cli.output import check_outputs, print_json, print_table, say, working
from nextlabel.cli.serve import check_port, needs_service
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.crowd.skill import Estimate
    from nextlabel.demo.outcome import Found, Outcome, Overlap
    from nextlabel.demo.run import DemoRun

FOLDER = "nextlabel-demo"
READOUTS = {"majority": "by majority", "dawid-skene": "by Dawid-Skene"}


def demo(
    tasks: Annotated[int, whole("--tasks", "K", 10, "300", "Number of tasks, sample items.")] = 300,
    labels_per_task: Annotated[float, positive("--labels-per-task", "X", "3", "The budget, as labels per task.")] = 3.0,
    port: Annotated[int, whole("--port", "N", 1, "8765", "Port to listen on.")] = 8765,
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="Write database, results and figure to this folder.")
    ] = FOLDER,
    keep_serving: Annotated[bool, typer.Option("--keep-serving", help="Keep the service running at the end.")] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Run a whole campaign here: sample items, the real service, a simulated crowd over HTTP, the certificate."""
    begun = time.perf_counter()
    needs_service()
    check_port("127.0.0.1", port)
    folder = Path(out)
    check_outputs(out)
    with ExitStack() as stack:
        with working("Starting the service"):
            from nextlabel.demo.outcome import outcome
            from nextlabel.demo.run import SPEED_UP, demo_run, play
            from nextlabel.demo.sample import PEOPLE

            campaign = stack.enter_context(demo_run(folder, port, tasks, labels_per_task, seed))
        say(f"Dashboard: {campaign.url}/   token: {campaign.token}")
        say(
            f"{counted(tasks, 'item')}, {counted(campaign.budget, 'label')} to buy. {len(PEOPLE)} simulated people at "
            f"{SPEED_UP:.0f} times a person's speed, over HTTP: six good ones, one who answers at random, one who has "
            "mixed the answers up. A crude model has labelled every item."
        )
        with working("The crowd is labelling") as progress:
            played = play(campaign, progress)
        with working("Playing fixed overlap with the same people") as progress:
            found = outcome(campaign.sample, played.labelled, played.answers, played.moments, seed, progress)
        _write_results(campaign, found, folder)
        _show(campaign, found, folder, time.perf_counter() - begun, as_json)
        if keep_serving:
            say(f"Still serving at {campaign.url}/ (Ctrl-C ends it).")
            with suppress(KeyboardInterrupt):
                while True:
                    time.sleep(3600)
            say("nextlabel demo ended.")


def _write_results(campaign: DemoRun, found: Outcome, folder: Path) -> None:
    """The table of results and the figure."""
    from nextlabel.demo.outcome import draw
    from nextlabel.files.write import write_csv

    truth = {item.id: item.truth for item in campaign.sample}
    rows = [
        {
            "task": result.task,
            "label": result.label,
            "probability": f"{result.probability:.4f}",
            "labels": result.labels,
            "hidden_truth": truth[result.task],
            "text": result.payload["text"],
        }
        for result in campaign.client.results(campaign.campaign)
    ]
    write_csv(rows, folder / "results.csv")
    draw(found, folder / "demo.png")


def _show(campaign: DemoRun, found: Outcome, folder: Path, seconds: float, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "campaign": campaign.campaign, "items": found.items, "labels": found.labels, "right": found.right,
                "expected": found.expected, "workers": [_worker(one) for one in found.workers],
                "all_found": found.found_out, "overlap": [_overlap(one) for one in found.overlaps], "seconds": seconds,
                "folder": str(folder),
            }
        )  # fmt: skip
    else:
        _print(campaign, found, seconds)
        sys.stdout.flush()
    say(f"Wrote results.csv, demo.png and demo.db to {folder}.")
    say(f"Open the dashboard again: nextlabel serve --db {folder / 'demo.db'}   (token: {campaign.token})")


def _print(campaign: DemoRun, found: Outcome, seconds: float) -> None:
    from nextlabel.demo.outcome import USUAL

    print_table(
        "Workers",
        ["worker", "is", "labels", "right", "learnt", "flagged"],
        [
            [one.worker, one.kind, f"{one.labels:,}", f"{one.accuracy:.0%}", _learnt(one.learnt), ", ".join(one.flags)]
            for one in found.workers
        ],
        "'right' is hidden from the campaign; 'learnt' is how often it thinks they are right, with a 95% interval.",
    )
    rows = [
        ["labels bought", f"{found.labels:,} of {campaign.budget:,}"],
        ["right, against the hidden truth", f"{found.right:.1%}"],
        ["right, as the campaign itself expects", f"{found.expected:.1%}"],
    ]
    for one in found.overlaps:
        rows.append([f"right with {USUAL} labels for every item, {READOUTS[one.readout]}", f"{one.usual:.1%}"])
        level = "not reached" if one.saved is None else f"after {one.level:,} labels: {one.saved:.0%} saved"
        rows.append(["    the campaign was there", level])
    caption = (
        f"Shares are of these {found.items} items and vary by about {_spread(found):.1%} with the set of items. "
        f"{USUAL} labels for every item are {USUAL * found.items:,}, by the same people. {seconds:.0f} seconds."
    )
    print_table("Certificate", ["", ""], rows, caption)


def _learnt(one: Estimate) -> str:
    return f"{one.mean:.0%} ({100 * one.low:.0f} to {100 * one.high:.0f})"


def _worker(one: Found) -> dict[str, Any]:
    return {
        "worker": one.worker, "kind": one.kind, "labels": one.labels, "right": one.accuracy,
        "learnt": one.learnt.as_dict(), "flags": list(one.flags),
    }  # fmt: skip


def _overlap(one: Overlap) -> dict[str, Any]:
    return {"readout": one.readout, "right": one.usual, "level_after": one.level, "saved": one.saved}


def _spread(found: Outcome) -> float:
    """Standard error of the share right."""
    return float((found.right * (1.0 - found.right) / found.items) ** 0.5)
