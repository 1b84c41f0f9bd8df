"""`contributes`: what a package adds beside its runtimes. Spec: plugin-model §27; seed 001; decisions 13, 20.

Some members (`actions`, `forms`, `wires`, `ui`, `worldProjections`) are read as open JSON objects: this
version refuses them at activation by name, and their inner fields are not judged here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag

from kernel.manifest.agent import DATASET_TOOLS, DatasetTool
from kernel.manifest.fields import (
    FORM_MARK,
    ContractId,
    Items,
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
SettingType: TypeAlias = Literal[
    "text", "textarea", "number", "integer", "toggle", "select", "slider", "slot"
]
KERNEL_PATHS: Final = frozenset({"data/dimensions.yaml", "world.yaml"})
"""Paths of a world that a package cannot declare for itself."""

_LARGEST: Final = 2**53 - 1
"""Largest number of a setting: the largest integer that every JSON reader keeps exactly."""

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
    id: Label = Field(description="ID of the registration in the entry.")
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


class SettingOption(ManifestModel):
    """`contributes.settings[].options[]`."""

    value: str | int | float | bool = Field(description="The value that is stored.")
    label: Label | None = Field(None, description="The text that is shown.")


def _option(value: Any) -> Any:
    return value if isinstance(value, dict) else {"value": value}


class Setting(ManifestModel):
    """`contributes.settings[]`: a value that a player may set."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")] = Field(description="Its key.")
    type: SettingType = Field(description="One of the eight types.")
    default: Any = Field(None, description="Value when neither the player nor the world sets one.")
    label: Label | None = Field(None, description="Name shown to players.")
    description: Text | None = Field(None, description="What it does.")
    min: float | None = Field(None, description="Smallest value of a number, integer or slider.")
    max: float | None = Field(None, description="Largest value of a number, integer or slider.")
    step: Annotated[float, Field(gt=0)] | None = Field(None, description="Distance of two values.")
    options: UniqueItems[Annotated[SettingOption, BeforeValidator(_option)]] = Field(
        (), description="The values of a select."
    )

    def rules(self) -> Iterator[Refusal]:
        numeric = self.type in ("number", "integer", "slider")
        for name in ("min", "max", "step"):
            if getattr(self, name) is not None and not numeric:
                yield Refusal((name,), f"{name} goes with number, integer and slider", f"no {name}")
        if self.min is not None and self.max is not None and self.min > self.max:
            yield Refusal(("min",), "min is larger than max", "min <= max")
        if self.options and self.type != "select":
            yield Refusal(("options",), "options go with a select", "no options")
        if self.type == "select" and not self.options:
            yield Refusal(("options",), "a select needs options", "at least one option")
        if self.default is not None and not self.allows(self.default):
            message = f"default does not fit the type {self.type}"
            yield Refusal(("default",), message, "a value that the setting allows")

    def allows(self, value: Any) -> bool:
        """Whether a value fits the type, the bounds, the step and the options."""
        if self.type == "toggle":
            return isinstance(value, bool)
        if self.type == "select":
            return any(type(o.value) is type(value) and o.value == value for o in self.options)
        if self.type in ("text", "textarea", "slot"):
            return isinstance(value, str)
        if isinstance(value, bool) or not isinstance(value, int if self.type == "integer" else int | float):
            return False
        return self._within(value)

    def _within(self, value: float) -> bool:
        if not abs(value) <= _LARGEST:
            return False
        if (self.min is not None and value < self.min) or (self.max is not None and value > self.max):
            return False
        if self.step is None:
            return True
        steps = (value - (self.min or 0)) / self.step
        return (
            math.isfinite(steps) and abs(steps - round(steps)) < 1e-6
        )  # 0.3 is three steps of 0.1, whatever binary says


class AuthoringSource(ManifestModel):
    """`authoring.source`: where a world keeps this content."""

    path: PathText = Field(description="Path in the world package: .yaml, .json, or a media folder.")
    key: Label = Field("id", description="The field that is a record's key. Defaults to id.")
    visibility: Literal["public", "hidden"] = Field("public", description="hidden keeps it from players.")
    lorebook: bool = Field(False, description="true also makes lorebook entries of the records.")

    @property
    def is_media(self) -> bool:
        """A path without an extension is a media folder."""
        return "." not in self.path.rsplit("/", 1)[-1]

    def rules(self) -> Iterator[Refusal]:
        parts = self.path.split("/")
        if self.path.startswith("/") or ".." in parts or "\\" in self.path:
            yield Refusal(("path",), "path leaves the world package", "a path inside the world package")
        if self.path.removeprefix("./") in KERNEL_PATHS:
            yield Refusal(("path",), f"{self.path} belongs to the host", "another path")
        if not self.is_media and not self.path.endswith((".yaml", ".yml", ".json")):
            yield Refusal(("path",), "path has an unknown format", ".yaml, .json, or a folder for media")


class Authoring(ManifestModel):
    """`contributes.data.<ns>.authoring`: how world authors write this content."""

    title: Label | None = Field(None, description="Name of this kind of content.")
    hint: Text | None = Field(None, description="How to write good records.")
    summary: Text | None = Field(None, description="One sentence for players.")
    example: PathText | None = Field(None, description="A valid example (JSON).")
    source: AuthoringSource | None = Field(None, description="The agreed place in a world package.")
    references: Any = Field(None, description="Which values are the ID of a character attribute.")
    character_field: Label | None = Field(
        None, description="Field of a world's character record that feeds this namespace."
    )
    generate: Literal["offer", "default"] | None = Field(
        None, description="Lets the world generator write this content from hint and example."
    )

    def rules(self) -> Iterator[Refusal]:
        if self.generate is None:
            return
        if self.example is None:
            yield Refusal(("generate",), "generate requires an example", "authoring.example")
        source = self.source
        plain = source and source.visibility == "public" and source.key == "id" and not source.is_media
        if not plain:
            message = "generate requires a public source that is not media and is keyed by id"
            yield Refusal(("generate",), message, "authoring.source")


class SearchOptions(ManifestModel):
    """`contributes.data.<ns>.search`."""

    text: UniqueItems[Label] = Field(description="Fields whose text is searched.")


class DataNamespace(ManifestModel):
    """`contributes.data.<ns>`: one namespace of the package's data."""

    schema_path: PathText | None = Field(None, alias="schema", description="JSON Schema file of one record.")
    version: int | str | None = Field(None, description="Version of the record's shape.")
    accepts: UniqueItems[ContractId] = Field(
        (), description="Contracts whose data the namespace takes; its schema is their public shape."
    )
    search: SearchOptions | None = Field(None, description="What recall finds.")
    description: Text | None = Field(None, description="What a record is.")
    authoring: Authoring | None = Field(None, description="How world authors write this content.")

    def rules(self) -> Iterator[Refusal]:
        if self.accepts and self.schema_path is None:
            yield Refusal(("schema",), "a namespace that accepts data needs a schema", "a schema file")


class DepthPosition(ManifestModel):
    """A prompt segment's place, counted in messages from the end of the history."""

    depth: Annotated[int, Field(ge=0)] = Field(description="Messages from the end.")


def _position_form(value: Any) -> str | None:
    if isinstance(value, str):
        return FORM_MARK + "word"
    return FORM_MARK + "object" if isinstance(value, dict | DepthPosition) else None


class PromptSegment(ManifestModel):
    """`contributes.prompt[]`: a fixed segment that the host registers itself."""

    id: Label = Field(description="ID of the segment.")
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
        yield from _repeated("commands", "name", [c.name for c in self.commands])
        yield from _repeated("events", "topic", [e.topic for e in self.events])
        yield from _repeated("settings", "key", [s.key for s in self.settings])
        yield from _repeated("prompt", "id", [p.id for p in self.prompt])


def _repeated(field: str, key: str, values: list[str]) -> Iterator[Refusal]:
    for index, value in enumerate(values):
        if value in values[:index]:
            at = (field, index, key)
            yield Refusal(at, f"{field}: {key} {value} is declared twice", "each once")
