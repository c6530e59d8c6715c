"""The forecast of a campaign under its own policy (``campaigns.forecast``), or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.rates import arrival_rate, completion_rate, rate_before_deadline
from nextlabel.campaign.rows import CampaignRow, Group
from nextlabel.campaigns.forecast import forecast, replications_for
from nextlabel.campaigns.stored_tables import TableStore, load_or_solve_index
from nextlabel.campaigns.table_cache import TableCache
from nextlabel.policies.base import Policy
from nextlabel.policies.index import Index
from nextlabel.policies.own_priors import FEW_CLASSES

#: Most and fewest replications: a dashboard needs three digits.
MOST_REPLICATIONS, FEWEST_REPLICATIONS = 100, 4


@dataclass(frozen=True, slots=True)
class ForecastView:
    """The expected value at the end, and the range of nine campaigns in ten; or ``why`` there is none."""

    mean: float | None = None
    half_width: float = 0.0
    low: float = 0.0
    high: float = 0.0
    why: str = ""
    pending: bool = False


FAILED = ForecastView(why="The forecast failed; the service's log says why.")


def make_forecast_view(
    row: CampaignRow,
    classes: Sequence[Prior],
    groups: dict[Group, int],
    now: float,
    table_cache: TableCache,
    table_store: TableStore,
) -> ForecastView:
    """Compute the forecast of one campaign."""
    table = np.array([(*group, count) for group, count in groups.items() if count > 0], dtype=np.int64)
    if not len(table):
        return ForecastView(why="There are no tasks yet.")
    if row.closed_seq is not None:
        return ForecastView(why="The campaign is closed.")
    if row.config.knows_workers:
        return ForecastView(why="There is no forecast where workers are told apart.")
    if len(classes) > FEW_CLASSES:
        return ForecastView(why=f"There is no forecast for more than {FEW_CLASSES} different priors.")
    r, mu = arrival_rate(row), completion_rate(row)
    if row.deadline is not None and (r is None or mu is None):
        return ForecastView(why="With a deadline, a forecast needs the workers' rates, known after about 20 labels.")
    policy: Policy | str = row.config.policy
    if policy == "index":
        if not table_cache.has(row.config, classes, row.rho):
            return ForecastView(why="The policy's tables are being computed.", pending=True)
        policy = Index(load_or_solve_index(row.config, classes, row.rho, table_store)[0])
    tasks = int(table[:, 3].sum())
    found = forecast(
        [row.config.class_of(prior) for prior in classes],
        tuple(table.T),
        row.left,
        policy,
        arrival_rate=row.rho if r is None or mu is None else rate_before_deadline(row, now) or r,
        completion_rate=1.0 if r is None or mu is None else mu,
        horizon=inf if row.deadline is None else max(row.deadline - now, 1e-3),
        label_cost=row.config.label_cost,
        replications=max(min(replications_for(tasks, row.left) // 4, MOST_REPLICATIONS), FEWEST_REPLICATIONS),
        seed=row.config.seed,
    )
    low, high = float(found.quantiles[0]), float(found.quantiles[-1])
    return ForecastView(found.mean, found.half_width, low, high)
