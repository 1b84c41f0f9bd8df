"""What the code of a package gives away of mistakes that only show when it runs. Seed 001, trouble table.

Read from the text alone, so it is advice: code may reach the same by ways that no reading sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernel.errors import Code
from kernel.manifest.contributes import Contributes
from kernel.manifest.diagnostics import Diagnostic
from kernel.manifest.loaded import Runtime
from kernel.manifest.modules import asks_payload_for_runtime, names_used

_MODEL_CALLS = frozenset({"gateway"})
_REQUESTS = frozenset({"fetch_with_retry"})


def code_advice(
    runtimes: Sequence[Runtime], contributes: Contributes, entry: str | None, files: Mapping[str, bytes]
) -> Iterator[Diagnostic]:
    """Advice on what handlers and the entry do."""
    for runtime in runtimes:
        if runtime.handler is not None and runtime.handler in files:
            yield from _handler(runtime, names_used(files[runtime.handler]))
    listens = entry is not None and contributes.hooks and entry in files
    if listens and entry and (line := asks_payload_for_runtime(files[entry])) is not None:
        message = "a hook's payload has no runtimeId or pluginId, so that this never matches"
        accepted = "ctx.runtime_id, ctx.plugin_id"
        yield Diagnostic(Code.PACKAGE_ADVICE, message, entry, line, accepted=accepted, severity="advice")


def _handler(runtime: Runtime, used: frozenset[str]) -> Iterator[Diagnostic]:
    manifest = runtime.manifest
    function, schedule = manifest.function, manifest.schedule
    behind = schedule.detached_limits is not None or schedule.background
    if behind and _MODEL_CALLS & used and function is not None and function.model is None:
        message = f"{runtime.id} calls a model in the background and declares no function.model"
        yield runtime.origin.advice(("function",), message, "function.model: <slot>, the same as preset_id")
    if _REQUESTS & used and not manifest.permissions.http:
        message = f"{runtime.id} sends requests and declares no permissions.http: every one is refused"
        yield runtime.origin.advice(("permissions",), message, "permissions.http: [{ origin: https://… }]")
