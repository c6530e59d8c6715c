"""``nextlabel index``: how much the next label of a task is worth."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from nextlabel.cli.options import CAP, FLIGHT, flag, parse_number, switch, verb, whole
from nextlabel.cli.output import checked_file, say, tabled, working
from nextlabel.cli.problem_options import ProblemFlags, describe, problem_fields
from nextlabel.errors import InputError, ProblemError
from nextlabel.reporting.report import Report
from nextlabel.wording import counted

if TYPE_CHECKING:
    from nextlabel.model.problem import Problem


#: Labels seen, ones and zeros, and labels in flight; shown unless others are asked for.
DEFAULT_STATES = ((0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (2, 1, 0), (2, 2, 0))


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
    more = (0,) * (problem.answers - 2)  # further answers were not given yet
    states = [((ones, zeros, *more), w) for ones, zeros, w in DEFAULT_STATES]
    if state:
        states = [_parse_state(text, problem.answers) for text in state]
    if problem.budget < 1:
        raise ProblemError("budget is 0, so no arrival is left to be given a task.", "Give --budget 1 or more.")
    n, tau, c = left or problem.budget, _parse_time_left(time_left, problem), task_class
    if n > problem.budget:
        raise ProblemError(
            f"--left is {n}, which is beyond the budget of {problem.budget}.",
            f"Give a whole number from 1 to the budget, {problem.budget}.",
        )
    if c >= len(problem.classes):
        raise ProblemError(
            f"--class is {c}, but the number of classes is {len(problem.classes)}.",
            f"Give a whole number from 0 to {len(problem.classes) - 1}.",
        )
    target = None if save is None else checked_file("--save", save)

    started = time.perf_counter()
    with working("Computing the index table") as progress:
        from nextlabel.solve.index import check_indexability, index_table

        # A table that is saved is for every later use, not for the rows asked for now.
        reach = n if target is None else None
        table = index_table(problem, cap=cap, flight=flight, left=reach, progress=progress)
        found = [table.index(c, counts, w, n, tau) for counts, w in states]
    seconds = time.perf_counter() - started
    caption = (
        f"With {counted(n, 'arrival')} left, give the next worker the task with the largest index. "
        "An index is the greatest price at which one more label of the task is worth buying."
    )
    if problem.label_cost > 0:
        caption += f" If no index reaches the cost of a label, {problem.label_cost:g}, turn the worker away."
    indices = [
        ({"a": counts[0], "b": counts[1]} if len(counts) == 2 else {"counts": counts}) | {"w": w, "index": float(value)}
        for (counts, w), value in zip(states, found, strict=True)
    ]
    answer: dict[str, Any] = {"class": c, "left": n, "time_left": tau, "settled": table.settled, "indices": indices}
    if check:
        with working("Checking indexability"):
            report = check_indexability(problem)
        first = report.first_violation
        answer["indexability"] = {
            "indexable": report.indexable,
            "prices_checked": report.prices_checked,
            "violations": report.violations,
            "first_violation": None if first is None else str(first),
        }
        checked = f"Indexable: every state was checked at {counted(report.prices_checked, 'price')}."
        failed = f"Not indexable: {counted(report.violations, 'violation')}, the first with {first}."
        caption += f" {checked if report.indexable else failed}"
    if target is not None:
        table.save(target)
        say(f"Saved the table to {target}.")
        answer["saved"] = str(target)
    answer |= {"seconds": seconds, "problem": problem_fields(problem), "read": read}
    rows = [(*map(str, counts), str(w), f"{value:.6f}") for (counts, w), value in zip(states, found, strict=True)]
    seen = ("ones", "zeros") if problem.answers == 2 else tuple(f"answer {j}" for j in range(problem.answers))
    return tabled(f"Index: {describe(problem)}", (*seen, "in flight", "index"), rows, caption, answer)


def _parse_state(text: str, answers: int) -> tuple[tuple[int, ...], int]:
    """Labels seen, and labels in flight."""
    hint = "Give ones seen, zeros seen and labels in flight as three whole numbers from 0, e.g. --state 2,1,0."
    if answers > 2:
        example = ",".join(["2", "1", *["0"] * (answers - 1)])
        hint = f"Give the labels of each of {answers} answers and those in flight, e.g. --state {example}."
    parts = text.split(",")
    if len(parts) != answers + 1 or not all(part.strip().isdecimal() for part in parts):
        raise InputError(f"--state {text!r} is not a task state.", hint)
    *counts, w = (int(part) for part in parts)
    return tuple(counts), w


def _parse_time_left(text: str | None, problem: Problem) -> float:
    if text is None:
        return problem.horizon
    if not problem.finite:
        raise ProblemError(
            f"--time-left {text} has no meaning without a horizon.", "Give --horizon T too, or leave it out."
        )
    hint = f"Give a time above 0 and up to the horizon, {problem.horizon:g}."
    tau = float(parse_number("--time-left", text, hint))
    if not 0 < tau <= problem.horizon:
        raise ProblemError(f"--time-left is {text}, which is outside (0, {problem.horizon:g}].", hint)
    return tau
