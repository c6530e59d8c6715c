"""Who is told that there is nothing for them, with the policy ``crowd`` and the setting ``turn_away``: by worth.

The rule is the simulator's (``kernels.crowd_choice``). A worker is turned away if no task wants a label of their type,
and the task that would lose least by it loses more than turning them away does. Prices depend on the asks that are
expected before the end:

=================== =====================================================================================
with a deadline     as many as come until then at the rate that was learnt, those turned away included
without one         ``rates.ASKS_PER_LABEL`` for each label that is left: about half of them may be turned away
=================== =====================================================================================

Nobody is turned away

- before ``policies.crowd.allocator.TRIAL_LABELS`` labels, controls among them: before that nobody knows them,
- while they hold a task: that is theirs, and is asked for first,
- if no more asks are expected than labels are left,
- if others have been waited for in vain: for ``PATIENCE_S`` seconds after somebody was turned away nobody got a task.
  Then everybody gets one until the next refit, so that a campaign ends as long as anybody comes.
"""

from __future__ import annotations

from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.rates import expected_asks
from nextlabel.campaign.recording import Recording

#: Seconds for which better workers are waited for.
PATIENCE_S = 600.0


def waited_in_vain(model: CrowdModel, now: float) -> bool:
    """Whether nobody got a task for so long that the next to come gets one, whoever it is."""
    since = model.nobody_since
    return model.serves_all or (since is not None and now - since > PATIENCE_S)


def must_serve(campaign: Recording, model: CrowdModel) -> bool:
    """Whether whoever asks now gets a task, if there is one for them."""
    asks = expected_asks(campaign.ledger.row, campaign.now)
    return asks is None or asks <= campaign.ledger.row.left or waited_in_vain(model, campaign.now)


def turn_away(campaign: Recording, model: CrowdModel, worker: str, left: int) -> None:
    """Say in the log that the worker was turned away, once for each version of the model."""
    if model.turned_by.get(worker) != model.version:
        asks = expected_asks(campaign.ledger.row, campaign.now)
        campaign.record("turned_away", {"worker": worker, "model": model.version, "left": left, "arrivals": asks})
