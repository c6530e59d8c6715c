"""Which task a worker gets, and what it was chosen by: by the policy's tables, by scores, or by what was learnt.

Chance is drawn from streams that are numbered by lease.
"""

from __future__ import annotations

from typing import Any

from nextlabel.campaign import scoring
from nextlabel.campaign.chance import starting_place
from nextlabel.campaign.controls import choose_control
from nextlabel.campaign.policy_tables import BELOW_PRICE, NO_ROOM, Load, load_of
from nextlabel.campaign.rates import arrival_rate, completion_rate, labels_before_deadline, wanted_rho
from nextlabel.campaign.recording import Recording
from nextlabel.campaign.rows import Group, TaskRow
from nextlabel.campaign.states import Reason
from nextlabel.campaign.turning_away import must_serve, turn_away, waited_in_vain

#: A task and what the log says about its choice, or why there is none.
Choice = tuple[TaskRow, dict[str, Any]] | Reason


def choose(campaign: Recording, worker: str) -> Choice:
    """The task and what it was chosen by, or why there is none."""
    row = campaign.ledger.row
    campaign.ledger.begin_search()
    n = labels_before_deadline(row, campaign.now)
    control = choose_control(campaign, worker) if row.controls else None
    if control is not None:
        return control, {"left": n, "control": True, "free": not row.config.gold_in_budget}
    if row.config.knows_workers:
        return _by_workers(campaign, worker, n)
    if row.rules.ranked:
        return _by_score(campaign, worker, n)
    _tune(campaign)
    tables = campaign.tables.ready(row.config, campaign.ledger.classes(), load_of(row, campaign.now))
    start = starting_place(row.config.seed, row.given, row.rules.segments)
    barred: list[Group] = []
    while True:
        group = tables.choose(campaign.ledger.groups(), barred, n, row.spent + row.reserved, row.config.seed, row.given)
        if group == BELOW_PRICE:
            return _nothing_left(campaign) if barred else _below_price(campaign)
        if group == NO_ROOM:
            return _nothing_left(campaign) if barred else "all_leased"
        task = campaign.ledger.pick(group, worker, start)
        if task is not None:
            return task, {"left": n, **_used(tables.load)}
        if campaign.ledger.held_all(worker):
            return "nothing_left_for_you"  # as it would be when all groups have been tried
        barred.append(group)


def _tune(campaign: Recording) -> None:
    """Use tables for the learnt rates, as soon as they are there."""
    ledger, row = campaign.ledger, campaign.ledger.row
    rho = wanted_rho(row)
    if rho == row.rho or not campaign.tables.has(row.config, ledger.classes(), load_of(row, campaign.now, rho)):
        return
    rates = {"arrival_rate": arrival_rate(row), "completion_rate": completion_rate(row)}
    campaign.record("tuned", {"rho": rho, **rates})


def _used(load: Load) -> dict[str, Any]:
    """What the tables were for, as the log has it."""
    return {"rho": load.rho} if load.tasks == 0 else load._asdict()


def _by_score(campaign: Recording, worker: str, n: int) -> Choice:
    row = campaign.ledger.row
    task = campaign.ledger.best(worker)
    if task is None:
        return _nothing_left(campaign) if campaign.ledger.any_score() else "all_leased"
    if row.config.label_cost > 0 and (task.score or 0.0) < row.config.label_cost - scoring.TIED:
        return _below_price(campaign)
    return task, {"left": n}


def _by_workers(campaign: Recording, worker: str, n: int) -> Choice:
    """The task that is best for this worker, by what is known of them and of all tasks."""
    row, model = campaign.ledger.row, campaign.crowd()
    if model.is_due(row):
        model = campaign.refit(wait=model.version == 0)
    must = must_serve(campaign, model)
    task = model.choose(worker, must)
    if task is None and model.crowd.tasks < row.tasks:
        model = campaign.refit(wait=True)
        task = model.choose(worker, must)
    if task is None and not must and model.choose(worker) is not None:
        turn_away(campaign, model, worker, n)
        return "turned_away"
    if task is None:
        return "nothing_left_for_you" if model.crowd.any_open else "all_leased"
    how: dict[str, Any] = {"left": n, "model": model.version}
    if row.config.turn_away and waited_in_vain(model, campaign.now):
        how["waited"] = True
    return campaign.ledger.task(task), how


def _nothing_left(campaign: Recording) -> Reason:
    """Nothing for this worker, or nothing yet: their next ask goes on with the search."""
    return "nothing_left_for_you" if campaign.ledger.search_ended() else "all_leased"


def _below_price(campaign: Recording) -> Reason:
    return campaign.close("below_price") if campaign.ledger.row.reserved == 0 else "below_price"
