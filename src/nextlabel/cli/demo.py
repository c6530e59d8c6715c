"""``nextlabel demo``: a whole campaign on this machine, from sample items to the certificate."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from pathlib import Path

import typer

from nextlabel.cli.options import JSON, SEED, flag, positive, switch, verb, whole
from nextlabel.cli.output import check_outputs, deliver, say, working
from nextlabel.cli.serve import check_port, needs_service
from nextlabel.wording import counted

FOLDER = "nextlabel-demo"


@verb()
def demo(
    context: typer.Context,
    tasks: int = whole("K", 10, "300", "Number of tasks, sample items.", default=300),
    labels_per_task: float = positive("X", "3", "The budget, as labels per task.", default=3.0),
    port: int = whole("N", 1, "8765", "Port to listen on.", default=8765),
    out: str = flag("DIR", "Write database, results and figure to this folder.", FOLDER),
    keep_serving: bool = switch("Keep the service running at the end."),
    seed: int = SEED,
    as_json: bool = JSON,
) -> None:
    """Run a whole campaign here: sample items, the real service, a simulated crowd over HTTP, the certificate."""
    begun = time.perf_counter()
    needs_service()
    check_port("127.0.0.1", port)
    folder = Path(out)
    check_outputs(out, None)
    with ExitStack() as stack:
        with working("Starting the service"):
            from nextlabel.demo import PEOPLE, SPEED_UP, demo_report, demo_run, outcome, play

            campaign = stack.enter_context(demo_run(folder, port, tasks, labels_per_task, seed))
        say(f"Dashboard: {campaign.url}/   token: {campaign.token}")
        say(
            f"{counted(tasks, 'item')}, {counted(campaign.budget, 'label')} to buy. {len(PEOPLE)} simulated people at "
            f"{SPEED_UP:.0f} times a person's speed, over HTTP: six good ones, one who answers at random, one who has "
            "mixed the answers up. A crude model has labelled every item."
        )
        with working("The crowd is labelling") as progress:
            results, answers, moments = play(campaign, progress)
        with working("Playing fixed overlap with the same people") as progress:
            labelled = {result.task: result.label for result in results}
            found = outcome(campaign.sample, labelled, answers, moments, seed, progress)
        report = demo_report(campaign, results, found, time.perf_counter() - begun, str(folder))
        deliver(report, context, out=out, page=None, as_json=as_json)
        say(f"Open the dashboard again: nextlabel serve --db {folder / 'demo.db'}   (token: {campaign.token})")
        if keep_serving:
            say(f"Still serving at {campaign.url}/ (Ctrl-C ends it).")
            with suppress(KeyboardInterrupt):
                while True:
                    time.sleep(3600)
            say("nextlabel demo ended.")
