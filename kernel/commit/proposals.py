"""Proposals: what a run asks a commit to change, one frozen model per type.

A proposal is staged as JSON, and judged twice: its shape here, its effect on the live rows at commit.
Spec: plugin-model §20.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from kernel.errors import Code, TurnwrightError

MAX_VALUE_BYTES: Final = 256 * 1024
"""Longest JSON text of one stored value or event payload, in UTF-8 bytes, on every write path."""

MAX_BATCH: Final = 200
"""Most items of one `plugin.data.batch`, and most operations of one `state.patch`."""

HIDDEN: Final = "_hidden."
"""Prefix of the namespaces that only the owner's code may write (plugin-model §20)."""

TOPIC: Final = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)*")
_POINTER = r"^(?:/(?:[^~/\x00-\x1f]|~[01])*)*$"


class _Refused(ValueError):
    """A refusal inside pydantic that has a code of its own."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


def _storable(value: Any) -> Any:
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {str(error)[:120]}") from error
    if size > MAX_VALUE_BYTES:
        message = f"has {size} bytes; at most {MAX_VALUE_BYTES} fit"
        raise _Refused(Code.COMMIT_VALUE_TOO_LARGE, message)
    return value


def _topic(value: str) -> str:
    if not TOPIC.fullmatch(value):
        raise ValueError("a topic is words of lowercase letters, digits and dashes, joined by dots")
    return value


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must be printable text")
    return value


Value = Annotated[Any, AfterValidator(_storable)]
Namespace = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_printable)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=512), AfterValidator(_printable)]
Topic = Annotated[str, StringConstraints(max_length=128), AfterValidator(_topic)]
Pointer = Annotated[str, StringConstraints(max_length=1024, pattern=_POINTER)]
Number = Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Segment(_Model):
    """One piece of a story (DECISIONS 21)."""

    kind: Literal["narration", "dialogue", "action"]
    text: str
    speaker: str | None = None


class SetOp(_Model):
    """Put `value` at `path`; missing parents become objects."""

    op: Literal["set"]
    path: Pointer = ""
    value: Value


class IncOp(_Model):
    """Add `by` to the number at `path`, from 0; a result past `min` or `max` is a conflict."""

    op: Literal["inc"]
    path: Pointer = ""
    by: Number
    min: Number | None = None
    max: Number | None = None


class AppendOp(_Model):
    """Append `value` to the array at `path`, from an empty one."""

    op: Literal["append"]
    path: Pointer = ""
    value: Value


class RemoveOp(_Model):
    """Remove what is at `path`; nothing there is no mistake."""

    op: Literal["remove"]
    path: Pointer = ""


UpdateOp = Annotated[SetOp | IncOp | AppendOp | RemoveOp, Field(discriminator="op")]
"""One update operation (DECISIONS 19); its path starts at the record that the update names."""


class NarrativeAppend(_Model):
    """Append story segments to the conversation."""

    type: Literal["narrative.append"] = "narrative.append"
    segments: Annotated[tuple[Segment, ...], Field(min_length=1, max_length=1000)]


class DataItem(_Model):
    """One record of a batch."""

    namespace: Namespace
    key: Key
    value: Value


class PluginData(DataItem):
    """Write one record of the package's own data."""

    type: Literal["plugin.data"] = "plugin.data"


class PluginDataBatch(_Model):
    """Write several records as one proposal: all or none."""

    type: Literal["plugin.data.batch"] = "plugin.data.batch"
    items: Annotated[tuple[DataItem, ...], Field(min_length=1, max_length=MAX_BATCH)]


class PluginDataDelete(_Model):
    """Delete one record of the package's own data."""

    type: Literal["plugin.data.delete"] = "plugin.data.delete"
    namespace: Namespace
    key: Key


class EventEmit(_Model):
    """Emit a declared event; subscribers see it once it is committed."""

    type: Literal["event.emit"] = "event.emit"
    topic: Topic
    payload: Value = None


class StatePatch(_Model):
    """Apply operations, in order, to the session state below `path`; a missing record starts as `{}`."""

    type: Literal["state.patch"] = "state.patch"
    path: Pointer
    ops: Annotated[tuple[UpdateOp, ...], Field(min_length=1, max_length=MAX_BATCH)]


Proposal = NarrativeAppend | PluginData | PluginDataBatch | PluginDataDelete | EventEmit | StatePatch

_TAGS: Final = frozenset(
    {
        "narrative.append",
        "plugin.data",
        "plugin.data.batch",
        "plugin.data.delete",
        "event.emit",
        "state.patch",
    }
    | {"set", "inc", "append", "remove", "int", "float"}
)
"""What pydantic puts into the place of an error beside the fields."""

_PROPOSAL: TypeAdapter[Proposal] = TypeAdapter(Annotated[Proposal, Field(discriminator="type")])


def parse_proposal(value: Any, *, owner_code: bool = False) -> Proposal:
    """Check the shape of one proposal.

    Args:
        value: the proposal as JSON.
        owner_code: the owner's function or tool asks, which may write `_hidden.<name>`.

    Raises:
        TurnwrightError: `commit.proposal-invalid` with the field; `commit.value-too-large`;
            `commit.reserved-namespace` for a namespace that starts with `_`.
    """
    try:
        proposal = _PROPOSAL.validate_python(value)
    except ValidationError as error:
        raise _invalid(error) from None
    for namespace in namespaces_of(proposal):
        check_namespace(namespace, owner_code=owner_code)
    return proposal


def proposal_json(proposal: Proposal) -> dict[str, Any]:
    """The proposal as it is staged: fields left at their default are not written."""
    return {"type": proposal.type, **proposal.model_dump(mode="json", exclude_defaults=True)}


def namespaces_of(proposal: Proposal) -> tuple[str, ...]:
    """The plugin-data namespaces that a proposal writes."""
    match proposal:
        case PluginData() | PluginDataDelete():
            return (proposal.namespace,)
        case PluginDataBatch():
            return tuple(item.namespace for item in proposal.items)
        case _:
            return ()


def check_namespace(namespace: str, *, owner_code: bool) -> None:
    """Refuse a namespace that packages may not write. Spec: plugin-model §20."""
    if not namespace.startswith("_"):
        return
    if owner_code and namespace.startswith(HIDDEN) and namespace != HIDDEN:
        return
    accepted = f"a name without a leading `_`, or `{HIDDEN}<name>` from the package's own code"
    raise TurnwrightError(Code.COMMIT_RESERVED, f"the namespace {namespace!r} is reserved", accepted=accepted)


def _invalid(error: ValidationError) -> TurnwrightError:
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    code = cause.code if isinstance(cause, _Refused) else Code.COMMIT_PROPOSAL
    field = "/".join(str(part) for part in first["loc"] if part not in _TAGS)
    return TurnwrightError(code, first["msg"].removeprefix("Value error, "), where=field)
