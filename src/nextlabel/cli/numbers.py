"""``bound``, ``exact`` and ``simulate`` where the question asks for numbers."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from nextlabel.cli.output import tabled, working
from nextlabel.errors import InputError
from nextlabel.reporting.report import Report
from nextlabel.wording import counted

if TYPE_CHECKING:
    from nextlabel.solve.numbers import NumberProblem


def numbers_report(
    problem: NumberProblem,
    *,
    exact: bool = False,
    policies: Sequence[str] = (),
    replications: int | None = None,
    seed: int = 0,
) -> Report:
    """The bound; ``exact``: the optimum, and what a policy reaches of it; with ``replications`` policies played."""
    from nextlabel.solve.numbers import POLICIES, sentences

    unknown = [name for name in policies if name not in POLICIES]
    if unknown:
        raise InputError(f"there is no policy {unknown[0]!r} for numbers.", f"Give one of {', '.join(POLICIES)}.")
    chosen = [name for name in POLICIES if name in policies] if policies or exact else list(POLICIES)
    begin, bound = perf_counter(), problem.bound()
    items = max(problem.items, 1)
    fields: dict[str, Any] = {"answer": "number", "bound": bound, "bound_per_task": bound / items, "certified": True}
    rows = [("upper bound", bound, "")]
    if exact:
        with working("Solving exactly"):
            fields["value"] = problem.exact()
            rows.append(("optimum", fields["value"], ""))
            for name in chosen:
                fields["policy"] = {"name": name, "value": problem.exact(name)}
                rows.append((name, fields["policy"]["value"], ""))
    elif replications is not None:
        with working(f"Simulating {counted(replications, 'replication')}"):
            played = [problem.simulate(name, replications, seed) for name in chosen]
        fields |= {"policies": [one._asdict() for one in played], "replications": replications, "seed": seed}
        rows += [(one.policy, one.value, f"±{one.half_width / items:.6f}") for one in played]
    fields |= {"tasks": items, "budget": problem.budget, "seconds": perf_counter() - begin}
    title = f"Numbers: {counted(problem.items, 'item')}, {counted(problem.budget, 'label')}"
    cells = [(name, f"{value:,.6f}", f"{value / items:.6f}", half) for name, value, half in rows]
    header = ("squared error taken away", "in all", "per item", "")
    return tabled(title, header, cells, " ".join(sentences(problem, bound)), fields)
