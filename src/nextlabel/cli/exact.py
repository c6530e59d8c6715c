"""``nextlabel exact``: the true optimum of a small problem, and what a policy reaches of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli.options import Json, refuse_idle, text_option
from nextlabel.cli.output import print_json, print_table, working
from nextlabel.cli.problem_options import ProblemFlags, takes_problem
from nextlabel.cli.problem_text import counts_tasks, describe, net, problem_fields
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.problem.problem import Problem
    from nextlabel.solve.exact import ExactResult


@takes_problem
def exact(
    flags: ProblemFlags,
    context: typer.Context,
    policy: Annotated[
        Literal["index"] | None,
        text_option("--policy", "NAME", "Also evaluate this policy exactly, and show the upper bound."),
    ] = None,
    ties: Annotated[
        Literal["random", "groups", "first"],
        typer.Option(help="With --policy: which of several tasks with the same, largest index is taken."),
    ] = "random",
    as_json: Json = False,
) -> None:
    """The exact optimum of a small problem; a problem that is too large is refused with its number of states."""
    if policy is None:
        refuse_idle(context, ["ties"], "--policy")
    read: list[dict[str, Any]] = []
    problem = flags.read(read)
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
    if policy == "index":
        with working("Computing the index table") as progress:
            from nextlabel.solve.index.table import index_table

            table = index_table(problem, progress=progress)
        with working("Evaluating the policy") as progress:
            from nextlabel.policies.exact_value import policy_value

            reached = policy_value(problem, table.policy_index, ties=ties, progress=progress)
        with working("Bounding") as progress:
            from nextlabel.solve.bound import upper_bound

            bound = upper_bound(problem, progress=progress)
        answer |= {"bound": bound.value, "bound_per_task": bound.per_task}
        answer["policy"] = {
            "name": policy,
            "ties": ties,
            "value": reached.value,
            "value_per_task": reached.per_task,
            "seconds": reached.seconds,
        }
        rows.insert(0, ("upper bound", f"{bound.value:.6f}", f"{bound.per_task:.6f}"))
        rows.append((f"{policy} policy", f"{reached.value:.6f}", f"{reached.per_task:.6f}"))
    if as_json:
        print_json({**answer, "seconds": best.seconds, "problem": problem_fields(problem), "read": read})
        return
    unit = "tasks right" if counts_tasks(problem) else "value"
    print_table(f"Exact optimum: {describe(problem)}", ("", unit, "per task"), rows, _sentence(problem, best, reached))


def _sentence(problem: Problem, best: ExactResult, reached: ExactResult | None) -> str:
    if counts_tasks(problem):
        words = f"The best policy gets {best.value:,.3f} of {counted(problem.tasks, 'task')} right in expectation."
    else:
        words = f"The best policy has a value of {best.value:,.6f} in expectation{net(problem)}."
    if reached is not None and counts_tasks(problem):
        words += f" The index policy reaches {reached.value / best.value:.3%} of that."
    elif reached is not None:
        less = best.value - reached.value
        words += f" The index policy reaches {f'{less:.2g} less' if less > 1e-9 else 'the same'}."
    return f"{words} Solved over {counted(best.states, 'joint state')} in {best.seconds:.2f} s."
