"""``nextlabel exact``: the true optimum of a small problem, and what a policy reaches of it."""

from __future__ import annotations

from typing import Any, Literal

import typer

from nextlabel.cli.numbers import numbers_report
from nextlabel.cli.options import flag, refuse_idle, verb
from nextlabel.cli.output import tabled, working
from nextlabel.cli.problem_options import ProblemFlags, counts_tasks, describe, net, problem_fields
from nextlabel.errors import InputError
from nextlabel.reporting.report import Report
from nextlabel.wording import counted


@verb()
def exact(
    flags: ProblemFlags,
    context: typer.Context,
    policy: str | None = flag(
        "NAME", "Also evaluate a policy exactly, such as index or your own as module:Class, and show the upper bound."
    ),
    ties: Literal["random", "groups", "first"] | None = flag(
        None, "which of several tasks tied in the index is taken. Default: random.", needs="--policy"
    ),
) -> Report:
    """The exact optimum of a small problem; a problem that is too large is refused with its number of states."""
    numbers = flags.read_numbers()
    if numbers is not None:
        refuse_idle(context, ["ties"], "questions with a choice")
        return numbers_report(numbers, exact=True, policies=() if policy is None else (policy,))
    if policy is not None:
        from nextlabel.policies.registry import make_policy

        make_policy(policy)  # refused before any work
    problem, read = flags.read_all()
    if problem.workers and policy is not None:
        raise InputError(
            "--policy is for workers who are alike.", "Leave it out: the upper bound is shown with workers."
        )
    with working("Solving exactly") as progress:
        from nextlabel.solve.exact import exact_value

        best = exact_value(problem, progress=progress)
    answer: dict[str, Any] = {
        "value": best.value,
        "value_per_task": best.per_task,
        "states": best.states,
        "error": best.error,
    }
    rows = [("optimum", f"{best.value:.6f}", f"{best.per_task:.6f}")]
    reached = None
    if policy is not None:
        with working(f"Evaluating {policy}") as progress:
            from nextlabel.policies.exact_value import policy_value
            from nextlabel.solve.index import index_table

            # The index is that of the problem's own horizon.
            rule = index_table(problem).policy_index if policy == "index" else policy
            reached = policy_value(problem, rule, ties=ties, progress=progress)
        answer["policy"] = {
            "name": policy,
            "ties": ties or "random",
            "value": reached.value,
            "value_per_task": reached.per_task,
            "seconds": reached.seconds,
        }
        rows.append((f"{policy} policy", f"{reached.value:.6f}", f"{reached.per_task:.6f}"))
    if policy is not None or problem.workers:
        with working("Bounding") as progress:
            from nextlabel.solve.bound import upper_bound

            bound = upper_bound(problem, progress=progress)
        answer |= {"bound": bound.value, "bound_per_task": bound.per_task}
        rows.insert(0, ("upper bound", f"{bound.value:.6f}", f"{bound.per_task:.6f}"))
    answer |= {"seconds": best.seconds, "problem": problem_fields(problem), "read": read}
    unit = "tasks right" if counts_tasks(problem) else "value"
    caption = f"The best policy has a value of {best.value:,.6f} in expectation{net(problem)}."
    if counts_tasks(problem):
        caption = f"The best policy gets {best.value:,.3f} of {counted(problem.tasks, 'task')} right in expectation."
    if reached is not None:
        less = best.value - reached.value
        share = f"{reached.value / best.value:.3%} of that" if counts_tasks(problem) else "the same"
        share = share if counts_tasks(problem) or less <= 1e-9 else f"{less:.2g} less"
        caption += f" The {policy} policy reaches {share}."
    caption += f" Solved over {counted(best.states, 'joint state')} in {best.seconds:.2f} s."
    caption += " That is of one label, asked alone." if flags.question.get("answer") == "multi" else ""
    return tabled(f"Exact optimum: {describe(problem)}", ("", unit, "per task"), rows, caption, answer)
