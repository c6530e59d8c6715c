"""Imports that go on when the request that began them has been answered."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from threading import Thread
from typing import TypeVar

from nextlabel.campaign.imports import ImportRow
from nextlabel.campaigns.imports import Progress
from nextlabel.errors import NextlabelError
from nextlabel.service.logs import request_log

T = TypeVar("T")


def in_background(take_in: Callable[[Progress], T]) -> ImportRow | T:
    """Run an import in a thread of its own; returns when it has its first chunk, or with its result if it is short."""
    result: Future[ImportRow | T] = Future()

    def begin(row: ImportRow, published: int) -> None:
        if not result.done():
            result.set_result(replace(row))

    def run() -> None:
        try:
            found = take_in(begin)
        except BaseException as error:
            if not result.done():
                result.set_exception(error)
            elif not isinstance(error, NextlabelError):
                request_log.error("an import was broken off", exc_info=error)
        else:
            if not result.done():
                result.set_result(found)

    Thread(target=run, name="import", daemon=True).start()
    return result.result()
