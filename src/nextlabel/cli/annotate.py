"""``nextlabel annotate``: a model labels the tasks of a campaign as one more worker."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from nextlabel.cli.database import ID
from nextlabel.cli.options import DB, flag, number, positive, refuse_idle, switch, verb, whole
from nextlabel.cli.output import Said, handling, say, working
from nextlabel.cli.serve import needs_service
from nextlabel.errors import InputError
from nextlabel.wording import counted

if TYPE_CHECKING:
    from nextlabel.client.annotation import AnnotatedCampaign

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

    with ExitStack() as stack:
        campaign: AnnotatedCampaign
        if url is None:
            from nextlabel.application.service import Campaign

            campaign = stack.enter_context(Campaign.open(db, id))
        else:
            from nextlabel.client.client import Client, ServiceCampaign

            token = os.environ.get(TOKEN, "")
            if not token:
                said = f"Put the requester's token into the environment variable {TOKEN}."
                raise InputError(f"there is no token for {url}.", said)
            campaign = ServiceCampaign(stack.enter_context(Client(url, token, tries=TRIES)), id)
        # SIGTERM, by which containers are stopped, does what Ctrl-C does.
        stack.enter_context(handling(signal.SIGTERM, signal.default_int_handler))
        progress = stack.enter_context(working("Annotating"))
        if is_learner(found):
            learning = Learning(campaign, found, refit_every, column, say)
            outcome = learn_along(learning, called, once=once, progress=progress)
        else:
            labels = campaign.status().settings.labels
            calls = ModelCalls(found, labels, batch is not None, column, tries, Pace(per_minute), say)
            if buy:
                outcome = buy_labels(campaign, called, calls, most=most, progress=progress)
            else:
                outcome = predict_tasks(
                    campaign, called, calls, cost=cost, most=most, batch=batch or 1, progress=progress
                )
    if outcome.taught is not None:
        return Said(asdict(outcome), f"{outcome.model}: taught by {counted(outcome.taught, 'label')}. {outcome.ended}")
    parts = [
        (outcome.charged, "label", "of the budget"), (outcome.known, "task", "answered before"),
        (outcome.passed, "task", "without an answer"), (outcome.failed, "task", "given up"),
    ]  # fmt: skip
    rest = "".join(f", {counted(many, noun)} {what}" for many, noun, what in parts if many)
    sentence = f"model:{outcome.model}: {counted(outcome.labels, 'label')}{rest}. {outcome.ended}"
    return Said(asdict(outcome), sentence)
