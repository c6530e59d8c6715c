"""``nextlabel prior``: a prior learnt from recorded labels, by several methods side by side."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import LabelFlags
from nextlabel.cli.output import command_line, report_reading, say, working
from nextlabel.errors import InputError
from nextlabel.reporting.artifacts import manifest, to_eight_digits
from nextlabel.reporting.report import Report, Table
from nextlabel.wording import counted, listed

if TYPE_CHECKING:
    from nextlabel.model.prior import Prior
    from nextlabel.model.prior_learning import Comparison, LearntPrior
    from nextlabel.model.prior_weights import LabelCounts

#: Significant digits of a prior in a problem file.
DIGITS = 6


@opt.verb(out=True)
def prior(
    context: typer.Context,
    columns: LabelFlags,
    labels: str = opt.LABELS,
    method: Literal["moments", "ml", "mixture", "all"] = opt.flag(
        None, "How the prior is learnt; ml: maximum likelihood.", "all"
    ),
    components: Literal["auto", "1", "2", "3"] = opt.flag(
        None, "kinds of tasks in the mixture; auto chooses by the BIC.", "auto", needs="--method mixture or all"
    ),
    seed: int = opt.SEED,
) -> Report:
    """Learn a prior from recorded labels, and see how well it fits them."""
    started, begin = datetime.now(UTC), perf_counter()
    with working(f"Reading {labels}"):
        from nextlabel.model.prior_weights import LabelCounts

        table = columns.read(labels, context)
        counts = LabelCounts.of_labels(table)
        if counts.answers != 2 and opt.given(context, "out"):
            raise InputError(
                f"the labels of {labels} are {listed(table.labels)}, and the figure of --out has two answers.",
                "Leave --out out, or name the answer that counts as 1 with --positive; all others then count as 0.",
            )
    read = report_reading(table.report)
    with working(f"Learning from {labels}"):
        from nextlabel.model.prior_learning import compare_priors

        names = None if method == "all" else [method]
        kinds = components if components == "auto" else int(components)
        found = compare_priors(counts, names, components=kinds, seed=seed)
    for note in dict.fromkeys(one.note for one in found.learnt if one.note):
        which = [one.method for one in found.learnt if one.note == note]
        say(f"{' and '.join(which)}: {note}" if len(found.learnt) > 1 else note)
    for one in found.learnt:
        if not one.converged:
            say(f"{one.method} stopped before its likelihood reached a maximum: do not trust its last digits.")
    run = {"seed": seed, "seconds": perf_counter() - begin}
    about = {"command": command_line(context), "started": started, **run}
    return _report(labels, counts, found, {"read": read, **run}, about)


def problem_line(prior: Prior) -> str:
    """The prior in one line, for a [[tasks]] table of a problem file; values of JSON are values of TOML too."""
    from nextlabel.model.tables import prior_table

    table = json.loads(json.dumps(prior_table(prior)), parse_float=lambda typed: float(f"{float(typed):.{DIGITS}g}"))
    if isinstance(table, dict):
        return "prior = {" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + "}"
    return f"prior = {json.dumps(table)}"


def _report(path: str, counts: LabelCounts, found: Comparison, run: dict[str, Any], about: dict[str, Any]) -> Report:
    from nextlabel.model.tables import prior_table

    labels, total = counts.labels, int(counts.totals.sum())
    shares, line = (counts.totals / counts.totals.sum()).tolist(), problem_line(found.use.prior)
    answer: dict[str, Any] = {
        "tasks": len(counts),
        "labels": total,
        "labels_per_task": {"least": int(labels.min()), "most": int(labels.max())},
        **({"share_of_ones": shares[1]} if counts.answers == 2 else {"shares": shares}),
        "methods": [
            {
                "method": one.method, "prior": prior_table(one.prior), "standard_errors": one.standard_errors or None,
                "log_likelihood": one.log_likelihood, "log_likelihood_per_task": one.per_task,
                **{name: getattr(one, name) for name in ("parameters", "bic", "p_value", "converged", "note")},
            }
            for one in found.learnt
        ],
        "use": found.use.method,
        "why": found.why,
        "toml": line,
    }  # fmt: skip
    rows = [line for one in found.learnt for line in _lines(one)]
    header = ("method", "prior ± standard error", "log L", "BIC", "fit p")
    title = f"Priors of {counted(len(counts), 'task')} with {counted(total, 'label')} in {path}"
    caption = (
        "log L: log likelihood; fit p: share of sets of tasks drawn from the prior that look less like it than these "
        "do. Below [[tasks]] in the problem file:"
    )
    # the line stands below the table, which would break it
    return Report(
        title, [Table(title, header, rows)], [f"{found.why}\n{caption}"], closing=[line],
        fields=answer | run, files=lambda: _files(counts, found, answer | about),
    )  # fmt: skip


def _lines(one: LearntPrior) -> list[tuple[str, ...]]:
    """A line for each component, the numbers of the whole prior on the first."""
    from nextlabel.model.mixture import as_mixture

    # A p-value of drawn sets is never below one over their number.
    p = "-" if one.p_value is None else "≤0.001" if one.p_value <= 0.001 else f"{one.p_value:.3f}"
    numbers = (f"{one.log_likelihood:,.2f}", f"{one.bic:,.1f}", p)
    mixture, errors = as_mixture(one.prior), one.standard_errors
    single, lines = len(mixture.weights) == 1, list[tuple[str, ...]]()
    for i, (v, alpha) in enumerate(zip(mixture.weights, mixture.alpha.tolist(), strict=True), start=1):
        end = "" if single else str(i)
        named = {f"alpha{j}": x for j, x in enumerate(alpha)}
        if len(alpha) == 2:
            named = {f"alpha{end}": alpha[1], f"beta{end}": alpha[0]}
        weights = ", ".join(
            f"{x:.4g} ±{errors[name]:.2g}" if name in errors else f"{x:.4g}" for name, x in named.items()
        )
        prior = f"{'' if single else f'{v:.3f} '}{'Beta' if len(alpha) == 2 else 'Dirichlet'}({weights})"
        lines.append((one.method, prior, *numbers) if i == 1 else ("", prior, "", "", ""))
    return lines


def _files(counts: LabelCounts, found: Comparison, about: dict[str, Any]) -> dict[str, Any]:
    from nextlabel.model.prior_learning import cells_of
    from nextlabel.reporting.figures import prior_figure

    cells = {f"expected_{one.method}": cells_of(counts, one.prior) for one in found.learnt}
    first = next(iter(cells.values()))
    columns: dict[str, Any] = {"labels": first.labels, "ones": first.ones, "observed": first.tasks}
    columns |= {name: one.expected for name, one in cells.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*(x.tolist() for x in columns.values()), strict=True)]
    figure = prior_figure(counts, found.learnt)
    return {"prior.png": figure, "prior.csv": to_eight_digits(rows), "manifest.json": manifest(**about)}
