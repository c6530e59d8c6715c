"""``nextlabel campaign audit``: draw random items for an expert, take the answers in, and say what they show."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json, PublicUrl, Seed, refuse_idle, text
from nextlabel.cli.output import print_json, say
from nextlabel.cli.output_files import checked_file
from nextlabel.files.write import export_text, whole_file
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService


def audit(
    context: typer.Context,
    id: Id,
    draw: Annotated[int | None, typer.Option(metavar="N", min=1, help="Draw so many more items at random.")] = None,
    seed: Seed = 0,
    save: Annotated[
        str | None, text("--save", "FILE", "Write the drawn items for the expert: task, label (to fill in), payload.")
    ] = None,
    answers: Annotated[str | None, text("--answers", "FILE", "The expert's answers: task, label.")] = None,
    link: Annotated[
        bool, typer.Option("--link", help="Make a link by which an expert answers the drawn items, without a token.")
    ] = False,
    public_url: PublicUrl = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Audit the results: an expert's answers to items drawn at random correct the expected accuracy.

    The file that --save writes has an empty column label; filled in, it is what --answers reads. The expert should not
    see the campaign's results.
    """
    if draw is None:
        refuse_idle(context, ["seed"], "--draw")
    if not link:
        refuse_idle(context, ["public_url"], "--link")
    target = None if save is None else checked_file("--save", save)
    from nextlabel.beliefs.rewards import Accuracy
    from nextlabel.files.answers import read_answers

    found = None if answers is None else read_answers(answers)
    with service_at(db) as service:
        row = service.store.row(id)
        if draw is not None:
            service.audits.draw(id, draw, seed)
        if found is not None:
            service.audits.answer(id, found)
        items = service.audits.items(id)
        address, warning = _link(service, id, public_url) if link else (None, "")
        if target is not None:
            import json

            with whole_file(target) as stream:
                lines: list[list[Any]] = [["task", "label", "payload"]]
                lines += [[one.task, one.label, json.dumps(one.payload, ensure_ascii=False)] for one in items]
                stream.write(export_text(lines))
        known = sum(one.label is not None for one in items)
        certificate = service.certificate(id) if known else None
    if as_json:
        result = None if certificate is None or certificate.audit is None else asdict(certificate.audit)
        made = {} if address is None else {"link": address, "warning": warning or None}
        print_json({"drawn": len(items), "answered": known, "audit": result, **made})
        return
    if address is not None:
        sys.stdout.write(f"{address}\n")
        say(f"warning: {warning}" if warning else f"nextlabel campaign revoke {id} --audit ends the link.")
    say(f"{counted(len(items), 'item')} drawn, {known:,} answered{'' if save is None else f'; written to {save}'}.")
    if certificate is not None and certificate.audit is not None:
        shown = certificate.audit
        itself = f" The model itself expects {certificate.now:.1%}." if row.config.reward == Accuracy() else ""
        sys.stdout.write(
            f"{shown.right} of {shown.audited} audited labels are right: {shown.accuracy:.1%} of all "
            f"items, with a 95% interval from {shown.low:.1%} to {shown.high:.1%}.{itself}\n"
        )


def _link(service: CampaignService, id: str, public_url: str | None) -> tuple[str, str]:
    """The link for an expert, and what is to be said about its address."""
    from nextlabel.campaign.audits import check_drawn
    from nextlabel.service.links import LinkSigner, audit_url
    from nextlabel.service.public_address import link_warning
    from nextlabel.service.settings import ServiceSettings

    row = service.store.row(id)
    check_drawn(row)
    settings = ServiceSettings(public_url=public_url)
    token = LinkSigner.of(service.store, settings.key_file).audit_token(id, len(row.rules.audit))
    return audit_url(settings.base_url, token), link_warning(settings.base_url)
