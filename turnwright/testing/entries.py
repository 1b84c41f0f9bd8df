"""What an entry registers, called as the host calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from kernel.errors import Code, TurnwrightError
from kernel.schemas import problem
from turnwright.sdk.context import ToolContext
from turnwright.sdk.errors import ToolError
from turnwright.sdk.registration import Host, Registered, RegisteredService
from turnwright.testing.context import TestData, tool_context

Json = Any
Register = Callable[[Host], None]


async def execute_tool_and_commit(
    register: Register, name: str, args: dict[str, Json], *, data: TestData | None = None, **static: Any
) -> Json:
    """Call a tool with checked arguments; what it wrote is committed to `data`, or dropped when it fails.

    Args:
        register: the entry's `register(host)`.
        static: fields of the context, as of `function_context`.

    Raises:
        TurnwrightError: `tool.unknown`, `tool.validation`, `runtime.output-schema-invalid`.
        ToolError: what the tool raised.
    """
    data = data or TestData()
    tools = _registered(register, static).tools
    if (tool := tools.get(name)) is None:
        raise TurnwrightError(Code.TOOL_UNKNOWN, f"no tool {name!r}", accepted=", ".join(sorted(tools)))
    given = _checked(tool.parameters, tool.model, args, f"arguments of {name}")
    result = await _run(tool.handler, given, data, static)
    if tool.output is not None and (found := problem(tool.output, result)):
        data.staged.clear()
        raise TurnwrightError(Code.RUNTIME_OUTPUT, f"the result of {name} does not fit: {found}")
    data.commit()
    return result


async def call_test_service(
    register: Register,
    contract: str,
    value: Json,
    *,
    name: str = "",
    data: TestData | None = None,
    **static: Any,
) -> Json:
    """Call a service with both schemas checked; the writes of a write service are committed to `data`.

    Calls between packages come with a later version; until then this shows what a provider does.

    Args:
        register: the entry's `register(host)`.
        contract: the service's contract.
        name: which of several registrations under the contract.

    Raises:
        TurnwrightError: `tool.unknown`, `tool.validation`, `runtime.output-schema-invalid`.
        ToolError: what the service raised; `handler.capability` for a write of a read service.
    """
    data = data or TestData()
    service = _service(_registered(register, static), contract, name)
    given = _checked(service.input, service.model, value, f"input of {contract}")
    result = await _run(service.handler, given, data, static)
    if service.access == "read" and data.staged:
        data.staged.clear()
        raise ToolError(Code.HANDLER_CAPABILITY, f"{contract} is a read service and may not write")
    if found := problem(service.output, result):
        data.staged.clear()
        raise TurnwrightError(Code.RUNTIME_OUTPUT, f"the output of {contract} does not fit: {found}")
    data.commit()
    return result


def _registered(register: Register, static: dict[str, Any]) -> Registered:
    host = Host(static.get("plugin_id", "test"))
    register(host)
    return host.registered


def _service(registered: Registered, contract: str, name: str) -> RegisteredService:
    found = [
        one for one in registered.services.values() if one.contract == contract and name in ("", one.name)
    ]
    if len(found) != 1:
        known = ", ".join(f"{one.contract} ({one.name})" for one in registered.services.values())
        many = "several services answer" if found else "no service answers"
        raise TurnwrightError(Code.TOOL_UNKNOWN, f"{many} {contract}", accepted=known)
    return found[0]


def _checked(schema: Json, model: type[BaseModel] | None, value: Json, what: str) -> Any:
    if found := problem(schema, value):
        raise TurnwrightError(Code.TOOL_VALIDATION, f"the {what} do not fit: {found}")
    return model.model_validate(value) if model is not None else value


async def _run(handler: Callable[..., Any], given: Any, data: TestData, static: dict[str, Any]) -> Json:
    context: ToolContext = tool_context(data, **static)
    try:
        return await handler(given, context)
    except BaseException:
        data.staged.clear()
        raise
