"""What an entry module registers: `def register(host)` in `server/__init__.py`.

Every registration needs its declaration in `contributes`, and the other way round; one without the other
fails the whole entry. Spec: plugin-model §1, §13.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

from pydantic import BaseModel

from kernel.errors import Code, TurnwrightError
from turnwright.sdk.clients import Json, schema_json
from turnwright.sdk.context import ToolContext

Risk = Literal["read", "write", "network", "execute", "destructive"]
RISKS: Final[tuple[Risk, ...]] = ("read", "write", "network", "execute", "destructive")
ToolHandler = Callable[[Any, ToolContext], Awaitable[Json]]

_MAX_NAME: Final = 128


@dataclass(frozen=True)
class RegisteredTool:
    """One registered tool.

    Attributes:
        parameters: JSON Schema of the arguments, an object schema.
        model: the pydantic model that the handler receives instead of a dict; None for a plain schema.
        output: JSON Schema of the result, when one was given.
    """

    name: str
    description: str
    parameters: Json
    handler: ToolHandler
    risk: Risk
    needs_approval: bool
    output: Json = None
    model: type[BaseModel] | None = None


class Host:
    """The surface that `register(host)` receives.

    Args:
        plugin_id: the package that registers.
    """

    def __init__(self, plugin_id: str) -> None:
        self.plugin_id = plugin_id
        self._tools: dict[str, RegisteredTool] = {}

    @property
    def tools(self) -> dict[str, RegisteredTool]:
        """What was registered so far, by name."""
        return dict(self._tools)

    def register_tool(
        self,
        *,
        name: str,
        description: str,
        parameters: Json,
        handler: ToolHandler,
        risk: Risk = "read",
        needs_approval: bool = False,
        output: Json = None,
    ) -> None:
        """Offer a tool to this package's own runtimes.

        Args:
            name: unique in the package; also listed in `contributes.tools`.
            description: for the model, in English.
            parameters: a pydantic model, which the handler then receives, or a JSON Schema (a dict comes).
            handler: `async def fn(args, ctx)`; returns JSON. A string under `_text` is all the model sees.
            risk: the most a call can do.
            needs_approval: a person is asked before every call.
            output: a pydantic model or JSON Schema of the result.

        Raises:
            TurnwrightError: `package.load-failed`, naming the tool and what is wrong with it.
        """
        tool = RegisteredTool(
            name=name,
            description=description,
            parameters=schema_json(parameters),
            handler=handler,
            risk=risk,
            needs_approval=needs_approval,
            output=schema_json(output),
            model=parameters if _is_model(parameters) else None,
        )
        self._check(tool)
        self._tools[name] = tool

    def register_service(self, **_: Any) -> NoReturn:
        """Services are not in this version."""
        raise _later("register_service")

    def on(self, event: str, *_: Any, **__: Any) -> NoReturn:
        """Hooks are not in this version."""
        raise _later(f"on({event!r})")

    def provide_extension(self, point: str, *_: Any, **__: Any) -> NoReturn:
        """Extension points are not in this version."""
        raise _later(f"provide_extension({point!r})")

    def _check(self, tool: RegisteredTool) -> None:
        if not isinstance(tool.name, str) or not tool.name.strip() or len(tool.name) > _MAX_NAME:
            raise _refused(str(tool.name), "the name is not usable", f"1 to {_MAX_NAME} characters")
        if tool.name in self._tools:
            raise _refused(tool.name, "the name is registered twice", "one registration")
        if not isinstance(tool.description, str) or not tool.description.strip():
            raise _refused(tool.name, "the description is empty", "a sentence for the model")
        if not isinstance(tool.parameters, dict) or tool.parameters.get("type") != "object":
            raise _refused(
                tool.name, "parameters is no object schema", "a pydantic model or an object schema"
            )
        if tool.risk not in RISKS:
            raise _refused(tool.name, f"unknown risk {tool.risk!r}", ", ".join(RISKS))
        if not inspect.iscoroutinefunction(tool.handler):
            raise _refused(tool.name, "the handler is not async", "async def fn(args, ctx)")


def _is_model(schema: Any) -> bool:
    return isinstance(schema, type) and issubclass(schema, BaseModel)


def _refused(name: str, problem: str, accepted: str) -> TurnwrightError:
    return TurnwrightError(Code.PACKAGE_LOAD, f"tool {name[:80]!r}: {problem}", accepted=accepted)


def _later(what: str) -> TurnwrightError:
    return TurnwrightError(
        Code.NOT_SUPPORTED, f"host.{what} is not in this version", accepted="host.register_tool"
    )
