"""The parameters of every method that package code may call, checked before a method sees them.

A wrong type is the package's mistake and is answered to it; inside a method it would look like ours, and
the activity would be tried again without end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json
from kernel.wire.host import METHODS


def _without_nul(text: str) -> str:
    if "\0" in text:  # no record has such a name, and PostgreSQL takes no such question
        raise ValueError("NUL is in no name")
    return text


Short = Annotated[str, StringConstraints(max_length=128), AfterValidator(_without_nul)]
Key = Annotated[str, StringConstraints(max_length=512), AfterValidator(_without_nul)]
Positive = Annotated[int, Field(gt=0)]


class _Params(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Record(_Params):
    namespace: Short
    key: Key


class _List(_Params):
    namespace: Short
    prefix: Key | None = None
    after: Key | None = None
    limit: Positive | None = None


class _Set(_Record):
    value: Any


class _State(_Params):
    path: Annotated[str, StringConstraints(max_length=1024), AfterValidator(_without_nul)]


class _Tool(_Params):
    name: Short
    args: dict[str, Any] = Field(default_factory=dict)


class _Said(_Params):
    role: Literal["system", "user", "assistant"]
    content: str


class _Text(_Params):
    prompt: str | None = None
    messages: list[_Said] | None = None
    system: str | None = None
    presetId: Short | None = None
    maxOutputTokens: Positive | None = None


class _Object(_Text):
    schema_: Annotated[dict[str, Any], Field(alias="schema")]


class _Fetch(_Params):
    url: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "GET"
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    timeoutMs: Positive | None = None


class _Progress(_Params):
    message: str | None = None
    fraction: Annotated[float, Field(ge=0, le=1)] | None = None


class _Log(_Params):
    level: Literal["debug", "info", "warning", "error"]
    message: str
    fields: dict[str, Any] = Field(default_factory=dict)


PARAMETERS: Final[Mapping[str, type[BaseModel]]] = {
    "plugin_data.get": _Record,
    "plugin_data.list": _List,
    "plugin_data.set": _Set,
    "plugin_data.delete": _Record,
    "state.get": _State,
    "tools.call": _Tool,
    "gateway.generate_text": _Text,
    "gateway.generate_object": _Object,
    "http.fetch": _Fetch,
    "progress.report": _Progress,
    "log": _Log,
}


def check_parameters(method: str, params: dict[str, Json]) -> None:
    """Refuse parameters that the method does not take.

    Raises:
        TurnwrightError: `tool.arguments` with the parameter and what the method takes.
    """
    try:
        PARAMETERS[method].model_validate(params)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "/".join(map(str, first["loc"]))
        message = f"{method}: {name}: {first['msg']}"
        raise TurnwrightError(Code.TOOL_ARGUMENTS, message, accepted=METHODS[method]) from None
