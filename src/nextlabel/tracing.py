"""Spans of OpenTelemetry, from a request to its transaction: none before ``begin``, and its API alone.

Where they go is the business of an SDK that is set up around the service, e.g. by ``opentelemetry-instrument``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from nextlabel.wording import needs

_trace: ModuleType | None = None


def begin() -> None:
    """Make spans from now on."""
    global _trace
    with needs("tracing", "opentelemetry-api", "nextlabel[traces]"):
        from opentelemetry import trace
    _trace = trace


def here() -> Any:
    """The span that is open here, for those that continue elsewhere; None without any."""
    return None if _trace is None else _trace.get_current_span()


@contextmanager
def span(
    name: str, causes: Sequence[Any] = (), headers: Mapping[str, str] | None = None, **attributes: Any
) -> Iterator[Any]:
    """A span around a block, within the open one, the first of its ``causes``, or the sender's, by ``headers``."""
    if _trace is None:
        yield None
        return
    from opentelemetry.propagate import extract

    within = extract(headers) if headers is not None else _trace.set_span_in_context(causes[0]) if causes else None
    with _trace.get_tracer("nextlabel").start_as_current_span(
        name, within, links=[_trace.Link(one.get_span_context()) for one in causes[1:]], attributes=attributes,
    ) as opened:  # fmt: skip
        yield opened
