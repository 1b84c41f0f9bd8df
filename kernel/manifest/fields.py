"""The shared vocabulary of manifest models: the strict base model and the field types.

A rule over several fields is a `Refusal` that names the field it is about. The base model collects all of
its refusals into one pydantic error; `problems.py` turns them into diagnostics.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Strict,
    Tag,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from kernel.errors import Code
from kernel.manifest.diagnostics import quoted

REFUSALS: Final = "manifest_refusals"
"""The pydantic error type that carries `Refusal`s."""

FORM_MARK: Final = "\0"
"""Starts the union tags in pydantic's locations; no manifest text can hold it."""

CONTRACT_PATTERN: Final = r"^[a-z][a-z0-9.-]*@[1-9][0-9]*$"
KEY_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$"
NAME_PATTERN: Final = r"^[a-z][a-z0-9_-]{0,63}$"
MAX_MS: Final = 2_147_483_647

_HIDDEN: Final = frozenset({"Cc", "Cs", "Co", "Cn", "Zl", "Zp"})
_TURNING: Final = frozenset(
    "\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
)
"""Characters that show nothing or turn the order of others; those that join signs of emoji are none."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One broken rule: the field it is about, relative to the model, and what would be accepted."""

    at: tuple[str | int, ...]
    message: str
    accepted: str = ""
    code: Code = Code.PACKAGE_COMBINATION


class ManifestModel(BaseModel):
    """Strict, frozen, closed; camelCase in YAML, snake_case in Python."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", alias_generator=to_camel)

    def rules(self) -> Iterator[Refusal]:
        """Yield what is wrong across the fields of this model."""
        yield from ()

    @model_validator(mode="after")
    def _judge(self) -> ManifestModel:
        if type(self).rules is not ManifestModel.rules and (found := tuple(self.rules())):
            raise refusals(*found)
        return self

    def declares(self, *names: str) -> bool:
        """Whether the author wrote any of these fields (attribute names)."""
        return any(name in self.model_fields_set for name in names)


def refusals(*found: Refusal) -> PydanticCustomError:
    """Carry refusals through pydantic."""
    text = "; ".join(refusal.message for refusal in found)
    return PydanticCustomError(REFUSALS, "{text}", {"text": text, "found": found})


def reject(message: str, accepted: str, code: Code = Code.PACKAGE_FIELD) -> PydanticCustomError:
    """Refuse one value from inside a field's validator."""
    return refusals(Refusal((), message, accepted, code))


def _unique(values: tuple[T, ...]) -> tuple[T, ...]:
    seen: list[T] = []
    for value in values:
        if value in seen:
            raise reject(f"{quoted(value)} is listed twice", "unique entries")
        seen.append(value)
    return values


def _https_origin(text: str) -> str:
    match = re.fullmatch(r"https://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::([0-9]{1,5}))?", text, re.IGNORECASE)
    if match and int(match[2] or 443) in range(1, 65536):
        return text.lower()
    rest = text.partition("://")[2]
    fault = (
        "does not start with https://"
        if not text.lower().startswith("https://")
        else "holds credentials"
        if "@" in rest
        else "holds a query or fragment"
        if "?" in rest or "#" in rest
        else "holds a path"
        if "/" in rest
        else "is not a host name with an optional port"
    )
    raise reject(f"origin {quoted(text)} {fault}", "https://<host>[:<port>]")


def _https_url(text: str) -> str:
    if re.fullmatch(r"https://[^\s/@?#]+(?:[/?#]\S*)?", text):
        return text
    raise reject(f"{quoted(text)} is not an https link", "https://…")


def _json_pointer(text: str) -> str:
    if re.fullmatch(r"(?:/(?:[^~/]|~[01])*)*", text):
        return text
    raise reject(f"{quoted(text)} is not a JSON Pointer", 'a JSON Pointer, as "/segments" (RFC 6901)')


def is_contract_id(text: str) -> bool:
    """Whether the text is a contract id, `name@N`. Spec: plugin-model §28."""
    return len(text) <= 128 and re.fullmatch(CONTRACT_PATTERN[1:-1], text) is not None


def _contract(text: str) -> str:
    if is_contract_id(text):
        return text
    raise reject(f"{quoted(text)} is not a contract id", "name@N, as narrative-engine@2")


def names_contract(text: str) -> bool:
    """Whether a bare reference names a contract: it ends in `@N`. Decision 7."""
    return re.search(r"@[0-9]+$", text) is not None


def _plain_reference(value: Any) -> Any:
    if isinstance(value, str):
        return {"contract" if names_contract(value) else "runtime": value}
    return value


def _form(value: Any) -> str | None:
    """Choose the union member by the key that tells the forms apart."""
    if isinstance(value, BaseModel):
        return getattr(value, "form_tag", None)
    if isinstance(value, dict):
        return next((FORM_MARK + key for key in ("kernel", "contract", "runtime") if key in value), None)
    return None


def _not_blank(value: str) -> str:
    if value.strip():
        return value
    raise reject("must not be empty", "text")


def _shown(value: str) -> str:
    if hidden := next((c for c in value if unicodedata.category(c) in _HIDDEN or c in _TURNING), None):
        raise reject(f"{quoted(value)} holds the invisible character U+{ord(hidden):04X}", "visible text")
    return value


Text: TypeAlias = Annotated[str, AfterValidator(_not_blank), Field(max_length=20_000)]
Label: TypeAlias = Annotated[str, AfterValidator(_not_blank), AfterValidator(_shown), Field(max_length=200)]
"""Text that people read, on one line and as it is written."""

Key: TypeAlias = Annotated[str, Field(pattern=KEY_PATTERN)]
"""A name that code compares: plain ASCII, so that no other letter looks like one of it."""

ToolName: TypeAlias = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9 ._:/-]{0,126}[A-Za-z0-9._:/-])?$")
]
"""Plain ASCII too; a provider is told another name where it does not take this one (catalogue B13)."""

Slot: TypeAlias = Annotated[str, Field(pattern=NAME_PATTERN)]
Name: TypeAlias = Annotated[str, Field(pattern=NAME_PATTERN)]
ContractId: TypeAlias = Annotated[str, AfterValidator(_contract)]
Pointer: TypeAlias = Annotated[str, AfterValidator(_json_pointer)]
HttpsOrigin: TypeAlias = Annotated[str, AfterValidator(_https_origin)]
HttpsUrl: TypeAlias = Annotated[str, AfterValidator(_https_url), Field(max_length=500)]
PathText: TypeAlias = Annotated[str, AfterValidator(_not_blank), Field(max_length=512)]
Milliseconds: TypeAlias = Annotated[int, Field(ge=1, le=MAX_MS)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=1_000_000)]
Positive: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Topic: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*$", max_length=128)]
Namespace: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]

# Strict mode refuses a list where a tuple is declared; YAML knows only lists.
Items: TypeAlias = Annotated[tuple[T, ...], Strict(False), Field(max_length=1_000)]
UniqueItems: TypeAlias = Annotated[
    tuple[T, ...], Strict(False), Field(max_length=1_000), AfterValidator(_unique)
]

Cardinality: TypeAlias = Literal["one", "all"]


class RuntimeReference(ManifestModel):
    """A runtime of this package."""

    runtime: str = Field(
        min_length=1,
        max_length=140,
        description="Runtime ID in this package: <pluginId>/<runtimeId>, or the package ID for a single "
        "runtime.",
    )

    @property
    def form_tag(self) -> str:
        """The union tag of this form."""
        return FORM_MARK + "runtime"


class ContractReference(ManifestModel):
    """The active provider or providers of a contract."""

    contract: ContractId = Field(
        description="Contract ID. List it in the package's requires when a provider must be active; "
        "otherwise the runtime uses it when one is."
    )
    cardinality: Cardinality = Field(
        "one", description="one takes a single provider; all takes every provider. Defaults to one."
    )

    @property
    def form_tag(self) -> str:
        """The union tag of this form."""
        return FORM_MARK + "contract"


AsReference = BeforeValidator(_plain_reference)
"""Read a bare string as a contract or a runtime."""

ByForm = Discriminator(
    _form,
    custom_error_type="reference_form",
    custom_error_message="names neither a runtime nor a contract",
)

RuntimeTag = Tag(FORM_MARK + "runtime")
ContractTag = Tag(FORM_MARK + "contract")
KernelTag = Tag(FORM_MARK + "kernel")
