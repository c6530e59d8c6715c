"""``nextlabel bound``: what no policy can beat, under the problem's model of tasks and workers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from nextlabel.cli.numbers import numbers_report
from nextlabel.cli.options import CAP, FLIGHT, PRICES, Prices, flag, verb
from nextlabel.cli.output import tabled, working
from nextlabel.cli.problem_options import ProblemFlags, counts_tasks, describe, net, problem_fields, worker_text
from nextlabel.errors import InputError
from nextlabel.reporting.report import Report
from nextlabel.wording import counted

if TYPE_CHECKING:
    from nextlabel.model.problem import Problem
    from nextlabel.solve.bound import Bound


@verb()
def bound(
    flags: ProblemFlags,
    prices: Prices = PRICES,
    cap: int | None = CAP,
    flight: int | None = FLIGHT,
    charge: Literal["arrivals", "all"] = flag(
        None, "With --horizon: charge the workers who arrive before it, or all of them as in the paper.", "arrivals"
    ),
) -> Report:
    """An upper bound on what any policy can get right in expectation under the model, with its certificate."""
    numbers = flags.read_numbers()
    if numbers is not None:
        return numbers_report(numbers)
    problem, read = flags.read_all()
    if charge == "all" and not problem.finite:
        raise InputError("--charge all only has an effect with a horizon.", "Add --horizon T, or leave it out.")
    with working("Bounding") as progress:
        from nextlabel.solve.bound import upper_bound

        result = upper_bound(problem, prices, cap=cap, flight=flight, charge=charge, progress=progress)
    more, of_question = _of_question(flags.question, problem, result)
    price = {"price": result.price} if result.prices is None else {"prices": result.prices}
    some = {"groups": result.groups or None, "supply_prices": result.supply_prices, "confidence": result.confidence}
    fields = {
        "bound": result.value,
        "bound_per_task": result.per_task,
        **price,
        **{name: getattr(result, name) for name in FIELDS},
        **{name: value for name, value in some.items() if value is not None},
        "seconds": result.seconds,
        "problem": problem_fields(problem),
        **of_question,
        "read": read,
    }
    title = f"Upper bound: {describe(problem)}"
    return tabled(title, ("", ""), _rows(problem, result), _sentence(problem, result) + more, fields)


#: Fields of a bound that ``--json`` has as they are.
FIELDS = ("expected_arrivals", "certified", "error_budget", "gap", "lower", "cap", "flight", "method", "assumes")


def _of_question(question: dict[str, Any], problem: Problem, result: Bound) -> tuple[str, dict[str, Any]]:
    """What the bound says where items are rated, or have several labels, in a sentence and for ``--json``."""
    holds = result.certified or result.confidence is not None
    if question.get("answer") == "rating" and holds:
        from nextlabel.crowd.answers import Rating

        kind = Rating.parse(question.get("scale"), question.get("loss"))
        least = max(float(kind.losses.max()) - result.per_task, 0.0)
        cost = " and the cost of its labels are together" if net(problem) else " is"
        return f" So the expected {kind.loss} error of an item{cost} at least {least:.6g}.", {"least_loss": least}
    if question.get("answer") == "multi":
        from nextlabel.model.tables import labels_asked

        labels = labels_asked(question.get("labels"))
        if net(problem) or not holds:  # a form is paid once, and not for each of its labels
            return " That is of one label, asked alone.", {"labels": labels}
        every = labels * result.value
        said = f" That is of one label; of {labels} asked together no policy can get more than {every:,.3f} right."
        return said, {"labels": labels, "bound_all_labels": every}
    return "", {}


#: Types of workers shown in the table.
MOST_TYPES = 20


def _rows(problem: Problem, result: Bound) -> list[tuple[str, str]]:
    label = "price of a label" if problem.label_cost == 0 else "price of a label, on top of its cost"
    if result.prices is None:
        price = (label, f"{result.price:.6g}")
    elif len(result.prices):
        price = (f"{label}, first to last", f"{result.prices[0]:.6g} to {result.prices[-1]:.6g}")
    else:
        price = (label, "none is bought")
    # What a label of each type costs on top of the price.
    pairs = [] if result.supply_prices is None else list(zip(problem.workers, result.supply_prices, strict=True))
    rest = counted(len(pairs) - MOST_TYPES, "more type")
    return [
        ("upper bound", f"{result.value:,.6f}"),
        ("upper bound per task", f"{result.per_task:.6f}"),
        price,
        *[(f"on top for workers {worker_text(worker)}", f"{price:.6g}") for worker, price in pairs[:MOST_TYPES]],
        *([(f"{rest} of workers", "see --json")] if len(pairs) > MOST_TYPES else []),
        ("expected arrivals" if result.supply_prices is None else "labels at most", f"{result.expected_arrivals:,.6g}"),
        *([("priors grouped into", f"{result.groups:,}")] if result.groups else []),
        ("convergence gap", f"{result.gap:.2g}"),
        ("certified", "yes" if result.certified else "no"),
        ("seconds", f"{result.seconds:.3f}"),
    ]


def _sentence(problem: Problem, result: Bound) -> str:
    # Rounded up, so that the sentence is as true as the bound; the slack forgives the last bits of a float.
    scale = 1000 if counts_tasks(problem) or abs(result.value) >= 10 else 1_000_000
    most = f"{math.ceil(result.value * scale - 1e-6) / scale:,.{len(str(scale)) - 1}f}"
    most += f" of {counted(problem.tasks, 'task')}" if counts_tasks(problem) else ""
    model = "If workers are alike"
    if result.confidence is not None:
        crowds = f"With {result.confidence:.0%} confidence over the crowds drawn"
        model = f"{crowds}, if workers' channels have these priors"
    elif result.supply_prices is not None:
        model = "If workers answer by their channels and give no more than their supply"
    if not result.certified and result.confidence is None:
        return f"The search suggests {most}{net(problem)}, but the bound is not certified."
    if counts_tasks(problem):
        return f"{model}, no policy can get more than {most} right in expectation."
    return f"{model}, no policy has a value of more than {most} in expectation{net(problem)}."
