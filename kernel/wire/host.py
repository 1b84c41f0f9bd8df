"""The JSON protocol between host and package code, whatever carries it (DECISIONS 24).

    host    → package   Invoke, HostReply, Cancel
    package → host      HostCall, Done

One invocation is one `Invoke` and one `Done`; between them the code asks by `HostCall` and the host
answers each by one `HostReply`, in any order. Nothing but JSON text crosses: package code never holds
an object of ours, a key or a connection.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json, Wire

MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""Longest message, in UTF-8 bytes."""

MAX_DEPTH: Final = 64
"""Deepest nesting of a value that crosses."""

MAX_CONVERSATION_BYTES: Final = 512 * 1024
"""Most of the committed conversation that an `Invoke` carries; the oldest messages go first."""

MAX_INTEGER: Final = 2**53 - 1
"""Largest integer that every JSON reader keeps exactly."""

METHODS: Final[Mapping[str, str]] = {
    "plugin_data.get": "{namespace, key} → value or null; own data, this run's writes included",
    "plugin_data.list": "{namespace, prefix?, after?, limit?} → [{key, value}] in key order, after `after`",
    "plugin_data.set": "{namespace, key, value} → null; staged, commits with the turn",
    "plugin_data.delete": "{namespace, key} → null; staged",
    "state.get": "{path} → value at a JSON Pointer of the session state, or null",
    "tools.call": "{name, args} → the tool's result; an unlisted name is refused",
    "gateway.generate_text": (
        "{prompt? | messages?, system?, presetId?, maxOutputTokens?} → {text, finishReason, usage}"
    ),
    "gateway.generate_object": (
        "{prompt? | messages?, system?, schema, presetId?, maxOutputTokens?} → {object, finishReason, usage}"
    ),
    "http.fetch": "{url, method, headers, body, timeoutMs?} → {status, headers, text}; declared origins only",
    "progress.report": "{fraction?, message?} → null",
    "log": "{level: debug|info|warning|error, message, fields}; nobody waits for a reply",
}
"""Every method that package code may call, with its parameters and its reply."""

InvokeKind = Literal["handler", "guard", "tool"]


class StaticContext(Wire):
    """What code knows from the start; it does not change while the code runs.

    Attributes:
        seed: seed of `ctx.random`, from turn and runtime (and the call, for a tool).
        now: Unix seconds, frozen for the run.
        inputs: bound slots, `{name: {value, provenance}}` or `{name: {items: […]}}`.
        messages: committed conversation, `{role, text, turnId}` each.
        user_settings: values of the package's settings, by key.
        gateway, http: whether this run may call models, or send requests.
    """

    plugin_id: str
    runtime_id: str
    session_id: str
    turn_id: str
    logical_turn: int
    locale: str = "en"
    seed: str
    now: float
    player_message: str | None = None
    player_actions: tuple[Json, ...] = ()
    manual_payload: Json = None
    inputs: dict[str, Json] = Field(default_factory=dict)
    messages: tuple[dict[str, Json], ...] = ()
    user_settings: dict[str, Json] = Field(default_factory=dict)
    gateway: bool = False
    http: bool = False


class Invoke(Wire):
    """Run one function of a package.

    Attributes:
        module: path of the module from the package root, `runtimes/query/handler.py`; of a tool, the entry.
        name: the tool's name; empty for a handler or a guard.
        args: the tool's arguments.
    """

    type: Literal["invoke"] = "invoke"
    kind: InvokeKind
    module: str = "server/__init__.py"
    name: str = ""
    context: StaticContext
    args: Json = None


class ProtocolError(Wire):
    """Why a call or an invocation failed. `code` is one of ours, or a package's own word.

    Attributes:
        raised: the package code raised it on purpose (`ToolError`).
    """

    code: str
    message: str = ""
    raised: bool = False


class HostCall(Wire):
    """The code asks the host; without `id` it does not wait for a reply."""

    type: Literal["call"] = "call"
    id: int | None = None
    method: str
    params: dict[str, Json] = Field(default_factory=dict)


class HostReply(Wire):
    """The host's answer to the call with this `id`: a result, or an error."""

    type: Literal["reply"] = "reply"
    id: int
    result: Json = None
    error: ProtocolError | None = None


class Cancel(Wire):
    """Stop: the code's signal is aborted, then its await is cancelled."""

    type: Literal["cancel"] = "cancel"


class Done(Wire):
    """The end of the invocation: a result, or an error."""

    type: Literal["done"] = "done"
    result: Json = None
    error: ProtocolError | None = None


ToPackage = Invoke | HostReply | Cancel
ToHost = HostCall | Done
Message = ToPackage | ToHost

_MESSAGE: TypeAdapter[Message] = TypeAdapter(
    Annotated[Invoke | HostReply | Cancel | HostCall | Done, Field(discriminator="type")]
)


def encode(message: Message) -> str:
    """One message as JSON text.

    Raises:
        TurnwrightError: `wire.too-large` over `MAX_MESSAGE_BYTES`; `wire.malformed` for what is no JSON.
    """
    try:
        plain = clean(message.model_dump(exclude_defaults=True) | {"type": message.type})
    except NotJson as error:
        raise TurnwrightError(error.code, f"a message of type {message.type!r}: {error}") from None
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    if (size := len(text.encode())) > MAX_MESSAGE_BYTES:
        raise TurnwrightError(
            Code.WIRE_TOO_LARGE,
            f"a message of type {message.type!r} has {size} bytes",
            accepted=f"at most {MAX_MESSAGE_BYTES} bytes",
        )
    return text


def decode(text: str) -> Message:
    """The message of a text.

    Raises:
        TurnwrightError: `wire.malformed` when it is no JSON, not finite, too deep or of no known type;
            `wire.too-large` over the limit.
    """
    if len(text) > MAX_MESSAGE_BYTES:
        raise TurnwrightError(Code.WIRE_TOO_LARGE, f"a message has {len(text)} characters")
    try:
        return _MESSAGE.validate_python(clean(json.loads(text)))
    except NotJson as error:
        raise TurnwrightError(error.code, f"not a message of the protocol: {error}") from None
    except (ValueError, RecursionError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise TurnwrightError(Code.WIRE_MALFORMED, f"not a message of the protocol: {reason}") from error


class NotJson(ValueError):
    """A value that cannot cross.

    Attributes:
        path: JSON Pointer to the offending part; empty for the value itself.
        code: `wire.too-large`, or `wire.malformed`.
    """

    def __init__(self, path: str, problem: str, code: Code = Code.WIRE_MALFORMED) -> None:
        super().__init__(f"{path or 'the value'}: {problem}")
        self.path = path
        self.problem = problem
        self.code = code


def clean(value: Any) -> Json:
    """A deep copy of `value` made of nothing but JSON types; tuples become lists.

    A lone surrogate becomes U+FFFD: stored as it is, it would poison every later request.

    Raises:
        NotJson: with the path of the first part that is no JSON, too deep, or past the size of a message.
    """
    return _Copy().copy(value, "", 0)


class _Copy:
    """Counts what it copies: shared references could otherwise unfold without end."""

    def __init__(self) -> None:
        self._left = MAX_MESSAGE_BYTES

    def copy(self, value: Any, path: str, depth: int) -> Json:
        self._spend(1, path)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, int | float):
            return _number(value, path)
        if depth >= MAX_DEPTH:
            raise NotJson(path, f"nested deeper than {MAX_DEPTH}")
        if isinstance(value, Mapping):
            return self._object(value, path, depth)
        if isinstance(value, list | tuple):
            return [self.copy(item, f"{path}/{index}", depth + 1) for index, item in enumerate(value)]
        raise NotJson(path, f"{type(value).__name__} is not JSON")

    def _object(self, value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Json]:
        result: dict[str, Json] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotJson(path, f"the key {key!r} is not a string")
            step = key.replace("~", "~0").replace("/", "~1")[:80]
            result[self._text(key, path)] = self.copy(item, f"{path}/{step}", depth + 1)
        return result

    def _text(self, value: str, path: str) -> str:
        self._spend(len(value), path)
        if value.isascii():
            return str.__str__(value)
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _spend(self, cost: int, path: str) -> None:
        self._left -= cost
        if self._left < 0:
            raise NotJson(path, f"larger than {MAX_MESSAGE_BYTES} bytes", Code.WIRE_TOO_LARGE)


def _number(value: float, path: str) -> float:
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise NotJson(path, "the integer is beyond 2^53 - 1")
        return int(value)
    if not math.isfinite(value):
        raise NotJson(path, f"{value} is not a JSON number")
    return float(value)


def newest_within(
    messages: Sequence[dict[str, Json]], limit: int = MAX_CONVERSATION_BYTES
) -> tuple[dict[str, Json], ...]:
    """The newest messages whose JSON fits into `limit` bytes, in their order."""
    kept: list[dict[str, Json]] = []
    for message in reversed(messages):
        limit -= len(json.dumps(message).encode()) + 1
        if limit < 0:
            break
        kept.append(message)
    return tuple(reversed(kept))
