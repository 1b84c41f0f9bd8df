"""What a reply's tool calls are worth: which may run, under which id, and what the model is told of the rest.

    judge_calls            one judgement per call, in the reply's order
    hit_output_limit       whether a reply may have been cut off
    transcript_message     the reply as it enters the transcript, safe to send to any provider again

A model's mistake is a result that the model sees, never a failure of the run (DESIGN §4, rule 3).
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from kernel.agent.messages import Message, ModelReply, ToolCall, ToolSpec
from kernel.agent.tool_arguments import (
    UnusableArguments,
    echo,
    parse_object,
    replayable_arguments,
    schema_violation,
    unterminated,
)
from kernel.errors import Code
from kernel.identity import arguments_digest

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LAST_SEGMENT = re.compile(r"__|[./:\s]")
_TRUNCATED = "The call was cut off at the output limit and did not run. Send it again, shorter. Received: "


class CallError(BaseModel):
    """Why a call does not run, in words for the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: Code
    message: str


class JudgedCall(BaseModel):
    """One call of a reply.

    `id` is unique within the run; `digest` names the call for loop detection: equal name and arguments,
    equal digest. `arguments` is None exactly when they are unusable as written. A call with an `error` is
    answered with it and never executed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    arguments: dict[str, Any] | None
    digest: str
    error: CallError | None = None


def judge_calls(
    reply: ModelReply, specs: Iterable[ToolSpec], *, run_id: str, step: int, may_be_truncated: bool
) -> tuple[JudgedCall, ...]:
    """Judge every call of one reply.

    Spec: plugin-model §11.2 (truncation), §11.4. Ids come from run, step and position alone, because
    providers repeat, omit and collide them; a replay derives the same ones.

    Args:
        reply: the model's answer.
        specs: the tools that this request offered.
        run_id: the agent run, unique for ever.
        step: the run's model step, from 0.
        may_be_truncated: the provider stopped at the output limit, whatever its finish reason says
            (`hit_output_limit`).
    """
    offered = {spec.name: spec for spec in specs}
    cut = may_be_truncated or reply.finish == "length"
    return tuple(
        _judge(call, offered, call_id(run_id, step, index), cut)
        for index, call in enumerate(reply.tool_calls)
    )


def hit_output_limit(reply: ModelReply, max_output_tokens: int) -> bool:
    """Whether the reply ended at its output limit; some servers say `tool_calls` or `stop` even then."""
    used_up = reply.usage.reported and reply.usage.output_tokens >= max_output_tokens
    return reply.finish == "length" or used_up


def call_id(run_id: str, step: int, index: int) -> str:
    """The id of a call: nine letters and digits, the one form that every provider accepts."""
    run = int.from_bytes(hashlib.sha256(run_id.encode()).digest()) % 36**5
    return f"{_base36(run, 5)}{_base36(step, 2)}{_base36(index, 2)}"


def transcript_message(reply: ModelReply, judged: Sequence[JudgedCall]) -> Message:
    """The assistant's entry for the transcript: calls under their judged ids, arguments that always parse."""
    calls = tuple(
        ToolCall(id=mine.id, name=call.name, arguments=replayable_arguments(call.arguments))
        for call, mine in zip(reply.tool_calls, judged, strict=True)
    )
    return Message(role="assistant", text=reply.text, tool_calls=calls)


def _judge(call: ToolCall, offered: Mapping[str, ToolSpec], id_: str, cut: bool) -> JudgedCall:
    arguments, unusable = _read_arguments(call.arguments, cut)
    error = unusable
    if unusable is None or unusable.code is not Code.MODEL_TRUNCATED:
        error = _check(call, offered, arguments) or unusable
    digest = arguments_digest(call.name, call.arguments if arguments is None else arguments)
    return JudgedCall(id=id_, name=call.name, arguments=arguments, digest=digest, error=error)


def _read_arguments(raw: str, cut: bool) -> tuple[dict[str, Any] | None, CallError | None]:
    if cut and unterminated(raw):
        return None, CallError(code=Code.MODEL_TRUNCATED, message=_TRUNCATED + echo(raw))
    if not raw.strip():
        return {}, None  # how many models call a tool without parameters
    try:
        return parse_object(raw), None
    except UnusableArguments as reason:
        return None, CallError(code=Code.TOOL_ARGUMENTS, message=str(reason))


def _check(
    call: ToolCall, offered: Mapping[str, ToolSpec], arguments: dict[str, Any] | None
) -> CallError | None:
    spec = offered.get(call.name)
    if spec is None:
        return CallError(code=Code.TOOL_UNKNOWN, message=_unknown(call.name, list(offered)))
    violation = None if arguments is None else schema_violation(spec, arguments)
    return CallError(code=Code.TOOL_VALIDATION, message=violation) if violation else None


# Names


def _unknown(name: str, offered: Sequence[str]) -> str:
    if not name:
        return f"The call names no tool. {_available(offered)}"
    alike = _alike(name, offered)
    hint = f" Did you mean {' or '.join(f'`{one}`' for one in alike)}?" if alike else ""
    return f"Unknown tool `{echo(name, 120)}`.{hint} {_available(offered)}"


def _available(offered: Sequence[str]) -> str:
    if not offered:
        return "No tool is offered now."
    return echo("Available: " + ", ".join(f"`{name}`" for name in offered))


def _alike(name: str, offered: Sequence[str]) -> list[str]:
    tail = _tail(name)
    same_tail = [one for one in offered if _tail(one) == tail]
    return (same_tail or difflib.get_close_matches(name[:120], offered, n=2, cutoff=0.6))[:3]


def _tail(name: str) -> str:
    return _LAST_SEGMENT.split(name)[-1].lower().replace("-", "_")


# Ids and digests


def _base36(number: int, width: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
    return digits.rjust(width, "0")
