"""Keeps one trace per action across the session, and bad trace headers away from handlers.

A session's main loop starts a turn long after the update that asked for it has returned, so the turn
would join the trace of the session's start. `ActionTrace` remembers the context of the action and
starts the turn, and later its jobs, inside it. The memory ends with a continue-as-new: a turn that
waited through one joins the session's trace. Nothing here reaches a command but a header.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import opentelemetry.context
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from temporalio import client, worker, workflow
from temporalio.api.common.v1 import Payload

from kernel.wire import names
from kernel.wire.ids import parse_workflow_id, turn_id_for
from kernel.wire.session import Run, Submit
from kernel.wire.turn import JobInput

HEADER: Final = "_tracer-data"
_REMEMBERED: Final = 64


class HeaderGuard(client.Interceptor, worker.Interceptor):
    """Drops a trace header that the tracing plugin could not read: it would raise before any check.

    Stands before the plugin, so among the interceptors of the client.
    """

    def intercept_activity(
        self, next: worker.ActivityInboundInterceptor
    ) -> worker.ActivityInboundInterceptor:
        """Guard activities."""
        return _GuardedActivities(next)

    def workflow_interceptor_class(
        self, input: worker.WorkflowInterceptorClassInput
    ) -> type[worker.WorkflowInboundInterceptor] | None:
        """Guard workflows."""
        return _GuardedMessages


class _GuardedActivities(worker.ActivityInboundInterceptor):
    async def execute_activity(self, input: worker.ExecuteActivityInput) -> Any:
        input.headers = readable(input.headers)
        return await super().execute_activity(input)


class _GuardedMessages(worker.WorkflowInboundInterceptor):
    async def execute_workflow(self, input: worker.ExecuteWorkflowInput) -> Any:
        input.headers = readable(input.headers)
        return await super().execute_workflow(input)

    async def handle_signal(self, input: worker.HandleSignalInput) -> None:
        input.headers = readable(input.headers)
        await super().handle_signal(input)

    async def handle_query(self, input: worker.HandleQueryInput) -> Any:
        input.headers = readable(input.headers)
        return await super().handle_query(input)

    def handle_update_validator(self, input: worker.HandleUpdateInput) -> None:
        input.headers = readable(input.headers)
        super().handle_update_validator(input)

    async def handle_update_handler(self, input: worker.HandleUpdateInput) -> Any:
        input.headers = readable(input.headers)
        return await super().handle_update_handler(input)


def readable(headers: Mapping[str, Payload]) -> Mapping[str, Payload]:
    """The headers without a trace header that is not a JSON object of strings."""
    header = headers.get(HEADER)
    if header is None or _is_carrier(header):
        return headers
    return {name: payload for name, payload in headers.items() if name != HEADER}


class ActionTrace(client.Interceptor, worker.Interceptor):
    """Starts turns and jobs in the trace of the action they came from. Stands behind the plugin."""

    def workflow_interceptor_class(
        self, input: worker.WorkflowInterceptorClassInput
    ) -> type[worker.WorkflowInboundInterceptor] | None:
        """Remember in workflows."""
        return _ActionMessages


class _ActionMessages(worker.WorkflowInboundInterceptor):
    def __init__(self, next: worker.WorkflowInboundInterceptor) -> None:
        super().__init__(next)
        self._contexts: dict[str, Context] = {}

    def init(self, outbound: worker.WorkflowOutboundInterceptor) -> None:
        super().init(_ActionChildren(outbound, self._contexts))

    async def handle_update_handler(self, input: worker.HandleUpdateInput) -> Any:
        session = parse_workflow_id(workflow.info().workflow_id)
        if session and input.update in (names.SUBMIT, names.RUN):
            self._remember(session.parts[0], input)
        return await super().handle_update_handler(input)

    def _remember(self, session_id: str, input: worker.HandleUpdateInput) -> None:
        """Remember the sender's span. The handler's own span has another id after a replay."""
        header = input.headers.get(HEADER)
        if header is None or len(input.args) != 1 or not isinstance(input.args[0], Submit | Run):
            return
        turn_id = turn_id_for(session_id, input.args[0].action_id)
        sender = TraceContextTextMapPropagator().extract(json.loads(header.data), Context())
        self._contexts.setdefault(turn_id, sender)
        while len(self._contexts) > _REMEMBERED:
            del self._contexts[next(iter(self._contexts))]


class _ActionChildren(worker.WorkflowOutboundInterceptor):
    def __init__(self, next: worker.WorkflowOutboundInterceptor, contexts: dict[str, Context]) -> None:
        super().__init__(next)
        self._contexts = contexts

    async def start_child_workflow(
        self, input: worker.StartChildWorkflowInput
    ) -> workflow.ChildWorkflowHandle[Any, Any]:
        with _attached(self._contexts.get(_turn_of(input))):
            return await super().start_child_workflow(input)


def _turn_of(input: worker.StartChildWorkflowInput) -> str:
    if input.args and isinstance(input.args[0], JobInput):
        return input.args[0].job.turn_id
    child = parse_workflow_id(input.id)
    return child.parts[1] if child and child.kind == "turn" else ""


@contextmanager
def _attached(context: Context | None) -> Iterator[None]:
    if context is None:
        yield
        return
    token = opentelemetry.context.attach(context)
    try:
        yield
    finally:
        with suppress(ValueError):  # an evicted workflow is finalised in a foreign context
            token.var.reset(token)


def _is_carrier(header: Payload) -> bool:
    try:
        carrier = json.loads(header.data)
    except (ValueError, RecursionError):
        return False
    plain = header.metadata.get("encoding") == b"json/plain"
    return plain and isinstance(carrier, dict) and all(isinstance(value, str) for value in carrier.values())
