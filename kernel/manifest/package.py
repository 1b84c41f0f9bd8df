"""A package's manifest: the frontmatter of `PLUGIN.md`. Spec: plugin-model §26, §27, §37; seed 001."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from kernel.errors import Code
from kernel.manifest.contributes import Contributes
from kernel.manifest.fields import (
    NAME_PATTERN,
    ContractId,
    HttpsUrl,
    Items,
    Label,
    ManifestModel,
    PathText,
    Refusal,
    Text,
    UniqueItems,
    is_contract_id,
    reject,
)
from kernel.manifest.runtime import Permissions, RuntimeManifest
from kernel.manifest.versions import is_range, is_version

KERNEL_POINTS: Final = frozenset(
    {
        "prompt.segment@1",
        "prompt.history-transform@1",
        "session.world-context@1",
        "history.compact@2",
        "media.image-flow@1",
        "ui.slot@1",
        "session.summary@1",
        "stage.music@1",
    }
)
"""Extension points of the host. Spec: plugin-model §15."""

RETIRED_FIELDS: Final = {
    "type": "`function: {}` makes a function runtime; an agent needs no type",
    "interval": "schedule.every",
    "overlap": "nothing; jobs of one runtime never overlap",
    "stalePolicy": "nothing; a stale job never commits",
    "manual": "schedule.background: true",
    "llm": "agent.toolChoice, and agent.reasoning: false",
    "completion": "schedule.detached for a runtime that ends after the turn; agent.completion for its end",
    "requireToolUse": "agent.completion.require: tool-use",
    "completeAfterTools": "agent.completion.afterTools, or agent.finishWith",
    "requireExplicitCompletion": "agent.completion.require: explicit",
    "input": "io.inputs and io.selfData",
    "inject": "io.inputs and io.selfData",
    "pluginType": "kind",
    "runtimeType": "`function: {}` makes a function runtime",
    "stage": "schedule.stage",
    "local": "agent.tools.plugin, with contributes.tools",
    "dataSchemas": "contributes.data",
    "userSettings": "contributes.settings",
    "capabilities": "provides, and io.output.contract",
    "memoryBlocks": "data of the memory plugin, memory.blocks@1",
    "summaryFocus": "the extension point history.compact@2",
    "outputKind": "io.visibility",
}
"""Fields of older manifests, and what stands for them now. Read for messages only."""

PACKAGE_WIDE_FIELDS: Final = frozenset(
    {
        "id",
        "kind",
        "version",
        "covel",
        "turnwright",
        "displayName",
        "tags",
        "author",
        "license",
        "homepage",
        "provides",
        "requires",
        "optional",
        "conflicts",
        "contracts",
        "entry",
        "contributes",
    }
)
"""What a `RUNTIME.md` cannot hold. Spec: plugin-model §1."""


def _version(text: str) -> str:
    if is_version(text):
        return text
    raise reject(f"`{text[:40]}` is not a version", "X.Y.Z, as 0.1.0")


def _range(text: str) -> str:
    if is_range(text):
        return text
    accepted = 'comparisons of >= > <= < = with X.Y.Z, as ">=0.0.51 <0.1.0"'
    raise reject(f"`{text[:40]}` is not a version range", accepted, Code.PACKAGE_RANGE)


def _capability(text: str) -> str:
    if is_contract_id(text) or re.fullmatch(NAME_PATTERN[1:-1], text):
        return text
    raise reject(f"`{text[:80]}` is neither a contract nor a package id", "name@N, or a package id")


def _provided(value: Any) -> Any:
    return {"contract": value} if isinstance(value, str) else value


Version: TypeAlias = Annotated[str, AfterValidator(_version)]
VersionRange: TypeAlias = Annotated[str, AfterValidator(_range)]


class AuthorLink(ManifestModel):
    """`author.links[]`."""

    label: Annotated[str, Field(min_length=1, max_length=40)] = Field(description="Text of the link.")
    url: HttpsUrl = Field(description="An https address.")


class Author(ManifestModel):
    """`author`: who made the package, for players."""

    name: Annotated[str, Field(min_length=1, max_length=80)] = Field(
        description="The author's name, at most 80 characters."
    )
    url: HttpsUrl | None = Field(None, description="The author's page, https.")
    about: Annotated[str, Field(max_length=500)] | None = Field(
        None, description="A note for players, at most 500 characters."
    )
    links: Annotated[Items[AuthorLink], Field(max_length=6)] = Field(
        (), description="At most six further links, https."
    )


class Provided(ManifestModel):
    """`provides[]`: a capability that no runtime outputs."""

    contract: ContractId = Field(description="The contract the package provides.")
    default: bool = Field(False, description="true lets this provider step aside when another one is active.")


class ContractDeclaration(ManifestModel):
    """`contracts.<id>`: the public shape of a contract that no data namespace accepts."""

    schema_path: PathText = Field(alias="schema", description="JSON Schema file of the contract.")


class PluginManifest(ManifestModel):
    """Every field of `PLUGIN.md`."""

    id: str | None = Field(None, description="The package ID: the folder name. May be left out.")
    kind: Literal["core", "plugin"] = Field(
        "plugin", description="core for packages of the host. Defaults to plugin."
    )
    version: Version = Field(
        "0.0.0",
        description="The package's version. A change runs its setup runtimes again in existing sessions. "
        "Defaults to 0.0.0.",
    )
    covel: VersionRange | None = Field(
        None, description="Range of versions of the manifest dialect the package works with."
    )
    turnwright: VersionRange | None = Field(
        None, description="Range of Turnwright versions the package works with."
    )
    display_name: Label | None = Field(None, description="Name shown to players.")
    description: Text | None = Field(None, description="What the package does, in a sentence.")
    tags: UniqueItems[Label] = Field((), description="Words to find the package by.")
    author: Author | None = Field(None, description="Who made the package.")
    license: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        None, description="The license, at most 64 characters."
    )
    homepage: HttpsUrl | None = Field(None, description="The package's own page, https.")
    provides: Items[Annotated[Provided, BeforeValidator(_provided)]] = Field(
        (), description="Contracts the package provides and no runtime of it outputs."
    )
    requires: UniqueItems[ContractId] = Field((), description="Contracts that need an active provider.")
    optional: UniqueItems[ContractId] = Field(
        (), description="Contracts the package uses when a provider is active."
    )
    conflicts: UniqueItems[Annotated[str, AfterValidator(_capability)]] = Field(
        (), description="Contracts and packages that cannot be active together with this one."
    )
    contracts: dict[ContractId, ContractDeclaration] = Field(
        default_factory=dict, description="Public schemas of contracts, by contract ID."
    )
    entry: PathText | None = Field(
        None, description="Entry module. Defaults to server/__init__.py when that file exists."
    )
    contributes: Contributes = Field(
        default_factory=Contributes, description="What the package adds, shared by its runtimes."
    )
    runtime: RuntimeManifest | None = Field(
        None, description="The one runtime of a single-runtime package; the body is its prompt."
    )
    permissions: Permissions = Field(
        default_factory=Permissions, description="Upper bounds of what entry code may use."
    )

    def rules(self) -> Iterator[Refusal]:
        provided = [one.contract for one in self.provides]
        for index, name in enumerate(self.conflicts):
            if name in KERNEL_POINTS:
                message = f"conflicts cannot name the host's extension point {name}"
                yield Refusal(("conflicts", index), message, "a contract or package of others")
            elif name == self.id or name in provided:
                yield Refusal(("conflicts", index), f"{name} is of this package itself", "what others have")
        for index, contract in enumerate(provided):
            if contract in provided[:index]:
                yield Refusal(("provides", index), f"{contract} is provided twice", "each contract once")
        for index, contract in enumerate(self.optional):
            if contract in self.requires:
                message = f"{contract} is both in requires and optional"
                yield Refusal(("optional", index), message, "one of the two")
