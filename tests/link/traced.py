"""Two processes whose spans must form one trace: `python -m tests.link.traced worker|act`.

A session that starts a turn long after its update returned, a turn that calls an activity, and a span
of our own in the activity. The worker caches no workflow, so that every task replays from the start.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from kernel.wire import ids, names
from kernel.wire.session import Receipt, SessionInput, Submit
from kernel.wire.turn import TurnInput
from link import telemetry
from link.connect import connect
from link.exit import leave
from link.interceptors import WireInterceptor
from link.settings import Settings, load_settings

SESSION = "s1"
ACTIONS = ("a1", "a2")


@activity.defn(name=names.CALL_MODEL)
async def call_model(turn_id: str) -> str:
    with telemetry.tracer().start_as_current_span("model.call", attributes={"turn": turn_id}):
        return turn_id


@workflow.defn(name=names.TURN)
class Turn:
    @workflow.run
    async def run(self, input: TurnInput | None = None) -> str:
        assert input
        for _ in range(2):
            await workflow.execute_activity(
                call_model, input.turn_id, start_to_close_timeout=timedelta(seconds=10)
            )
        return input.turn_id


@workflow.defn(name=names.SESSION)
class Session:
    @workflow.init
    def __init__(self, input: SessionInput | None = None) -> None:
        self._queue: list[str] = []

    @workflow.run
    async def run(self, input: SessionInput | None = None) -> None:
        for _ in ACTIONS:
            await workflow.wait_condition(lambda: bool(self._queue))
            turn_id = self._queue.pop(0)
            await workflow.execute_child_workflow(
                Turn.run,
                TurnInput(session_id=SESSION, turn_id=turn_id, incarnation="i"),
                id=ids.turn_workflow(SESSION, turn_id),
            )

    @workflow.update
    async def submit(self, action: Submit) -> Receipt:
        turn_id = ids.turn_id_for(SESSION, action.action_id)
        self._queue.append(turn_id)
        return Receipt(turn_id=turn_id, workflow_id=ids.turn_workflow(SESSION, turn_id), position=0)


async def work(settings: Settings) -> None:
    client = await connect(settings)
    print("ready", flush=True)
    async with Worker(
        client,
        task_queue=settings.temporal.queue,
        workflows=[Session, Turn],
        activities=[call_model],
        interceptors=[WireInterceptor()],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_cached_workflows=0,
    ):
        await asyncio.to_thread(sys.stdin.read)


async def act(settings: Settings) -> None:
    client = await connect(settings)
    session = await client.start_workflow(
        Session.run,
        SessionInput(session_id=SESSION),
        id=f"{ids.session_workflow(SESSION)}",
        task_queue=settings.temporal.queue,
    )
    await send_bad_trace_headers(settings)
    for action_id in ACTIONS:
        with telemetry.tracer().start_as_current_span(f"action {action_id}"):
            await session.execute_update(Session.submit, Submit(action_id=action_id, text="go"))
    await session.result()


async def send_bad_trace_headers(settings: Settings) -> None:
    """Updates whose trace header the tracing plugin could not read."""
    from temporalio.client import Interceptor, OutboundInterceptor, StartWorkflowUpdateInput

    bad = [Payload(), *DataConverter.default.payload_converter.to_payloads([5, {"traceparent": 5}, "x"])]

    class Spoil(Interceptor):
        def __init__(self, header: Payload) -> None:
            self.header = header

        def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
            header = self.header

            class Outbound(OutboundInterceptor):
                async def start_workflow_update(self, input: StartWorkflowUpdateInput):  # type: ignore[no-untyped-def]
                    input.headers = {"_tracer-data": header}
                    return await super().start_workflow_update(input)

            return Outbound(next)

    for header in bad:
        client = await Client.connect(settings.temporal.address, interceptors=[Spoil(header)])
        handle = client.get_workflow_handle(ids.session_workflow(SESSION))
        try:
            await handle.execute_update("nothing", rpc_timeout=timedelta(seconds=10))
        except RPCError:
            raise
        except Exception as error:  # refused, as an unknown update is
            print(type(error).__name__, flush=True)


if __name__ == "__main__":
    asyncio.run({"worker": work, "act": act}[sys.argv[1]](load_settings()))
    leave(0)
