"""What package code can ask the host for, one small class per concern.

Every awaited method is one call of the host protocol (`kernel.wire.host.METHODS`). A refused call raises
`ToolError` with the host's code. Arguments and answers are JSON; keys inside them are camelCase.
"""

from __future__ import annotations

import asyncio
import builtins
import ipaddress
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast
from urllib.parse import urlsplit

from turnwright.sdk.errors import ToolError

Json = Any
"""Any JSON value."""

_JSON = (str, int, float, bool, list, dict, type(None))

Call = Callable[[str, dict[str, Json]], Awaitable[Json]]
"""Asks the host and waits for its answer."""

Tell = Callable[[str, dict[str, Json]], None]
"""Tells the host something; nobody waits."""


class Record(TypedDict):
    """One record of the package's own data."""

    key: str
    value: Json


class TextReply(TypedDict):
    """Answer of `gateway.generate_text`. `usage`: `{inputTokens, outputTokens}`."""

    text: str
    finishReason: str
    usage: dict[str, Json]


class ObjectReply(TypedDict):
    """Answer of `gateway.generate_object`: `object` satisfies the schema."""

    object: Json
    finishReason: str
    usage: dict[str, Json]


class PluginData:
    """The package's own data in this session; no other package's.

    Reads see what this run has written. Writes are staged: they commit with the turn, or never.
    Namespaces that start with `_` are reserved; `_hidden.<name>` is for the package's code alone.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    async def get(self, namespace: str, key: str) -> Json:
        """The value, or None when there is no such record."""
        return await self._call("plugin_data.get", {"namespace": namespace, "key": key})

    async def list(
        self, namespace: str, *, prefix: str | None = None, after: str | None = None, limit: int | None = None
    ) -> builtins.list[Record]:
        """Records in key order, those after the key `after`; an answer must fit into 1 MiB."""
        params = {"namespace": namespace, **_given(prefix=prefix, after=after, limit=limit)}
        return cast("list[Record]", await self._call("plugin_data.list", params))

    async def set(self, namespace: str, key: str, value: Json) -> None:
        """Stage a write of at most 256 KiB; the namespace's schema is checked."""
        await self._call("plugin_data.set", {"namespace": namespace, "key": key, "value": value})

    async def delete(self, namespace: str, key: str) -> None:
        """Stage a deletion; nothing there is no mistake."""
        await self._call("plugin_data.delete", {"namespace": namespace, "key": key})


class SessionState:
    """The session's shared state, read only; change it with `effects.statePatches` of a result."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def get(self, path: str = "") -> Json:
        """The value at a JSON Pointer, or None when nothing is there."""
        return await self._call("state.get", {"path": path})


class Tools:
    """The tools that the runtime's `function.tools` lists."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def call(self, name: str, args: Mapping[str, Json] | None = None) -> Json:
        """The tool's result; a failure raises `ToolError`."""
        return await self._call("tools.call", {"name": name, "args": dict(args or {})})


class Gateway:
    """Models, by slot. Calls count toward `function.timeoutMs` and are paid once per run."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def generate_text(
        self,
        prompt: str | None = None,
        *,
        messages: Sequence[Mapping[str, Json]] | None = None,
        system: str | None = None,
        preset_id: str | None = None,
        max_output_tokens: int | None = None,
    ) -> TextReply:
        """Text for a prompt, or for messages of `{role, content}`.

        Args:
            preset_id: the model slot; the one of `function.model` when left out.
            max_output_tokens: lowers the player's limit, never raises it.
        """
        params = _request(prompt, messages, system, preset_id, max_output_tokens)
        return cast(TextReply, await self._call("gateway.generate_text", params))

    async def generate_object(
        self,
        prompt: str | None = None,
        *,
        schema: Json,
        messages: Sequence[Mapping[str, Json]] | None = None,
        system: str | None = None,
        preset_id: str | None = None,
        max_output_tokens: int | None = None,
    ) -> ObjectReply:
        """JSON that satisfies `schema`, a JSON Schema or a pydantic model class."""
        params = _request(prompt, messages, system, preset_id, max_output_tokens)
        return cast(
            ObjectReply, await self._call("gateway.generate_object", params | {"schema": schema_json(schema)})
        )


@dataclass(frozen=True)
class HttpResponse:
    """Answer of `utils.fetch_with_retry`. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300


class Network:
    """Requests to the origins of `permissions.http`; any other is refused."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def fetch_with_retry(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: str | None = None,
        timeout_ms: int | None = None,
    ) -> HttpResponse:
        """Send a text request; 408, 409, 429 and 5xx are tried again, at most 3 times in all."""
        params = {"url": url, "method": method, "headers": dict(headers or {}), "body": body}
        answer = await self._call("http.fetch", params | _given(timeoutMs=timeout_ms))
        return HttpResponse(answer["status"], answer["headers"], answer["text"])

    def validate_base_url(self, url: str) -> str:
        """The URL without its trailing slash, when it may be tried at all.

        The addresses behind a name are checked when a request is sent.

        Raises:
            ToolError: `invalid-url` unless https, without credentials, and to a public host.
        """
        return validate_base_url(url)


class Progress:
    """Tells people how far a long run is."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def report(self, message: str | None = None, *, fraction: float | None = None) -> None:
        """Show a line, and how much of the work is done, from 0 to 1."""
        await self._call("progress.report", _given(message=message, fraction=fraction))


class Logger:
    """Lines for the package's author; `warning` and `error` reach the worker's log too."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def debug(self, message: str, **fields: Json) -> None:
        """A detail."""
        self._log("debug", message, fields)

    def info(self, message: str, **fields: Json) -> None:
        """What happens."""
        self._log("info", message, fields)

    def warning(self, message: str, **fields: Json) -> None:
        """Something to look at."""
        self._log("warning", message, fields)

    def error(self, message: str, **fields: Json) -> None:
        """Something failed."""
        self._log("error", message, fields)

    def _log(self, level: str, message: str, fields: dict[str, Json]) -> None:
        shown = {name: value if isinstance(value, _JSON) else repr(value) for name, value in fields.items()}
        self._tell("log", {"level": level, "message": str(message), "fields": shown})


class Signal:
    """Whether this run is being stopped; long work without an `await` asks it."""

    def __init__(self) -> None:
        self._aborted = False

    @property
    def aborted(self) -> bool:
        """True once the run is stopped or its time is over."""
        return self._aborted

    def throw_if_aborted(self) -> None:
        """End the run here when it is being stopped."""
        if self._aborted:
            raise asyncio.CancelledError("the run is being stopped")

    def abort(self) -> None:
        """Called by the host side."""
        self._aborted = True


def schema_json(schema: Json) -> Json:
    """A JSON Schema from a pydantic model class; a schema stays as it is."""
    return schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema


def validate_base_url(url: str) -> str:
    """See `Network.validate_base_url`. Spec: plugin-model §25."""
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise ToolError("invalid-url", f"{url[:200]!r} is not a URL: {error}") from None
    if parts.scheme != "https" or not host:
        raise ToolError("invalid-url", f"{url[:200]!r} is not an https URL with a host")
    if parts.username is not None or parts.password is not None:
        raise ToolError("invalid-url", "a base URL carries no user name or password")
    if not _may_be_public(host):
        raise ToolError("invalid-url", f"{host!r} is not a public host")
    return url.strip().rstrip("/")


def _may_be_public(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # A last label of digits is an address in disguise (`0x7f.1`, `2130706433`).
        name = host.rstrip(".")
        last = name.rsplit(".", 1)[-1]
        return "." in name and not last[:1].isdigit() and last not in {"localhost", "local", "internal"}
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    return bool(address.is_global and inner.is_global and not inner.is_multicast)


def _request(
    prompt: str | None,
    messages: Sequence[Mapping[str, Json]] | None,
    system: str | None,
    preset_id: str | None,
    max_output_tokens: int | None,
) -> dict[str, Json]:
    if (prompt is None) == (messages is None):
        raise ToolError("invalid-request", "give a prompt or messages, not both")
    listed = None if messages is None else [dict(message) for message in messages]
    return _given(
        prompt=prompt, messages=listed, system=system, presetId=preset_id, maxOutputTokens=max_output_tokens
    )


def _given(**params: Json) -> dict[str, Json]:
    return {name: value for name, value in params.items() if value is not None}
