"""Content keys: the SHA-256 of a canonical JSON identity, in lowercase hex. Spec: engine §4.

content_key         what a journaled thing is, by kind
schema_hash         an output schema, without what does not change its meaning
toolset_hash        exactly what a model sees of its tools
journal_key         a function's outside call in the effect journal (DECISIONS 16)
arguments_digest    a tool call, to recognise a repetition and to name an approval
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from kernel.errors import Code, TurnwrightError
from kernel.identity.canonical import MAX_DEPTH, canonical_json
from kernel.pointer import MISSING, select
from kernel.wire.base import Json

FIELDS: dict[str, tuple[str, ...]] = {
    "agent": ("agentType", "modelSpec", "prompt", "schemaHash", "toolsetHash", "isolation"),
    "child": ("workflow", "args"),
    "step": ("key", "deps"),
    "external": ("key",),
    "approval": ("toolName", "input"),
    "rand": ("subtype", "key"),
}
"""The hashed fields of every kind that has a content key."""

MAX_SCHEMA_PARTS = 20_000
"""Largest schema once its references are in place: a few that name each other can grow without end."""

_NOT_IN_SCHEMA = (
    *("title", "description", "default", "deprecated", "readOnly", "writeOnly", "examples", "$comment"),
    *("$defs", "definitions", "$anchor"),
)
_NAMED_SCHEMAS = ("properties", "patternProperties", "dependentSchemas")
_PLAIN_VALUES = ("const", "enum", "required", "dependentRequired", "type")


def content_key(identity: Mapping[str, Json], *, version: int = 2) -> str:
    """The key of an identity object.

    Args:
        identity: `{kind, …}` with the fields of its kind; other fields do not count.
        version: 2, or 1 to match entries written before effort was part of the key.

    Raises:
        TurnwrightError: `wire.malformed` for a kind without a content key, and as `canonical_json`.
    """
    kind = identity.get("kind")
    if kind not in FIELDS:
        accepted = ", ".join(FIELDS)
        raise TurnwrightError(Code.WIRE_MALFORMED, f"kind {kind!r} has no content key", accepted=accepted)
    counted = {field: identity[field] for field in FIELDS[kind] if field in identity}
    if "modelSpec" in counted:
        counted["modelSpec"] = _model_spec(counted["modelSpec"], version)
    return _sha256({"kind": kind, **counted})


def schema_hash(schema: Json | None) -> str:
    """The hash of a JSON Schema; no schema counts as `true`.

    Local references are put in place, annotations are dropped, so that a rewording is no new schema.

    Raises:
        TurnwrightError: `package.schema` for a reference that is recursive, remote, dynamic or broken.
    """
    return _sha256(True if schema is None else _SchemaReader(schema).read(schema))


def toolset_hash(tools: Iterable[Mapping[str, Json]]) -> str:
    """The hash of `{name, description, parameters, version?}` of every tool, whatever their order."""
    contracts = [
        {
            "name": tool["name"],
            "description": tool["description"],
            "parameters": _SchemaReader(tool["parameters"]).read(tool["parameters"]),
            **({"version": tool["version"]} if tool.get("version") is not None else {}),
        }
        for tool in tools
    ]
    return _sha256(sorted(contracts, key=lambda contract: str(contract["name"]).encode("utf-16-be")))


def journal_key(kind: str, args: Json) -> str:
    """The content part of an effect journal key; with the repeat number it names one outside call."""
    return _sha256({"kind": kind, "args": args})


def journal_ordinal(key: str, repeat: int) -> int:
    """53 bits that name one outside call of a run in the ledger; JSON keeps that many exactly."""
    return int(_sha256([key, repeat])[:16], 16) >> 11


def arguments_digest(name: str, args: Json) -> str:
    """20 hex digits over a tool's name and its arguments; equal digests are equal calls (DECISIONS 6)."""
    return _sha256({"name": name, "arguments": args})[:20]


def _sha256(value: Json) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _model_spec(spec: Json, version: int) -> Json:
    """A plain model counts without its tag; in version 1 also without its effort."""
    if not isinstance(spec, Mapping) or spec.get("kind", "model") != "model":
        return spec
    dropped = ("kind", "effort") if version == 1 else ("kind",)
    return {name: value for name, value in spec.items() if name not in dropped}


class _SchemaReader:
    """Puts local references in place and drops annotations."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._left = MAX_SCHEMA_PARTS

    def read(self, schema: Json, open_refs: tuple[str, ...] = (), depth: int = 0) -> Json:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise _refuse(
                f"deeper than {MAX_DEPTH}, or more than {MAX_SCHEMA_PARTS} parts, with its references"
            )
        if isinstance(schema, list):
            return [self.read(item, open_refs, depth + 1) for item in schema]
        if not isinstance(schema, Mapping):
            return schema
        for dynamic in ("$dynamicRef", "$recursiveRef"):
            if dynamic in schema:
                raise _refuse(f"{dynamic} is not supported")
        kept = {
            keyword: self._keyword(keyword, value, open_refs, depth)
            for keyword, value in schema.items()
            if keyword not in _NOT_IN_SCHEMA and keyword != "$ref"
        }
        if "$ref" not in schema:
            return kept
        target = self._target(schema["$ref"], open_refs, depth)
        if not kept:
            return target
        return {**kept, "allOf": [target, *kept.get("allOf", [])]}

    def _keyword(self, keyword: str, value: Json, open_refs: tuple[str, ...], depth: int) -> Json:
        if keyword in _PLAIN_VALUES:
            return value
        if keyword in _NAMED_SCHEMAS and isinstance(value, Mapping):
            return {name: self.read(item, open_refs, depth + 1) for name, item in value.items()}
        return self.read(value, open_refs, depth + 1)

    def _target(self, ref: Any, open_refs: tuple[str, ...], depth: int) -> Json:
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise _refuse(f"the reference {ref!r} is not local")
        if ref in open_refs:
            raise _refuse(f"the reference {ref!r} leads back to itself")
        return self.read(self._resolve(ref), (*open_refs, ref), depth + 1)

    def _resolve(self, ref: str) -> Json:
        found = select(self._root, unquote(ref[1:])) if ref[1:2] in ("", "/") else MISSING
        if found is MISSING:
            raise _refuse(f"the reference {ref!r} leads to nothing")
        return found


def _refuse(what: str) -> TurnwrightError:
    return TurnwrightError(
        Code.PACKAGE_SCHEMA, f"no schema hash: {what}", accepted="local references such as #/$defs/name"
    )
