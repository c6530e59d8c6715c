"""``nextlabel index``: how much the next label of a task is worth."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from nextlabel.cli.options import CAP, FLIGHT, flag, parse_number, switch, verb, whole
from nextlabel.cli.output import checked_file, say, tabled, working
from nextlabel.cli.problem_options import ProblemFlags, describe, problem_fields
from nextlabel.errors import InputError, ProblemError
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.model.problem import Problem
    from nextlabel.reporting.report import Report


class State(NamedTuple):
    """Labels seen: ones and zeros, or a number for each of more answers; and labels in flight."""

    counts: tuple[int, ...]
    w: int


#: Shown unless others are asked for; further answers were not given yet.
DEFAULT_STATES = (
    State((0, 0), 0),
    State((0, 0), 1),
    State((1, 0), 0),
    State((1, 0), 1),
    State((1, 1), 0),
    State((2, 0), 0),
    State((2, 1), 0),
    State((2, 2), 0),
)


@verb()
def index(
    flags: ProblemFlags,
    state: list[str] | None = flag(
        "A,B,W",
        "A ones and B zeros seen, W labels in flight; repeatable. With more than two answers: the "
        "labels of answer 0, 1, 2, ..., then W.",
    ),
    left: int | None = whole("N", 1, "6", "Arrivals left. Default: the budget."),
    time_left: str | None = flag("T", "With --horizon: time left. Default: the horizon."),
    task_class: int = whole(
        "C", 0, "1", "The class of tasks in the file, counted from 0.", param_decls=("--class",), default=0
    ),
    cap: int | None = CAP,
    flight: int | None = FLIGHT,
    check: bool = switch("Also check that the problem is indexable."),
    save: str | None = flag("FILE", "Save the whole table to this file."),
) -> Report:
    """The index of task states: the greatest price at which one more label is worth buying."""
    problem, read = flags.read_all()
    more = (0,) * (problem.answers - 2)
    states = [State((*counts, *more), w) for counts, w in DEFAULT_STATES]
    if state:
        states = [_parse_state(text, problem.answers) for text in state]
    n = _checked_left(left, problem)
    tau = _parse_time_left(time_left, problem)
    c = _checked_class(task_class, problem)
    target = None if save is None else checked_file("--save", save)

    started = time.perf_counter()
    with working("Computing the index table") as progress:
        from nextlabel.solve.index import check_indexability, index_table

        # A table that is saved is for every later use, not for the rows asked for now.
        reach = n if target is None else None
        table = index_table(problem, cap=cap, flight=flight, left=reach, progress=progress)
        found = [table.index(c, counts, w, n, tau) for counts, w in states]
    seconds = time.perf_counter() - started
    report = None
    if check:
        with working("Checking indexability"):
            report = check_indexability(problem)
    if target is not None:
        table.save(target)
        say(f"Saved the table to {target}.")
    indices = [{**_counts(one), "w": one.w, "index": float(value)} for one, value in zip(states, found, strict=True)]
    answer: dict[str, Any] = {"class": c, "left": n, "time_left": tau, "settled": table.settled, "indices": indices}
    if report is not None:
        answer["indexability"] = {
            "indexable": report.indexable,
            "prices_checked": report.prices_checked,
            "violations": report.violations,
            "first_violation": None if report.first_violation is None else str(report.first_violation),
        }
    answer |= {} if target is None else {"saved": str(target)}
    answer |= {"seconds": seconds, "problem": problem_fields(problem), "read": read}
    rows = [(*map(str, counts), str(w), f"{value:.6f}") for (counts, w), value in zip(states, found, strict=True)]
    caption = (
        f"With {counted(n, 'arrival')} left, give the next worker the task with the largest index. "
        "An index is the greatest price at which one more label of the task is worth buying."
    )
    if problem.label_cost > 0:
        caption += f" If no index reaches the cost of a label, {problem.label_cost:g}, turn the worker away."
    if report is not None:
        caption += (
            f" Indexable: every state was checked at {counted(report.prices_checked, 'price')}."
            if report.indexable
            else f" Not indexable: {counted(report.violations, 'violation')}, the first with {report.first_violation}."
        )
    seen = ("ones", "zeros") if problem.answers == 2 else tuple(f"answer {j}" for j in range(problem.answers))
    return tabled(f"Index: {describe(problem)}", (*seen, "in flight", "index"), rows, caption, answer)


def _counts(state: State) -> dict[str, Any]:
    """The labels seen, as JSON has them."""
    if len(state.counts) > 2:
        return {"counts": state.counts}
    return {"a": state.counts[0], "b": state.counts[1]}


def _parse_state(text: str, answers: int) -> State:
    hint = "Give ones seen, zeros seen and labels in flight as three whole numbers from 0, e.g. --state 2,1,0."
    if answers > 2:
        example = ",".join(["2", "1", *["0"] * (answers - 1)])
        hint = f"Give the labels of each of {answers} answers and those in flight, e.g. --state {example}."
    parts = text.split(",")
    if len(parts) != answers + 1 or not all(part.strip().isdecimal() for part in parts):
        raise InputError(f"--state {text!r} is not a task state.", hint)
    *counts, w = (int(part) for part in parts)
    return State(tuple(counts), w)


def _checked_left(left: int | None, problem: Problem) -> int:
    if problem.budget < 1:
        raise ProblemError("budget is 0, so no arrival is left to be given a task.", "Give --budget 1 or more.")
    if left is not None and left > problem.budget:
        raise ProblemError(
            f"--left is {left}, which is beyond the budget of {problem.budget}.",
            f"Give a whole number from 1 to the budget, {problem.budget}.",
        )
    return problem.budget if left is None else left


def _parse_time_left(text: str | None, problem: Problem) -> float:
    if text is None:
        return problem.horizon
    if not problem.finite:
        raise ProblemError(
            f"--time-left {text} has no meaning without a horizon.", "Give --horizon T too, or leave it out."
        )
    hint = f"Give a time above 0 and up to the horizon, {problem.horizon:g}."
    tau = float(parse_number("--time-left", text, hint))
    if math.isnan(tau) or not 0 < tau <= problem.horizon:
        raise ProblemError(f"--time-left is {text}, which is outside (0, {problem.horizon:g}].", hint)
    return tau


def _checked_class(c: int, problem: Problem) -> int:
    if c >= len(problem.classes):
        raise ProblemError(
            f"--class is {c}, but the number of classes is {len(problem.classes)}.",
            f"Give a whole number from 0 to {len(problem.classes) - 1}.",
        )
    return c
