"""``nextlabel exact``: the true optimum of a small problem, and what a policy reaches of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli.numbers import show_numbers
from nextlabel.cli.options import Json, refuse_idle, text
from nextlabel.cli.output import print_json, print_table, working
from nextlabel.cli.problem_options import ProblemFlags, counts_tasks, describe, net, problem_fields, takes_problem
from nextlabel.errors import InputError
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.problem.problem import Problem
    from nextlabel.solve.exact import ExactResult
    from nextlabel.solve.progress import Progress


@takes_problem
def exact(
    flags: ProblemFlags,
    context: typer.Context,
    policy: Annotated[
        str | None,
        text(
            "--policy",
            "NAME",
            "Also evaluate a policy exactly, such as index or your own as module:Class, and show the upper bound.",
        ),
    ] = None,
    ties: Annotated[
        Literal["random", "groups", "first"] | None,
        text("--ties", None, "With --policy: which of several tasks tied in the index is taken. Default: random."),
    ] = None,
    as_json: Json = False,
) -> None:
    """The exact optimum of a small problem; a problem that is too large is refused with its number of states."""
    numbers = flags.read_numbers()
    if numbers is not None:
        refuse_idle(context, ["ties"], "questions with a choice")
        show_numbers(numbers, as_json, exact=True, policies=() if policy is None else (policy,))
        return
    if policy is None:
        refuse_idle(context, ["ties"], "--policy")
    else:
        from nextlabel.policies.registry import make_policy

        make_policy(policy)  # refused before any work
    read: list[dict[str, Any]] = []
    problem = flags.read(read)
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
            reached = _reached(problem, policy, ties, progress)
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
    if as_json:
        print_json({**answer, "seconds": best.seconds, "problem": problem_fields(problem), "read": read})
        return
    unit = "tasks right" if counts_tasks(problem) else "value"
    caption = _sentence(problem, best, policy, reached)
    print_table(f"Exact optimum: {describe(problem)}", ("", unit, "per task"), rows, caption)


def _reached(problem: Problem, policy: str, ties: str | None, progress: Progress) -> ExactResult:
    """The exact value of a policy; the index is that of the problem's own horizon."""
    from nextlabel.policies.exact_value import policy_value

    if policy != "index":
        return policy_value(problem, policy, ties=ties, progress=progress)
    from nextlabel.solve.index import index_table

    return policy_value(problem, index_table(problem).policy_index, ties=ties, progress=progress)


def _sentence(problem: Problem, best: ExactResult, policy: str | None, reached: ExactResult | None) -> str:
    if counts_tasks(problem):
        sentence = f"The best policy gets {best.value:,.3f} of {counted(problem.tasks, 'task')} right in expectation."
    else:
        sentence = f"The best policy has a value of {best.value:,.6f} in expectation{net(problem)}."
    if reached is not None and counts_tasks(problem):
        sentence += f" The {policy} policy reaches {reached.value / best.value:.3%} of that."
    elif reached is not None:
        less = best.value - reached.value
        sentence += f" The {policy} policy reaches {f'{less:.2g} less' if less > 1e-9 else 'the same'}."
    return f"{sentence} Solved over {counted(best.states, 'joint state')} in {best.seconds:.2f} s."
