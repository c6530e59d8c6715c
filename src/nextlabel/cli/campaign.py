"""``nextlabel campaign``: create, watch and steer live campaigns in a database, whether a service uses it or not."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, fields
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TextIO, cast

import typer

from nextlabel.campaign.declaration import declared, kind, names, offer
from nextlabel.campaign.records import ImportRow
from nextlabel.campaign.states import STANDINGS, Standing
from nextlabel.cli.database import ID, fields_of, links_at, names_of, service_at, state_of
from nextlabel.cli.options import (
    DB,
    JSON,
    PUBLIC_URL,
    SEED_HELP,
    argument,
    flag,
    number,
    parse_counts,
    parse_number,
    parse_prior,
    refuse_idle,
    switch,
    verb,
    whole,
)
from nextlabel.cli.output import Said, checked_file, print_json, report_reading, say, tabled, working
from nextlabel.cli.serve import needs_service
from nextlabel.errors import FileFormatError, InputError, UnavailableError
from nextlabel.files.write import export_text, whole_file, write_workbook
from nextlabel.money import BUDGET_HINT, currency_of
from nextlabel.reporting.report import Report, Table
from nextlabel.wording import counted, has_password, listed, without_passwords

if TYPE_CHECKING:
    from nextlabel.application.certificate import Certificate
    from nextlabel.application.service import CampaignService
    from nextlabel.campaign.replies import Added
    from nextlabel.campaign.rows import CampaignRow
    from nextlabel.campaign.settings import CampaignSettings
    from nextlabel.campaign.webhooks import Webhook
    from nextlabel.files.features import Features
    from nextlabel.files.tasks import TaskReader

PANEL = "Settings of the campaign"
#: What takes a setting away that may be left out.
NONE = "none"
TASKS = argument("TASKS", "A file of tasks: CSV, TSV, JSON lines, JSON or Parquet.", None)
#: The flag --task-column of files of tasks, and what such flags go with.
ID_COLUMN = ("NAME", "The column with the tasks. Default: id.")
A_FILE = ("a file of TASKS", lambda typed: typed["tasks"] is not None)
SCORE_COLUMN = flag("NAME", "The column with a model's scores, to start from. Default: none.", needs=A_FILE)
GOLD_COLUMN = flag("NAME", "The column with the answers that are known. Default: gold.", needs=A_FILE)
#: How files of features end.
FEATURES = frozenset({".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".npy", ".npz", ".gz"})
#: What items may be if the command line names no labels.
LABELS = declared("labels").examples[0]  # type: ignore[index]


def setting_flags(*, changing: bool = False) -> dict[str, tuple[Any, Any]]:
    """Types and flags of a campaign's settings, or of those that may change."""
    made: dict[str, tuple[Any, Any]] = {}
    for name in names():
        shown, info = offer(name), declared(name)
        if not shown.flag or (changing and not shown.changeable):
            continue
        if kind(name) is bool:
            option = flag(None, str(info.description), rich_help_panel=PANEL, param_decls=(shown.flag,))
            made[name] = bool | None, option
            continue
        usual = f"{info.default:g}" if kind(name) is float and info.default is not None else info.default
        usual = ",".join(LABELS) if name == "labels" else usual
        said = not changing and not info.is_required() and info.default
        help = f"{info.description} Default: {usual}." if said else str(info.description)
        made[name] = str | None, flag(shown.flag, help, rich_help_panel=PANEL)
    return made


def typed_settings(typed: Mapping[str, Any], *, changing: bool = False) -> dict[str, Any]:
    """The settings that were typed, as ``CampaignSettings`` takes them."""
    return {name: _setting(name, value, changing) for name, value in typed.items() if value is not None}


def _setting(name: str, typed: Any, changing: bool) -> Any:
    kept = kind(name) in (bool, int, float) and declared(name).default is not None  # it always has a value
    if changing and typed == NONE and not kept:
        return declared(name).default
    if name in ("instructions", "questions"):
        return _text(f"--{name}", typed)
    if name == "prior":
        return parse_prior(typed)
    if name in ("deadline", "reward") or kind(name) in (bool, str) or (name == "budget" and currency_of(typed)):
        return typed
    if kind(name) is tuple:
        return names_of(typed)
    hint = BUDGET_HINT if name == "budget" else "Give a number."
    return parse_number(f"--{name.replace('_', '-')}", typed, hint)


def _text(flag: str, path: str) -> str:
    """The text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"{flag}: cannot read {path}: {error.strerror or error}.", "Give a text file.") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"{flag}: {path} is not a text in UTF-8.", "Save it as UTF-8.") from None


@verb(settings=setting_flags())
def create(
    tasks: str | None = TASKS,
    id: str | None = flag("ID", "The campaign's id. Default: a random one."),
    task_column: str | None = flag(*ID_COLUMN, needs=A_FILE),
    score_column: str | None = SCORE_COLUMN,
    gold_column: str | None = GOLD_COLUMN,
    db: str = DB,
    **typed: Any,
) -> Said:
    """Create a campaign with its first tasks."""
    if not typed["budget"]:
        raise InputError("the campaign has no budget.", "Give --budget, the number of labels that may be bought.")
    needs_service()
    from nextlabel.application.status import questions_lacking
    from nextlabel.campaign.settings import CampaignSettings
    from nextlabel.files.tasks import open_tasks

    path = typed["features"]
    # --features names a file, or columns of the tasks.
    if path is not None and (Path(path).is_file() or ("," not in path and Path(path).suffix.lower() in FEATURES)):
        beside, typed["features"] = _read_features(path), None
    else:
        beside = None
    settings = typed_settings(typed)
    if settings.get("answer", "choice") in ("choice", "multi") and "questions" not in settings:
        settings = {"labels": LABELS, **settings}
    CampaignSettings.from_dict(settings)  # refused before the file is opened
    opened: AbstractContextManager[TaskReader | None] = (
        nullcontext() if tasks is None else open_tasks(tasks, task_column, score_column, gold_column)
    )
    with opened as first:
        config = CampaignSettings.from_dict({**settings, "show": _shown(settings.get("show"), first, score_column)})
        with service_at(db, create=True) as service, working("Adding tasks") as progress:
            if beside is not None and not config.learns_from_features:
                what = f"policy {config.policy!r}" if not config.knows_workers else "a campaign for numbers"
                raise InputError(f"{what} does not learn from features.", "Leave --features out.")
            made, added = service.create(config, id, first or (), _import_bar(first, progress))
            if beside is not None:
                say(_add_features(service, made, beside).sentence)
            row = service.store.row(made)
    read = [] if first is None else [*report_reading(first.report), *_say_columns(config, first, score_column, added)]
    say(f"Campaign {row.id}: {counted(row.tasks, 'task')}, {counted(row.budget, 'label')}, {state_of(row)}.")
    where = "" if has_password(db) else f" --db {db}"  # an address with a password came from NEXTLABEL_DB
    say(f"Serve it: nextlabel serve{where}. Links: nextlabel campaign links {row.id} ann bob{where}.")
    for sentence in questions_lacking(row):
        say(f"{sentence} nextlabel campaign add {row.id} --gold FILE{where}.")
    if config.knows_workers:
        audit = f"nextlabel campaign audit {row.id} --audits 60{where}"
        say(f"Labels alone cannot tell how many are right: when they are in, audit 30 to 60 items: {audit}.")
    return Said({**fields_of(row), "read": read}, text=f"{row.id}\n")


def _shown(show: list[str] | None, tasks: TaskReader | None, score_column: str | None) -> list[str] | None:
    """The columns that workers are shown: those named; else, without the scores, those that may be seen by anybody."""
    from nextlabel.campaign.settings import ALL, is_shown

    columns = () if tasks is None else tasks.columns
    if show is None:
        safe = [name for name in columns if is_shown(None, name) and name != score_column]
        return safe if score_column is not None and safe else None
    unknown = [name for name in show if columns and name != ALL and name not in columns]
    if unknown:
        raise InputError(f"--show: the file has no column {unknown[0][:60]!r}.", f"It has {listed(columns)}.")
    return show


#: The share of an import that reading and checking the tasks is, for the bar.
READING = 0.4


def _import_bar(reader: TaskReader | None, progress: Callable[[float], None]) -> Callable[[ImportRow, int], None]:
    """Shows how far an import has got: first tasks are read, then published."""

    def show(row: ImportRow, published: int) -> None:
        if row.state == "staging":
            progress(READING * (0.0 if reader is None else reader.share_read()))
        else:
            progress(READING + (1.0 - READING) * published / max(row.added, 1))

    return show


def _say_columns(config: CampaignSettings, tasks: TaskReader, score_column: str | None, added: Added) -> list[str]:
    """Tell on stderr which columns workers are not shown, that a score was not used, and which tasks are alike."""
    from nextlabel.campaign.settings import columns_notes

    notes = [*columns_notes(config.show, tasks.columns, score_column), *added.notes()]
    for note in notes:
        say(note)
    return notes


@verb()
def add(
    id: str = ID,
    tasks: str | None = TASKS,
    gold: str | None = flag("FILE", "Known answers, task and label: their tasks become control questions."),
    predictions: str | None = flag("FILE", "What a model predicts: task and label, or task and probabilities."),
    model: str | None = flag("NAME", "its labels are those of worker model:NAME.", needs="--predictions"),
    cost: float = number(
        "C", "Labels of the budget that one prediction costs. Default: 0.", default=0.0, needs="--predictions"
    ),
    features: str | None = flag("FILE", "What is known of items: a column task, and numbers, vectors or texts."),
    profiles: str | None = flag("FILE", "What is known of workers to come: worker, truth, answer, count."),
    replace_features: bool = switch("take away those that are there.", needs="--features"),
    task_column: str | None = flag(*ID_COLUMN),
    label_column: str = flag("NAME", "The column with the labels.", "label", needs="--gold"),
    score_column: str | None = SCORE_COLUMN,
    gold_column: str | None = GOLD_COLUMN,
    db: str = DB,
) -> Said:
    """Add tasks, known answers, predictions, features of items or profiles of workers, all of a file or none of it.

    A known answer is corrected by giving it again. Features may be of items that come later.
    """
    from nextlabel.files.labels import read_answers
    from nextlabel.files.tasks import open_tasks

    if sum(given is not None for given in (tasks, gold, predictions, features, profiles)) != 1:
        raise InputError(
            "nothing says what to add, or several things do.",
            "Give a file of TASKS, or --gold, --predictions, --features or --profiles with a FILE.",
        )
    if predictions is not None and model is None:
        raise InputError("the model has no name.", "Give --model NAME.")
    known_of = None if features is None else _read_features(features, task_column)
    answers = None if gold is None else read_answers(gold, task_column or "task", label_column)
    if gold is not None and not answers:
        raise InputError(f"{gold} has no answers.", "Give at least one task with its label.")
    file = tasks or predictions or profiles
    columns = (task_column, score_column, gold_column) if tasks is not None else ()
    opened = nullcontext() if file is None else open_tasks(file, *columns)
    with cast("AbstractContextManager[TaskReader]", opened) as rows, service_at(db) as service:
        if known_of is not None:
            return _add_features(service, id, known_of, replace_features)
        if answers is not None:
            changed, row = service[id].set_gold(answers), service.store.row(id)
            controls = row.controls - len(row.adjudicated)
            said = f"{counted(changed, 'answer')} new or corrected; {id} has {counted(controls, 'control question')}."
            return Said({"changed": changed, "controls": controls}, said)
        if profiles is not None:
            known = service.add_profiles(id, rows.rows())
            return Said({"known": known}, f"{id} knows {counted(known, 'worker')}.")
        with working(f"Adding {'tasks' if tasks is not None else 'predictions'}") as progress:
            if tasks is None:
                from nextlabel.application.predictions import add_predictions

                made = add_predictions(service, id, str(model), rows.rows(), cost, task_column, progress)
                charged = f" They cost {counted(made.charged, 'label')} of the budget." if made.charged else ""
                many = f"{counted(made.added, 'prediction')} of model {made.model}"
                read = report_reading(rows.report)
                return Said({**asdict(made), "read": read}, f"{many} added, {made.known:,} known before.{charged}")
            added = service.add_tasks(id, rows, progress=_import_bar(rows, progress))
        config = service.store.row(id).config
    notes = [*report_reading(rows.report), *_say_columns(config, rows, score_column, added)]
    sentence = f"{counted(added.added, 'task')} added, {added.known:,} known before, {added.tasks:,} in all."
    return Said({**asdict(added), "read": notes}, sentence)


def _read_features(path: str, task_column: str | None = None) -> Features:
    from nextlabel.files.features import read_features

    return read_features(path, task=task_column or "task")


def _add_features(service: CampaignService, id: str, read: Features, replace: bool = False) -> Said:
    added = service[id].add_features(read, replace=replace)
    sentence = f"Features of {counted(added.items, 'item')} added; {id} has {added.tasks:,} of these items now."
    return Said({**asdict(added), "read": read.sentences()}, sentence)


@verb(settings=setting_flags(changing=True))
def change(
    id: str = ID,
    paused: bool | None = flag(
        None, "Hand out no new tasks, or hand them out again.", param_decls=("--pause/--resume",)
    ),
    adjudicate: tuple[str, str] | None = flag(
        "TASK ANSWER", "Set the answer of a doubtful item: it is final and teaches who is good."
    ),
    undo_adjudication: str | None = flag("TASK", "Take such an answer back: the labels decide about it again."),
    accept_clock: bool = switch("Go on by the clock although it is far from the last event."),
    owner: str | None = flag("NAME", "Hand it over to an owner; none: administrators alone see it, as at first."),
    db: str = DB,
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
        campaign = service[id]
        accepted = accept_clock and campaign.accept_clock()
        if (typed["budget"] or "")[:1] in ("+", "-"):
            values["budget"] += service.store.row(id).budget
        if owner is not None:
            from nextlabel.service.access import give_campaign

            give_campaign(service.store, id, "" if owner == NONE else owner)
        if adjudicate is not None:
            campaign.adjudicate(dict([adjudicate]))
        if undo_adjudication is not None:
            campaign.undo_adjudication([undo_adjudication])
        if values:
            campaign.change(**values)
        if paused is not None:
            (campaign.pause if paused else campaign.resume)()
        row = service.store.row(id)
    sentence = f"{id} is {state_of(row)}"
    if "budget" in values:
        sentence += f" and may buy {row.budget:,} labels: {row.spent:,} spent, {row.reserved:,} out, {row.left:,} left"
    said = "" if not accept_clock else " It goes on by the clock." if accepted else " Nothing was wrong with its clock."
    said += "" if adjudicate is None else f" The answer of {adjudicate[0]} is {adjudicate[1]}."
    said += "" if owner is None else f" Its owner is {'nobody' if owner == NONE else owner}."
    said += "" if undo_adjudication is None else f" The labels decide about {undo_adjudication} again."
    return Said(fields_of(row), f"{sentence}.{said}")


@verb()
def status(
    id: str | None = argument("ID", "The campaign's id. Default: all campaigns.", None),
    db: str = DB,
    wait: bool = switch("With an id: work out 'at most' as well, by all labels, in some seconds."),
    capacity: bool = switch("Measure what a process and this database hold, in some seconds."),
) -> Report | Said:
    """Show the state of all campaigns, or of one with its certificate."""
    if capacity and (id is not None or wait):
        raise InputError("--capacity is about a process and its database.", "Leave the id and --wait out.")
    if wait and id is None:
        raise InputError("--wait is for one campaign, and none is named.", "Give its id as well.")
    with service_at(db) as service:
        if capacity:
            from nextlabel.application.capacity import capacity as measured

            with working("Measuring"):
                found = measured(service)
            told = {**asdict(found), "pairs_per_second": found.pairs_per_second(), "sentences": found.sentences()}
            return Said(told, text="\n".join([*found.sentences(), ""]))
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


#: Fields of the certificate that the status has.
OF_CERTIFICATE = ("now", "forecast", "upper", "gap", "price", "as_of_labels", "upper_as_of")


def _status(service: CampaignService, id: str, wait: bool) -> Report:
    from nextlabel.application.status import cost_of
    from nextlabel.campaign.notices import notice_table
    from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds

    row = service.store.row(id)
    found = service[id].certificate(wait=wait) if row.tasks else None
    promised = None if row.config.at_most_wrong is None else service[id].guarantee()
    fields = fields_of(row) | ({} if found is None else {name: getattr(found, name) for name in OF_CERTIFICATE})
    fields |= {} if found is None or found.worth is None else {"worth": asdict(found.worth)}
    fields |= {} if promised is None else {"guarantee": asdict(promised)}
    fields |= {"notices": [notice_table(one) for one in row.noticed]}
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
    more, caption = ([], "No tasks yet: nextlabel campaign add.") if found is None else _expected(row, found)
    said = [row.paused_because, caption]
    if promised is not None:
        said = [promised.sentence, promised.next_step, " ".join(filter(None, said))]
    lines = [
        line
        for one in row.noticed
        for line in (one.text, *(f"  {it.replace('_', ' ')}: {_call_for(id, one.worker, it)}" for it in one.actions))
    ]
    title, caption = f"{row.id} {row.config.name}".strip(), " ".join(filter(None, said))
    return Report(title, [Table(title, ["", ""], rows + more)], [caption], closing=lines, fields=fields)


def _expected(row: CampaignRow, found: Certificate) -> tuple[list[list[str]], str]:
    """What the certificate expects, in rows and in a sentence."""
    untested = row.config.knows_workers and not row.controls and found.audit is None
    contradicted = any(one.kind == "truths_contradict" for one in row.noticed)
    name = "known items right" if contradicted else "agreement now" if untested else "expected now"
    rows = [[name, f"{found.now:.4f}"], *([["at most in the end", found.withheld]] if found.withheld else [])]
    if found.worth is not None:
        rows.append(["an item is worth", f"{found.worth.now:.4g}, and {found.worth.ceiling:.4g} if truths were known"])
        if found.worth.upper is not None:
            rows.append(["in the end at most", f"{found.worth.upper:.4g}"])
    if found.upper is not None:
        return [
            *rows,
            ["at most in the end", f"{found.upper:.4f}"],
            ["price of the next label", f"{found.price:.4f}"],
        ], (
            f"Expected {found.now:.2%} of the tasks right if it stopped now; no way of spending the "
            f"{counted(row.left + row.reserved, 'label')} left can be expected to get past {found.upper:.2%}."
        )
    caption = f"Expected {found.now:.2%} of the tasks right if it stopped now, by what was learnt of the workers."
    if contradicted:
        caption = found.rests_on
    if untested and row.kept:
        caption += (
            " No truth is known, and on recorded crowds that chose labels agreement was 3 to 11 points above it: "
            f"nextlabel campaign audit {row.id} --audits 60."
        )
    return rows, caption


def _call_for(id: str, worker: str | None, action: str) -> str:
    """What to type to act on a notice."""
    if worker is None:
        return f"nextlabel campaign {f'audit {id} --audits 60' if action == 'audit' else f'links {id} NAME ...'}"
    first, _, second = action.partition("_and_")
    more = f" && nextlabel campaign workers {id} drop-labels {shlex.quote(worker)}" if second else ""
    return f"nextlabel campaign workers {id} {first} {shlex.quote(worker)}{more}"


Form = Literal["csv", "jsonl", "xlsx"]
#: Columns of a file, and its rows by column.
Columns = tuple[list[str], Iterator[dict[str, Any]]]


@verb()
def export(
    context: typer.Context,
    id: str = ID,
    rows: Literal["tasks", "labels", "workers", "profiles", "events", "items"] = flag(
        None, "What a row is; items are those of pairs, in their order.", "tasks"
    ),
    unanswered: bool = switch("also leases without an answer.", needs="--rows labels"),
    dropped: bool = switch("also labels that were dropped.", needs="--rows labels"),
    after: int = whole("SEQ", 0, "0", "only events after the one with this number.", 0, needs="--rows events"),
    limit: int | None = whole("N", 1, "1000", "at most this many. Default: all.", needs="--rows events"),
    save: str | None = flag("FILE", "Write to this file. Default: stdout."),
    format: Form = flag(None, "CSV, one JSON object per row, or Excel.", "csv"),
    db: str = DB,
    as_json: bool = JSON,
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
        from nextlabel.application.status import cost_of
        from nextlabel.application.worker_reports import COLUMNS, cells
        from nextlabel.campaign.results import GivenLabel

        cost, form = cost_of(service.store.row(id)), "jsonl" if as_json and target is None else format
        tables: dict[str, Callable[[], Columns]] = {
            "tasks": lambda: _results(service, id, form),
            "labels": lambda: _columns(
                [one.name for one in fields(GivenLabel)], service[id].labels(unanswered=unanswered, dropped=dropped)
            ),
            "workers": lambda: (
                list(COLUMNS),
                (dict(zip(COLUMNS, cells(one), strict=True)) for one in service.worker_reports.of(id)),
            ),
            "profiles": lambda: (["worker", "truth", "answer", "count"], iter(service.profiles(id))),
            "events": lambda: _columns(["seq", "at", "kind", "data"], islice(service[id].events(after), limit)),
            "items": lambda: (["item", "rank", "score", "sd", "comparisons"], iter(service[id].order()["items"])),
        }
        header, table = tables[rows]()
        if as_json and target is None:
            print_json({rows: list(table)})
            return
        with nullcontext(sys.stdout) if target is None else whole_file(target) as stream:
            written = _write(header, table, stream, format)
    if as_json:
        print_json({"written": written, "file": save})
    else:
        what = counted(written, "lease" if unanswered else rows.removesuffix("s"))
        said = "" if cost is None or rows not in ("tasks", "workers") else f" The labels cost {cost.sentence}"
        say(f"{what} written{'' if save is None else f' to {save}'}.{said}")


def _columns(header: list[str], given: Iterable[Any]) -> Columns:
    return header, ({name: getattr(one, name) for name in header} for one in given)


def _results(service: CampaignService, id: str, form: str) -> Columns:
    """The columns of a file, and one object per task; its payload last, in CSV the columns that it came with."""
    from nextlabel.application.frames import ResultTable, result_table

    whole = form != "jsonl"
    table = result_table(service, id) if whole else ResultTable(service.store.row(id).config.answer_type, ())
    rows = (
        {**dict(zip(table.header, table.cells(one), strict=whole)), **({} if whole else {"payload": one.payload})}
        for one in service[id].results()
    )
    return table.header, rows


def _write(header: list[str], rows: Iterable[dict[str, Any]], stream: IO[str], form: Form) -> int:
    """Write all rows; return how many."""
    written = count()
    numbered = (row for row, _ in zip(rows, written, strict=False))
    plain = ((row[name] for name in header) for row in numbered)
    cells = chain([header], ([json.dumps(one) if isinstance(one, dict) else one for one in line] for line in plain))
    if form == "xlsx":
        write_workbook(cast("TextIO", stream).buffer, cells)
    elif form == "csv":
        stream.writelines(export_text([line]) for line in cells)
    else:
        stream.writelines(json.dumps(row) + "\n" for row in numbered)
    return next(written)


@verb()
def audit(
    id: str = ID,
    audits: str | None = flag(
        "K", "Draw so many more items at random for the expert; with --freeze several for several looks: 80,150,250."
    ),
    seed: int = whole("S", 0, "0", SEED_HELP, 0, needs="--audits"),
    save: str | None = flag(
        "FILE",
        "Write the drawn items for the expert: task, label (to fill in; several questions: a column of each), payload.",
    ),
    answers: str | None = flag("FILE", "The expert's answers: task, and label or a column of each question."),
    link: bool = switch("Make a link by which an expert answers the drawn items, without a token."),
    freeze: bool = switch("For a guarantee: freeze the labels and draw --audits items, or as needed."),
    of: str | None = flag("LABEL", "Speak of the items with this label, or of this question, alone.", needs="--freeze"),
    next_look: bool = switch("Go on to the next number of audits instead of asking for items."),
    reopen: bool = switch("Let labels decide again, which voids the certificate of a guarantee."),
    record: str | None = flag("FILE", "Write the guarantee's record, by which anybody can check it."),
    public_url: str | None = flag(*PUBLIC_URL, needs="--link"),
    db: str = DB,
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
    target, kept = (
        None if path is None else checked_file(flag, path) for flag, path in (("--save", save), ("--record", record))
    )
    from nextlabel.application.guarantees import guarantee_record
    from nextlabel.crowd.questions import Form as Questions
    from nextlabel.files.labels import read_answers

    with service_at(db) as service:
        row, campaign, made = service.store.row(id), service[id], dict[str, Any]()
        kind = row.config.answer_type
        asked = kind.column_names if isinstance(kind, Questions) else ()
        found: dict[str, Any] = {}
        try:
            if answers is not None and not asked:
                found |= read_answers(answers)
            for name in asked if answers is not None else ():
                for task, said in read_answers(answers, label=name).items():
                    found.setdefault(task, {})[name] = said
        except FileFormatError as error:  # other commands have flags for columns
            hint = "Fill in the file that --save has written." if "-column" in error.hint else error.hint
            raise FileFormatError(error.message, hint) from None
        promised = freeze or reopen or next_look or kept is not None or bool(row.guarantee)
        if promised and (freeze or (planned is not None and not reopen)):
            campaign.freeze(planned, of)
        elif not promised and planned is not None:
            campaign.draw_audit(planned[0], seed)
        if reopen:
            campaign.reopen_labels()
        if answers is not None:
            (campaign.answer_guarantee if promised else campaign.answer_audit)(found)
        if next_look:
            campaign.next_look()
        if kept is not None:
            guarantee_record(service, id).save(kept)
        items = campaign.guarantee_items() if promised else campaign.audit_items()
        if link:
            made = _link(service, id, public_url)
        if target is not None:
            with whole_file(target) as stream:  # for the expert, who fills in the column label
                rows = [one for one in items if not promised or one.label is None]
                said_of = kind.cells if isinstance(kind, Questions) and asked else lambda label: [label]
                lines = [[one.task, *said_of(one.label), json.dumps(one.payload, ensure_ascii=False)] for one in rows]
                stream.write(export_text([["task", *(asked or ["label"]), "payload"], *lines]))
        known = sum(one.label is not None for one in items)
        standing = campaign.guarantee() if promised else None
        certificate = campaign.certificate() if known and not promised else None
    text = f"{made['link']}\n" if made else ""
    if standing is not None:
        return Said({**asdict(standing), **made}, standing.sentence, text)
    audited = None if certificate is None else certificate.audit
    fields = {"drawn": len(items), "answered": known, "audit": None if audited is None else asdict(audited), **made}
    if audited is not None and certificate is not None:
        new = row.tasks - row.audit_of
        itself = f" The model itself expects {certificate.now:.1%}." if row.config.counts_right else ""
        whole = f"the items but {new:,} that were added since" if new else "all items"
        forms = bool(audited.questions)
        what, each = ("forms", " in every answer") if forms else ("labels", "")
        of = f"the answers to {whole}" if forms else whole
        text += (
            f"{audited.right} of {audited.audited} audited {what} are right{each}: {audited.accuracy:.1%} of {of}, "
            f"with a 95% interval from {audited.low:.1%} to {audited.high:.1%}.{itself}\n"
        )
        for name, one in audited.questions.items():
            text += (
                f"{name}: {one.right} of {one.audited} audited answers are right, {one.accuracy:.1%} of "
                f"{counted(one.tasks, 'answer')}, with a 95% interval from {one.low:.1%} to {one.high:.1%}.\n"
            )
    written = "" if save is None else f"; written to {save}"
    return Said(fields, f"{counted(len(items), 'item')} drawn, {known:,} answered{written}.", text)


def _link(service: CampaignService, id: str, public_url: str | None) -> dict[str, Any]:
    """The link for an expert, and a warning about its address if there is one, which is said too."""
    from nextlabel.campaign.known_answers import check_drawn
    from nextlabel.service.links import link_url

    row = service.store.row(id)
    if not row.guarantee:
        check_drawn(row)
    signer, settings, warning = links_at(service.store, public_url)
    token = signer.audit_token(id, 0 if row.guarantee else len(row.audit))
    say(f"warning: {warning}" if warning else f"nextlabel campaign links {id} --revoke --audit ends it.")
    return {"link": link_url(settings.base_url, token), "warning": warning or None}


#: Workers in the table on the screen.
SHOWN = 50
Action = Literal["pause", "block", "restore", "drop-labels", "restore-labels", "erase", "record"]
#: Actions that have a reason.
ACTS = ("pause, block or drop-labels", lambda typed: typed["action"] in ("pause", "block", "drop-labels"))


@verb()
def workers(
    id: str = ID,
    action: Action | None = argument(
        "[ACTION]",
        "pause, block, restore, drop-labels, restore-labels, erase or record. Default: show all workers.",
        None,
    ),
    worker: str | None = argument("[WORKER]", "The worker's name.", None),
    reason: str = flag("TEXT", "Why, for the log; the worker does not see it.", "", needs=ACTS),
    db: str = DB,
) -> Said | Report:
    """Show each worker's labels, accuracy, pay and standing, or change how one of them stands.

    A paused worker gets no new task; a blocked one also loses the one that they hold. Dropped labels leave the results
    but stay spent. Erasing takes a person's name, comments, visits and links out for good; record prints all that is
    kept about them.
    """

    standings: dict[str, Standing] = {"pause": "paused", "block": "blocked", "restore": "active"}
    with service_at(db) as service:
        if action is not None and worker is None:
            raise InputError(
                f"nothing says whom to {action}.", f"Give nextlabel campaign workers {id} {action} WORKER."
            )
        who = str(worker)
        if action in standings:
            row = service[id].set_standing(who, standings[action], reason)
            now = {"worker": who, "standing": row.standing, "reason": row.reason}
            return Said(now, f"{who} is {row.standing}. {STANDINGS[row.standing]}")
        if action == "drop-labels":
            many = service[id].drop_labels(who, reason).changed
            said = f"{counted(many, 'label')} of {who} dropped; they stay spent."
            return Said({"worker": who, "dropped": many}, said)
        if action == "restore-labels":
            done = service[id].restore_labels(who)
            left = f" {counted(done.left, 'label')} found no room." if done.left else ""
            told = {"worker": who, "restored": done.changed, "left": done.left}
            return Said(told, f"{counted(done.changed, 'label')} of {who} restored.{left}")
        if action == "record":
            record = service.worker_reports.record(id, who)
            return Said(record, json.dumps(record, indent=2, ensure_ascii=False))
        if action == "erase":
            erased = service[id].erase_worker(who)
            said = f"{erased.worker} is what the log calls this person now. Backups still have the name."
            return Said({"worker": erased.worker, "labels": erased.labels}, said)
        reports, alike = service.worker_reports.of(id), service.worker_reports.learnt(id).agreement
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
    total = counted(len(reports), "worker")
    caption = f"{total}. Accuracy with its 95% interval. All as a file: nextlabel campaign export {id} --rows workers."
    caption = " ".join([caption, *([] if alike is None else alike.sentences())])
    head = ["worker", "labels", "accuracy", "agreement", "amount", "standing", "stands out"]
    fields = {"workers": [asdict(one) for one in reports], "agreement": None if alike is None else alike.as_dict()}
    return tabled(f"Workers of {id}", head, rows, caption, fields)


@verb()
def links(
    id: str = ID,
    workers: list[str] | None = argument("WORKERS...", "The workers' names.", None),
    revoke: bool = switch("End the links of these workers, in running services within seconds."),
    join: bool = switch("the link for platforms, and the sessions of all who came by it.", needs="--revoke"),
    audit: bool = switch("the links of experts who answer an audit.", needs="--revoke"),
    public_url: str | None = flag(*PUBLIC_URL, needs=("links that are made", lambda typed: not typed["revoke"])),
    db: str = DB,
) -> Said:
    """Make a link per worker, and one for platforms such as Prolific; or end links."""
    given = workers or []
    if revoke and not given and not join and not audit:
        raise InputError("nothing says whose links are to end.", "Name workers, or give --join or --audit.")
    with service_at(db) as service:
        from nextlabel.service.links import link_url, revoke_links

        service.store.row(id)
        if revoke:
            revoke_links(service.store, id, given, join, audit)
            platform, experts = ["everybody who came from a platform"] if join else [], ["experts"] if audit else []
            ended = listed([*given, *platform, *experts])
            fields = {"campaign": id, "workers": given, "join": join, "audit": audit}
            return Said(fields, f"Links to {id} are no longer valid for {ended}.")
        signer, settings, warning = links_at(service.store, public_url)
        made = {worker: link_url(settings.base_url, signer.worker_token(id, worker)) for worker in given}
        address = link_url(settings.base_url, signer.join_token(id))
    if warning:
        say(f"warning: {warning}")
    lines = [*(f"{worker}\t{link}\n" for worker, link in made.items()), f"any\t{address}?PROLIFIC_PID=...\n"]
    return Said({"workers": made, "join": address, "warning": warning or None}, text="".join(lines))


#: What has an effect when a webhook is added.
ADDS = ("add", lambda typed: typed["action"] == "add")


@verb()
def webhooks(
    id: str = ID,
    action: Literal["add", "test", "enable", "remove"] | None = argument(
        "[ACTION]", "add, test, enable or remove. Default: show them.", None
    ),
    which: str | None = argument(
        "[WHICH]", "To add: https://..., mailto:... or chat+https://... Else a webhook's id.", None
    ),
    types: str | None = flag(
        "A,B",
        "With add: what to tell: label.created, task.closed, ... Default: everything; to people little.",
        needs=ADDS,
    ),
    from_start: bool = switch("With add: also tell what happened before.", needs=ADDS),
    db: str = DB,
) -> Said | Report:
    """Show the addresses that are told what happens in a campaign, or change them.

    add shows the secret by which messages are signed, once. test sends a message now, enable goes on with a webhook
    that was disabled or fails: it is told all that it has missed.
    """
    needs_service()
    if action is not None and which is None:
        raise InputError(f"nothing says what to {action}.", "Give the address to add, or the webhook's id.")
    with service_at(db) as service:
        from nextlabel.application.webhooks import Webhooks
        from nextlabel.service.settings import ServiceSettings
        from nextlabel.service.webhooks import WebhookSender, checked_address, send_trial

        store, settings = service.store, ServiceSettings()
        hooks, name = Webhooks(store), str(which)
        if action == "add":
            told = None if types is None else names_of(types)
            made = hooks.add(id, checked_address(name, settings), told, from_start)
            secret = WebhookSender(store, settings).secret_of(made)
            shown = " Its secret, shown this once:" if secret else ""
            say(f"Webhook {made.id} tells {made.url}: {', '.join(made.types)}.{shown}")
            return Said({**_fields(made), "secret": secret}, text=f"{secret or made.id}\n")
        if action == "test":
            from anyio.from_thread import start_blocking_portal

            tested = hooks.get(id, name)
            with start_blocking_portal() as portal:
                reply = portal.call(send_trial, store, settings, tested, hooks.trial(tested))
            said = f"acknowledge{'d' if reply.ok else ''} the message: {reply.said}."
            if not reply.ok:
                raise UnavailableError(f"{tested.url} did not {said}", "See the receiver's log.")
            return Said({"ok": reply.ok, "said": reply.said}, f"{tested.url} {said}")
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
    id: str = ID,
    yes: bool = switch("Do not ask."),
    db: str = DB,
) -> Said:
    """Delete a campaign with its tasks, labels, log and links, for good. Export first what you want to keep."""
    with service_at(db) as service:
        row = service.store.row(id)
        what = f"{counted(row.tasks, 'task')} and {counted(row.kept, 'label')}"
        if not yes and not sys.stdin.isatty():
            raise InputError(f"nobody can be asked whether {id} with {what} is to be deleted.", "Give --yes if it is.")
        asked = f"Delete {id} with {what} for good? Type its id"
        typed = id if yes else typer.prompt(asked, default="", show_default=False, err=True)
        if typed.strip() != id:
            raise InputError(f"{typed[:60]!r} is not the id of the campaign: nothing was deleted.", "Type its id.")
        with working("Deleting") as progress:
            removed = service.delete(id, progress)
    return Said({"id": id, "deleted": True, "rows_removed": removed}, f"{id} is deleted.")


@verb()
def verify(
    id: str = ID,
    repair: bool = switch("Write anew whatever does not follow from the log."),
    db: str = DB,
) -> Said:
    """Replay the log beside the campaign, and report what does not follow from it.

    The campaign goes on meanwhile. Without --repair nothing is written, and the exit code is 1 if something differs.
    """
    from nextlabel.store.verify import verify as replayed

    with service_at(db) as service:
        with working("Replaying events") as progress:
            found = replayed(service.store, id, repair, progress)
        row = service.store.row(id)
    fields = {**fields_of(row), "events": found.events, "unchanged": found.right, "differing": found.differing}
    other = [counted(many, *NOUNS.get(table, ("row", "rows"))) for table, many in found.differing.items()]
    finding = "Every row follows from them."
    if other:
        done = "All of it was rebuilt" if repair else "Nothing was written"
        finding = f"Not following from them: {', '.join(other)}. {done}."
    sentence = f"{id}: {counted(found.events, 'event')} replayed. {finding}"
    return Said(fields, sentence, code=0 if repair or found.right else 1)


app = typer.Typer(help="Create, watch and steer live campaigns.", no_args_is_help=True)
for _command in (create, add, status, change, workers, links, export, audit, webhooks, verify, delete):
    app.command()(_command)
