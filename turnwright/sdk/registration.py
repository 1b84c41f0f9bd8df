"""What an entry module registers: `def register(host)` in `server/__init__.py`.

Every registration needs its declaration in `contributes`, and the other way round; one without the other
fails the whole entry. Spec: plugin-model §1, §13-16; DECISIONS 13, 22.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel

from kernel.agent.strict import ROOT_CHOICES
from kernel.errors import Code, TurnwrightError
from kernel.manifest.contributes import HookEvent
from kernel.manifest.fields import is_contract_id
from turnwright.sdk.clients import Json, schema_json
from turnwright.sdk.context import ToolContext

Risk = Literal["read", "write", "network", "execute", "destructive"]
RISKS: Final[tuple[Risk, ...]] = ("read", "write", "network", "execute", "destructive")
Access = Literal["read", "write"]
Enforce = Literal["pre", "normal", "post"]
ToolHandler = Callable[[Any, ToolContext], Awaitable[Json]]
Handler = Callable[..., Awaitable[Any]]
Dispose = Callable[[], Any]

HOOK_EVENTS: Final[tuple[str, ...]] = get_args(HookEvent)
MAX_HOOK_MS: Final = 60_000

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


@dataclass(frozen=True)
class RegisteredService:
    """One registered service; `input` and `output` are JSON Schemas."""

    name: str
    contract: str
    input: Json
    output: Json
    handler: Handler
    access: Access = "read"
    model_facing: bool = False
    description: str = ""
    model: type[BaseModel] | None = None


@dataclass(frozen=True)
class RegisteredHook:
    """One listener; `timeout_ms` is None where the host's limit holds."""

    event: str
    handler: Handler
    enforce: Enforce = "normal"
    timeout_ms: int | None = None


@dataclass(frozen=True)
class RegisteredExtension:
    """One provider of an extension point."""

    point: str
    id: str
    handler: Handler


@dataclass
class Registered:
    """Everything that an entry has registered, in its order."""

    tools: dict[str, RegisteredTool] = field(default_factory=dict)
    services: dict[str, RegisteredService] = field(default_factory=dict)
    hooks: list[RegisteredHook] = field(default_factory=list)
    extensions: dict[tuple[str, str], RegisteredExtension] = field(default_factory=dict)
    disposers: list[Dispose] = field(default_factory=list)


class Host:
    """The surface that `register(host)` receives.

    Args:
        plugin_id: the package that registers.
    """

    def __init__(self, plugin_id: str) -> None:
        self.plugin_id = plugin_id
        self._registered = Registered()

    @property
    def registered(self) -> Registered:
        """What was registered so far."""
        return self._registered

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
        what = f"tool {str(name)[:80]!r}"
        _check_name(what, name, taken=name in self._registered.tools)
        _check_text(what, description)
        _check_object_schema(what, "parameters", tool.parameters)
        _check_word(what, "risk", risk, RISKS)
        _check_async(what, handler, "async def fn(args, ctx)")
        self._registered.tools[name] = tool

    def register_service(
        self,
        *,
        name: str,
        contract: str,
        input: Json,
        output: Json,
        handler: Handler,
        access: Access = "read",
        model_facing: bool = False,
        description: str = "",
    ) -> None:
        """Answer other packages under a contract. Spec: plugin-model §14.

        Args:
            name: unique in the package.
            contract: `name@N`; each registration has its own entry in `contributes.services`.
            input, output: a pydantic model or a JSON Schema each; a model of the input is what comes in.
            handler: `async def fn(input, ctx)`; returns JSON.
            access: `write` lets it change the package's data, and is declared too.
            model_facing: agents may import it as a tool; it needs a description then, and the declaration.

        Raises:
            TurnwrightError: `package.load-failed`, naming the service and what is wrong with it.
        """
        what = f"service {str(name)[:80]!r}"
        service = RegisteredService(
            name=name,
            contract=contract,
            input=schema_json(input),
            output=schema_json(output),
            handler=handler,
            access=access,
            model_facing=model_facing,
            description=description,
            model=input if _is_model(input) else None,
        )
        _check_name(what, name, taken=name in self._registered.services)
        if not isinstance(contract, str) or not is_contract_id(contract):
            raise _refused(what, f"{str(contract)[:80]!r} is no contract", "name@N")
        _check_object_schema(what, "input", service.input)
        if not isinstance(service.output, dict | bool):
            raise _refused(what, "output is no schema", "a pydantic model or a JSON Schema")
        _check_word(what, "access", access, get_args(Access))
        _check_async(what, handler, "async def fn(input, ctx)")
        if model_facing:
            _check_text(what, description)
        self._registered.services[name] = service

    def on(
        self, event: str, handler: Handler, *, enforce: Enforce = "normal", timeout_ms: int | None = None
    ) -> None:
        """Listen to a moment of the run. Spec: plugin-model §16.

        Args:
            event: one of the sixteen moments; also listed in `contributes.hooks`.
            handler: `async def fn(ctx, payload)`.
            enforce: its group in the order.
            timeout_ms: at most 60,000; None takes the host's limit.

        Raises:
            TurnwrightError: `package.load-failed`.
        """
        what = f"hook {str(event)[:80]!r}"
        _check_word(what, "event", event, HOOK_EVENTS)
        _check_word(what, "enforce", enforce, get_args(Enforce))
        _check_async(what, handler, "async def fn(ctx, payload)")
        whole = isinstance(timeout_ms, int) and not isinstance(timeout_ms, bool)
        if timeout_ms is not None and not (whole and 0 < timeout_ms <= MAX_HOOK_MS):
            raise _refused(what, f"timeout_ms is {timeout_ms!r}", f"1 to {MAX_HOOK_MS}, or None")
        self._registered.hooks.append(RegisteredHook(event, handler, enforce, timeout_ms))

    def provide_extension(self, point: str, id: str, *, handler: Handler) -> None:
        """Answer the host at an extension point. Spec: plugin-model §15.

        Args:
            point: the point, as `prompt.segment@1`; with `id` also listed in `contributes.extensions`.
            id: names this registration; `static-prompt` is the host's own.
            handler: `async def fn(input, ctx)`.

        Raises:
            TurnwrightError: `package.load-failed`.
        """
        what = f"extension {str(point)[:80]!r}"
        if not isinstance(point, str) or not is_contract_id(point):
            raise _refused(what, "it is no extension point", "name@N")
        _check_name(what, id, taken=(point, id) in self._registered.extensions)
        if id == "static-prompt":
            raise _refused(what, "static-prompt is reserved for contributes.prompt", "another id")
        _check_async(what, handler, "async def fn(input, ctx)")
        self._registered.extensions[point, id] = RegisteredExtension(point, id, handler)

    def on_dispose(self, callback: Dispose) -> None:
        """Clean up when this version of the package is let go: the last that was registered comes first.

        Args:
            callback: takes nothing; a coroutine is awaited. All of them together have 15 seconds.

        Raises:
            TurnwrightError: `package.load-failed`.
        """
        if not callable(callback):
            raise _refused("on_dispose", f"{type(callback).__name__} cannot be called", "a function")
        self._registered.disposers.append(callback)


def _check_name(what: str, name: object, *, taken: bool) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > _MAX_NAME:
        raise _refused(what, "the name is not usable", f"1 to {_MAX_NAME} characters")
    if taken:
        raise _refused(what, "the name is registered twice", "one registration")


def _check_text(what: str, description: object) -> None:
    if not isinstance(description, str) or not description.strip():
        raise _refused(what, "the description is empty", "a sentence for the model")


def _check_object_schema(what: str, field_name: str, schema: Json) -> None:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise _refused(what, f"{field_name} is no object schema", "a pydantic model or an object schema")
    if (choice := next((name for name in ROOT_CHOICES if name in schema), None)) is not None:
        message = f"{field_name} has {choice} at its root, for which providers refuse the whole call"
        raise _refused(what, message, f"an object with a property that has the {choice}")


def _check_word(what: str, field_name: str, word: object, accepted: tuple[str, ...]) -> None:
    if word not in accepted:
        raise _refused(what, f"unknown {field_name} {word!r}"[:200], ", ".join(accepted))


def _check_async(what: str, handler: object, accepted: str) -> None:
    if not inspect.iscoroutinefunction(handler):
        raise _refused(what, "the handler is not async", accepted)


def _is_model(schema: Any) -> bool:
    return isinstance(schema, type) and issubclass(schema, BaseModel)


def _refused(what: str, problem: str, accepted: str) -> TurnwrightError:
    return TurnwrightError(Code.PACKAGE_LOAD, f"{what}: {problem}", accepted=accepted)
