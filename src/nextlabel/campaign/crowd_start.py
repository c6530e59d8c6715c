"""What a campaign with the policy ``crowd`` believes of workers and tasks before it has seen a label of theirs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.beliefs.fact import Fact, OneCoin
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.policies.crowd.growing import LEAST

#: Labels per row that the first idea of the crowd is worth with two answers. With more, each truth has fewer labels to
#: learn from; held as firmly, good workers would be taken for worse than they are until the end of a campaign.
HELD = 120.0
#: Labels per truth that the way of the many is worth for one of them, in new campaigns, and the answers from which on
#: there is such a core (decision 43).
CORE_LABELS, CORE_ANSWERS = 12.0, 3
#: Nobody is taken to be more accurate than this before a label of theirs is seen.
MOST_ACCURATE = 0.95


def workers_of(config: CampaignSettings, core: float = 0.0) -> CrowdPrior:
    """What workers are like before any label: as accurate as the requester says, if they do; held like any first idea.

    With three answers or more there may be a ``core`` of workers who are alike.

    An accuracy is that of the settings or of a one-coin prior, worth as many labels per worker as the usual idea.
    """
    usual, prior = CrowdPrior.default(config.answers), config.default_prior
    accuracy = prior.accuracy if isinstance(prior, OneCoin) else config.accuracy
    hold = HELD / (config.answers - 1)
    core = core if config.answers >= CORE_ANSWERS else 0.0
    if accuracy is None:
        return replace(usual, hold=hold, core=core)
    accuracy = min(accuracy, MOST_ACCURATE)
    pseudo = np.full_like(usual.pseudo, (1.0 - accuracy) / (config.answers - 1))
    np.fill_diagonal(pseudo, accuracy)
    return CrowdPrior(pseudo * usual.pseudo[0].sum(), usual.share, hold, core)


@lru_cache(maxsize=16_384)
def start_of(prior: Prior) -> Floats:
    """(C,) the probability of each truth of a task with that prior, before any label.

    Weights of answers (``Beta``, ``Dirichlet``) are read as shares of the truths: what a model's score says.
    """
    found: Floats
    if isinstance(prior, Beta):
        found = np.array([prior.beta, prior.alpha])
    elif isinstance(prior, Dirichlet):
        found = np.array(prior.weights)
    elif isinstance(prior, Fact):
        found = np.array(prior.probabilities)
    else:
        found = np.asarray(prior.believe(0.5, 1)[1][0])
    found = np.maximum(found / found.sum(), LEAST)
    found = found / found.sum()
    found.setflags(write=False)
    return found
