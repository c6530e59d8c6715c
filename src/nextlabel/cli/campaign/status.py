"""``nextlabel campaign status``, ``export`` and ``audit``: what a campaign has found out so far."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from itertools import islice
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli.database import Id, fields_of, service_at, state_of
from nextlabel.cli.options import DB, Db, Json, PublicUrl, Seed, refuse_idle, text, whole
from nextlabel.cli.output import answer as tell
from nextlabel.cli.output import checked_file, print_json, print_table, say, working
from nextlabel.errors import InputError
from nextlabel.files.write import export_text, whole_file
from nextlabel.prose import counted, without_passwords

if TYPE_CHECKING:
    from pathlib import Path

    from nextlabel.campaign.replies import AuditItem
    from nextlabel.campaigns.service import CampaignService

Form = Literal["csv", "jsonl"]
Row = dict[str, Any]


def status(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The campaign's id. Default: all campaigns.")] = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Show the state of all campaigns, or of one with its certificate."""
    with service_at(db) as service:
        if id is not None:
            service.store.row(id)
            with working("Working out the certificate"):
                _show_status(service, id, as_json)
            return
        rows = service.store.campaigns()
    if as_json:
        print_json({"campaigns": [fields_of(row) for row in rows]})
        return
    cells = [
        [
            row.id,
            row.config.name[:30],
            state_of(row),
            f"{row.tasks:,}",
            f"{row.spent:,} of {row.budget:,}",
            f"{row.reserved:,}",
        ]
        for row in rows
    ]
    print_table(
        f"Campaigns in {without_passwords(db)}",
        ["id", "name", "state", "tasks", "labels", "out"],
        cells,
        f"{counted(len(rows), 'campaign')}.",
    )


def _show_status(service: CampaignService, id: str, as_json: bool) -> None:
    from nextlabel.campaign.notices import notice_table
    from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds

    row = service.store.row(id)
    found = service.certificate(id) if row.tasks else None
    if as_json:
        extra = (
            {} if found is None else {"now": found.now, "upper": found.upper, "gap": found.gap, "price": found.price}
        )
        promised = {} if row.config.at_most_wrong is None else {"guarantee": asdict(service.guarantees.status(id))}
        notices = [notice_table(one) for one in row.rules.noticed]
        print_json({**fields_of(row), **extra, **promised, "notices": notices})
        return
    r, mu = arrival_rate(row), completion_rate(row)
    rows = [
        ["state", state_of(row)],
        ["tasks", f"{row.tasks:,}"],
        ["labels", f"{row.spent:,} of {row.budget:,}, {row.reserved:,} out, {row.left:,} left"],
        ["late, expired, released", f"{row.late:,}, {row.expired:,}, {row.released:,}"],
        ["workers per minute", "not known yet" if r is None else f"{60 * r:.3g}"],
        ["seconds per label", "not known yet" if mu is None else f"{1 / mu:.3g}"],
        ["lease", f"{lease_seconds(row):.0f} s"],
    ]
    caption = "No tasks yet: nextlabel campaign add."
    if found is not None:
        untested = row.config.knows_workers and not row.controls and found.audit is None
        rows.append(["agreement now" if untested else "expected now", f"{found.now:.4f}"])
        caption = f"Expected {found.now:.2%} of the tasks right if it stopped now, by what was learnt of the workers."
        if untested and row.kept:
            caption += " No truth is known, and on recorded crowds agreement was 3 to 11 points above it: "
            caption += f"nextlabel campaign audit {id} --audits 60."
        if found.withheld:
            rows.append(["at most in the end", found.withheld])
    if found is not None and found.upper is not None:
        rows += [["at most in the end", f"{found.upper:.4f}"], ["price of the next label", f"{found.price:.4f}"]]
        caption = (
            f"Expected {found.now:.2%} of the tasks right if it stopped now; no way of spending the "
            f"{counted(row.left + row.reserved, 'label')} left can be expected to get past {found.upper:.2%}."
        )
    if row.config.at_most_wrong is not None:
        caption = f"{service.guarantees.status(id).sentence} {caption}"
    print_table(f"{row.id} {row.config.name}".strip(), ["", ""], rows, caption)
    for one in row.rules.noticed:
        sys.stdout.write(f"{one.text}\n")
        for action in one.actions:
            sys.stdout.write(f"  {action.replace('_', ' ')}: {_command(id, one.worker, action)}\n")


def _command(id: str, worker: str | None, action: str) -> str:
    """What to type to act on a notice."""
    if worker is None:
        return f"nextlabel campaign links {id} NAME ..."
    first, _, second = action.partition("_and_")
    more = f" && nextlabel campaign workers {id} drop-labels {shlex.quote(worker)}" if second else ""
    return f"nextlabel campaign workers {id} {first} {shlex.quote(worker)}{more}"


def export(
    context: typer.Context,
    id: Id,
    rows: Annotated[
        Literal["tasks", "labels", "workers", "events"],
        typer.Option(help="One row per task, one for each worker's answer to a task, one per worker, or the log."),
    ] = "tasks",
    unanswered: Annotated[
        bool, typer.Option("--unanswered", help="With --rows labels: also leases without an answer.")
    ] = False,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="With --rows labels: also labels that were dropped.")
    ] = False,
    after: Annotated[
        int, whole("--after", "SEQ", 0, "0", "With --rows events: only events after the one with this number.")
    ] = 0,
    limit: Annotated[
        int | None, whole("--limit", "N", 1, "1000", "With --rows events: at most this many. Default: all.")
    ] = None,
    save: Annotated[str | None, text("--save", "FILE", "Write to this file. Default: stdout.")] = None,
    form: Annotated[Form, typer.Option("--format", help="One CSV row or one JSON object per row.")] = "csv",
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Write every task with its label, its probability, its label counts and the event that closed it.

    With --rows labels: who answered what, and when. workers, backtest, prior, rates and plan --pilot read that file,
    or the campaign itself as campaign:ID. With --rows workers: labels, time and amount of each worker, with agreement,
    accuracy and what stands out. With --rows events: the log.
    """
    if as_json and save is None:
        refuse_idle(context, ["form"], "--save, or without --json")
    if rows != "labels":
        refuse_idle(context, ["unanswered", "dropped"], "--rows labels")
    if rows != "events":
        refuse_idle(context, ["after", "limit"], "--rows events")
    target = None if save is None else checked_file("--save", save)
    with service_at(db) as service:
        if rows == "labels":
            header, table = _labels(service, id, unanswered, dropped)
        elif rows == "workers":
            header, table = _workers(service, id)
        elif rows == "events":
            header, table = _events(service, id, after, limit)
        else:
            header, table = _results(service, id, "jsonl" if as_json and target is None else form)
        if target is not None:
            with whole_file(target) as stream:
                written = _write(header, table, stream, form)
        elif as_json:
            print_json({rows: list(table)})
            return
        else:
            written = _write(header, table, sys.stdout, form)
    if as_json:
        print_json({"written": written, "file": save})
    else:
        what = counted(written, "lease" if unanswered else rows.removesuffix("s"))
        say(f"{what} written{'' if save is None else f' to {save}'}.")


def _events(service: CampaignService, id: str, after: int, limit: int | None) -> tuple[list[str], Iterator[Row]]:
    """The columns of the log, and one object per event."""
    from nextlabel.campaigns.facade import Campaign

    service.store.row(id)
    events = islice(Campaign(service, id).events(after), limit)
    columns = ["seq", "at", "kind", "data"]
    return columns, ({name: getattr(event, name) for name in columns} for event in events)


def _results(service: CampaignService, id: str, form: Form) -> tuple[list[str], Iterator[Row]]:
    """The columns of a file, and one object per task; its payload last, in CSV the columns that it came with."""
    from nextlabel.campaigns.frames import result_table

    table = result_table(service, id) if form == "csv" else None
    names = [] if table is None else table.names
    counts = [f"count_{name}" for name in service.store.row(id).config.labels]
    known = ["task", "label", "probability", "labels", *counts, "in_flight", "closed_by", "closed_reason"]
    known += ["control", "source"]
    header = [*known, *names]
    rows = (
        {
            "task": result.task,
            "label": result.label,
            "probability": round(result.probability, 6),
            "labels": result.labels,
            **dict(zip(counts, result.counts.values(), strict=True)),
            "in_flight": result.in_flight,
            "closed_by": result.closed_by,
            "closed_reason": result.closed_reason,
            "control": result.control,
            "source": result.source,
            **({} if table is None else dict(zip(names, table.originals(result), strict=True))),
            **({"payload": result.payload} if table is None else {}),
        }
        for result in service.results(id)
    )
    return header, rows


def _labels(service: CampaignService, id: str, unanswered: bool, dropped: bool) -> tuple[list[str], Iterator[Row]]:
    """The columns of a file, and one object per label."""
    from nextlabel.campaign.results import GivenLabel

    service.store.row(id)
    return [field.name for field in fields(GivenLabel)], (
        asdict(one) for one in service.labels(id, unanswered, dropped)
    )


def _workers(service: CampaignService, id: str) -> tuple[list[str], Iterator[Row]]:
    """The columns of a file, and one object per worker."""
    from nextlabel.campaigns.worker_reports import COLUMNS, cells

    return list(COLUMNS), (dict(zip(COLUMNS, cells(one), strict=True)) for one in service.worker_reports.of(id))


def _write(header: Sequence[str], rows: Iterable[Row], stream: IO[str], form: Form) -> int:
    """Write all rows; return how many."""
    written = 0
    if form == "csv":
        stream.write(export_text([header]))
    for row in rows:
        cells = [json.dumps(row[name]) if isinstance(row[name], dict) else row[name] for name in header]
        stream.write(export_text([cells]) if form == "csv" else json.dumps(row) + "\n")
        written += 1
    return written


def audit(
    context: typer.Context,
    id: Id,
    audits: Annotated[
        int | None,
        whole("--audits", "K", 1, "60", "Draw so many more items at random for the expert.", show_default=False),
    ] = None,
    seed: Seed = 0,
    save: Annotated[
        str | None, text("--save", "FILE", "Write the drawn items for the expert: task, label (to fill in), payload.")
    ] = None,
    answers: Annotated[str | None, text("--answers", "FILE", "The expert's answers: task, label.")] = None,
    link: Annotated[
        bool, typer.Option("--link", help="Make a link by which an expert answers the drawn items, without a token.")
    ] = False,
    freeze: Annotated[
        bool,
        typer.Option("--freeze", help="For a guarantee: freeze the labels and draw --audits items, or as needed."),
    ] = False,
    reopen: Annotated[
        bool, typer.Option("--reopen", help="Let labels decide again, which voids the certificate of a guarantee.")
    ] = False,
    record: Annotated[
        str | None, text("--record", "FILE", "Write the guarantee's record, by which anybody can check it.")
    ] = None,
    public_url: PublicUrl = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Audit the results: an expert's answers to items drawn at random correct the expected accuracy.

    The file that --save writes has an empty column label; filled in, it is what --answers reads. The expert should not
    see the campaign's results. With --freeze the labels are frozen, and --answers, --save and --link are about the
    guarantee that at most --at-most-wrong of them (a setting of the campaign) are wrong, until --reopen.
    """
    if freeze and reopen:
        raise InputError("--freeze and --reopen exclude each other.", "Give one of them.")
    if audits is None:
        refuse_idle(context, ["seed"], "--audits")
    if not link:
        refuse_idle(context, ["public_url"], "--link")
    target = None if save is None else checked_file("--save", save)
    from nextlabel.beliefs.rewards import Accuracy
    from nextlabel.files.labels import read_answers

    found = None if answers is None else read_answers(answers)
    kept = None if record is None else checked_file("--record", record)
    with service_at(db) as service:
        row = service.store.row(id)
        if freeze or reopen or kept is not None or row.rules.guarantee:
            guarantees = service.guarantees
            if freeze or (audits is not None and not reopen):
                guarantees.freeze(id, audits)
            if reopen:
                guarantees.reopen(id)
            if found is not None:
                guarantees.answer(id, found)
            if kept is not None:
                guarantees.record(id).save(kept)
            address, warning = _link(service, id, public_url) if link else (None, "")
            if target is not None:
                _write_items(target, [one for one in guarantees.items(id) if one.label is None])
            standing = guarantees.status(id)
            if address is not None and not as_json:
                sys.stdout.write(f"{address}\n")
                say(f"warning: {warning}" if warning else f"nextlabel campaign links {id} --revoke --audit ends it.")
            made = {} if address is None else {"link": address, "warning": warning or None}
            tell(as_json, {**asdict(standing), **made}, standing.sentence)
            return
        if audits is not None:
            service.audits.draw(id, audits, seed)
        if found is not None:
            service.audits.answer(id, found)
        items = service.audits.items(id)
        address, warning = _link(service, id, public_url) if link else (None, "")
        if target is not None:
            _write_items(target, items)
        known = sum(one.label is not None for one in items)
        certificate = service.certificate(id) if known else None
    if as_json:
        result = None if certificate is None or certificate.audit is None else asdict(certificate.audit)
        made = {} if address is None else {"link": address, "warning": warning or None}
        print_json({"drawn": len(items), "answered": known, "audit": result, **made})
        return
    if address is not None:
        sys.stdout.write(f"{address}\n")
        say(f"warning: {warning}" if warning else f"nextlabel campaign links {id} --revoke --audit ends the link.")
    say(f"{counted(len(items), 'item')} drawn, {known:,} answered{'' if save is None else f'; written to {save}'}.")
    if certificate is not None and certificate.audit is not None:
        shown = certificate.audit
        itself = f" The model itself expects {certificate.now:.1%}." if row.config.reward == Accuracy() else ""
        sys.stdout.write(
            f"{shown.right} of {shown.audited} audited labels are right: {shown.accuracy:.1%} of all "
            f"items, with a 95% interval from {shown.low:.1%} to {shown.high:.1%}.{itself}\n"
        )


def _write_items(target: Path, items: Iterable[AuditItem]) -> None:
    """Items for the expert, who fills in the column label."""
    with whole_file(target) as stream:
        lines: list[list[Any]] = [["task", "label", "payload"]]
        lines += [[one.task, one.label, json.dumps(one.payload, ensure_ascii=False)] for one in items]
        stream.write(export_text(lines))


def _link(service: CampaignService, id: str, public_url: str | None) -> tuple[str, str]:
    """The link for an expert, and what is to be said about its address."""
    from nextlabel.campaign.known_answers import check_drawn
    from nextlabel.service.app_state import link_warning
    from nextlabel.service.links import LinkSigner, audit_url
    from nextlabel.service.settings import ServiceSettings

    row = service.store.row(id)
    if not row.rules.guarantee:
        check_drawn(row)
    settings = ServiceSettings(public_url=public_url)
    end = 0 if row.rules.guarantee else len(row.rules.audit)
    token = LinkSigner.of(service.store, settings.key_file).audit_token(id, end)
    return audit_url(settings.base_url, token), link_warning(settings.base_url)
