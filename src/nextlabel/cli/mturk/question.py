"""``nextlabel mturk question``: the XML of an external question."""

from __future__ import annotations

import sys
from typing import Annotated

from nextlabel.cli.campaign.common import Id, number_of, service_at
from nextlabel.cli.options import DB, Db, Json, PublicUrl, text
from nextlabel.cli.output import print_json, say
from nextlabel.cli.platform_options import notes_on
from nextlabel.errors import InputError


def question(
    id: Id,
    height: Annotated[str, text("--height", "PIXELS", "Height of the frame; 0 fits the worker's window.")] = "0",
    public_url: PublicUrl = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Print the ExternalQuestion for MTurk's CreateHIT: the campaign's page in a frame.

    MTurk shows pages by https alone. Only the sites of NEXTLABEL_FRAME_HOSTS may frame the page, those of MTurk unless
    it says otherwise.
    """
    pixels = number_of("--height", height)
    if pixels != int(pixels):
        raise InputError(f"the frame's height {height} is not a whole number.", "Give e.g. 800.")
    with service_at(db) as service:
        from nextlabel.integrations.mturk import external_question
        from nextlabel.service.links import LinkSigner, frame_url
        from nextlabel.service.settings import ServiceSettings

        row = service.store.row(id)
        settings = ServiceSettings(public_url=public_url)
        address = frame_url(settings.base_url, LinkSigner.of(service.store, settings.key_file).join_token(id))
        xml = external_question(address, int(pixels))
        notes = notes_on(row, needs_code=False)
        if not settings.is_https:
            notes.append(
                f"MTurk shows pages by https alone, and this one is at {settings.base_url}. Give --public-url."
            )
            say(f"warning: {notes[-1]}")
    if as_json:
        print_json({"question": xml, "url": address, "warnings": notes})
    else:
        sys.stdout.write(xml)
