"""Traces: one trace from a player's action to the wire call it led to, and no span twice.

plugins    what a client needs, and a worker gets from its client
tracer     spans of our own, in activities and commands
flush      write out what has ended; called before a process leaves
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import opentelemetry.trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from temporalio import workflow
from temporalio.client import Interceptor, Plugin
from temporalio.contrib.opentelemetry import (
    OpenTelemetryPlugin,
    ReplaySafeTracerProvider,
    create_tracer_provider,
)
from temporalio.plugin import SimplePlugin

from link.exit import before_leaving
from link.settings import Settings
from link.trace_context import ActionTrace, HeaderGuard

TRACER: Final = "turnwright"
_FLUSH_MS: Final = 2_000
_REMEMBERED_SPANS: Final = 4_096


class Tracing(NamedTuple):
    """`before` stands before the given interceptors of a client, `plugins` behind them."""

    before: tuple[Interceptor, ...] = ()
    plugins: tuple[Plugin, ...] = ()


def tracing(settings: Settings) -> Tracing:
    """What telemetry adds to a client; nothing where it is off, and then no header costs a byte."""
    if not settings.telemetry.enabled and not _provider.cache_info().currsize:
        return Tracing()
    _configure_once(settings.telemetry.otlp_endpoint, settings.telemetry.trace_file)
    behind = SimplePlugin("turnwright.action-trace", interceptors=[ActionTrace()])
    return Tracing((HeaderGuard(),), (OpenTelemetryPlugin(add_temporal_spans=True), behind))


def tracer() -> opentelemetry.trace.Tracer:
    """The tracer for spans of our own; without telemetry its spans are no-ops."""
    return opentelemetry.trace.get_tracer(TRACER)


def export_to(exporter: SpanExporter) -> None:
    """Turn telemetry on in this process and send every finished span to `exporter` at once."""
    _provider().add_span_processor(_Once(SimpleSpanProcessor(exporter)))


def flush() -> None:
    """Write out the finished spans; gives up after two seconds."""
    if _provider.cache_info().currsize:
        _provider().force_flush(_FLUSH_MS)


class SpanFile(SpanExporter):
    """Appends each finished span as one line of JSON; several processes may share the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Append the spans; one write per batch, so that lines of two processes do not mix."""
        text = "".join(span.to_json(indent=None) + "\n" for span in spans)
        with self._lock, self._file.open("a", encoding="utf-8") as out:
            out.write(text)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing is kept open."""


class _Once(SpanProcessor):
    """Passes on each span of a workflow once, when it ended by itself.

    A workflow that leaves the cache closes what is open in it, and once more after its replay; a query may
    close a span that the next workflow task closes again. Either has the same id: workflows draw theirs from
    their own seed.
    """

    def __init__(self, inner: SpanProcessor) -> None:
        self._inner = inner
        self._seen: OrderedDict[int, None] = OrderedDict()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self._inner.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        if not _of_workflow(span) or self._is_first(span):
            self._inner.on_end(span)

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)

    def _is_first(self, span: ReadableSpan) -> bool:
        instance, context = workflow._Runtime.maybe_current(), span.context
        if context is None or instance is None or getattr(instance, "_deleting", False):
            return False  # the workflow is leaving the cache, or left it and is collected
        if context.span_id in self._seen:
            return False
        self._seen[context.span_id] = None
        while len(self._seen) > _REMEMBERED_SPANS:
            self._seen.popitem(last=False)
        return True


def _of_workflow(span: ReadableSpan) -> bool:
    names = span.attributes or {}
    return "temporalRunID" in names and "temporalActivityID" not in names


@functools.cache
def _provider() -> ReplaySafeTracerProvider:
    """The process's provider: OpenTelemetry accepts one only, and workers need a replay-safe one."""
    resource = Resource.create({"service.name": "turnwright"})
    provider = create_tracer_provider(resource=resource, shutdown_on_exit=False)
    opentelemetry.trace.set_tracer_provider(provider)
    before_leaving(flush)
    return provider


@functools.cache
def _configure_once(endpoint: str | None, file: Path | None) -> None:
    provider = _provider()
    if endpoint:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        traces = endpoint.rstrip("/")
        traces = traces if traces.endswith("/v1/traces") else f"{traces}/v1/traces"
        provider.add_span_processor(_Once(BatchSpanProcessor(OTLPSpanExporter(endpoint=traces))))
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        provider.add_span_processor(_Once(SimpleSpanProcessor(SpanFile(file))))
