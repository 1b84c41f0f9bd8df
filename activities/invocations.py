"""Calls into package code: what it is told, and what it may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from activities.generations import Place
from activities.own_data import OwnData
from activities.plugins.host import Method, invoke
from kernel.errors import Code, TurnwrightError
from kernel.schemas import problem
from kernel.wire.base import Json
from kernel.wire.host import Invoke, StaticContext

TOOL_TIMEOUT_S = 60.0


def static_context(place: Place, *, seed: str, **more: Any) -> StaticContext:
    """What code knows from the start; `more` holds what only functions know."""
    generation = place.generation
    return StaticContext(
        plugin_id=place.package_id,
        runtime_id=place.runtime_id,
        session_id=place.session_id,
        turn_id=place.turn_id,
        logical_turn=generation.logical_turn,
        locale=generation.locale,
        seed=f"{place.owner_id}/{place.runtime_id}/{seed}",
        now=generation.opened_at,
        user_settings=dict(generation.settings.get(place.package_id, {})),
        **more,
    )


async def call_tool(
    place: Place, own: OwnData, name: str, arguments: Mapping[str, Any], *, seed: str
) -> Json:
    """Run a tool of the package; its writes are staged in `own`.

    Raises:
        TurnwrightError: how it failed, or an output that breaks the tool's own schema.
    """
    tool = place.live.code.tool(name)
    call = Invoke(
        kind="tool",
        module=place.live.package.entry or "",
        name=name,
        context=static_context(place, seed=seed),
        args=dict(arguments),
    )
    staged_before = len(own.staged)
    try:
        result = await invoke(place.live.code, call, data_methods(own), timeout_s=TOOL_TIMEOUT_S)
        if tool.output is not None and (found := problem(tool.output, result)):
            raise TurnwrightError(Code.RUNTIME_OUTPUT, f"the result of {name} does not fit: {found}")
    except BaseException:
        del own.staged[staged_before:]  # a failed call stages nothing
        raise
    return result


def data_methods(own: OwnData) -> dict[str, Method]:
    """Own data and session state, for every kind of code."""

    async def get(params: dict[str, Json]) -> Json:
        return await own.get(params["namespace"], params["key"])

    async def list_(params: dict[str, Json]) -> Json:
        chosen = {name: params[name] for name in ("prefix", "after", "limit") if params.get(name) is not None}
        return await own.list_records(params["namespace"], **chosen)

    async def set_(params: dict[str, Json]) -> Json:
        own.set(params["namespace"], params["key"], params["value"])
        return None

    async def delete(params: dict[str, Json]) -> Json:
        own.delete(params["namespace"], params["key"])
        return None

    async def state(params: dict[str, Json]) -> Json:
        return await own.session_state(params["path"])

    return {
        "plugin_data.get": get,
        "plugin_data.list": list_,
        "plugin_data.set": set_,
        "plugin_data.delete": delete,
        "state.get": state,
    }
