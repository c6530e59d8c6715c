"""``python -m benchmarks.live.mlflow``: traces of a real MLflow labelled by 64 workers at once, both servers killed.

Workers ask and tell over HTTP as fast as they can, and a task may have no more labels than ``--most-labels``, which all
tasks reach. nextlabel's service is killed (SIGKILL) after a third of the labels. Meanwhile ``nextlabel mlflow --every``
writes assessments: it is killed in the middle, and MLflow later. All are started again. Then MLflow's assessments are
held against the campaign's labels and against what the service acknowledged to the workers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.live.crowd import Account, crowd
from benchmarks.live.mlflow_server import MLflowServer
from benchmarks.live.server import Server
from nextlabel.application.service import CampaignService
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import UnavailableError
from nextlabel.integrations.mlflow import MLflow, sync
from nextlabel.service.links import LinkSigner
from nextlabel.store.sql import open_store

CAMPAIGN, EXPERIMENT = "support", "answers"


def feedback(mlflow: MLflow) -> list[tuple[str, str, Any]]:
    """Trace, annotator and value of every feedback that MLflow has."""
    return [
        (trace["trace_id"], one["source"]["source_id"], one["feedback"]["value"])
        for trace in mlflow.traces(mlflow.experiment(EXPERIMENT))
        for one in trace.get("assessments") or ()
        if "feedback" in one
    ]


class Writer:
    """``nextlabel mlflow --every`` in a process of its own."""

    def __init__(self, url: str, db: str, log: Path) -> None:
        self._command = [
            sys.executable, "-c", "from nextlabel.cli.app import main; main()", "mlflow", CAMPAIGN, "--url", url,
            "--experiment", EXPERIMENT, "--db", db, "--every", "0.5",
        ]  # fmt: skip
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start writing."""
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=out, start_new_session=True)

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


async def disturbed(
    server: Server, studio: MLflowServer, writer: Writer, tokens: dict[str, str], budget: int
) -> tuple[Account, int, int]:
    """Let workers label, and kill everything once; returns the account and when writer and MLflow were killed."""

    def seen(least: int) -> int:
        while True:
            with suppress(UnavailableError), MLflow(studio.url) as mlflow:
                if (found := len(feedback(mlflow))) >= least:
                    return found
            time.sleep(0.2)

    account = Account()
    working = asyncio.create_task(crowd("127.0.0.1", [server.port], CAMPAIGN, tokens, account=account))
    while len(account.labels) < budget // 3:
        await asyncio.sleep(0.001)
    server.kill()
    await asyncio.to_thread(server.start)
    first = await asyncio.to_thread(seen, budget // 4)
    writer.kill()
    writer.start()
    second = await asyncio.to_thread(seen, budget // 2)
    studio.kill()
    await asyncio.to_thread(studio.start)
    await working
    await asyncio.to_thread(seen, budget)
    return account, first, second


def run(folder: Path, items: int, budget: int, workers: int, most_labels: int) -> dict[str, int]:
    """Play a campaign; returns what went wrong (all zero but the first three) and how much there was."""
    studio = MLflowServer(folder)
    studio.start()
    studio.log(EXPERIMENT, [(f"Question {k}?", {"answer": f"Answer {k}."}) for k in range(items)])
    url = f"sqlite:///{folder / 'labels.db'}"
    service = CampaignService(open_store(url))
    service.create(CampaignSettings(budget=budget, labels=("no", "yes"), most_labels=most_labels), CAMPAIGN)
    with MLflow(studio.url) as mlflow:
        sync(mlflow, mlflow.experiment(EXPERIMENT), service, CAMPAIGN, "label")
        links = LinkSigner.of(service.store)
        tokens = {f"w{k}": links.worker_token(CAMPAIGN, f"w{k}") for k in range(workers)}
        service.close()
        server, writer = Server(url, log=folder / "serve.log"), Writer(studio.url, url, folder / "writer.log")
        try:
            server.start()
            writer.start()
            account, first, second = asyncio.run(disturbed(server, studio, writer, tokens, budget))
            writer.kill()
            service = CampaignService(open_store(url, create=False))
            sync(mlflow, mlflow.experiment(EXPERIMENT), service, CAMPAIGN, "label")
            again = sync(mlflow, mlflow.experiment(EXPERIMENT), service, CAMPAIGN, "label")
            theirs = feedback(mlflow)
            ours = [(one.task, one.worker, one.label) for one in service[CAMPAIGN].labels()]
            agreed = {one.task: one.label for one in service[CAMPAIGN].results()}
            expected = {
                trace["trace_id"]: one["expectation"]["value"]
                for trace in mlflow.traces(mlflow.experiment(EXPERIMENT))
                for one in trace.get("assessments") or ()
                if "expectation" in one
            }
            spent, right = service.store.row(CAMPAIGN).spent, service[CAMPAIGN].verify().right
            service.close()
        finally:
            server.stop()
            studio.kill()
    told = [(task, worker, label) for task, worker, label, _ in account.labels.values()]
    return {
        "labels": len(theirs), "written at the writer's kill": first, "written at MLflow's kill": second,
        "labels on one side": len(set(ours) ^ set(theirs)) + abs(len(ours) - len(theirs)),
        "acknowledged and missing": len(set(told) - set(theirs)),
        "twice by one worker": sum(n > 1 for n in Counter((task, who) for task, who, _ in theirs).values()),
        "items over the cap": sum(n > most_labels for n in Counter(task for task, _, _ in theirs).values()),
        "agreed labels that differ": sum(agreed[task] != expected.get(task) for task in agreed),
        "written by one more round": again.written + again.withdrawn,
        "budget not spent": budget - spent,
        "replay that differs": int(not right),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("items", 300), ("budget", 900), ("workers", 64), ("most-labels", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nextlabel-mlflow-") as folder:
        found = run(Path(folder), **vars(parser.parse_args()))
    sys.stdout.write("\n".join(f"{what:>28}: {n}" for what, n in found.items()) + "\n")
    sys.stdout.write(f"{time.monotonic() - begun:.0f} s\n")
    sys.exit(any(list(found.values())[3:]))


if __name__ == "__main__":
    main()
