"""A model asks for tasks one by one and tells its labels, each of them bought from the budget like a person's.

The campaign chooses the tasks as for any worker, and the lease keeps a second run from doing the same work. The lease
is given back when the function fails, returns nothing or is interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from nextlabel.campaign.predictions import PREFIX, checked_model
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.states import Reason
from nextlabel.client.annotation.answers import Answer
from nextlabel.client.annotation.calls import ModelCalls, Sleep
from nextlabel.client.annotation.campaign import AnnotatedCampaign, check_annotatable
from nextlabel.client.annotation.outcome import Outcome
from nextlabel.client.annotation.predicting import INTERRUPTED

#: Reasons after which asking again is of use; after all others the run ends.
WAITED_OUT: Final[tuple[Reason, ...]] = ("all_leased", "paused", "preparing", "worker_paused", "turned_away")
#: Seconds between two asks where the campaign does not say.
USUAL_WAIT_S: Final = 10.0


def buy_labels(
    campaign: AnnotatedCampaign,
    model: str,
    calls: ModelCalls,
    *,
    most: int | None = None,
    progress: Callable[[float], None] = lambda fraction: None,
    sleep: Sleep = time.sleep,
) -> Outcome:
    """Ask and tell until the campaign has no task for the model, or ``most`` labels were given."""
    name = checked_model(model)
    status = campaign.status
    check_annotatable(status)
    wanted = min(most or status.left, status.left)
    given, passed, ended = 0, 0, f"The model has given the {most or 0:,} labels of --most."
    try:
        while most is None or given < most:
            lease = campaign.ask(PREFIX + name)
            if not isinstance(lease, Lease):
                if lease.reason not in WAITED_OUT:
                    ended = lease.sentence
                    break
                sleep(lease.retry_after or USUAL_WAIT_S)
                continue
            answer = _answer(campaign, calls, lease)
            if answer is None:
                passed += 1
                continue
            campaign.tell(lease, answer.label)
            given += 1
            progress(given / max(wanted, given))
    except KeyboardInterrupt:
        ended = INTERRUPTED
    return Outcome(name, given, ended, failed=calls.failed, passed=passed - calls.failed, charged=given)


def _answer(campaign: AnnotatedCampaign, calls: ModelCalls, lease: Lease) -> Answer | None:
    """The function's answer; without one, and whatever goes wrong, the task is given back."""
    try:
        (answer,) = calls.answers([lease.task], [lease.payload])
    except BaseException:
        campaign.release(lease)
        raise
    if answer is None:
        campaign.release(lease)
    return answer
