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

from activities.generations import Place
from kernel.agent.calls import JudgedCall
from kernel.agent.messages import Message, ToolCall
from kernel.errors import Code, TurnwrightError
from kernel.wire.agent import ModelStep
from kernel.wire.base import Json
from store import tool_results, transcripts
from store.connection import Connection
from store.tool_results import ToolResult
from store.transcripts import Entry

PROMPT_STEP = 0
KEPT_BYTES = 32 * 1024 * 1024
"""How much of running transcripts a process remembers, in bytes of JSON, about."""


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


class Transcripts:
    """The transcripts of agent runs.

    A process remembers what it stored: rows are written once and never change, so a step whose earlier steps
    all ran here reads nothing back. Whether the step itself ran elsewhere, the ledger tells (`CallKnown`).
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._size = 0

    def remembered(self, place: Place, step: int) -> Transcript | None:
        """The transcript up to a step, when every entry and every answer of it was stored by this process."""
        known = self._known.get((place.owner_id, place.runtime_id))
        return known.transcript() if known and known.complete(step) else None

    async def load(self, conn: Connection, place: Place) -> Transcript:
        """The transcript as stored."""
        entries = await transcripts.load(conn, place.owner_id, place.runtime_id)
        found = (
            await tool_results.list_run(conn, place.owner_id, place.runtime_id) if len(entries) > 1 else []
        )
        return Transcript(entries, {(result.step, result.idx): result for result in found})

    def forget(self, place: Place) -> None:
        """Read this run's transcript from the store again."""
        if known := self._known.pop((place.owner_id, place.runtime_id), None):
            self._size -= known.size

    def keep(self, place: Place, entries: Sequence[Entry], results: Sequence[ToolResult] = ()) -> None:
        """Remember rows that this process wrote, once their transaction is committed."""
        known = self._known.setdefault((place.owner_id, place.runtime_id), _Known())
        self._known.move_to_end((place.owner_id, place.runtime_id))
        self._size += known.add(entries, results)
        while self._size > KEPT_BYTES and len(self._known) > 1:
            _, oldest = self._known.popitem(last=False)
            self._size -= oldest.size

    async def arguments(self, conn: Connection, place: Place, step: int, index: int) -> dict[str, Any]:
        """The judged arguments of one call.

        Raises:
            TurnwrightError: `tool.unknown`, when no such reply is stored.
        """
        known = self._known.get((place.owner_id, place.runtime_id))
        entry = known.replies.get(step) if known else None
        if entry is None:
            entry = await transcripts.find(conn, place.owner_id, place.runtime_id, step=step)
        if entry is None:
            raise TurnwrightError(Code.TOOL_UNKNOWN, f"no reply is stored for step {step}")
        return dict(entry.message["arguments"][index])


class _Known:
    """What is remembered of one run."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.replies: dict[int, Entry] = {}
        self.results: dict[tuple[int, int], ToolResult] = {}
        self.size = 0

    def add(self, entries: Sequence[Entry], results: Sequence[ToolResult]) -> int:
        """Add rows; returns their size in bytes, about."""
        added = 0
        for entry in entries:
            self.entries.append(entry)
            if entry.role == "assistant":
                self.replies[entry.step] = entry
            added += _weight(entry.message)
        for result in results:
            self.results[result.step, result.idx] = result
            added += _weight(result.result)
        self.size += added
        return added

    def complete(self, step: int) -> bool:
        """Whether the prompt, every reply before the step and the answer of every call are here."""
        if not self.entries or self.entries[0].step != PROMPT_STEP:
            return False
        return all(
            (reply := self.replies.get(before)) is not None
            and all((before, index) in self.results for index in range(len(reply.message["tool_calls"])))
            for before in range(1, step)
        )

    def transcript(self) -> Transcript:
        return Transcript(tuple(self.entries), dict(self.results))


def _weight(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False))


async def save_prompt(conn: Connection, place: Place, messages: Sequence[Message]) -> Sequence[Entry]:
    """Store the assembled prompt; returns its entry, or nothing when an earlier attempt stored another."""
    said = [message.model_dump(exclude_defaults=True) for message in messages]
    prompt = {"role": "prompt", "messages": said}
    return await transcripts.add(conn, place.owner_id, place.runtime_id, [prompt], step=PROMPT_STEP)


async def recorded_step(conn: Connection, place: Place, step: int) -> ModelStep:
    """The result of a step that is stored."""
    entry = await transcripts.find(conn, place.owner_id, place.runtime_id, step=step)
    if entry is None:
        raise RuntimeError(f"step {step} stands in the way and cannot be read")
    return ModelStep.model_validate(entry.message["outcome"])


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
