"""``nextlabel mlflow``: the traces of an MLflow experiment are labelled here, and their labels go back to it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict

from nextlabel.cli.database import ID, service_at
from nextlabel.cli.options import DB, flag, positive, verb
from nextlabel.cli.output import Said, say, working
from nextlabel.cli.serve import needs_service
from nextlabel.errors import UnavailableError
from nextlabel.wording import counted


@verb()
def mlflow(
    id: str = ID,
    url: str = flag("URL", "The address of MLflow, e.g. http://localhost:5000.", ...),
    experiment: str = flag("NAME", "The experiment whose traces are labelled, or its number.", ...),
    assessment: str = flag("NAME", "What the assessments are called. Default: label.", "label"),
    every: float | None = positive("S", "5", "Seconds between two readings of what has changed. Default: one reading."),
    token: str = flag(
        "TOKEN", "USER:PASSWORD, or a bearer token, if MLflow asks for one.", "", envvar="MLFLOW_TRACKING_TOKEN"
    ),
    db: str = DB,
) -> Said | None:
    """Take the traces of an MLflow experiment in as tasks, and write the campaign's labels back as assessments.

    Every label becomes a feedback of its worker, and what the labels of a trace agree on an expectation.
    """
    needs_service()
    from nextlabel.integrations.mlflow import MLflow, checked_name, sync

    name, said = checked_name(assessment), ""
    ends = suppress(*(() if every is None else (KeyboardInterrupt,)))
    with MLflow(url, token) as server, service_at(db) as service, ends:
        service.store.row(id)
        while True:
            try:
                number = server.experiment(experiment)
                with working("Writing assessments") as progress:
                    done = sync(server, number, service, id, name, progress)
            except UnavailableError as error:
                if every is None:
                    raise
                sentence = str(error)
            else:
                sentence = (
                    f"{counted(done.tasks, 'new trace')} to label; {counted(done.written, 'assessment')} written, "
                    f"{done.withdrawn:,} withdrawn, {done.same:,} were right."
                )
                if every is None:
                    return Said({"campaign": id, "experiment": number, **asdict(done)}, sentence)
            if sentence != said:  # what has not just been said
                say(sentence)
            said = sentence
            time.sleep(every)
    say("nextlabel mlflow ended; start it again to go on.")
    return None
