"""Spans of OpenTelemetry from a request to its transaction, with its SDK; none unless they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from nextlabel import tracing
from service_fixtures import on_sqlite


def ours(kept: InMemorySpanExporter) -> list[ReadableSpan]:
    """FastAPI makes spans of its own where it finds the package."""
    return [one for one in kept.get_finished_spans() if one.instrumentation_scope.name == "nextlabel"]


def test_a_request_is_followed_to_its_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    with on_sqlite(tmp_path) as service:
        service.campaign("plain")
    assert not ours(kept)
    monkeypatch.setattr(tracing, "_trace", None)  # put back at the end
    (tmp_path / "traced").mkdir()
    with on_sqlite(tmp_path / "traced", traces=True) as service:
        service.campaign()
        sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        with service.http(traceparent=sent) as http:
            assert http.post("/campaigns/demo/ask", json={"worker": "ann"}).status_code == 200
            assert http.post("/campaigns/none/ask", json={"worker": "ann"}).status_code == 404
    spans = [one for one in ours(kept) if f"{one.context.trace_id:032x}" == sent[3:35]]
    (request,) = (one for one in spans if one.attributes and one.attributes.get("http.response.status_code") == 200)
    # where tables were being made, the ask was tried once before
    *_, commands = (one for one in spans if one.parent and one.parent.span_id == request.context.span_id)
    inner = [one.name for one in spans if one.parent and one.parent.span_id == commands.context.span_id]
    assert request.name.startswith("POST /") and request.name.endswith("{campaign}/ask")
    assert commands.name == "commands" and commands.attributes == {"campaigns": ("demo",)} and inner == ["transaction"]
    assert "ann" not in repr([(one.name, dict(one.attributes or {})) for one in spans])
