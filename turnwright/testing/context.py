"""`ctx` of a handler, a guard or a tool, backed by what a test gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from kernel.errors import Code
from kernel.wire.host import NotJson, StaticContext, clean
from turnwright.sdk import context as sdk
from turnwright.sdk.clients import Signal
from turnwright.sdk.context import FunctionContext, ToolContext
from turnwright.sdk.errors import ToolError
from turnwright.sdk.seeded import SeededRandom
from turnwright.testing.model import ScriptedModel

Json = Any
Tool = Callable[[dict[str, Json]], Awaitable[Json]]
NOW = 1_700_000_000.0


@dataclass
class TestData:
    """The package's own data and the session's state, as dictionaries.

    Attributes:
        records: namespace → key → value; what committed.
        state: the session's shared state.
        staged: writes of runs that did not commit yet: `{namespace, key, value}`, or without a value for a
            deletion.
        logs: `{level, message, fields}` of every log line.
        progress: every report of progress.
    """

    __test__ = False  # pytest takes it for a class of tests

    records: dict[str, dict[str, Json]] = field(default_factory=dict)
    state: Json = field(default_factory=dict)
    staged: list[dict[str, Json]] = field(default_factory=list)
    logs: list[dict[str, Json]] = field(default_factory=list)
    progress: list[dict[str, Json]] = field(default_factory=list)

    def seen(self, namespace: str) -> dict[str, Json]:
        """The records of a namespace as a run sees them: its own staged writes included."""
        found = dict(self.records.get(namespace, {}))
        for write in (write for write in self.staged if write["namespace"] == namespace):
            if "value" in write:
                found[write["key"]] = write["value"]
            else:
                found.pop(write["key"], None)
        return found

    def commit(self) -> None:
        """What was staged becomes what is."""
        for namespace in {write["namespace"] for write in self.staged}:
            self.records[namespace] = self.seen(namespace)
        self.staged.clear()


def seeded_random(seed: str = "test") -> SeededRandom:
    """The numbers that a run with this seed draws."""
    return SeededRandom(seed)


def function_context(
    data: TestData | None = None,
    *,
    model: ScriptedModel | None = None,
    tools: Mapping[str, Tool] | None = None,
    requests: Mapping[str, Mapping[str, Json]] | None = None,
    **static: Any,
) -> FunctionContext:
    """`ctx` of a function runtime or a guard.

    Args:
        data: what it reads and writes; its own empty one when left out.
        model: answers `ctx.gateway`; without one `ctx.gateway` is None.
        tools: what `ctx.tools.call` reaches, by name.
        requests: URL → `{status?, headers?, text?}` that `ctx.utils` gets; without it `ctx.utils` is None.
        static: fields of the context: `player_message`, `manual_payload`, `inputs`, `user_settings`,
            `locale`, `seed`, `now`, `plugin_id`, …
    """
    host = _Host(data or TestData(), model, tools or {}, requests)
    given = {"gateway": model is not None, "http": requests is not None, **static}
    return sdk.function_context(_static(**given), host.call, host.tell, Signal())


def tool_context(data: TestData | None = None, **static: Any) -> ToolContext:
    """`ctx` of a tool; arguments as of `function_context`."""
    host = _Host(data or TestData(), None, {}, None)
    return sdk.tool_context(_static(**static), host.call, host.tell, Signal())


def _static(**given: Any) -> StaticContext:
    defaults = {
        "plugin_id": "test",
        "runtime_id": given.get("plugin_id", "test"),
        "session_id": "test-session",
        "turn_id": "test-turn",
        "logical_turn": 1,
        "seed": "test",
        "now": NOW,
    }
    return StaticContext(**{**defaults, **given})


class _Host:
    """Answers the methods of the protocol from memory."""

    def __init__(
        self,
        data: TestData,
        model: ScriptedModel | None,
        tools: Mapping[str, Tool],
        requests: Mapping[str, Mapping[str, Json]] | None,
    ) -> None:
        self._data = data
        self._model = model
        self._tools = tools
        self._requests = requests or {}

    async def call(self, method: str, params: dict[str, Json]) -> Json:
        try:
            params = clean(params)
        except NotJson as error:
            raise ToolError(error.code, f"{method}: {error}") from None
        answer = await self._answer(method, params)
        return deepcopy(answer)

    def tell(self, method: str, params: dict[str, Json]) -> None:
        if method == "log":
            self._data.logs.append(params)

    async def _answer(self, method: str, params: dict[str, Json]) -> Json:
        match method:
            case "plugin_data.get":
                return self._data.seen(params["namespace"]).get(params["key"])
            case "plugin_data.list":
                return self._listed(params)
            case "plugin_data.set" | "plugin_data.delete":
                self._data.staged.append(params)
                return None
            case "state.get":
                return _at(self._data.state, params["path"])
            case "tools.call":
                return await self._tool(params["name"])(params["args"])
            case "gateway.generate_text" | "gateway.generate_object" if self._model is not None:
                return self._model.answer(method, params)
            case "http.fetch":
                return self._response(params["url"])
            case "progress.report":
                self._data.progress.append(params)
                return None
        raise ToolError(Code.HANDLER_CAPABILITY, f"{method} is not available in this test")

    def _listed(self, params: dict[str, Json]) -> list[dict[str, Json]]:
        records = self._data.seen(params["namespace"])
        first, prefix = params.get("after") or "", params.get("prefix") or ""
        keys = sorted(key for key in records if key.startswith(prefix) and (not first or key > first))
        return [{"key": key, "value": records[key]} for key in keys[: params.get("limit") or 50]]

    def _tool(self, name: str) -> Tool:
        if name not in self._tools:
            raise ToolError(Code.TOOL_UNKNOWN, f"the test gives no tool {name!r}")
        return self._tools[name]

    def _response(self, url: str) -> dict[str, Json]:
        if url not in self._requests:
            raise ToolError(Code.HANDLER_CAPABILITY, f"the test gives no response of {url}")
        return {"status": 200, "headers": {}, "text": "", **self._requests[url]}


def _at(value: Json, pointer: str) -> Json:
    steps: Sequence[str] = pointer.split("/")[1:]
    for step in (step.replace("~1", "/").replace("~0", "~") for step in steps):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
