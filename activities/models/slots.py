"""Model slots: which wire, endpoint, model and prices stand behind a name such as `story`.

Spec: plugin-model §33. A slot holds the *name* of an environment variable; the key itself is read when a
call is made and lives no longer than it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator

from activities.models.wire import Endpoint, WireError
from kernel.agent.messages import Usage
from kernel.errors import Code, TurnwrightError
from kernel.wire.endpoints import key_problem

Price = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]
_MILLION = 1_000_000


class Slot(BaseModel):
    """One configured model.

    Args:
        wire: the protocol of the endpoint.
        base_url: http or https, without credentials or query; `/chat/completions` is appended.
        model: the provider's name of the model.
        api_key_env: name of the environment variable that holds the key; empty sends no key.
        context_window: tokens of prompt and answer together.
        max_output_tokens: the longest answer to ask for.
        price_input, price_output: price of a million tokens, in the deployment's currency.
        fallback: refused by name; another slot cannot stand in yet.
        reasoning_off: body fields that turn thinking off, as this provider spells them.
        strict: asks the provider to hold the model to the schemas that its strict mode takes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    wire: Literal["openai-chat"] = "openai-chat"
    base_url: str
    model: Annotated[str, Field(min_length=1, max_length=200)]
    api_key_env: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$", max_length=100)] = ""
    context_window: Annotated[int, Field(ge=256)] = 262144
    max_output_tokens: Annotated[int, Field(gt=0)] = 16384
    price_input: Price | None = None
    price_output: Price | None = None
    fallback: None = None
    reasoning_off: dict[str, JsonValue] = Field(default_factory=dict)
    strict: bool = False

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an http or https address is accepted")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("an address without credentials, query or fragment is accepted")
        return value.rstrip("/")

    @property
    def output_limit(self) -> int:
        """The longest answer to ask for: at most half of a small window (Spec: plugin-model §11.5)."""
        return min(self.max_output_tokens, self.context_window // 2)

    def cost(self, usage: Usage) -> Decimal | None:
        """The price of one call, cached tokens counted as input; None where the slot names no price."""
        if self.price_input is None or self.price_output is None:
            return None
        return (self.price_input * usage.input_tokens + self.price_output * usage.output_tokens) / _MILLION

    def endpoint(self, environ: Mapping[str, str] | None = None) -> Endpoint:
        """The endpoint with its key, read now.

        Raises:
            WireError: `model.auth`, when the environment variable is missing or holds no usable key.
        """
        if problem := self.key_problem(environ):
            raise WireError(Code.MODEL_AUTH, problem, retryable=False, reason="key-missing")
        return Endpoint(self.base_url, self._held(environ).strip(), self.reasoning_off, self.strict)

    def key_problem(self, environ: Mapping[str, str] | None = None) -> str:
        """Why no call can be made with the environment's key; empty where one can."""
        return key_problem(self.api_key_env, self._held(environ)) if self.api_key_env else ""

    def _held(self, environ: Mapping[str, str] | None) -> str:
        return (os.environ if environ is None else environ).get(self.api_key_env, "")


def load_slots(config: Mapping[str, Any]) -> dict[str, Slot]:
    """Read the configured slots by name.

    Raises:
        TurnwrightError: `config.invalid`, naming slot and field; never with the refused value, which may be a
            key in the wrong place.
    """
    return {name: _slot(name, value) for name, value in config.items()}


def _slot(name: str, value: Any) -> Slot:
    try:
        return Slot.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(["slots", name, *(str(part) for part in first["loc"])])
        message = first["msg"].removeprefix("Value error, ")
        if first["loc"] == ("fallback",):
            raise TurnwrightError(
                Code.NOT_SUPPORTED, "slots have no fallback in this version", where=where
            ) from None
        if first["loc"] == ("api_key_env",):
            message = "the name of an environment variable is accepted, not a key"
        raise TurnwrightError(Code.CONFIG_INVALID, message, where=where) from None
