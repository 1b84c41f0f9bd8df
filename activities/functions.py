"""`run_function`: one function runtime, from its inputs to its staged result."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.generations import Generations, Place
from activities.heartbeat import beating
from activities.inputs import bound_inputs, missing_input, output_problem
from activities.invocations import call_tool, data_methods, static_context
from activities.journal import Effect, Journal
from activities.models.paid import ModelCalls, Paid, Patience, Payer
from activities.network import Network
from activities.own_data import OwnData
from activities.plugins.host import Method, invoke
from activities.plugins.results import HandlerResult, handler_result
from activities.tools import builtin
from kernel.agent.endings import json_ending
from kernel.agent.messages import Message, ModelRequest, clean_json
from kernel.catalog import BUILTIN_DATA_TOOLS, tool_names
from kernel.commit.proposals import parse_proposal
from kernel.errors import Code, TurnwrightError
from kernel.schemas import problem
from kernel.wire import names
from kernel.wire.base import Json, outline
from kernel.wire.host import Invoke, newest_within
from kernel.wire.turn import RunFunction, RunResult
from kernel.wire.usage import UsageTotals
from store import calls, jobs, messages, runs
from store.connection import Connection
from store.engine import Store

HISTORY_TURNS = 50
_LEVELS = {"debug": logging.DEBUG, "warning": logging.WARNING, "error": logging.ERROR}


class FunctionActivities:
    """Runs function runtimes."""

    def __init__(self, store: Store, generations: Generations, models: ModelCalls, network: Network) -> None:
        self._store = store
        self._generations = generations
        self._models = models
        self._network = network

    @activity.defn(name=names.RUN_FUNCTION)
    async def run_function(self, run: RunFunction) -> RunResult:
        """Run the handler; every ending is a value, and a recorded ending is not repeated."""
        async with beating():
            place = await self._generations.place(run.turn_id, run.runtime_id, run.job_id)
            async with self._store.read() as conn:
                if recorded := await _recorded(conn, place):
                    return recorded
            if run.job_id:
                run = await self._start_job(place, run)
            try:
                result = await self._run(place, run)
            except TurnwrightError as error:
                return await self._failed(place, error)
            return await self._store_result(place, result)

    async def _start_job(self, place: Place, run: RunFunction) -> RunFunction:
        """A job counts as running from here on; the handler's own limit holds beside the job's."""
        async with self._store.write() as conn:
            await jobs.start(conn, run.job_id or "")
        own_ms = place.generation.runtime_plan(place.runtime_id).timeout_ms
        return run.model_copy(update={"timeout_ms": min(run.timeout_ms, own_ms)})

    async def _run(self, place: Place, run: RunFunction) -> HandlerResult:
        own, journal = OwnData(self._store, place), Journal(self._store, place)
        call = Invoke(
            kind="handler", module=place.runtime.handler or "", context=await self._context(place, run)
        )
        methods = {**data_methods(own), **self._methods(place, own, journal, run.timeout_ms / 1000)}
        result = handler_result(await invoke(place.live.code, call, methods, timeout_s=run.timeout_ms / 1000))
        if result.outcome == "success":
            self._check(place, own, result)
        return HandlerResult(
            outcome=result.outcome,
            output=result.output,
            value=result.value,
            exports=result.exports,
            proposals=(*own.staged, *result.proposals) if result.outcome == "success" else (),
            reason=result.reason,
        )

    def _check(self, place: Place, own: OwnData, result: HandlerResult) -> None:
        if found := output_problem(place, result.value if result.exports else {}):
            raise TurnwrightError(Code.RUNTIME_OUTPUT, f"the value {found}")
        for proposal in result.proposals:
            parsed = parse_proposal(proposal, owner_code=True)
            own.check(parsed)
            if parsed.type == "event.emit":
                self._check_event(place, parsed.topic, parsed.payload)

    def _check_event(self, place: Place, topic: str, payload: Json) -> None:
        declared = {event.topic for event in place.live.package.manifest.contributes.events}
        if topic not in declared:
            accepted = ", ".join(sorted(declared)) or "a topic of contributes.events"
            raise TurnwrightError(
                Code.COMMIT_PROPOSAL, f"the event {topic} is not declared", accepted=accepted
            )
        schema = place.live.package.event_schemas.get(topic)
        if schema is not None and (found := problem(schema, payload)):
            raise TurnwrightError(Code.COMMIT_PROPOSAL, f"the payload of {topic} {found}")

    async def _context(self, place: Place, run: RunFunction) -> Any:
        action = place.generation.action
        upstream: Sequence[str] = run.upstream
        async with self._store.read() as conn:
            if run.job_id and (job := await jobs.get(conn, run.job_id)):
                upstream = job.options.get("upstream", ())
            bound = await bound_inputs(conn, self._generations, place, upstream)
            history = await messages.recent(conn, place.session_id, HISTORY_TURNS)
        if bound.missing is not None:
            raise missing_input(bound)
        manual = action.runtime_id is not None
        schema = place.runtime.payload_schema
        if manual and schema is not None and (found := problem(schema, action.payload)):
            raise TurnwrightError(Code.RUNTIME_PAYLOAD, f"the payload {found}")
        said = [{"role": m.role, "text": m.text, "turnId": m.turn_id} for m in history]
        return static_context(
            place,
            seed="handler",
            player_message=None if manual else action.text,
            player_actions=() if manual else ({"text": action.text, "payload": action.payload},),
            manual_payload=action.payload if manual else None,
            inputs=bound.slots,
            messages=newest_within(said),
            gateway=True,
            http=bool(place.runtime.manifest.permissions.http),
        )

    def _methods(
        self, place: Place, own: OwnData, journal: Journal, timeout_s: float
    ) -> Mapping[str, Method]:
        async def tool(params: dict[str, Json]) -> Json:
            return await self._tool(place, own, journal, str(params["name"]), params.get("args") or {})

        async def text(params: dict[str, Json]) -> Json:
            return await journal.once(
                "model", params, lambda effect: self._generate(place, params, effect, timeout_s)
            )

        async def fetch(params: dict[str, Json]) -> Json:
            permissions = place.runtime.manifest.permissions.http
            return await journal.once("http", params, lambda _: self._network.fetch(permissions, params))

        async def progress(params: dict[str, Json]) -> Json:
            activity.heartbeat(outline(str(params.get("message") or params.get("fraction") or "")))
            return None

        async def log(params: dict[str, Json]) -> Json:
            level = _LEVELS.get(str(params.get("level")), logging.INFO)
            fields = f" {params['fields']}" if params.get("fields") else ""
            said = outline(f"{params.get('message')}{fields}")
            activity.logger.log(level, "%s: %s", place.runtime_id, said)
            return None

        return {
            "tools.call": tool,
            "gateway.generate_text": text,
            "gateway.generate_object": text,
            "http.fetch": fetch,
            "progress.report": progress,
            "log": log,
        }

    async def _tool(
        self, place: Place, own: OwnData, journal: Journal, name: str, arguments: dict[str, Any]
    ) -> Json:
        if name not in tool_names(place.runtime):
            accepted = ", ".join(tool_names(place.runtime)) or "none is listed in function.tools"
            raise TurnwrightError(
                Code.TOOL_UNAUTHORIZED, f"{name!r} is not a tool of this runtime", accepted=accepted
            )
        if name in BUILTIN_DATA_TOOLS:
            return await builtin(own, name, arguments)

        async def perform(effect: Effect) -> Json:
            layer = own.layer()
            result = await call_tool(place, layer, name, arguments, seed=str(effect.ordinal))
            # Replaying the call must stage again what it staged, so that is part of its recorded result.
            return {"result": result, "staged": layer.staged}

        recorded = await journal.once("tool", {"name": name, "args": arguments}, perform)
        own.staged.extend(recorded["staged"])
        return recorded["result"]

    async def _generate(
        self, place: Place, params: dict[str, Json], effect: Effect, timeout_s: float
    ) -> Json:
        function = place.runtime.manifest.function
        declared = function.model if function else None
        slot_name = place.generation.slot(place.runtime_id, params.get("presetId") or declared or "plugin")
        slot = self._models.slot(slot_name)
        request = ModelRequest(
            model=slot.model,
            messages=_messages(params),
            output_schema=params.get("schema"),
            max_output_tokens=min(params.get("maxOutputTokens") or slot.output_limit, slot.output_limit),
            stream=True,
        )
        payer = Payer(place.session_id, place.turn_id, place.owner_id, place.runtime_id, effect.ordinal)
        paid = await self._models.call(
            payer,
            slot_name,
            request,
            Patience(remaining_s=timeout_s, max_retries=1),
            lambda _: lambda _event: None,
        )
        effect.writes.append(paid.settle)
        return _generated(paid, params.get("schema"))

    async def _failed(self, place: Place, error: TurnwrightError) -> RunResult:
        """A missing input skips the run, everything else fails it; nothing of it is kept."""
        status = "skipped" if error.code == Code.RUNTIME_INPUT else "failed"
        return await self._end(place, status, error.code, outline(error.account), (), {})

    async def _store_result(self, place: Place, result: HandlerResult) -> RunResult:
        if result.outcome == "success":
            return await self._end(place, "success", "", "", result.proposals, result.output)
        status = "skipped" if result.outcome == "skipped" else "failed"
        code = "" if status == "skipped" else Code.RUNTIME_FAILED
        return await self._end(place, status, code, result.reason, (), result.output)

    async def _end(
        self, place: Place, status: str, reason: str, message: str, staged: Sequence[Any], output: Json
    ) -> RunResult:
        run = (place.owner_id, place.runtime_id)
        async with self._store.write() as conn:
            await runs.lock(conn, *run)
            if recorded := await _recorded(conn, place):
                return recorded  # another attempt, on another worker, came to its end first
            await runs.replace_staged(conn, *run, [clean_json(proposal) for proposal in staged])
            await runs.put_output(
                conn, *run, output=clean_json(output), status=status, reason=reason, message=message
            )
            usage = await calls.totals_of_runtime(conn, *run)
        return _result(status, reason, message, usage)


async def _recorded(conn: Connection, place: Place) -> RunResult | None:
    run = await runs.get_run(conn, place.owner_id, place.runtime_id)
    if run is None:
        return None
    usage = await calls.totals_of_runtime(conn, place.owner_id, place.runtime_id)
    return _result(run.status, run.reason, run.message, usage)


def _result(status: Any, reason: str, message: str, usage: UsageTotals) -> RunResult:
    given = {"reason": reason, "message": message, "usage": usage if usage.calls else None}
    return RunResult(status=status, **{name: value for name, value in given.items() if value})


def _messages(params: dict[str, Json]) -> tuple[Message, ...]:
    system = [Message(role="system", text=params["system"])] if params.get("system") else []
    if params.get("messages"):
        given = [Message(role=entry["role"], text=entry["content"]) for entry in params["messages"]]
    else:
        given = [Message(role="user", text=str(params.get("prompt") or ""))]
    return (*system, *given)


def _generated(paid: Paid, schema: Mapping[str, Any] | None) -> Json:
    if paid.reply is None:
        error = paid.error
        raise TurnwrightError(
            error.code if error else Code.MODEL_TRANSPORT, error.message if error else "no reply"
        )
    reply = paid.reply
    facts: dict[str, Json] = {"finishReason": reply.finish, "usage": paid.usage.model_dump(mode="json")}
    if schema is None:
        return {"text": reply.text, **facts}
    try:
        value = json_ending(reply.text)
    except ValueError as error:
        raise TurnwrightError(Code.RUNTIME_OUTPUT, f"the model's reply is no JSON: {error}") from error
    if found := problem(schema, value):
        raise TurnwrightError(Code.RUNTIME_OUTPUT, f"the model's reply {found}")
    return {"object": value, **facts}
