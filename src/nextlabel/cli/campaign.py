"""``nextlabel campaign``: create, watch and steer live campaigns in a database, whether a service uses it or not."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, fields
from itertools import islice
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, TextIO, cast

import typer

from nextlabel.campaign.declaration import declared, kind, names, offer
from nextlabel.cli.database import (
    A_FILE,
    ID_COLUMN,
    TASKS_FILE,
    GoldColumn,
    Id,
    ScoreColumn,
    fields_of,
    import_bar,
    names_of,
    number_of,
    opened_store,
    opened_tasks,
    say_columns,
    service_at,
    settings_at,
    state_of,
    text_of,
)
from nextlabel.cli.options import (
    DB,
    PUBLIC_URL,
    SEED_HELP,
    Db,
    Flag,
    Json,
    number,
    parse_counts,
    parse_number,
    parse_prior,
    refuse_idle,
    verb,
    whole,
)
from nextlabel.cli.output import Said, checked_file, print_json, say, say_read, tabled, working
from nextlabel.cli.serve import needs_service
from nextlabel.errors import InputError, UnavailableError
from nextlabel.files.write import export_text, whole_file, write_workbook
from nextlabel.money import BUDGET_HINT, currency_of
from nextlabel.prose import counted, has_password, listed, without_passwords

if TYPE_CHECKING:
    from pathlib import Path

    from nextlabel.application.service import CampaignService
    from nextlabel.application.webhooks import Webhooks
    from nextlabel.application.worker_reports import WorkerReport
    from nextlabel.campaign.replies import AuditItem
    from nextlabel.campaign.webhooks import Webhook
    from nextlabel.crowd.agreement import Agreement
    from nextlabel.files.features import Features
    from nextlabel.files.tasks import TaskReader
    from nextlabel.reporting.report import Report
    from nextlabel.store.sql import SqlStore

PANEL = "Settings of the campaign"
#: What takes a setting away that may be left out.
NONE = "none"


def setting_flags(*, changing: bool = False) -> dict[str, Any]:
    """The flags of a campaign's settings, or of those that may change."""
    offers = {name: offer(name) for name in names()}
    return {
        name: _flag(name, changing) for name, one in offers.items() if one.flag and (one.changeable or not changing)
    }


def _flag(name: str, changing: bool) -> Any:
    shown, info = offer(name), declared(name)
    help = str(info.description)
    if not changing and not info.is_required() and info.default and kind(name) is not bool:
        default = ",".join(LABELS) if name == "labels" else f"{info.default:g}" if kind(name) is float else info.default
        help += f" Default: {default}."
    if kind(name) is bool:
        return Annotated[bool | None, Flag(None, help, rich_help_panel=PANEL, param_decls=(shown.flag,))]
    return Annotated[str | None, Flag(shown.flag, help, rich_help_panel=PANEL)]


def _kept(name: str) -> bool:
    """Whether a setting always has a value."""
    return kind(name) in (bool, int, float) and declared(name).default is not None


#: How files of features end.
FEATURES = frozenset({".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".npy", ".npz", ".gz"})
#: What items may be if the command line names no labels.
LABELS = declared("labels").examples[0]  # type: ignore[index]


def typed_settings(typed: Mapping[str, Any], *, changing: bool = False) -> dict[str, Any]:
    """The settings that were typed, as ``CampaignSettings`` takes them."""
    given = {name: value for name, value in typed.items() if value is not None}
    return {name: _read(name, value, changing) for name, value in given.items()}


def _read(name: str, typed: Any, changing: bool) -> Any:
    flag = f"--{name.replace('_', '-')}"
    if changing and typed == NONE and not _kept(name):
        return declared(name).default
    if name in ("instructions", "questions"):
        return text_of(flag, typed)
    if name == "prior":
        return parse_prior(typed)
    if name == "deadline" or kind(name) in (bool, str):
        return typed
    if kind(name) is tuple:
        return names_of(typed)
    if name == "budget":
        return typed if currency_of(typed) else parse_number(flag, typed, BUDGET_HINT)
    return number_of(flag, typed)


@verb(settings=setting_flags())
def create(
    tasks: Annotated[str | None, TASKS_FILE] = None,
    id: Annotated[str | None, Flag("ID", "The campaign's id. Default: a random one.")] = None,
    task_column: Annotated[str | None, Flag(*ID_COLUMN, needs=A_FILE)] = None,
    score_column: ScoreColumn = None,
    gold_column: GoldColumn = None,
    db: Db = DB,
    **typed: Any,
) -> Said:
    """Create a campaign with its first tasks."""
    if not typed["budget"]:
        raise InputError("the campaign has no budget.", "Give --budget, the number of labels that may be bought.")
    needs_service()
    from nextlabel.application.status import questions_lacking
    from nextlabel.campaign.new_tasks import read_tasks
    from nextlabel.campaign.settings import CampaignSettings

    path = typed["features"]
    beside = _read_features(path) if path is not None and _is_file(path) else None
    if beside is not None:
        typed["features"] = None
    settings = typed_settings(typed)
    if settings.get("answer", "choice") in ("choice", "multi") and "questions" not in settings:
        settings = {"labels": LABELS, **settings}
    CampaignSettings.from_dict(settings)  # refused before the file is opened
    opened: AbstractContextManager[TaskReader | None] = (
        nullcontext() if tasks is None else opened_tasks(tasks, task_column, score_column, gold_column)
    )
    with opened as first:
        config = CampaignSettings.from_dict({**settings, "show": _shown(settings.get("show"), first, score_column)})
        with service_at(db, create=True) as service, working("Adding tasks") as progress:
            if beside is not None and not config.learns_from_features:
                what = f"policy {config.policy!r}" if not config.knows_workers else "a campaign for numbers"
                raise InputError(f"{what} does not learn from features.", "Leave --features out.")
            row, added = service.create_with(config, id, read_tasks(config, first or ()), import_bar(first, progress))
            if beside is not None:
                say(_add_features(service, row.id, beside)[1])
    read = [] if first is None else [*say_read(first.report), *say_columns(config, first, score_column, added)]
    say(f"Campaign {row.id}: {counted(row.tasks, 'task')}, {counted(row.budget, 'label')}, {state_of(row)}.")
    where = "" if has_password(db) else f" --db {db}"  # an address with a password came from NEXTLABEL_DB
    say(f"Serve it: nextlabel serve{where}. Links: nextlabel campaign links {row.id} ann bob{where}.")
    for sentence in questions_lacking(row):
        say(f"{sentence} nextlabel campaign add {row.id} --gold FILE{where}.")
    if config.knows_workers:
        audit = f"nextlabel campaign audit {row.id} --audits 60{where}"
        say(f"Labels alone cannot tell how many are right: when they are in, audit 30 to 60 items: {audit}.")
    return Said({**fields_of(row), "read": read}, text=f"{row.id}\n")


def _is_file(typed: str) -> bool:
    """Whether --features names a file rather than columns of the tasks."""
    from pathlib import Path

    return Path(typed).is_file() or ("," not in typed and Path(typed).suffix.lower() in FEATURES)


def _shown(show: list[str] | None, tasks: TaskReader | None, score_column: str | None) -> list[str] | None:
    """The columns that workers are shown: those named; else, without the scores, those that may be seen by anybody."""
    from nextlabel.campaign.settings import ALL, is_shown

    columns = () if tasks is None else tasks.columns
    if show is None:
        safe = [name for name in columns if is_shown(None, name) and name != score_column]
        return safe if score_column is not None and safe else None
    unknown = next((name for name in show if columns and name != ALL and name not in columns), None)
    if unknown is not None:
        raise InputError(f"--show: the file has no column {unknown[:60]!r}.", f"It has {listed(columns)}.")
    return show


@verb()
def add(
    id: Id,
    tasks: Annotated[str | None, TASKS_FILE] = None,
    gold: Annotated[
        str | None, Flag("FILE", "Known answers, task and label: their tasks become control questions.")
    ] = None,
    predictions: Annotated[
        str | None, Flag("FILE", "What a model predicts: task and label, or task and probabilities.")
    ] = None,
    model: Annotated[
        str | None, Flag("NAME", "its labels are those of worker model:NAME.", needs="--predictions")
    ] = None,
    cost: Annotated[
        float, number("C", "Labels of the budget that one prediction costs. Default: 0.", needs="--predictions")
    ] = 0.0,
    features: Annotated[
        str | None, Flag("FILE", "What is known of items: a column task, and numbers, vectors or texts.")
    ] = None,
    profiles: Annotated[
        str | None, Flag("FILE", "What is known of workers to come: worker, truth, answer, count.")
    ] = None,
    replace_features: Annotated[bool, Flag(None, "take away those that are there.", needs="--features")] = False,
    task_column: Annotated[str | None, Flag(*ID_COLUMN)] = None,
    label_column: Annotated[str, Flag("NAME", "The column with the labels.", needs="--gold")] = "label",
    score_column: ScoreColumn = None,
    gold_column: GoldColumn = None,
    db: Db = DB,
) -> Said:
    """Add tasks, known answers, predictions, features of items or profiles of workers, all of a file or none of it.

    A known answer is corrected by giving it again. Features may be of items that come later.
    """
    if sum(given is not None for given in (tasks, gold, predictions, features, profiles)) != 1:
        raise InputError(
            "nothing says what to add, or several things do.",
            "Give a file of TASKS, or --gold, --predictions, --features or --profiles with a FILE.",
        )
    if profiles is not None:
        with opened_tasks(profiles, None, None) as rows, service_at(db) as service:
            known = service.add_profiles(id, rows.rows())
        return Said({"known": known}, f"{id} knows {counted(known, 'worker')}.")
    if features is not None:
        known_of = _read_features(features, task_column)
        with service_at(db) as service:
            return Said(*_add_features(service, id, known_of, replace_features))
    if gold is not None:
        return _add_gold(id, gold, task_column or "task", label_column, db)
    if predictions is None:
        return _add_tasks(id, str(tasks), task_column, score_column, gold_column, db)
    if model is None:
        raise InputError("the model has no name.", "Give --model NAME.")
    with (
        opened_tasks(predictions, None, None) as rows,
        service_at(db) as service,
        working("Adding predictions") as progress,
    ):
        added = service.add_predictions(id, model, rows.rows(), cost, task_column, progress)
    charged = f" They cost {counted(added.charged, 'label')} of the budget." if added.charged else ""
    sentence = (
        f"{counted(added.added, 'prediction')} of model {added.model} added, {added.known:,} known before.{charged}"
    )
    return Said({**asdict(added), "read": say_read(rows.report)}, sentence)


def _add_tasks(
    id: str, path: str, task_column: str | None, score_column: str | None, gold_column: str | None, db: str
) -> Said:
    with (
        opened_tasks(path, task_column, score_column, gold_column) as more,
        service_at(db) as service,
        working("Adding tasks") as progress,
    ):
        added = service.add_tasks(id, more, progress=import_bar(more, progress))
        config = service.store.row(id).config
    read = [*say_read(more.report), *say_columns(config, more, score_column, added)]
    sentence = f"{counted(added.added, 'task')} added, {added.known:,} known before, {added.tasks:,} in all."
    return Said({**asdict(added), "read": read}, sentence)


def _add_gold(id: str, path: str, task_column: str, label_column: str, db: str) -> Said:
    from nextlabel.files.labels import read_answers

    answers = read_answers(path, task_column, label_column)
    if not answers:
        raise InputError(f"{path} has no answers.", "Give at least one task with its label.")
    with service_at(db) as service:
        changed = service.set_gold(id, answers)
        row = service.store.row(id)
        controls = row.controls - len(row.rules.adjudicated)
    sentence = f"{counted(changed, 'answer')} new or corrected; {id} has {counted(controls, 'control question')}."
    return Said({"changed": changed, "controls": controls}, sentence)


def _read_features(path: str, task_column: str | None = None) -> Features:
    from nextlabel.files.features import read_features

    return read_features(path, task=task_column or "task")


def _add_features(
    service: CampaignService, id: str, read: Features, replace: bool = False
) -> tuple[dict[str, Any], str]:
    """What was added, and a sentence about it."""
    added = service.add_features(id, read, replace)
    sentence = f"Features of {counted(added.items, 'item')} added; {id} has {added.tasks:,} of these items now."
    return {**asdict(added), "read": read.sentences()}, sentence


@verb(settings=setting_flags(changing=True))
def change(
    id: Id,
    paused: Annotated[
        bool | None,
        Flag(None, "Hand out no new tasks, or hand them out again.", param_decls=("--pause/--resume",)),
    ] = None,
    adjudicate: Annotated[
        tuple[str, str] | None,
        Flag(
            "TASK ANSWER",
            "Set the answer of a doubtful item: it is final and teaches who is good.",
        ),
    ] = None,
    undo_adjudication: Annotated[
        str | None, Flag("TASK", "Take such an answer back: the labels decide about it again.")
    ] = None,
    accept_clock: Annotated[bool, Flag(None, "Go on by the clock although it is far from the last event.")] = False,
    owner: Annotated[
        str | None, Flag("NAME", "Hand it over to an owner; none: administrators alone see it, as at first.")
    ] = None,
    db: Db = DB,
    **typed: Any,
) -> Said:
    """Pause a campaign, resume it, change settings while it runs, or set the answers of doubtful items.

    Workers who hold a task when it is paused can finish it, and see other texts with their next task. --budget +N and
    -N change the old budget; none takes away what may be left out, e.g. --deadline none.
    """
    values = typed_settings(typed, changing=True)
    if not values and (paused, adjudicate, undo_adjudication, owner) == (None,) * 4 and not accept_clock:
        raise InputError("nothing says what to change.", "Give e.g. --budget, --pause or --question.")
    with service_at(db) as service:
        accepted = accept_clock and service.accept_clock(id)
        if (typed["budget"] or "")[:1] in ("+", "-"):
            values["budget"] += service.store.row(id).budget
        if owner is not None:
            from nextlabel.service.access import give_campaign

            give_campaign(service.store, id, "" if owner == NONE else owner)
        if adjudicate is not None:
            service.adjudicate(id, dict([adjudicate]))
        if undo_adjudication is not None:
            service.undo_adjudication(id, [undo_adjudication])
        row = service.change(id, values) if values else service.store.row(id)
        if paused is not None:
            row = service.pause(id) if paused else service.resume(id)
    sentence = f"{id} is {state_of(row)}"
    if "budget" in values:
        sentence += f" and may buy {row.budget:,} labels: {row.spent:,} spent, {row.reserved:,} out, {row.left:,} left"
    said = "" if not accept_clock else " It goes on by the clock." if accepted else " Nothing was wrong with its clock."
    said += "" if adjudicate is None else f" The answer of {adjudicate[0]} is {adjudicate[1]}."
    said += "" if owner is None else f" Its owner is {'nobody' if owner == NONE else owner}."
    said += "" if undo_adjudication is None else f" The labels decide about {undo_adjudication} again."
    return Said(fields_of(row), f"{sentence}.{said}")


Form = Literal["csv", "jsonl", "xlsx"]
Row = dict[str, Any]


@verb()
def status(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The campaign's id. Default: all campaigns.")] = None,
    db: Db = DB,
    wait: Annotated[
        bool, Flag(None, "With an id: work out 'at most' as well, by all labels, in some seconds.")
    ] = False,
    capacity: Annotated[bool, Flag(None, "Measure what a process and this database hold, in some seconds.")] = False,
) -> Report | Said:
    """Show the state of all campaigns, or of one with its certificate."""
    if capacity:
        if id is not None or wait:
            raise InputError("--capacity is about a process and its database.", "Leave the id and --wait out.")
        return _capacity(db)
    if wait and id is None:
        raise InputError("--wait is for one campaign, and none is named.", "Give its id as well.")
    with service_at(db) as service:
        if id is not None:
            service.store.row(id)
            with working("Working out the certificate"):
                return _status(service, id, wait)
        rows = service.store.campaigns()
    cells = [
        [row.id, row.config.name[:30], state_of(row), f"{row.tasks:,}", f"{row.spent:,} of {row.budget:,}",
         f"{row.reserved:,}"]
        for row in rows
    ]  # fmt: skip
    title, header = f"Campaigns in {without_passwords(db)}", ("id", "name", "state", "tasks", "labels", "out")
    fields = {"campaigns": [fields_of(row) for row in rows]}
    return tabled(title, header, cells, f"{counted(len(rows), 'campaign')}.", fields)


def _capacity(db: str) -> Said:
    from nextlabel.application.capacity import capacity

    with service_at(db) as service, working("Measuring"):
        found = capacity(service)
    fields = {**asdict(found), "pairs_per_second": found.pairs_per_second(), "sentences": found.sentences()}
    return Said(fields, text="\n".join([*found.sentences(), ""]))


#: Fields of the certificate that the status has.
OF_CERTIFICATE = ("now", "forecast", "upper", "gap", "price", "as_of_labels", "upper_as_of")


def _status(service: CampaignService, id: str, wait: bool) -> Report:
    from nextlabel.application.status import cost_of
    from nextlabel.campaign.notices import notice_table
    from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
    from nextlabel.reporting.report import Report, Table

    row = service.store.row(id)
    found = service.certificate(id, wait) if row.tasks else None
    promised = None if row.config.at_most_wrong is None else service.guarantees.status(id)
    fields = fields_of(row) | ({} if found is None else {name: getattr(found, name) for name in OF_CERTIFICATE})
    fields |= {} if promised is None else {"guarantee": asdict(promised)}
    fields |= {"notices": [notice_table(one) for one in row.rules.noticed]}
    r, mu, cost = arrival_rate(row), completion_rate(row), cost_of(row)
    rows = [
        ["state", state_of(row)],
        ["tasks", f"{row.tasks:,}"],
        ["labels", f"{row.spent:,} of {row.budget:,}, {row.reserved:,} out, {row.left:,} left"],
        *([] if cost is None else [["cost", cost.sentence]]),
        ["late, expired, released", f"{row.late:,}, {row.expired:,}, {row.released:,}"],
        ["asks per minute", "not known yet" if r is None else f"{60 * r:.3g}"],
        ["seconds per label", "not known yet" if mu is None else f"{1 / mu:.3g}"],
        ["lease", f"{lease_seconds(row):.0f} s"],
    ]
    caption = "No tasks yet: nextlabel campaign add."
    if found is not None:
        untested = row.config.knows_workers and not row.controls and found.audit is None
        contradicted = any(one.kind == "truths_contradict" for one in row.rules.noticed)
        name = "known items right" if contradicted else "agreement now" if untested else "expected now"
        rows.append([name, f"{found.now:.4f}"])
        caption = f"Expected {found.now:.2%} of the tasks right if it stopped now, by what was learnt of the workers."
        if contradicted:
            caption = found.rests_on
        if untested and row.kept:
            caption += (
                " No truth is known, and on recorded crowds that chose labels agreement was 3 to 11 points above it: "
            )
            caption += f"nextlabel campaign audit {id} --audits 60."
        if found.withheld:
            rows.append(["at most in the end", found.withheld])
    if found is not None and found.upper is not None:
        rows += [["at most in the end", f"{found.upper:.4f}"], ["price of the next label", f"{found.price:.4f}"]]
        caption = (
            f"Expected {found.now:.2%} of the tasks right if it stopped now; no way of spending the "
            f"{counted(row.left + row.reserved, 'label')} left can be expected to get past {found.upper:.2%}."
        )
    if row.rules.paused_because:
        caption = f"{row.rules.paused_because} {caption}"
    if promised is not None:
        caption = " ".join(filter(None, [promised.sentence, promised.next_step, caption]))
    lines = [
        line
        for one in row.rules.noticed
        for line in (one.text, *(f"  {it.replace('_', ' ')}: {_call_for(id, one.worker, it)}" for it in one.actions))
    ]
    title = f"{row.id} {row.config.name}".strip()
    return Report(title, [Table(title, ["", ""], rows)], [caption], closing=lines, fields=fields)


def _call_for(id: str, worker: str | None, action: str) -> str:
    """What to type to act on a notice."""
    if worker is None:
        return f"nextlabel campaign {f'audit {id} --audits 60' if action == 'audit' else f'links {id} NAME ...'}"
    first, _, second = action.partition("_and_")
    more = f" && nextlabel campaign workers {id} drop-labels {shlex.quote(worker)}" if second else ""
    return f"nextlabel campaign workers {id} {first} {shlex.quote(worker)}{more}"


@verb()
def export(
    context: typer.Context,
    id: Id,
    rows: Annotated[
        Literal["tasks", "labels", "workers", "profiles", "events", "items"],
        Flag(
            None,
            "What a row is; items are those of pairs, in their order.",
        ),
    ] = "tasks",
    unanswered: Annotated[bool, Flag(None, "also leases without an answer.", needs="--rows labels")] = False,
    dropped: Annotated[bool, Flag(None, "also labels that were dropped.", needs="--rows labels")] = False,
    after: Annotated[
        int, whole("SEQ", 0, "0", "only events after the one with this number.", needs="--rows events")
    ] = 0,
    limit: Annotated[
        int | None, whole("N", 1, "1000", "at most this many. Default: all.", needs="--rows events")
    ] = None,
    save: Annotated[str | None, Flag("FILE", "Write to this file. Default: stdout.")] = None,
    format: Annotated[Form, Flag(None, "CSV, one JSON object per row, or Excel.")] = "csv",
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Write every task with its label, its probability, its label counts and the event that closed it.

    Of the other --rows, labels says who answered what, and when (workers, backtest, prior, rates and plan --pilot read
    that file, or campaign:ID); workers has labels, time, amount, agreement, accuracy and what stands out; profiles how
    often each worker gave an answer to a truth in a campaign that has ended, for the next one (add --profiles).
    """
    if as_json and save is None:
        refuse_idle(context, ["format"], "--save, or without --json")
    target = None if save is None else checked_file("--save", save)
    if format == "xlsx" and target is None:
        raise InputError("a workbook is not written to stdout.", "Give --save FILE.")
    with service_at(db) as service:
        from nextlabel.application.facade import Campaign
        from nextlabel.application.status import cost_of
        from nextlabel.application.worker_reports import COLUMNS, cells
        from nextlabel.campaign.results import GivenLabel

        cost = cost_of(service.store.row(id))
        if rows == "labels":
            header = [field.name for field in fields(GivenLabel)]
            table = _rows(header, service.labels(id, unanswered, dropped))
        elif rows == "workers":
            header, reports = list(COLUMNS), service.worker_reports.of(id)
            table = (dict(zip(header, cells(one), strict=True)) for one in reports)
        elif rows == "profiles":
            header, table = ["worker", "truth", "answer", "count"], iter(service.profiles(id))
        elif rows == "events":
            header = ["seq", "at", "kind", "data"]
            table = _rows(header, islice(Campaign(service, id).events(after), limit))
        elif rows == "items":
            header, table = ["item", "rank", "score", "sd", "comparisons"], iter(service.order(id)["items"])
        else:
            header, table = _results(service, id, "jsonl" if as_json and target is None else format)
        if target is not None:
            with whole_file(target) as stream:
                written = _write(header, table, stream, format)
        elif as_json:
            print_json({rows: list(table)})
            return
        else:
            written = _write(header, table, sys.stdout, format)
    if as_json:
        print_json({"written": written, "file": save})
    else:
        what = counted(written, "lease" if unanswered else rows.removesuffix("s"))
        said = "" if cost is None or rows not in ("tasks", "workers") else f" The labels cost {cost.sentence}"
        say(f"{what} written{'' if save is None else f' to {save}'}.{said}")


def _rows(columns: Sequence[str], given: Iterable[Any]) -> Iterator[Row]:
    return ({name: getattr(one, name) for name in columns} for one in given)


def _results(service: CampaignService, id: str, form: Form) -> tuple[list[str], Iterator[Row]]:
    """The columns of a file, and one object per task; its payload last, in CSV the columns that it came with."""
    from nextlabel.application.frames import ResultTable, result_table

    whole = form != "jsonl"
    table = result_table(service, id) if whole else ResultTable(service.store.row(id).config.answer_type, ())
    rows = (
        {**dict(zip(table.header, table.cells(one), strict=whole)), **({} if whole else {"payload": one.payload})}
        for one in service.results(id)
    )
    return table.header, rows


def _write(header: Sequence[str], rows: Iterable[Row], stream: IO[str], form: Form) -> int:
    """Write all rows; return how many."""
    written = 0
    if form == "xlsx":
        table = [
            [json.dumps(row[name]) if isinstance(row[name], dict) else row[name] for name in header] for row in rows
        ]
        write_workbook(cast("TextIO", stream).buffer, [header, *table])
        return len(table)
    if form == "csv":
        stream.write(export_text([header]))
    for row in rows:
        cells = [json.dumps(row[name]) if isinstance(row[name], dict) else row[name] for name in header]
        stream.write(export_text([cells]) if form == "csv" else json.dumps(row) + "\n")
        written += 1
    return written


@verb()
def audit(
    id: Id,
    audits: Annotated[
        str | None,
        Flag(
            "K",
            "Draw so many more items at random for the expert; with --freeze several for several looks: 80,150,250.",
        ),
    ] = None,
    seed: Annotated[int, whole("S", 0, "0", SEED_HELP, needs="--audits")] = 0,
    save: Annotated[
        str | None, Flag("FILE", "Write the drawn items for the expert: task, label (to fill in), payload.")
    ] = None,
    answers: Annotated[str | None, Flag("FILE", "The expert's answers: task, label.")] = None,
    link: Annotated[
        bool, Flag(None, "Make a link by which an expert answers the drawn items, without a token.")
    ] = False,
    freeze: Annotated[
        bool,
        Flag(None, "For a guarantee: freeze the labels and draw --audits items, or as needed."),
    ] = False,
    of: Annotated[str | None, Flag("LABEL", "Speak of the items with this label alone.", needs="--freeze")] = None,
    next_look: Annotated[bool, Flag(None, "Go on to the next number of audits instead of asking for items.")] = False,
    reopen: Annotated[bool, Flag(None, "Let labels decide again, which voids the certificate of a guarantee.")] = False,
    record: Annotated[str | None, Flag("FILE", "Write the guarantee's record, by which anybody can check it.")] = None,
    public_url: Annotated[str | None, Flag(*PUBLIC_URL, needs="--link")] = None,
    db: Db = DB,
) -> Said:
    """Audit the results: an expert's answers to items drawn at random correct the expected accuracy.

    --answers reads the file of --save, with its column label filled in by somebody who does not see the results. From
    --freeze to --reopen, --answers, --save and --link are about the campaign's guarantee (its setting --at-most-wrong).
    """
    if freeze and reopen:
        raise InputError("--freeze and --reopen exclude each other.", "Give one of them.")
    planned = parse_counts("--audits", audits)
    if not freeze and planned is not None and len(planned) > 1:
        raise InputError("several looks are planned at the freeze.", "Add --freeze, or give one number.")
    target = None if save is None else checked_file("--save", save)
    from nextlabel.files.labels import read_answers
    from nextlabel.model.rewards import Accuracy

    found = None if answers is None else read_answers(answers)
    kept = None if record is None else checked_file("--record", record)
    with service_at(db) as service:
        row, audited, standing = service.store.row(id), None, None
        guarantees = service.guarantees
        promised = freeze or reopen or next_look or kept is not None or bool(row.rules.guarantee)
        if promised:
            if freeze or (planned is not None and not reopen):
                guarantees.freeze(id, planned, of)
            if reopen:
                guarantees.reopen(id)
        elif planned is not None:
            service.audits.draw(id, planned[0], seed)
        if found is not None:
            (guarantees if promised else service.audits).answer(id, found)
        if next_look:
            guarantees.next_look(id)
        if kept is not None:
            guarantees.record(id).save(kept)
        items = (guarantees if promised else service.audits).items(id)
        made = _link(service, id, public_url) if link else {}
        if target is not None:
            _write_items(target, [one for one in items if not promised or one.label is None])
        known = sum(one.label is not None for one in items)
        if promised:
            standing = guarantees.status(id)
        elif known:
            certificate = service.certificate(id)
            audited = certificate.audit
    text = f"{made['link']}\n" if made else ""
    if made:
        end = f"nextlabel campaign links {id} --revoke --audit ends it."
        say(f"warning: {made['warning']}" if made["warning"] else end)
    if standing is not None:
        return Said({**asdict(standing), **made}, standing.sentence, text)
    fields = {"drawn": len(items), "answered": known, "audit": None if audited is None else asdict(audited), **made}
    written = "" if save is None else f"; written to {save}"
    if audited is not None:
        new = row.tasks - row.rules.audit_of
        itself = f" The model itself expects {certificate.now:.1%}." if row.config.reward == Accuracy() else ""
        whole = f"the items but {new:,} that were added since" if new else "all items"
        text += (
            f"{audited.right} of {audited.audited} audited labels are right: {audited.accuracy:.1%} of {whole}, with a "
            f"95% interval from {audited.low:.1%} to {audited.high:.1%}.{itself}\n"
        )
    return Said(fields, f"{counted(len(items), 'item')} drawn, {known:,} answered{written}.", text)


def _write_items(target: Path, items: Iterable[AuditItem]) -> None:
    """Items for the expert, who fills in the column label."""
    with whole_file(target) as stream:
        lines: list[list[Any]] = [["task", "label", "payload"]]
        lines += [[one.task, one.label, json.dumps(one.payload, ensure_ascii=False)] for one in items]
        stream.write(export_text(lines))


def _link(service: CampaignService, id: str, public_url: str | None) -> dict[str, Any]:
    """The link for an expert, and a warning about its address if there is one."""
    from nextlabel.campaign.known_answers import check_drawn
    from nextlabel.service.app_state import link_warning
    from nextlabel.service.links import LinkSigner, link_url

    row = service.store.row(id)
    if not row.rules.guarantee:
        check_drawn(row)
    settings = settings_at(service.store, public_url)
    end = 0 if row.rules.guarantee else len(row.rules.audit)
    token = LinkSigner.of(service.store, settings.key_file).audit_token(id, end)
    return {"link": link_url(settings.base_url, token), "warning": link_warning(settings.base_url) or None}


#: Workers in the table on the screen.
SHOWN = 50
Action = Literal["pause", "block", "restore", "drop-labels", "restore-labels", "erase", "record"]
#: Actions that have a reason.
ACTS = ("pause, block or drop-labels", lambda typed: typed["action"] in ("pause", "block", "drop-labels"))


@verb()
def workers(
    id: Id,
    action: Annotated[
        Action | None,
        typer.Argument(
            metavar="[ACTION]",
            help="pause, block, restore, drop-labels, restore-labels, erase or record. Default: show all workers.",
        ),
    ] = None,
    worker: Annotated[str | None, typer.Argument(metavar="[WORKER]", help="The worker's name.")] = None,
    reason: Annotated[str, Flag("TEXT", "Why, for the log; the worker does not see it.", needs=ACTS)] = "",
    db: Db = DB,
) -> Said | Report:
    """Show each worker's labels, accuracy, pay and standing, or change how one of them stands.

    A paused worker gets no new task; a blocked one also loses the one that they hold. Dropped labels leave the results
    but stay spent. Erasing takes a person's name, comments, visits and links out for good; record prints all that is
    kept about them.
    """
    with service_at(db) as service:
        if action is None:
            return _show_workers(id, service.worker_reports.of(id), service.worker_reports.learnt(id).agreement)
        if worker is None:
            raise InputError(
                f"nothing says whom to {action}.", f"Give nextlabel campaign workers {id} {action} WORKER."
            )
        return _change(service, id, action, worker, reason)


def _change(service: CampaignService, id: str, action: Action, worker: str, reason: str) -> Said:
    from nextlabel.campaign.states import STANDINGS, Standing

    standings: dict[str, Standing] = {"pause": "paused", "block": "blocked", "restore": "active"}
    if action in standings:
        row = service.set_standing(id, worker, standings[action], reason)
        now = {"worker": worker, "standing": row.standing, "reason": row.reason}
        return Said(now, f"{worker} is {row.standing}. {STANDINGS[row.standing]}")
    if action == "drop-labels":
        many = service.drop_labels(id, worker, reason).changed
        said = f"{counted(many, 'label')} of {worker} dropped; they stay spent."
        return Said({"worker": worker, "dropped": many}, said)
    if action == "record":
        record = service.worker_reports.record(id, worker)
        return Said(record, json.dumps(record, indent=2, ensure_ascii=False))
    if action == "erase":
        erased = service.erase_worker(id, worker)
        said = f"{erased.worker} is what the log calls this person now. Backups still have the name."
        return Said({"worker": erased.worker, "labels": erased.labels}, said)
    done = service.restore_labels(id, worker)
    left = f" {counted(done.left, 'label')} found no room." if done.left else ""
    fields = {"worker": worker, "restored": done.changed, "left": done.left}
    return Said(fields, f"{counted(done.changed, 'label')} of {worker} restored.{left}")


def _show_workers(id: str, reports: list[WorkerReport], alike: Agreement | None) -> Report:
    rows = [
        [
            one.worker,
            f"{one.labels:,}" + (f" ({one.dropped:,} dropped)" if one.dropped else ""),
            "-" if one.accuracy is None else f"{one.accuracy:.2f} [{one.accuracy_low:.2f}, {one.accuracy_high:.2f}]",
            "-" if one.agreement is None else f"{one.agreement:.2f}",
            f"{one.amount:,.2f}",
            one.standing,
            ", ".join(one.flags),
        ]
        for one in reports[:SHOWN]
    ]
    many = counted(len(reports), "worker")
    caption = f"{many}. Accuracy with its 95% interval. All as a file: nextlabel campaign export {id} --rows workers."
    caption = " ".join([caption, *([] if alike is None else alike.sentences())])
    head = ["worker", "labels", "accuracy", "agreement", "amount", "standing", "stands out"]
    fields = {"workers": [asdict(one) for one in reports], "agreement": None if alike is None else alike.as_dict()}
    return tabled(f"Workers of {id}", head, rows, caption, fields)


@verb()
def links(
    id: Id,
    workers: Annotated[list[str] | None, typer.Argument(metavar="WORKERS...", help="The workers' names.")] = None,
    revoke: Annotated[bool, Flag(None, "End the links of these workers, in running services within seconds.")] = False,
    join: Annotated[
        bool,
        Flag(None, "the link for platforms, and the sessions of all who came by it.", needs="--revoke"),
    ] = False,
    audit: Annotated[bool, Flag(None, "the links of experts who answer an audit.", needs="--revoke")] = False,
    public_url: Annotated[
        str | None, Flag(*PUBLIC_URL, needs=("links that are made", lambda typed: not typed["revoke"]))
    ] = None,
    db: Db = DB,
) -> Said:
    """Make a link per worker, and one for platforms such as Prolific; or end links."""
    given = workers or []
    if revoke and not given and not join and not audit:
        raise InputError("nothing says whose links are to end.", "Name workers, or give --join or --audit.")
    with service_at(db) as service:
        from nextlabel.service.app_state import link_warning
        from nextlabel.service.links import LinkSigner, link_url, revoke_links

        service.store.row(id)
        if revoke:
            revoke_links(service.store, id, given, join, audit)
            platform, experts = ["everybody who came from a platform"] if join else [], ["experts"] if audit else []
            ended = listed([*given, *platform, *experts])
            fields = {"campaign": id, "workers": given, "join": join, "audit": audit}
            return Said(fields, f"Links to {id} are no longer valid for {ended}.")
        settings = settings_at(service.store, public_url)
        base, signer = settings.base_url, LinkSigner.of(service.store, settings.key_file)
        made = {worker: link_url(base, signer.worker_token(id, worker)) for worker in given}
        address, warning = link_url(base, signer.join_token(id)), link_warning(base)
    if warning:
        say(f"warning: {warning}")
    lines = [*(f"{worker}\t{link}\n" for worker, link in made.items()), f"any\t{address}?PROLIFIC_PID=...\n"]
    return Said({"workers": made, "join": address, "warning": warning or None}, text="".join(lines))


#: What has an effect when a webhook is added.
ADDS = ("add", lambda typed: typed["action"] == "add")


@verb()
def webhooks(
    id: Id,
    action: Annotated[
        Literal["add", "test", "enable", "remove"] | None,
        typer.Argument(metavar="[ACTION]", help="add, test, enable or remove. Default: show them."),
    ] = None,
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="[WHICH]", help="To add: https://..., mailto:... or chat+https://... Else a webhook's id."
        ),
    ] = None,
    types: Annotated[
        str | None,
        Flag(
            "A,B",
            "With add: what to tell: label.created, task.closed, ... Default: everything; to people little.",
            needs=ADDS,
        ),
    ] = None,
    from_start: Annotated[bool, Flag(None, "With add: also tell what happened before.", needs=ADDS)] = False,
    db: Db = DB,
) -> Said | Report:
    """Show the addresses that are told what happens in a campaign, or change them.

    add shows the secret by which messages are signed, once. test sends a message now, enable goes on with a webhook
    that was disabled or fails: it is told all that it has missed.
    """
    needs_service()
    if action is not None and which is None:
        raise InputError(f"nothing says what to {action}.", "Give the address to add, or the webhook's id.")
    with opened_store(db) as store:
        from nextlabel.application.webhooks import Webhooks

        hooks, name = Webhooks(store), str(which)
        if action == "add":
            return _add(hooks, store, id, name, None if types is None else names_of(types), from_start)
        if action == "test":
            return _test(hooks, store, id, name)
        if action == "enable":
            enabled = hooks.enable(id, name)
            sentence = f"Webhook {which} goes on after event {enabled.position:,}, as soon as a service runs."
            return Said(_fields(enabled), sentence)
        if action == "remove":
            hooks.remove(id, name)
            return Said({"removed": which}, f"Webhook {which} was removed.")
        found = hooks.of(id)
    cells = [[one.id, one.url, one.state, f"{one.delivered:,}", f"{one.position:,}", one.last_reply] for one in found]
    broken = [f"{one.id}: {one.disabled}" for one in found if one.disabled is not None]
    caption = " ".join([f"{counted(len(found), 'webhook')}.", *broken])
    header = ("id", "address", "state", "told", "up to event", "last reply")
    return tabled(f"Webhooks of {id}", header, cells, caption, {"webhooks": [_fields(one) for one in found]})


def _add(hooks: Webhooks, store: SqlStore, id: str, url: str, types: list[str] | None, from_start: bool) -> Said:
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.service.webhooks import WebhookSender, checked_address

    settings = ServiceSettings()
    made = hooks.add(id, checked_address(url, settings), types, from_start)
    secret = WebhookSender(store, settings).secret_of(made)
    shown = " Its secret, shown this once:" if secret else ""
    say(f"Webhook {made.id} tells {made.url}: {', '.join(made.types)}.{shown}")
    return Said({**_fields(made), "secret": secret}, text=f"{secret or made.id}\n")


def _test(hooks: Webhooks, store: SqlStore, id: str, webhook: str) -> Said:
    from anyio.from_thread import start_blocking_portal

    from nextlabel.service.settings import ServiceSettings
    from nextlabel.service.webhooks import send_trial

    tested = hooks.get(id, webhook)
    with start_blocking_portal() as portal:
        reply = portal.call(send_trial, store, ServiceSettings(), tested, hooks.trial(tested))
    if not reply.ok:
        raise UnavailableError(
            f"{tested.url} did not acknowledge the message: {reply.said}.", "See the receiver's log."
        )
    return Said({"ok": reply.ok, "said": reply.said}, f"{tested.url} acknowledged the message: {reply.said}.")


def _fields(webhook: Webhook) -> dict[str, Any]:
    return {**asdict(webhook), "state": webhook.state}


#: What a row of each table is.
NOUNS = {
    "campaigns": ("row of counters", "rows of counters"), "tasks": ("task", "tasks"), "leases": ("lease", "leases"),
    "workers": ("worker's tally", "workers' tallies"), "states": ("group of tasks", "groups of tasks"),
    "classes": ("prior", "priors"), "batches": ("batch", "batches"),
}  # fmt: skip


@verb()
def delete(
    id: Id,
    yes: Annotated[bool, Flag(None, "Do not ask.")] = False,
    db: Db = DB,
) -> Said:
    """Delete a campaign with its tasks, labels, log and links, for good. Export first what you want to keep."""
    with service_at(db) as service:
        row = service.store.row(id)
        if not yes:
            _ask(id, f"{counted(row.tasks, 'task')} and {counted(row.kept, 'label')}")
        with working("Deleting") as progress:
            removed = service.delete(id, progress)
    return Said({"id": id, "deleted": True, "rows_removed": removed}, f"{id} is deleted.")


def _ask(id: str, what: str) -> None:
    """Have the id typed in again."""
    if not sys.stdin.isatty():
        raise InputError(f"nobody can be asked whether {id} with {what} is to be deleted.", "Give --yes if it is.")
    typed = typer.prompt(f"Delete {id} with {what} for good? Type its id", default="", show_default=False, err=True)
    if typed.strip() != id:
        raise InputError(f"{typed[:60]!r} is not the id of the campaign: nothing was deleted.", "Type its id.")


@verb()
def verify(
    id: Id,
    repair: Annotated[bool, Flag(None, "Write anew whatever does not follow from the log.")] = False,
    db: Db = DB,
) -> Said:
    """Replay the log beside the campaign, and report what does not follow from it.

    The campaign goes on meanwhile. Without --repair nothing is written, and the exit code is 1 if something differs.
    """
    with service_at(db) as service:
        with working("Replaying events") as progress:
            found = service.verify(id, repair, progress)
        row = service.store.row(id)
    fields = {**fields_of(row), "events": found.events, "unchanged": found.right, "differing": found.differing}
    sentence = f"{id}: {counted(found.events, 'event')} replayed. {_finding(found.differing, repair)}"
    return Said(fields, sentence, code=0 if repair or found.right else 1)


def _finding(differing: dict[str, int], repair: bool) -> str:
    if not differing:
        return "Every row follows from them."
    rows = ", ".join(counted(number, *NOUNS.get(table, ("row", "rows"))) for table, number in differing.items())
    return f"Not following from them: {rows}. {'All of it was rebuilt' if repair else 'Nothing was written'}."


app = typer.Typer(help="Create, watch and steer live campaigns.", no_args_is_help=True)
for _command in (create, add, status, change, workers, links, export, audit, webhooks, verify, delete):
    app.command()(_command)
