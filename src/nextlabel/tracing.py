"""Spans of OpenTelemetry, from a request to its transaction: none before ``begin``, and its API alone.

Where they go is the business of an SDK that is set up around the service, e.g. by ``opentelemetry-instrument``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

from nextlabel.wording import needs

_trace: ModuleType | None = None
_NO_SPAN = nullcontext()


def begin() -> None:
    """Make spans from now on."""
    global _trace
    with needs("tracing", "opentelemetry-api", "nextlabel[traces]"):
        from opentelemetry import trace
    _trace = trace


def here() -> Any:
    """The span that is open here, for those that continue elsewhere; None without any."""
    return None if _trace is None else _trace.get_current_span()


def span(
    name: str, causes: Sequence[Any] = (), headers: Sequence[tuple[bytes, bytes]] | None = None, **attributes: Any
) -> AbstractContextManager[Any]:
    """A span around a block, within the open one, the first of its ``causes``, or the sender's, by ``headers``."""
    if _trace is None:
        return _NO_SPAN
    from opentelemetry.propagate import extract

    sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers or ()}
    within = extract(sent) if headers is not None else _trace.set_span_in_context(causes[0]) if causes else None
    opened: AbstractContextManager[Any] = _trace.get_tracer("nextlabel").start_as_current_span(
        name, within, links=[_trace.Link(one.get_span_context()) for one in causes[1:]], attributes=attributes,
    )  # fmt: skip
    return opened
