"""The body of a chat-completions request."""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from activities.models.tool_names import ToolNames
from activities.models.wire import Endpoint
from kernel.agent.messages import Message, ModelRequest, ToolName, ToolSpec, clean_json
from kernel.agent.strict import strict_fault
from kernel.agent.tool_arguments import replayable_arguments

_log = logging.getLogger(__name__)


def request_names(request: ModelRequest) -> ToolNames:
    """The name mapping of one request: offered tools and the calls of its history."""
    offered = [tool.name for tool in request.tools]
    called = [call.name for message in request.messages for call in message.tool_calls]
    return ToolNames(offered + called)


def chat_body(request: ModelRequest, endpoint: Endpoint, names: ToolNames) -> bytes:
    """The request as UTF-8 JSON; equal requests give equal bytes, which prefix caches live on."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [_message(message, names) for message in request.messages],
        _limit_field(endpoint): request.max_output_tokens,
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [_tool(tool, names, endpoint) for tool in request.tools]
        body["tool_choice"] = _choice(request, names)
    if request.output_schema is not None:
        schema: dict[str, Any] = {"name": "output", "schema": request.output_schema}
        if endpoint.strict and not strict_fault(request.output_schema):
            schema["strict"] = True
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if not request.reasoning:
        body |= endpoint.reasoning_off
    try:
        return _encoded(body)
    except UnicodeEncodeError:  # a lone surrogate, rare enough to look for it only now
        return _encoded(clean_json(body))


def _encoded(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()


def _limit_field(endpoint: Endpoint) -> str:
    # OpenAI's reasoning models refuse `max_tokens`; the servers that copy its protocol know nothing else.
    host = urlsplit(endpoint.base_url).hostname or ""
    return "max_completion_tokens" if host.endswith("openai.com") else "max_tokens"


def _message(message: Message, names: ToolNames) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "tool":
        entry["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        entry["content"] = message.text or None
        entry["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": names.safe(call.name),
                    "arguments": replayable_arguments(call.arguments),
                },
            }
            for call in message.tool_calls
        ]
    return entry


def _tool(tool: ToolSpec, names: ToolNames, endpoint: Endpoint) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": names.safe(tool.name),
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if endpoint.strict:
        if fault := strict_fault(tool.parameters):
            _tell_once(tool.name, fault)
        else:
            function["strict"] = True
    return {"type": "function", "function": function}


@lru_cache(maxsize=1_000)
def _tell_once(tool: str, fault: str) -> None:
    _log.warning("tool %s is sent without strict mode, which does not take %s", tool, fault)


def _choice(request: ModelRequest, names: ToolNames) -> Any:
    if isinstance(request.tool_choice, ToolName):
        return {"type": "function", "function": {"name": names.safe(request.tool_choice.name)}}
    return request.tool_choice
