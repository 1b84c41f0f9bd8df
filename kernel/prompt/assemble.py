"""The first request of an agent run: system prompt, history, turn context, the player's words.

Everything that changes from turn to turn stands behind the history, so that the system prompt stays the
same to the byte and a provider's prefix cache can serve it. Spec: plugin-model §11.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from kernel.agent.messages import Message
from kernel.prompt.templates import interpolate
from kernel.wire.base import Json


@dataclass(frozen=True)
class PromptParts:
    """What a prompt is made of.

    Attributes:
        body: the runtime's prompt body.
        history: committed conversation, oldest first, as user and assistant messages.
        inputs: bound slots; written as `<runtime-inputs>`.
        activation: payload of a manual activation; written as `<runtime-activation>`.
        told: story text that earlier stages of this turn produced.
        finish_with: the tool that ends the run.
    """

    runtime_id: str
    body: str
    locale: str
    story: bool
    schema_ending: bool
    finish_with: str | None = None
    history: Sequence[Message] = ()
    player_text: str = ""
    inputs: Mapping[str, Json] = field(default_factory=dict)
    activation: Json = None
    told: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


def assemble(parts: PromptParts) -> tuple[Message, ...]:
    """The messages of the first request, in the order of the specification."""
    context = _context(parts)
    messages = [Message(role="system", text=_system(parts)), *parts.history]
    if context:
        messages.append(Message(role="system", text=context))
    if parts.player_text:
        messages.append(Message(role="user", text=parts.player_text))
    if parts.told:
        messages.append(Message(role="assistant", text=parts.told))
        messages.append(
            Message(role="system", text="The story above was told in this turn; the player reads it now.")
        )
    if not parts.player_text and not parts.told:
        messages.append(Message(role="user", text="Carry out your task for this turn."))
    return tuple(messages)


def _system(parts: PromptParts) -> str:
    head = "\n".join(
        (
            f"[RUNTIME] You are `{parts.runtime_id}`, one runtime of an interactive story.",
            f"[LANGUAGE] Write for the locale {parts.locale}.",
            f"[COMPLETION] {_completion(parts)}",
        )
    )
    return f"{head}\n\n{interpolate(parts.body.strip(), parts.values)}"


def _completion(parts: PromptParts) -> str:
    if parts.finish_with:
        return f"The run ends with a successful call to `{parts.finish_with}`."
    if parts.story:
        return "End with the story text itself: prose for the player, no headings, no notes about your work."
    if parts.schema_ending:
        return "End with one JSON value that satisfies the output schema, and nothing else."
    return "End with a short answer in prose."


def _context(parts: PromptParts) -> str:
    blocks = []
    if parts.inputs:
        values = {name: _without_provenance(slot) for name, slot in sorted(parts.inputs.items())}
        blocks.append(_block("runtime-inputs", values))
    if parts.activation is not None:
        blocks.append(_block("runtime-activation", parts.activation))
    return "\n".join(blocks)


def _without_provenance(slot: Json) -> Json:
    if isinstance(slot, dict) and "items" in slot:
        return {"items": [{"value": item.get("value")} for item in slot["items"]]}
    return {"value": slot.get("value")} if isinstance(slot, dict) else slot


def _block(tag: str, value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return f"<{tag}>{escape(text)}</{tag}>"
