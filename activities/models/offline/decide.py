"""What the offline model answers: a tool call, JSON of a schema, or a little story.

It plays any valid package: what is forced it calls, what the prompt names in backticks or the player asks for
it calls once, and then it ends its turn.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from activities.models.offline.chat_format import CallAnswer, ChatAnswerParts, words
from activities.models.offline.prose import Prose
from activities.models.offline.shapes import shaped
from activities.models.tool_names import readable_safe_name

MODEL_NAME = "offline"
_BACKTICKED = re.compile(r"`([^`\n]{1,200})`")
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_LAST_TOOL = "runtime-done"  # ends the run, so nothing is called after it


@dataclass(frozen=True)
class _Question:
    """The parts of a request body that the answer depends on."""

    system: str
    player: str
    tools: Mapping[str, Any]
    done: frozenset[str]
    choice: Any
    schema: Any
    max_tokens: int
    prompt_tokens: int
    digest: str


def answer(body: Mapping[str, Any]) -> ChatAnswerParts:
    """Answer one request body. Equal bodies get equal answers."""
    question = _read(body)
    prose = Prose(question.system, question.player, "/".join(sorted(question.done)))
    tool = _tool_to_call(question)
    if tool is not None:
        return _call(question, tool, prose)
    if question.schema is not None:
        return _text(question, json.dumps(shaped(question.schema, prose), ensure_ascii=False))
    return _text(question, prose.story())


def token_count(text: str) -> int:
    """Tokens as this model counts them: four for three words."""
    return math.ceil(len(text.split()) * 4 / 3)


def _tool_to_call(question: _Question) -> str | None:
    if not question.tools or question.choice == "none":
        return None
    if isinstance(question.choice, Mapping):
        name = str((question.choice.get("function") or {}).get("name", ""))
        return name if name in question.tools else None
    open_ = sorted((one for one in question.tools if one not in question.done), key=_LAST_TOOL.__eq__)
    wanted = [one for one in open_ if _is_wanted(one, question)]
    if question.choice == "required":
        return (wanted or open_ or list(question.tools))[0]
    return wanted[0] if wanted else None


def _is_wanted(tool: str, question: _Question) -> bool:
    named = {readable_safe_name(name) for name in _BACKTICKED.findall(question.system)}
    if tool in named:
        return True
    spoken = set(re.findall(r"[^\W\d_]{5,}", question.player.lower()))
    return any(word.lower() in spoken for word in _NAME_WORD.findall(tool) if len(word) >= 5)


def _call(question: _Question, tool: str, prose: Prose) -> ChatAnswerParts:
    arguments = shaped(question.tools[tool], prose)
    text = json.dumps(arguments if isinstance(arguments, dict) else {}, ensure_ascii=False)
    return ChatAnswerParts(
        model=MODEL_NAME,
        calls=(CallAnswer(f"call_{question.digest}", tool, text),),
        finish="tool_calls",
        prompt_tokens=question.prompt_tokens,
        completion_tokens=token_count(f"{tool} {text}"),
    )


def _text(question: _Question, text: str) -> ChatAnswerParts:
    most = max(1, question.max_tokens * 3 // 4)
    pieces = words(text)
    kept = "".join(pieces[:most])
    return ChatAnswerParts(
        model=MODEL_NAME,
        text=kept,
        finish="stop" if kept == text else "length",
        prompt_tokens=question.prompt_tokens,
        completion_tokens=token_count(kept),
    )


def _read(body: Mapping[str, Any]) -> _Question:
    messages = [one for one in body.get("messages") or () if isinstance(one, Mapping)]
    asked = max((n for n, one in enumerate(messages) if one.get("role") == "user"), default=-1)
    limits = [body.get("max_tokens"), body.get("max_completion_tokens")]
    texts = [_content(one) for one in messages]
    return _Question(
        system="\n".join(_content(one) for one in messages if one.get("role") in ("system", "developer")),
        player=texts[asked] if asked >= 0 else "",
        tools=_tools(body.get("tools")),
        done=_answered(messages, asked),
        choice=body.get("tool_choice", "auto"),
        schema=_schema(body.get("response_format")),
        max_tokens=next((one for one in limits if isinstance(one, int)), 1_000_000),
        prompt_tokens=sum(map(token_count, texts)),
        digest=hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12],
    )


def _answered(messages: Sequence[Mapping[str, Any]], asked: int) -> frozenset[str]:
    """Tools whose result already stands after the last user message."""
    called: dict[str, str] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            called[str(call.get("id"))] = str((call.get("function") or {}).get("name"))
    results = [one for one in messages[asked + 1 :] if one.get("role") == "tool"]
    return frozenset(called.get(str(one.get("tool_call_id")), "") for one in results)


def _tools(tools: Any) -> dict[str, Any]:
    functions = [one.get("function") for one in tools or () if isinstance(one, Mapping)]
    return {
        str(one["name"]): one.get("parameters") or {"type": "object"}
        for one in functions
        if isinstance(one, Mapping) and one.get("name")
    }


def _schema(response_format: Any) -> Any:
    if not isinstance(response_format, Mapping):
        return None
    if response_format.get("type") == "json_object":
        return {"type": "object"}
    wrapped = response_format.get("json_schema")
    return wrapped.get("schema", {}) if isinstance(wrapped, Mapping) else None


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""
