"""`contributes.data`: the namespaces of a package, and what worlds write for them. Spec: plugin-model §27."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from pydantic import Field

from kernel.manifest.fields import ContractId, Label, ManifestModel, PathText, Refusal, Text, UniqueItems

KERNEL_PATHS: Final = frozenset({"data/dimensions.yaml", "world.yaml"})
"""Paths of a world that a package cannot declare for itself."""


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
