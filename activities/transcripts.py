"""The transcript of an agent run: stored step by step, read back as the next request.

Step 0 is the assembled prompt. Every later step holds an optional correction and the model's reply; answers
to tool calls stand in `tool_results` and are put behind their reply in call order, whatever order they
finished in.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from activities.generations import Place
from kernel.agent.calls import JudgedCall
from kernel.agent.messages import Message, ToolCall
from kernel.errors import Code, TurnwrightError
from kernel.wire.agent import ModelStep
from kernel.wire.base import Json
from store import tool_results, transcripts
from store.tool_results import ToolResult
from store.transcripts import Entry

PROMPT_STEP = 0
_KEPT = 512


@dataclass(frozen=True)
class Transcript:
    """A run's entries and tool answers, as stored."""

    entries: Sequence[Entry]
    results: Mapping[tuple[int, int], ToolResult]

    def recorded(self, step: int) -> ModelStep | None:
        """The result of a step that was finished before."""
        for entry in self.entries:
            if entry.step == step and entry.role == "assistant" and "outcome" in entry.message:
                return ModelStep.model_validate(entry.message["outcome"])
        return None

    @property
    def prompt(self) -> Entry | None:
        """The stored prompt, once the first step assembled it."""
        return next((entry for entry in self.entries if entry.step == PROMPT_STEP), None)

    def messages(self) -> list[Message]:
        """Everything that was said so far, every call with its answer."""
        said: list[Message] = []
        for entry in self.entries:
            if entry.step == PROMPT_STEP:
                said += [Message.model_validate(message) for message in entry.message["messages"]]
            elif entry.role == "user":
                said.append(Message(role="user", text=entry.message["text"]))
            else:
                said += self._exchange(entry)
        return said

    def _exchange(self, entry: Entry) -> list[Message]:
        calls = tuple(ToolCall.model_validate(call) for call in entry.message["tool_calls"])
        reply = Message(role="assistant", text=entry.message["text"], tool_calls=calls)
        answers = [
            Message(role="tool", tool_call_id=call.id, text=_shown(self.results.get((entry.step, index))))
            for index, call in enumerate(calls)
        ]
        return [reply, *answers]


class Replies:
    """Arguments of the newest stored replies of this process; a stored reply never changes.

    A tool usually runs where its call was just judged, and need not read the reply back.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, int], list[Any]] = OrderedDict()

    def keep(self, place: Place, step: int, judged: Sequence[JudgedCall]) -> None:
        """Remember the calls of a reply that is committed."""
        self._known[place.owner_id, place.runtime_id, step] = [call.arguments for call in judged]
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)

    async def arguments(self, conn: AsyncConnection, place: Place, step: int, index: int) -> dict[str, Any]:
        """The judged arguments of one call.

        Raises:
            TurnwrightError: `tool.unknown`, when no such reply is stored.
        """
        known = self._known.get((place.owner_id, place.runtime_id, step))
        if known is None:
            entry = await transcripts.find(conn, place.owner_id, place.runtime_id, step=step)
            if entry is None:
                raise TurnwrightError(Code.TOOL_UNKNOWN, f"no reply is stored for step {step}")
            known = entry.message["arguments"]
        return dict(known[index])


async def load(conn: AsyncConnection, place: Place) -> Transcript:
    """The run's transcript."""
    entries = await transcripts.load(conn, place.owner_id, place.runtime_id)
    found = await tool_results.list_run(conn, place.owner_id, place.runtime_id) if len(entries) > 1 else []
    return Transcript(entries, {(result.step, result.idx): result for result in found})


async def save_prompt(conn: AsyncConnection, place: Place, messages: Sequence[Message]) -> None:
    """Store the assembled prompt; a repeated first step finds it."""
    prompt = {
        "role": "prompt",
        "messages": [message.model_dump(exclude_defaults=True) for message in messages],
    }
    run = (place.owner_id, place.runtime_id)
    await transcripts.lock(conn, *run)
    if await transcripts.find(conn, *run, step=PROMPT_STEP, role="prompt") is None:
        await transcripts.append(conn, *run, [prompt], step=PROMPT_STEP)


async def recorded_step(conn: AsyncConnection, place: Place, step: int) -> ModelStep | None:
    """The result of a step that another attempt finished meanwhile; the caller may append otherwise."""
    await transcripts.lock(conn, place.owner_id, place.runtime_id)
    entry = await transcripts.find(conn, place.owner_id, place.runtime_id, step=step)
    return ModelStep.model_validate(entry.message["outcome"]) if entry else None


def reply_entry(reply: Message, judged: Sequence[JudgedCall], outcome: ModelStep) -> dict[str, Any]:
    """A reply as it is stored: its text and calls, the judged arguments, and the step's result."""
    return {
        "role": "assistant",
        "text": reply.text,
        "tool_calls": [call.model_dump() for call in reply.tool_calls],
        "arguments": [call.arguments for call in judged],
        "outcome": outcome.model_dump(mode="json", exclude_unset=True),
    }


def _shown(result: ToolResult | None) -> str:
    """What the model reads of a tool's answer: `_text` alone when there is one, else JSON."""
    if result is None:
        return json.dumps({"error": "tool.cancelled: the call has no result"})
    value: Json = result.result
    if isinstance(value, dict) and isinstance(value.get("_text"), str):
        return str(value["_text"])
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
