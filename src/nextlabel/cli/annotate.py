"""``nextlabel annotate``: a model labels the tasks of a campaign as one more worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from nextlabel.cli.database import ID
from nextlabel.cli.options import DB, flag, number, positive, refuse_idle, switch, verb, whole
from nextlabel.cli.output import Said, say, working
from nextlabel.cli.serve import needs_service
from nextlabel.errors import InputError
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.client.annotation import AnnotatedCampaign, Outcome

TOKEN = "NEXTLABEL_TOKEN"
#: Times that a request to a service is sent before the run ends: some minutes, so that a restart does not end it.
TRIES = 25


@verb()
def annotate(
    context: typer.Context,
    id: str = ID,
    model: str = flag("NAME", "module:name of the function, or object with fit and predict_proba, that labels.", ...),
    name: str | None = flag(
        "NAME", "It labels as worker model:NAME. Default: the module's name.", param_decls=("--as",)
    ),
    column: str | None = flag("NAME", "Give it this column of a task. Default: all that workers are shown."),
    batch: int | None = whole("N", 1, "16", "Give the function lists of up to N tasks."),
    cost: float = number("C", "Labels of the budget that one prediction costs. Default: 0.", default=0.0),
    buy: bool = switch("Ask for tasks one by one and buy each label like a person's."),
    most: int | None = whole("N", 1, "500", "Label at most N tasks in this run."),
    per_minute: float | None = positive("N", "60", "Label at most N tasks in a minute."),
    tries: int = whole("N", 1, "4", "Call a function that fails up to N times for a task.", default=4),
    refit_every: int = whole("N", 1, "100", "Teach a learner again after N more labels of people.", default=100),
    once: bool = switch("Teach a learner once, and end."),
    url: str | None = flag("URL", f"The address of a service, whose token is in {TOKEN}. Default: use --db."),
    db: str = DB,
) -> Said:
    """Have a function label tasks as worker model:NAME, or people's labels teach a learner of yours.

    What a learner says of a task is where the task's own labels start. Ctrl-C stops it; nothing is lost.
    """
    needs_service()
    from nextlabel.client.annotation import (
        Learning,
        ModelCalls,
        Pace,
        buy_labels,
        default_name,
        is_learner,
        learn_along,
        load_model,
        predict_tasks,
    )

    found, called = load_model(model), name or default_name(model)
    if is_learner(found):
        idle = ["name", "batch", "cost", "buy", "most", "per_minute", "tries"]
        refuse_idle(context, idle, "a function, not with a learner")
    else:
        refuse_idle(context, ["refit_every", "once"], "a learner, an object with fit and predict_proba")
    if buy:
        refuse_idle(context, ["cost", "batch"], "predictions, not with --buy")

    def run(campaign: AnnotatedCampaign, progress: Callable[[float], None]) -> Outcome:
        if is_learner(found):
            return learn_along(
                Learning(campaign, found, refit_every, column, say), called, once=once, progress=progress
            )
        labels = campaign.status().settings.labels
        calls = ModelCalls(found, labels, batch is not None, column, tries, Pace(per_minute), say)
        if buy:
            return buy_labels(campaign, called, calls, most=most, progress=progress)
        return predict_tasks(campaign, called, calls, cost=cost, most=most, batch=batch or 1, progress=progress)

    with _opened(url, db, id) as campaign, _terminated_like_interrupted(), working("Annotating") as progress:
        outcome = run(campaign, progress)
    return Said(asdict(outcome), f"{_summary(outcome)} {outcome.ended}")


def _summary(outcome: Outcome) -> str:
    """What the run has done, in one sentence."""
    if outcome.taught is not None:
        return f"{outcome.model}: taught by {counted(outcome.taught, 'label')}."
    more = [
        f"{counted(outcome.charged, 'label')} of the budget" if outcome.charged else "",
        f"{counted(outcome.known, 'task')} answered before" if outcome.known else "",
        f"{counted(outcome.passed, 'task')} without an answer" if outcome.passed else "",
        f"{counted(outcome.failed, 'task')} given up" if outcome.failed else "",
    ]
    rest = "".join(f", {part}" for part in more if part)
    return f"model:{outcome.model}: {counted(outcome.labels, 'label')}{rest}."


@contextmanager
def _opened(url: str | None, db: str, id: str) -> Iterator[AnnotatedCampaign]:
    """The campaign behind a service's address, or on a database."""
    if url is None:
        from nextlabel.application.facade import Campaign

        with Campaign.open(db, id) as campaign:
            yield campaign
        return
    token = os.environ.get(TOKEN, "")
    if not token:
        raise InputError(
            f"there is no token for {url}.", f"Put the requester's token into the environment variable {TOKEN}."
        )
    from nextlabel.client.client import Client, ServiceCampaign

    with Client(url, token, tries=TRIES) as client:
        yield ServiceCampaign(client, id)


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM, by which containers are stopped, does what Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> Any:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread, which signals do not reach
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
