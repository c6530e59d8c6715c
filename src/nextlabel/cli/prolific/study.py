"""``nextlabel prolific study``: what to enter at Prolific."""

from __future__ import annotations

import sys

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json, PublicUrl
from nextlabel.cli.output import print_json, say
from nextlabel.cli.platform_options import notes_on


def study(id: Id, public_url: PublicUrl = None, db: Db = DB, as_json: Json = False) -> None:
    """Print the address of the study, its completion code, and the address for Prolific's webhook.

    The webhook, submission.status.change, is taken by a service that was started with the workspace's secret in
    NEXTLABEL_PROLIFIC_SECRET. Without one, see 'nextlabel prolific statuses'.
    """
    with service_at(db) as service:
        from nextlabel.integrations.prolific import STUDY_QUERY
        from nextlabel.service.links import LinkSigner, join_url
        from nextlabel.service.public_address import link_warning
        from nextlabel.service.routes.platforms import hook_url
        from nextlabel.service.settings import ServiceSettings

        row = service.store.row(id)
        settings = ServiceSettings(public_url=public_url)
        address = join_url(settings.base_url, LinkSigner.of(service.store, settings.key_file).join_token(id))
        hook, code = hook_url(settings.base_url), row.config.completion_code
        notes = notes_on(row, needs_code=True)
        warning = link_warning(settings.base_url)
        if warning:
            notes.append(warning)
            say(f"warning: {warning}")
    if as_json:
        print_json({"study_url": address + STUDY_QUERY, "completion_code": code, "hook": hook, "warnings": notes})
        return
    sys.stdout.write(f"study\t{address}{STUDY_QUERY}\ncode\t{code or '-'}\nwebhook\t{hook}\n")
