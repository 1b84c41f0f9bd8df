"""The clock of one model call: three limits, one alarm, and which of them rang."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Literal

from activities.models.wire import CallLimits

Expired = Literal["first-token-timeout", "idle-timeout", "total-timeout"]

# A server that has named its finish reason owes only usage and `[DONE]`; nobody waits long for those.
_TAIL_S = 5.0
# After `[DONE]` only the end of the response is read, because that lets the connection be used again.
_CLOSING_S = 0.1


class CallWatch:
    """Cut the call when it stays silent or lasts too long.

    Spec: plugin-model §11.2. Inside `async with`, a limit that passes raises TimeoutError; `expired` then
    names it.
    """

    def __init__(self, limits: CallLimits, *, streaming: bool) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time
        self._limits = limits
        self._end = loop.time() + limits.total_s
        self._timeout: asyncio.Timeout | None = None
        self._closing = False
        self.expired: Expired = "total-timeout"
        self._first = loop.time() + limits.first_token_s if streaming else None

    async def __aenter__(self) -> CallWatch:
        first = self._end if self._first is None else min(self._first, self._end)
        if self._first is not None and self._first < self._end:
            self.expired = "first-token-timeout"
        self._timeout = asyncio.timeout_at(first)
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._timeout is not None
        await self._timeout.__aexit__(kind, error, trace)

    def bytes_came(self, *, answering: bool, finished: bool) -> None:
        """Note a sign of life.

        Args:
            answering: whether a piece of the answer has come, in these bytes or before.
            finished: whether the answer has named its finish reason.
        """
        if not answering or self._first is None or self._timeout is None or self._timeout.expired():
            return
        silence = min(self._limits.idle_s, _TAIL_S) if finished else self._limits.idle_s
        idle_end = self._now() + silence
        self.expired = "idle-timeout" if idle_end < self._end else "total-timeout"
        self._timeout.reschedule(min(idle_end, self._end))

    def answer_done(self) -> None:
        """Note `[DONE]`: what is still to come has a tenth of a second, once."""
        if self._timeout is None or self._closing or self._timeout.expired():
            return
        self._closing = True
        self._timeout.reschedule(min(self._now() + _CLOSING_S, self._end))
