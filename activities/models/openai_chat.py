"""The wire of everything that speaks OpenAI's `/chat/completions`.

Chunk decoding is `openai_chunks.py`, classing of refusals `provider_errors.py`; what is left here is the
order of one call and its clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from activities.models.http import posted
from activities.models.openai_chunks import ChatAnswer, Event
from activities.models.openai_payload import chat_body, request_names
from activities.models.provider_errors import (
    ProviderError,
    failed_mid_stream,
    parse_error,
    read_error,
    refused,
)
from activities.models.sse import EventTooLarge, ServerEvent, SseDecoder
from activities.models.watch import CallWatch
from activities.models.wire import DEFAULT_LIMITS, CallLimits, Endpoint, OnEvent, WireError
from kernel.agent.messages import ModelReply, ModelRequest, ReplyBuilder
from kernel.agent.retry_after import hint_from_headers
from kernel.errors import Code

MAX_RESPONSE_BYTES = 32 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
SHORTEST_SECRET = 4
"""Characters of the shortest key that is masked: a shorter one keeps no secret and stands in many words."""

_MESSAGE_CHARS = 800
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-correlation-id")
_EXPIRED = {
    "first-token-timeout": "The model began no answer in time",
    "idle-timeout": "The model fell silent in the middle of its answer",
    "total-timeout": "The call passed its time limit",
}
_FAILED = ProviderError(
    kind="provider-error", message="The provider ended the answer with the reason `error`"
)


class OpenAIChat:
    """OpenAI-compatible chat completions. Every call is one POST; nothing is retried here.

    Spec: plugin-model §11.2, §11.4.
    """

    async def stream(
        self,
        request: ModelRequest,
        endpoint: Endpoint,
        *,
        idempotency_key: str,
        on_event: OnEvent,
        limits: CallLimits = DEFAULT_LIMITS,
    ) -> ModelReply:
        """See `Wire.stream`."""
        call = _Call(request, endpoint, on_event)
        watch = CallWatch(limits, streaming=request.stream)
        try:
            async with (
                watch,
                posted(
                    endpoint.base_url.rstrip("/") + "/chat/completions",
                    chat_body(request, endpoint, call.names),
                    _headers(endpoint, idempotency_key),
                ) as response,
            ):
                await call.read(response, watch)
        except TimeoutError:
            if not call.answer.complete:
                raise call.broken(_EXPIRED[watch.expired], watch.expired) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            if not call.answer.complete:
                raise call.broken(_cause(error), _stage(error)) from error
        return call.reply()


class _Call:
    """The state of one call."""

    def __init__(self, request: ModelRequest, endpoint: Endpoint, on_event: OnEvent) -> None:
        self.names = request_names(request)
        self.answer = ChatAnswer(self.names, request.model)
        self._endpoint = endpoint
        self._on_event = on_event
        self._builder = ReplyBuilder()
        self._request_id = ""

    async def read(self, response: httpx.Response, watch: CallWatch) -> None:
        """Read the response to its end, or until the answer is done."""
        self._request_id = _request_id(response)
        if not response.is_success:
            raise self._refused(response, await _read_at_most(response, MAX_ERROR_BYTES))
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            await self._read_events(response, watch)
        else:
            self._take_whole(await self._read_whole(response))

    def reply(self) -> ModelReply:
        """The finished reply.

        Raises:
            WireError: the answer never ended, or ended as a refusal or an error.
        """
        if not self.answer.complete:
            raise self.broken(
                "The stream ended without a finish reason; the answer is incomplete", "incomplete"
            )
        if self.answer.failed:
            raise self._marked(failed_mid_stream(_FAILED))
        self._emit(self.answer.end())
        reply = self._builder.reply()
        if self.answer.refusal and not reply.text.strip() and not reply.tool_calls:
            raise self._marked(
                WireError(Code.MODEL_REFUSAL, self.answer.refusal, retryable=False, reason="refusal")
            )
        return reply

    def broken(self, message: str, reason: str) -> WireError:
        """A retryable failure of the way between us."""
        return self._marked(WireError(Code.MODEL_TRANSPORT, message, retryable=True, reason=reason))

    async def _read_events(self, response: httpx.Response, watch: CallWatch) -> None:
        decoder = SseDecoder()
        received = 0
        async for data in response.aiter_bytes():
            received += len(data)
            if received > MAX_RESPONSE_BYTES:
                raise self._too_large()
            self._take_events(decoder, data)
            if self.answer.done:
                watch.answer_done()
            else:
                watch.bytes_came(answering=self.answer.answering, finished=self.answer.finished)
        self._take_unclosed(decoder)

    def _take_unclosed(self, decoder: SseDecoder) -> None:
        """Take a last event that lacks its blank line, as some servers leave it, if it is whole."""
        for event in decoder.feed(b"\n\n"):
            if event.data.strip() == "[DONE]" or _json(event.data) is not None:
                self._take_event(event)

    def _take_events(self, decoder: SseDecoder, data: bytes) -> None:
        try:
            for event in decoder.feed(data):
                self._take_event(event)
        except EventTooLarge:
            raise self._too_large() from None

    def _take_event(self, event: ServerEvent) -> None:
        if event.data.strip() == "[DONE]":
            self.answer.done = True
        elif not self.answer.done:
            self._take_object(_json(event.data), is_error=event.name == "error", raw=event.data)

    def _take_object(self, value: Any, *, is_error: bool, raw: str) -> None:
        if is_error or (isinstance(value, Mapping) and _holds_error(value)):
            error = read_error(raw if value is None else value)
            raise self._marked(failed_mid_stream(error))
        if not isinstance(value, Mapping):
            raise self.broken(f"The provider sent something that is no JSON object: {raw}", "malformed")
        self._emit(self.answer.feed(value))

    async def _read_whole(self, response: httpx.Response) -> bytes:
        body = await _read_at_most(response, MAX_RESPONSE_BYTES + 1)
        if len(body) > MAX_RESPONSE_BYTES:
            raise self._too_large()
        return body

    def _take_whole(self, body: bytes) -> None:
        text = body.decode("utf-8", "replace")
        self._take_object(_json(text), is_error=False, raw=text)
        self.answer.done = self.answer.answering or self.answer.usage.reported

    def _emit(self, events: Iterator[Event]) -> None:
        for event in events:
            self._builder.feed(event)
            self._on_event(event)

    def _refused(self, response: httpx.Response, body: bytes) -> WireError:
        hint = hint_from_headers(response.headers, now=time.time())
        error = parse_error(body)
        return self._marked(refused(response.status_code, error, retry_after_s=hint))

    def _too_large(self) -> WireError:
        text = f"The response passed {MAX_RESPONSE_BYTES} bytes or one event its own limit"
        return self._marked(WireError(Code.MODEL_TRANSPORT, text, retryable=False, reason="too-large"))

    def _marked(self, error: WireError) -> WireError:
        """The error with this call's facts, and without the key that some providers echo."""
        return WireError(
            error.code,
            _shortened(self._without_key(error.message)),
            retryable=error.retryable,
            reason=self._without_key(error.reason),
            retry_after_s=error.retry_after_s,
            shown_text=self.answer.shown_text,
            request_id=self._without_key(self._request_id or error.request_id),
            status=error.status,
            usage=self.answer.usage,
        )

    def _without_key(self, text: str) -> str:
        """The text with the key masked; to be asked before the text is cut, which might halve the key."""
        key = self._endpoint.api_key
        if len(key) < SHORTEST_SECRET:
            return text
        return text.replace(key, "***").replace(json.dumps(key)[1:-1], "***")


def _headers(endpoint: Endpoint, idempotency_key: str) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "Idempotency-Key": quote(idempotency_key, safe="/:._-~@,;=+ "),
    }
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    return headers


async def _read_at_most(response: httpx.Response, limit: int) -> bytes:
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def _request_id(response: httpx.Response) -> str:
    found = (response.headers.get(name) for name in _REQUEST_ID_HEADERS)
    return next((value[:200] for value in found if value), "")


def _shortened(text: str) -> str:
    return text if len(text) <= _MESSAGE_CHARS else text[: _MESSAGE_CHARS - 1] + "…"


def _holds_error(value: Mapping[str, Any]) -> bool:
    return bool(value.get("error")) or value.get("type") == "error"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _cause(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _stage(error: Exception) -> str:
    return "connect" if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)) else "connection"
