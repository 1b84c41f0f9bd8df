"""The contexts that functions, guards and tools receive.

Everything in them is a copy: changing it changes nothing outside. A capability that a run may lack is None,
and code asks first; what no run of this version has is refused by name. Spec: plugin-model §13, §17, §23,
§24.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from kernel.errors import Code
from kernel.wire.host import StaticContext
from turnwright.sdk.clients import (
    Call,
    Gateway,
    Json,
    Logger,
    Network,
    PluginData,
    Progress,
    SessionState,
    Signal,
    Tell,
    Tools,
)
from turnwright.sdk.errors import ToolError
from turnwright.sdk.seeded import SeededRandom


@dataclass(frozen=True, kw_only=True)
class Context:
    """What every kind of package code knows.

    Attributes:
        plugin_id: the package, `fact-index`.
        runtime_id: the runtime that runs, or that calls the tool: `fact-index/query`.
        session_id: the session.
        turn_id: the turn, also of a background job (the turn that left it).
        logical_turn: number of the turn, from 1; a retry keeps it.
        locale: language of the session, a BCP 47 tag.
        user_settings: the package's settings by key, every declared one: what the player set, else the
            world's value, else the default, else None. They do not change during a turn.
        random: numbers that a retry draws again.
        now: time of the run in UTC, frozen; a retry sees the same.
        signal: whether the run is being stopped.
        plugin_data: the package's own data.
        state: the session's shared state, read only.
        logger: lines for the package's author.
    """

    plugin_id: str
    runtime_id: str
    session_id: str
    turn_id: str
    logical_turn: int
    locale: str
    user_settings: Mapping[str, Json]
    random: SeededRandom
    now: datetime
    signal: Signal
    plugin_data: PluginData
    state: SessionState
    logger: Logger

    @property
    def services(self) -> NoReturn:
        """Services are not in this version."""
        raise _later("services")

    @property
    def world(self) -> NoReturn:
        """The world is not in this version."""
        raise _later("world")


@dataclass(frozen=True, kw_only=True)
class ToolContext(Context):
    """`ctx` of a tool: `async def handler(args, ctx)`.

    Writes of `plugin_data` are staged as the calling run's proposals and share its fate.

    Attributes:
        gateway, utils: None; the models and permissions of the calling run are its own.
    """

    gateway: None = None
    utils: None = None


@dataclass(frozen=True, kw_only=True)
class FunctionContext(Context):
    """`ctx` of a function runtime, `async def handler(ctx)`, and of a guard, `async def guard(ctx)`.

    A guard only reads: its `gateway` and `utils` are None, and a write or a tool call is refused.

    Attributes:
        player_message: text of the player's action; None in a run without one.
        player_actions: the actions of this turn as JSON.
        manual_payload: payload of a manual run, already checked against `io.payloadSchema`.
        inputs: bound slots: `ctx.inputs["narrative"]["value"]`, or `["items"]` of a binding to all
            providers; an optional slot without a value is left out.
        messages: committed conversation, oldest first: `{role, text, turnId}`; its newest 512 KiB.
        tools: the tools that `function.tools` lists.
        progress: tells people how far the run is.
        gateway: models; None where the run has none.
        utils: requests; None where the runtime declares no `permissions.http`.
        agents, images, speech, music, media: None in this version.
    """

    player_message: str | None
    player_actions: Sequence[Json]
    manual_payload: Json
    inputs: Mapping[str, Mapping[str, Json]]
    messages: Sequence[Mapping[str, Json]]
    tools: Tools
    progress: Progress
    gateway: Gateway | None
    utils: Network | None
    agents: None = None
    images: None = None
    speech: None = None
    music: None = None
    media: None = None

    async def recursive_call(self, *_: Any, **__: Any) -> NoReturn:
        """Nested runs are not in this version."""
        raise _later("recursive_call")


def tool_context(static: StaticContext, call: Call, tell: Tell, signal: Signal) -> ToolContext:
    """The context of one tool call."""
    return ToolContext(**_shared(static, call, tell, signal))


def function_context(static: StaticContext, call: Call, tell: Tell, signal: Signal) -> FunctionContext:
    """The context of one run of a function runtime or a guard."""
    return FunctionContext(
        **_shared(static, call, tell, signal),
        player_message=static.player_message,
        player_actions=static.player_actions,
        manual_payload=static.manual_payload,
        inputs=static.inputs,
        messages=static.messages,
        tools=Tools(call),
        progress=Progress(call),
        gateway=Gateway(call) if static.gateway else None,
        utils=Network(call) if static.http else None,
    )


def _later(what: str) -> ToolError:
    return ToolError(Code.NOT_SUPPORTED, f"ctx.{what} is not in this version")


def _shared(static: StaticContext, call: Call, tell: Tell, signal: Signal) -> dict[str, Any]:
    return {
        "plugin_id": static.plugin_id,
        "runtime_id": static.runtime_id,
        "session_id": static.session_id,
        "turn_id": static.turn_id,
        "logical_turn": static.logical_turn,
        "locale": static.locale,
        "user_settings": static.user_settings,
        "random": SeededRandom(static.seed),
        "now": datetime.fromtimestamp(static.now, UTC),
        "signal": signal,
        "plugin_data": PluginData(call),
        "state": SessionState(call),
        "logger": Logger(tell),
    }
