"""``nextlabel exact``: the true optimum of a small problem, and what a policy reaches of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from nextlabel.cli.output import JsonFlag, counted, describe, print_json, print_table, problem_fields, working
from nextlabel.cli.problem_options import ProblemFlags, takes_problem


@takes_problem
def exact(
    flags: ProblemFlags,
    policy: Annotated[
        Literal["index"] | None, typer.Option(help="Also evaluate this policy exactly.", show_default=False)
    ] = None,
    ties: Annotated[
        Literal["random", "groups", "first"],
        typer.Option(help="Which of several tasks with the largest index is taken by --policy index."),
    ] = "random",
    as_json: JsonFlag = False,
) -> None:
    """The exact optimum of a small problem; a problem that is too large is refused with its number of states."""
    problem = flags.read()
    with working("Solving exactly") as progress:
        from nextlabel.solve.exact import exact_value

        best = exact_value(problem, progress=progress)
    reached = None
    if policy == "index":
        with working("Computing the index table") as progress:
            from nextlabel.solve.index import index_table

            table = index_table(problem, progress=progress)
        with working("Evaluating the policy") as progress:
            from nextlabel.solve.exact import policy_value

            reached = policy_value(problem, table.policy_index, ties=ties, progress=progress)
    if as_json:
        answer: dict[str, Any] = {
            "value": best.value,
            "value_per_task": best.per_task,
            "states": best.states,
            "error": best.error,
        }
        if reached is not None:
            answer["policy"] = {
                "name": policy,
                "ties": ties,
                "value": reached.value,
                "value_per_task": reached.per_task,
                "seconds": reached.seconds,
            }
        print_json({**answer, "seconds": best.seconds, "problem": problem_fields(problem)})
        return
    rows = [("optimum", f"{best.value:.6f}", f"{best.per_task:.6f}")]
    caption = f"The best policy gets {best.value:,.3f} of {counted(problem.tasks, 'task')} right in expectation."
    if reached is not None:
        rows.append((f"{policy} policy", f"{reached.value:.6f}", f"{reached.per_task:.6f}"))
        share = reached.value / best.value
        caption += f" The {policy} policy reaches {share:.3%} of that."
    caption += f" Solved over {counted(best.states, 'joint state')} in {best.seconds:.2f} s."
    print_table(f"Exact optimum: {describe(problem)}", ("", "tasks right", "per task"), rows, caption)
