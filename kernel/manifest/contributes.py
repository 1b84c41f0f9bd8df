"""`contributes`: what a package adds beside its runtimes. Spec: plugin-model §27; seed 001; decisions 13, 20.

Some members (`actions`, `forms`, `wires`, `ui`, `worldProjections`) are read as open JSON objects: this
version refuses them at activation by name, and their inner fields are not judged here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag

from kernel.errors import Code
from kernel.manifest.agent import DATASET_TOOLS, DatasetTool
from kernel.manifest.data import DataNamespace
from kernel.manifest.diagnostics import quoted
from kernel.manifest.fields import (
    FORM_MARK,
    ContractId,
    Items,
    Key,
    Label,
    ManifestModel,
    Name,
    Namespace,
    PathText,
    Refusal,
    Text,
    ToolName,
    Topic,
    UniqueItems,
)
from kernel.manifest.settings import Setting

Risk: TypeAlias = Literal["read", "write", "network", "execute", "destructive"]
HookEvent: TypeAlias = Literal[
    "SessionStart",
    "TurnStart",
    "PreCompaction",
    "PostCompaction",
    "PreSchedule",
    "PreRuntime",
    "PostContextAssembly",
    "PreLLMCall",
    "PostLLMResponse",
    "PostRuntime",
    "PreToolUse",
    "PostToolUse",
    "PreStateCommit",
    "PostStateCommit",
    "TurnStop",
    "SessionEnd",
]
OpenObject: TypeAlias = dict[str, Any]


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _by_contract(value: Any) -> Any:
    return {"contract": value} if isinstance(value, str) else value


def _by_event(value: Any) -> Any:
    return {"event": value} if isinstance(value, str) else value


class ContributedTool(ManifestModel):
    """`contributes.tools[]`. Decision 13. None means: as the registration in the entry says."""

    name: ToolName = Field(description="The tool's name; the entry registers a tool of the same name.")
    risk: Risk | None = Field(None, description="What a call can do at most.")
    needs_approval: bool | None = Field(None, description="true asks a person before every call.")


class CommandArgument(ManifestModel):
    """`contributes.commands[].arguments[]`."""

    name: Name = Field(description="Name of the argument.")
    type: Literal["string", "integer", "number", "boolean"] = Field(
        "string", description="Type of the argument. Defaults to string."
    )
    required: bool = Field(False, description="true refuses the command without it.")
    variadic: bool = Field(False, description="true collects the remaining words; the last argument only.")
    choices: UniqueItems[str | int | float] = Field((), description="Values the argument may take.")


class Command(ManifestModel):
    """`contributes.commands[]`."""

    name: Name = Field(description="The command's name.")
    aliases: UniqueItems[Name] = Field((), description="Other names of the command.")
    description: Text | None = Field(None, description="What the command does.")
    arguments: Items[CommandArgument] = Field((), description="Arguments in their order.")
    action: Label | None = Field(None, description="The action that the command calls.")
    context: Literal["session", "active-runtimes", "models"] | None = Field(
        None, description="Host information that the command passes to its action."
    )

    def rules(self) -> Iterator[Refusal]:
        for index, argument in enumerate(self.arguments[:-1]):
            if argument.variadic:
                at = ("arguments", index, "variadic")
                yield Refusal(at, "only the last argument can be variadic", "variadic: false")


class ServiceDeclaration(ManifestModel):
    """`contributes.services[]`: matches one registration in the entry."""

    contract: ContractId = Field(description="The contract the service answers.")
    model_facing: bool = Field(False, description="true lets agents import it as a tool.")
    access: Literal["read", "write"] = Field("read", description="write lets it change the package's data.")


class Dataset(ManifestModel):
    """`contributes.datasets.<name>`. Decision 20."""

    namespace: Namespace = Field(description="The data namespace that holds the records.")
    schema_path: PathText = Field(alias="schema", description="JSON Schema file of one record.")
    description: Text | None = Field(None, description="What a record is; the model reads it.")
    tools: UniqueItems[DatasetTool] = Field(DATASET_TOOLS, description="Tools the dataset offers.")


class Extension(ManifestModel):
    """`contributes.extensions[]`."""

    point: ContractId = Field(description="The extension point.")
    id: Key = Field(description="ID of the registration in the entry.")
    order: int = Field(0, description="Place among the providers. Defaults to 0.")
    slot: Label | None = Field(None, description="The UI slot, for ui.slot@1.")
    watch: Any = Field(None, description="What makes the extension run again.")
    preview: Any = Field(None, description="What is shown before it ran.")

    def rules(self) -> Iterator[Refusal]:
        if self.id == "static-prompt":
            yield Refusal(("id",), "static-prompt is reserved for contributes.prompt", "another id")


class Hook(ManifestModel):
    """`contributes.hooks[]`."""

    event: HookEvent = Field(description="The moment the hook listens to.")
    enforce: Literal["pre", "normal", "post"] = Field("normal", description="Its group in the order.")


class EventDeclaration(ManifestModel):
    """`contributes.events[]`."""

    topic: Topic = Field(description="The topic: words with dashes, joined by dots.")
    schema_path: PathText | None = Field(None, alias="schema", description="JSON Schema file of the payload.")
    description: Text | None = Field(None, description="What happened; the model reads it.")
    advertise: bool = Field(
        True, description="false keeps it from the model: only code and UI use it. Defaults to true."
    )


class DepthPosition(ManifestModel):
    """A prompt segment's place, counted in messages from the end of the history."""

    depth: Annotated[int, Field(ge=0)] = Field(description="Messages from the end.")


def _position_form(value: Any) -> str | None:
    if isinstance(value, str):
        return FORM_MARK + "word"
    return FORM_MARK + "object" if isinstance(value, dict | DepthPosition) else None


class PromptSegment(ManifestModel):
    """`contributes.prompt[]`: a fixed segment that the host registers itself."""

    id: Key = Field(description="ID of the segment.")
    content: Text = Field(description="Its text.")
    position: Annotated[
        Annotated[Literal["system", "pre-history", "post-history"], Tag(FORM_MARK + "word")]
        | Annotated[DepthPosition, Tag(FORM_MARK + "object")],
        Discriminator(_position_form),
    ] = Field("system", description="Where it stands. Defaults to system.")
    role: Literal["system", "user", "assistant"] | None = Field(None, description="Role of the message.")


class Contributes(ManifestModel):
    """What the package adds, shared by all its runtimes."""

    tools: Items[Annotated[ContributedTool, BeforeValidator(_named)]] = Field(
        (), description="Tools that the entry registers: names, or { name, risk, needsApproval }."
    )
    actions: Items[str | OpenObject] = Field((), description="Actions that UI and other clients call.")
    commands: Items[Command] = Field((), description="Commands that a player types.")
    services: Items[Annotated[ServiceDeclaration, BeforeValidator(_by_contract)]] = Field(
        (), description="Services that the entry registers; one declaration for each registration."
    )
    datasets: dict[Name, Dataset] = Field(
        default_factory=dict, description="Data that agents read and write through generated tools."
    )
    extensions: Items[Extension] = Field((), description="Extension points the entry provides.")
    hooks: Items[Annotated[Hook, BeforeValidator(_by_event)]] = Field(
        (), description="Moments the entry listens to."
    )
    wires: Items[str | OpenObject] = Field((), description="Provider wires the entry registers.")
    forms: Items[OpenObject] | OpenObject = Field((), description="Forms of the package.")
    events: Items[EventDeclaration] = Field((), description="Event topics of the package.")
    settings: Items[Setting] = Field((), description="Values that a player may set.")
    data: dict[Namespace, DataNamespace] = Field(
        default_factory=dict, description="Namespaces of the package's data, by name."
    )
    ui: OpenObject = Field(default_factory=dict, description="Panels of the package.")
    world_projections: Items[OpenObject] = Field(
        (), description="Projections of world content into the package's data."
    )
    prompt: Items[PromptSegment] = Field((), description="Fixed prompt segments.")

    def rules(self) -> Iterator[Refusal]:
        yield from _repeated("tools", "name", [t.name for t in self.tools])
        yield from _repeated("events", "topic", [e.topic for e in self.events])
        yield from _repeated("settings", "key", [s.key for s in self.settings])
        yield from _repeated("prompt", "id", [p.id for p in self.prompt])
        yield from self._command_rules()
        yield from self._data_rules()

    def _command_rules(self) -> Iterator[Refusal]:
        taken: set[str] = set()
        known = {name for one in self.actions if (name := _action_name(one))}
        for index, command in enumerate(self.commands):
            for at, name in (
                (("commands", index, "name"), command.name),
                *((("commands", index, "aliases", n), alias) for n, alias in enumerate(command.aliases)),
            ):
                if name in taken:
                    yield Refusal(at, f"commands: the name {name} is declared twice", "each once")
                taken.add(name)
            if command.action is not None and command.action not in known:
                message = f"{quoted(command.action)} is not in contributes.actions"
                accepted = ", ".join(sorted(known)) or "an action that the package contributes"
                yield Refusal(("commands", index, "action"), message, accepted, Code.PACKAGE_REFERENCE)

    def _data_rules(self) -> Iterator[Refusal]:
        spelled: dict[str, str] = {}
        paths: dict[str, str] = {}
        for name, namespace in self.data.items():
            if (first := spelled.setdefault(name.casefold(), name)) != name:
                message = f"data: {first} and {name} differ only in case"
                yield Refusal(("data", name), message, "names that differ")
            source = namespace.authoring.source if namespace.authoring else None
            if source and (first := paths.setdefault(source.path.removeprefix("./"), name)) != name:
                message = f"data: {first} and {name} have the same source {source.path}"
                yield Refusal(("data", name, "authoring", "source", "path"), message, "a path for each")


def _action_name(action: str | OpenObject) -> str | None:
    named = action if isinstance(action, str) else action.get("name", action.get("id"))
    return named if isinstance(named, str) else None


def _repeated(field: str, key: str, values: list[str]) -> Iterator[Refusal]:
    spelled: dict[str, str] = {}
    for index, value in enumerate(values):
        first = spelled.get(value.casefold())
        spelled.setdefault(value.casefold(), value)
        if first is not None:
            how = "is declared twice" if first == value else f"and {first} differ only in case"
            yield Refusal((field, index, key), f"{field}: {key} {value} {how}", "each once")
