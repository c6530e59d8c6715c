"""``nextlabel guarantee``: labels from anywhere, an expert's answers, and a statement that needs no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.output import checked_file, say, working
from nextlabel.errors import InputError
from nextlabel.files.tables import open_table
from nextlabel.files.write import whole_file, write_csv
from nextlabel.reporting.report import Report, Table
from nextlabel.wording import counted

if TYPE_CHECKING:
    from nextlabel.crowd.guarantee import Guarantee


@opt.verb(page=True)
def guarantee(
    context: typer.Context,
    results: str = opt.argument(
        "RESULTS",
        "One row per item: task, label, probability; as campaign export and workers --save write it, or a "
        "model's labels with their probabilities.",
    ),
    at_most_wrong: str = opt.flag("EPS", "Largest share of wrong labels. Default: 0.05.", "0.05"),
    sure: str = opt.flag("P", "Chance that the statement holds. Default: 0.95.", "0.95"),
    audits: str | None = opt.flag(
        "K",
        "Items to draw for the expert, or several for several looks: 80,150,250. Left out, K is "
        "chosen from the probabilities alone.",
    ),
    draw: str | None = opt.flag(
        "FILE", "Write the items for the expert: CSV with a column task, or .json for Label Studio."
    ),
    answers: str | None = opt.flag("FILE", "All answers of the expert so far: task, label."),
    worker_labels: str | None = opt.flag(
        "FILE", "The workers' labels: task, worker, label. The expert's answers then teach who is good."
    ),
    known: str | None = opt.flag("FILE", "Truths known before the draw: task, label. They teach and are not drawn."),
    of: str | None = opt.flag("LABEL", "Speak of the items with this label alone."),
    expert_wrong: str = opt.flag("Q", "Share of the items on which the expert may be wrong. Default: 0.", "0"),
    next_look: bool = opt.switch("Go on to the next number of audits instead of asking for items."),
    record: str | None = opt.flag(
        "FILE", "Where draw and answers are kept. Default: RESULTS with the ending .guarantee.json."
    ),
    items: str | None = opt.flag("FILE", "What the expert reads: columns of this table go along with the draw."),
    seed: int | None = opt.whole("S", 0, "0", "For tests: draw by this seed, which marks the record."),
    save: str | None = opt.flag("FILE", "Write every item with its final label to this CSV file."),
    task_column: str = opt.TASK_COLUMN,
    label_column: str = opt.LABEL_COLUMN,
) -> Report:
    """Say that at most 5% of the labels are wrong, 95% sure, by an expert's answers on a random draw.

    First call with --draw: the labels are frozen, and items are drawn for the expert. Then with --answers (and --draw
    for the next items) until nothing is left to answer. No assumption about workers or models is made.
    """
    targets = {
        flag: checked_file(flag, path) for flag, path in (("--draw", draw), ("--save", save)) if path is not None
    }
    place = Path(record) if record is not None else Path(results).with_suffix(".guarantee.json")
    checked_file("--record", str(place))
    with working(f"Reading {results}"):
        from nextlabel.crowd.guarantee import Guarantee, hash_of_results
        from nextlabel.crowd.guarantee import guarantee as freeze
        from nextlabel.files.labels import read_answers, read_labels, read_results

        table = read_results(results, task=task_column, label=label_column)
        crowd = None if worker_labels is None else read_labels(worker_labels)
        told = None if known is None else read_answers(known, task_column, label_column)
        said = None if answers is None else read_answers(answers, task_column, label_column)
        if said is None and not next_look:
            _refuse_second_draw(place, seed, table)
            if draw is None:
                say(
                    "This is a look before the draw: nothing is frozen. Give --draw FILE to freeze the labels and draw."
                )
            promise = freeze(
                table, at_most_wrong=at_most_wrong, sure=sure, audits=opt.parse_counts("--audits", audits),
                labels=crowd, known=told, of=of, expert_wrong=expert_wrong, seed=seed,
            )  # fmt: skip
        else:
            if not place.exists():
                raise InputError(
                    f"there is no {place}, so that nobody knows which items were drawn.",
                    "Draw first: the same command with --draw FILE and without --answers.",
                )
            promise = Guarantee.load(place, crowd)
            typed = [
                (flag, value)
                for flag, name, value in (("--at-most-wrong", "at_most_wrong", at_most_wrong), ("--sure", "sure", sure))
                if opt.given(context, name)
            ]
            _refuse_other_terms(promise, place, typed, audits)
            if promise.given != hash_of_results(table):
                raise InputError(
                    f"{results} was changed after the draw, and the draw speaks of the labels as they were.",
                    "Give the file as it was; to guarantee new labels, freeze and draw them anew with --record FILE.",
                )
            if said is not None:
                promise.tell(said)
            if next_look:
                promise.next_look()
    begun = said is not None or next_look or draw is not None
    if "--draw" in targets and promise.to_answer:
        _write_items(promise.to_answer, targets["--draw"], items, task_column)
        say(f"{counted(len(promise.to_answer), 'item')} for the expert written to {draw}.")
    if begun:
        promise.save(place)
    if "--save" in targets:
        write_csv(_final_rows(promise), targets["--save"])
        say(f"{counted(len(promise.tasks), 'label')} written to {save}.")
    return _report(promise, results, str(place) if begun else None)


def _refuse_second_draw(place: Path, seed: int | None, table: Any) -> None:
    """One draw for frozen labels: more draws until one pleases would void the statement."""
    from nextlabel.crowd.guarantee import Guarantee, hash_of_results

    if not place.exists():
        return
    before = Guarantee.peek(place)
    if before["seed"] is not None and seed is not None:
        return  # tests draw as often as they like
    if before["seed"] is None and before["given"] != hash_of_results(table):
        raise InputError(
            f"{place} holds the draw of other labels, of {before['frozen_at'][:10]}.",
            "Give --record FILE for the draw of these labels, or finish that one first.",
        )
    raise InputError(
        f"these labels were frozen and drawn on {before['frozen_at'][:10]}: a second draw would void the statement.",
        f"Go on with --answers FILE; the drawn items are in {place}.",
    )


def _refuse_other_terms(promise: Guarantee, place: Path, typed: list[tuple[str, str]], audits: str | None) -> None:
    from nextlabel.crowd.guarantee import exactly

    terms, planned = promise.terms, opt.parse_counts("--audits", audits)
    drawn = {"--at-most-wrong": terms.at_most_wrong, "--sure": terms.sure}
    other = [f"{flag} {value}" for flag, value in typed if exactly(value) != exactly(drawn[flag])]
    if planned is not None and tuple(planned) != terms.audits:
        other.append(f"--audits {audits}")
    if other:
        raise InputError(
            f"{other[0]} is not what the items were drawn for: at most {terms.at_most_wrong} wrong, {terms.sure} sure, "
            f"{' then '.join(f'{K:,}' for K in terms.audits)} audits.",
            f"Leave it out; the terms are in {place}.",
        )


def _write_items(tasks: list[str], path: Path, items: str | None, task_column: str) -> None:
    """The items for the expert, with what they are to read and without what the campaign believes."""

    columns = {task: dict[str, Any]() for task in tasks}
    if items is not None:
        from nextlabel.files.columns import cell_text

        with open_table(items, "items") as table:
            if task_column not in table.columns:
                raise InputError(
                    f"{items} has no column {task_column!r}.", "Name the items' column with --task-column."
                )
            at, believed = table.columns.index(task_column), ("label", "probability", "gold")
            kept = [k for k, name in enumerate(table.columns) if k != at and name not in believed]
            columns = {cell_text(row[at]): {table.columns[k]: row[k] for k in kept} for _, *row in table.rows()}
    missing = [task for task in tasks if task not in columns]
    if missing:
        raise InputError(f"{items} has no row for the drawn item {missing[0]!r}.", "Give a table with every item.")
    rows = [{"task": task} | columns[task] for task in tasks]
    if path.suffix != ".json":
        write_csv(rows, path)
        return
    with whole_file(path) as stream:
        json.dump([{"data": row} for row in rows], stream, ensure_ascii=False, indent=1)


def _final_rows(promise: Guarantee) -> list[dict[str, Any]]:
    given = zip(promise.tasks, promise.final_labels(), promise.labels, promise.probability, strict=True)
    known, expert = promise.known, promise.answers
    sources = ["known" if one in known else "expert" if one in expert else "kept" for one in promise.tasks]
    return [
        {"task": task, "label": label, "probability": likely if source == "kept" else 1.0, "source": source,
         "frozen_label": frozen}
        for (task, label, frozen, likely), source in zip(given, sources, strict=True)
    ]  # fmt: skip


def _report(promise: Guarantee, results: str, record: str | None) -> Report:

    fields = promise.as_dict()
    allowed = promise.terms.allowed[promise.look]
    rows = [
        ("labels", f"{promise.terms.items:,}"),
        ("audits drawn at random", f"{fields['audits']:,}"),
        ("wrong labels that would be too many", f"{promise.terms.too_many:,}"),
        ("audited errors that may stay", "none yet" if allowed is None else f"{allowed:,}"),
        ("audited errors", f"{fields['audited_errors']:,}"),
        ("answers by the expert", f"{fields['expert_answers']:,}"),
        ("items to answer next", f"{fields['to_answer']:,}"),
        ("certified", "yes" if fields["certified"] else "not yet"),
    ]
    notes = [] if record is None else [f"Draw, answers and what is needed to check them: {record}."]
    title = f"Guarantee for {results}"
    return Report(
        title=title,
        tables=[Table("", ("", ""), rows)],
        sentences=[*promise.sentences(), *notes],
        heading=title,
        lead=promise.sentences()[0],
        fields=fields | {"record": record},
    )
