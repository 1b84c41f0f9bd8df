"""`call_model`: one step of an agent run. Assemble, call, judge, store; return something small."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from activities import transcripts as log
from activities.generations import Generations, Place
from activities.heartbeat import beating
from activities.inputs import bound_inputs, missing_input, output_problem
from activities.models.paid import CallKnown, ModelCalls, Paid, Patience, Payer
from activities.models.wire import OnEvent, WireError
from activities.transcripts import Transcript, Transcripts
from kernel.agent.calls import CallError, JudgedCall, hit_output_limit, judge_calls, transcript_message
from kernel.agent.endings import json_ending
from kernel.agent.messages import Message, ModelReply, ModelRequest, TextDelta, ToolName, ToolSpec
from kernel.binding import split
from kernel.catalog.settings import places
from kernel.errors import Code, TurnwrightError
from kernel.manifest import LoopLimits
from kernel.manifest.agent import Agent
from kernel.prompt import PromptParts, assemble, nudge_text
from kernel.wire import names
from kernel.wire.agent import AgentSpec, CallModel, CallOutline, ModelStep
from kernel.wire.base import Json, outline
from kernel.wire.failure import Failure
from store import messages, runs, tool_results
from store import transcripts as rows
from store.connection import Connection
from store.engine import Store
from store.stream import StreamWriter
from store.tool_results import ToolResult
from store.transcripts import Entry
from turnwright.sdk.locale import instruction_locale_for

ATTEMPTS_PER_STEP = 100
"""Room for a step's attempts in the numbering of stream attempts."""


class AgentActivities:
    """Model calls of agent runs."""

    def __init__(
        self, store: Store, generations: Generations, models: ModelCalls, transcripts: Transcripts
    ) -> None:
        self._store = store
        self._transcripts = transcripts
        self._generations = generations
        self._models = models

    @activity.defn(name=names.CALL_MODEL)
    async def call_model(self, call: CallModel) -> ModelStep:
        """Run one step once; a step that was recorded before is answered from the store."""
        async with beating():
            place = await self._generations.place(call.turn_id, call.runtime_id)
            if transcript := self._transcripts.remembered(place, call.step):
                with suppress(CallKnown):  # then this step ran elsewhere, and the store knows more
                    return await self._run(place, call, transcript, only_if_new=True)
            self._transcripts.forget(place)
            async with self._store.read() as conn:
                transcript = await self._transcripts.load(conn, place)
            return await self._run(place, call, transcript, only_if_new=False)

    async def _run(
        self, place: Place, call: CallModel, transcript: Transcript, *, only_if_new: bool
    ) -> ModelStep:
        if recorded := transcript.recorded(call.step):
            return recorded
        try:
            step = await self._prepare(place, call, transcript)
        except TurnwrightError as error:
            failure = Failure(code=error.code, message=outline(error.account))
            skipped = error.code == Code.RUNTIME_INPUT
            return ModelStep(skipped=failure) if skipped else ModelStep(finish="error", failed=failure)
        return await self._perform(step, only_if_new=only_if_new)

    async def _prepare(self, place: Place, call: CallModel, transcript: Transcript) -> _Step:
        spec = place.generation.runtime_plan(place.runtime_id).agent
        if spec is None:
            raise TurnwrightError(Code.RUNTIME_UNKNOWN, f"{place.runtime_id} is no agent")
        self._models.slot(spec.slot)
        said = transcript.messages() if transcript.prompt else await self._open(place, call)
        return _Step(place, call, spec, tuple(said), nudge=_nudge(call, spec, transcript, place))

    async def _open(self, place: Place, call: CallModel) -> Sequence[Message]:
        """Assemble the prompt and store it, so that every step sends the same beginning."""
        async with self._store.read() as conn:
            parts = await self._parts(conn, place, call.upstream)
        prompt = assemble(parts)
        async with self._store.write() as conn:
            saved = await log.save_prompt(conn, place, prompt)
        if saved:
            self._transcripts.keep(place, saved)
            return prompt
        async with self._store.read() as conn:
            return (await self._transcripts.load(conn, place)).messages()

    async def _parts(self, conn: Connection, place: Place, upstream: Sequence[str]) -> PromptParts:
        generation, manifest = place.generation, place.runtime.manifest
        bound = await bound_inputs(conn, self._generations, place, upstream)
        if bound.missing is not None:
            raise missing_input(bound)
        action, agent = generation.action, manifest.agent_settings
        history = await messages.recent(conn, place.session_id, _history_turns(agent))
        story = manifest.io.visibility == "story"
        return PromptParts(
            runtime_id=place.runtime_id,
            body=place.runtime.instructions(instruction_locale_for(generation.locale)),
            locale=generation.locale,
            story=story,
            schema_ending=not story and place.runtime.output_schema is not None,
            finish_with=agent.finish_with,
            history=[_said(message.role, message.text) for message in history],
            player_text=action.text,
            inputs=bound.slots,
            activation=action.payload if action.runtime_id else None,
            told=await self._told(conn, place, upstream),
            values={
                "player.message": action.text,
                "session.id": place.session_id,
                "session.turnNumber": str(generation.logical_turn),
                **places(generation.settings.get(place.package_id, {})),
            },
        )

    async def _told(self, conn: Connection, place: Place, upstream: Sequence[str]) -> str:
        """Story text that an earlier stage of this turn produced."""
        stories = [
            plan.runtime_id
            for plan in place.generation.plan.runtimes
            if plan.story and plan.runtime_id in upstream and plan.runtime_id != place.runtime_id
        ]
        found = await runs.get_outputs(conn, place.turn_id, stories)
        return "\n\n".join(run.text or "" for run in found.values())

    async def _perform(self, step: _Step, *, only_if_new: bool) -> ModelStep:
        place, call = step.place, step.call
        payer = Payer(place.session_id, place.turn_id, place.owner_id, place.runtime_id, call.step)
        slot = self._models.slot(step.spec.slot)
        request = step.request(slot.model, slot.output_limit)
        streams = _Streams(self._store, step)
        try:
            paid = await self._models.call(
                payer, step.spec.slot, request, step.patience, streams.open, only_if_new=only_if_new
            )
        finally:
            await streams.close()
        outcome, reply, judged = self._judge(step, request, paid)
        async with self._store.write() as conn:
            await paid.settle(conn)
            entries, results = await self._record(conn, step, outcome, reply, judged)
            if not entries:  # the first reply stands: tools may have run for it
                return await log.recorded_step(conn, place, call.step)
        self._transcripts.keep(place, entries, results)
        return outcome

    def _judge(
        self, step: _Step, request: ModelRequest, paid: Paid
    ) -> tuple[ModelStep, ModelReply | None, tuple[JudgedCall, ...]]:
        if paid.reply is None:
            failure = _failure(paid.error)
            return ModelStep(finish="error", failed=failure, usage=paid.usage), None, ()
        reply = paid.reply
        cut = hit_output_limit(reply, request.max_output_tokens)
        judged = judge_calls(reply, step.tools, run_id=step.run_id, step=step.call.step, may_be_truncated=cut)
        ending = step.ending(reply.text) if not judged else None
        given: dict[str, Any] = {
            "finish": "length" if cut else reply.finish,
            "calls": tuple(step.outlined(one) for one in judged),
            "text": bool(reply.text.strip()),
            "ending": "invalid" if ending else "valid" if step.spec.schema_ending and not judged else None,
        }
        kept = {name: value for name, value in given.items() if value not in (None, (), False)}
        return ModelStep(usage=paid.usage, **kept), reply, judged

    async def _record(
        self,
        conn: Connection,
        step: _Step,
        outcome: ModelStep,
        reply: ModelReply | None,
        judged: Sequence[JudgedCall],
    ) -> tuple[Sequence[Entry], Sequence[ToolResult]]:
        """Store everything of the step in one transaction: correction, reply, bad calls, candidate output.

        Returns:
            What is new; nothing when another attempt recorded the step.
        """
        run, number = (step.place.owner_id, step.place.runtime_id), step.call.step
        said = transcript_message(reply, judged) if reply else Message(role="assistant")
        messages = [{"role": "user", "text": step.nudge}] if step.nudge else []
        messages.append(log.reply_entry(said, judged, outcome))
        if not (entries := await rows.add(conn, *run, messages, step=number)):
            return [], []
        results = [
            await self._refuse(conn, run, number, index, call.id, call.error)
            for index, call in enumerate(judged)
            if call.error
        ]
        if reply is not None and not judged and reply.text.strip():
            await runs.put_output(conn, *run, output=step.output(reply.text), text=reply.text)
        return entries, results

    async def _refuse(
        self,
        conn: Connection,
        run: tuple[str, str],
        step: int,
        index: int,
        call_id: str,
        error: CallError,
    ) -> ToolResult:
        """Answer a call that does not fit its tool."""
        result, _ = await tool_results.put(
            conn,
            *run,
            step,
            index,
            call_id=call_id,
            ok=False,
            code=error.code,
            message=outline(error.message),
            result={"error": f"{error.code}: {error.message}"},
        )
        return result


@dataclass(frozen=True)
class _Step:
    """One step, ready to be sent."""

    place: Place
    call: CallModel
    spec: AgentSpec
    said: tuple[Message, ...]
    nudge: str | None

    @property
    def run_id(self) -> str:
        return f"{self.place.owner_id}/{self.place.runtime_id}"

    @property
    def limits(self) -> LoopLimits:
        return self.place.runtime.manifest.loop_limits

    @property
    def patience(self) -> Patience:
        limits = self.limits
        first = limits.first_token_timeout_ms
        return Patience(
            remaining_s=self.call.remaining_ms / 1000,
            max_retries=limits.max_retries,
            idle_s=limits.idle_timeout_ms / 1000,
            first_token_s=first / 1000 if first else None,
            story=self.spec.story,
        )

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self.place.live.offered(self.place.runtime)

    def request(self, model: str, output_limit: int) -> ModelRequest:
        choice = self.call.tool_choice
        said = (*self.said, Message(role="user", text=self.nudge)) if self.nudge else self.said
        return ModelRequest(
            model=model,
            messages=said,
            tools=self.tools,
            tool_choice=ToolName(name=choice[1:]) if choice.startswith("=") else choice,
            output_schema=dict(self.place.runtime.output_schema or {}) if self.spec.schema_ending else None,
            max_output_tokens=output_limit,
            reasoning=self.place.runtime.manifest.agent_settings.reasoning,
        )

    def ending(self, text: str) -> str | None:
        """What makes a JSON ending invalid; None when it fits, or when none is asked for."""
        if not self.spec.schema_ending:
            return None
        try:
            value = json_ending(text)
        except (ValueError, RecursionError) as error:
            return f"it is no JSON: {error}"
        return output_problem(self.place, value)

    def output(self, text: str) -> Json:
        """The run's output if this reply is its ending."""
        if self.spec.story:
            return {"segments": split(text)}
        if self.spec.schema_ending:
            return None if self.ending(text) else json_ending(text)
        return {"text": text}

    def outlined(self, call: JudgedCall) -> CallOutline:
        gated = self.spec.tools.get(call.name)
        given = {
            "error": call.error.code if call.error else None,
            "outline": outline(_compact(call.arguments)) if gated and gated.gated else None,
        }
        return CallOutline(
            id=call.id,
            name=call.name,
            digest=call.digest,
            **{k: v for k, v in given.items() if v is not None},
        )


class _Streams:
    """Live text of a step's attempts, each a stream attempt of its own; one without text costs nothing."""

    def __init__(self, store: Store, step: _Step) -> None:
        self._store = store
        self._step = step
        self._writers: dict[int, StreamWriter] = {}

    def open(self, attempt: int) -> OnEvent:
        def on_event(event: object) -> None:
            if self._step.spec.story and isinstance(event, TextDelta):
                self._writer(attempt).add("text", event.text)

        return on_event

    async def close(self) -> None:
        for writer in self._writers.values():
            await writer.close()

    def _writer(self, attempt: int) -> StreamWriter:
        if attempt not in self._writers:
            place, number = self._step.place, self._step.call.step * ATTEMPTS_PER_STEP + attempt
            self._writers[attempt] = StreamWriter(self._store, place.owner_id, place.runtime_id, number)
        return self._writers[attempt]


def _nudge(call: CallModel, spec: AgentSpec, transcript: Transcript, place: Place) -> str | None:
    if call.nudge is None:
        return None
    tool = spec.finish_with or ""
    wrong = ""
    if call.nudge == "output-repair":
        last = next((entry for entry in reversed(transcript.entries) if entry.role == "assistant"), None)
        wrong = _Step(place, call, spec, (), None).ending(last.message["text"]) or "" if last else ""
    return nudge_text(call.nudge, tool=tool, problem=wrong)


def _said(role: str, text: str) -> Message:
    return Message(role="user" if role == "player" else "assistant", text=text)


def _history_turns(agent: Agent) -> int:
    return agent.history.max_turns if agent.history else 50


def _failure(error: WireError | None) -> Failure:
    if error is None:
        return Failure(code=Code.MODEL_TRANSPORT, message="no reply")
    return Failure(code=error.code, message=outline(error.message))


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
