"""``nextlabel demo``: a whole campaign on this machine, from sample items to the certificate."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nextlabel.cli.options import Json, Seed, positive, whole
from nextlabel.cli.output import print_json, print_table, say, working
from nextlabel.cli.output_files import check_outputs
from nextlabel.cli.serve import check_port, needs_service
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.demo.outcome import Outcome
    from nextlabel.demo.run import DemoRun

FOLDER = "nextlabel-demo"


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
        with working("Preparing the policy's tables"):
            from nextlabel.demo.crowd import SPEED_UP
            from nextlabel.demo.run import WORKERS, demo_run, play

            campaign = stack.enter_context(demo_run(folder, port, tasks, labels_per_task, seed))
        say(f"Dashboard: {campaign.url}/   token: {campaign.token}")
        say(
            f"{counted(tasks, 'item')}, {counted(campaign.config.budget, 'label')} to buy, {len(WORKERS)} simulated "
            f"workers at {SPEED_UP:.0f} times a person's speed, over HTTP."
        )
        with working("The crowd is labelling") as progress:
            found = play(campaign, progress)
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
    saved, same = found.saved, found.overlap_same
    if as_json:
        print_json(
            {
                "campaign": campaign.campaign, "items": found.items, "labels": found.labels, "right": found.right,
                "expected": found.expected, "upper": found.upper_at_start, "gap": found.upper_at_start - found.expected,
                "fixed_overlap_labels": same, "saved": saved, "seconds": seconds, "folder": str(folder),
            }
        )  # fmt: skip
    else:
        rows = [
            ["labels bought", f"{found.labels:,} of {campaign.config.budget:,}"],
            ["right, against the hidden truth", f"{found.right:.2%}"],
            ["right, as the campaign itself expects", f"{found.expected:.2%}"],
            ["at most, whatever the policy (at the start)", f"{found.upper_at_start:.2%}"],
            ["fixed overlap needs for the same", "over 40 labels per item" if same is None else f"{same:,.0f} labels"],
            ["saved against fixed overlap", "not known" if saved is None else f"{saved:.0%}"],
        ]
        caption = (
            f"Expected accuracy and bound are for items drawn from the prior; the share right is of these "
            f"{found.items} items alone and varies by about {_spread(found):.1%}. {seconds:.0f} seconds."
        )
        print_table("Certificate", ["", ""], rows, caption)
        sys.stdout.flush()
    say(f"Wrote results.csv, demo.png and demo.db to {folder}.")
    say(f"Open the dashboard again: nextlabel serve --db {folder / 'demo.db'}   (token: {campaign.token})")


def _spread(found: Outcome) -> float:
    """Standard error of the share right."""
    return float((found.expected * (1.0 - found.expected) / found.items) ** 0.5)
