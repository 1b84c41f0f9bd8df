"""What an author should look at: none of it keeps a package from loading. Seed 001, trouble table.

manifest_advice    what the runtimes declare
code_advice        what the text of handlers and the entry gives away; code may do the same unseen
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernel.errors import Code
from kernel.manifest.cycles import turn_edges
from kernel.manifest.diagnostics import Diagnostic, quoted
from kernel.manifest.fields import RuntimeReference
from kernel.manifest.loaded import Origin, Runtime
from kernel.manifest.modules import asks_payload_for_runtime, names_used
from kernel.manifest.package import PluginManifest
from kernel.manifest.runtime import EFFECT_KINDS
from kernel.schedule.detached import objection

_MODEL_CALLS = frozenset({"gateway"})
_REQUESTS = frozenset({"fetch_with_retry"})
_PERMISSION = "permissions.http: [{ origin: https://… }]"


def code_advice(
    manifest: PluginManifest,
    origin: Origin,
    runtimes: Sequence[Runtime],
    entry: str | None,
    files: Mapping[str, bytes],
) -> Iterator[Diagnostic]:
    """Advice on what handlers and the entry do."""
    for runtime in runtimes:
        if runtime.handler is not None and runtime.handler in files:
            yield from _handler(runtime, names_used(files[runtime.handler]))
    if entry is not None and entry in files:
        yield from _entry(manifest, origin, entry, files[entry])


def _entry(manifest: PluginManifest, origin: Origin, entry: str, content: bytes) -> Iterator[Diagnostic]:
    if _REQUESTS & names_used(content) and not manifest.permissions.http:
        message = "the entry sends requests and the package declares no permissions.http"
        yield origin.advice(("permissions",), message, _PERMISSION)
    if manifest.contributes.hooks and (line := asks_payload_for_runtime(content)) is not None:
        message = "a hook's payload has no runtimeId or pluginId, so that this never matches"
        accepted = "ctx.runtime_id, ctx.plugin_id"
        yield Diagnostic(Code.PACKAGE_ADVICE, message, entry, line, accepted=accepted, severity="advice")


def manifest_advice(runtimes: Sequence[Runtime]) -> Iterator[Diagnostic]:
    """Advice on what the runtimes declare."""
    for runtime in runtimes:
        yield from _advice(runtime)
    yield from _detached(runtimes)


def _handler(runtime: Runtime, used: frozenset[str]) -> Iterator[Diagnostic]:
    manifest = runtime.manifest
    function, schedule = manifest.function, manifest.schedule
    behind = schedule.detached_limits is not None or schedule.background
    if behind and _MODEL_CALLS & used and function is not None and function.model is None:
        message = f"{runtime.id} calls a model in the background and declares no function.model"
        yield runtime.origin.advice(("function",), message, "function.model: <slot>, the same as preset_id")
    if _REQUESTS & used and not manifest.permissions.http:
        message = f"{runtime.id} sends requests and declares no permissions.http: every one is refused"
        yield runtime.origin.advice(("permissions",), message, _PERMISSION)


def _detached(runtimes: Sequence[Runtime]) -> Iterator[Diagnostic]:
    """Advise on detached functions that have to stay in the turn. Spec: plugin-model §18."""
    foreground = [runtime for runtime in runtimes if runtime.manifest.schedule.detached_limits is None]
    waiting = {
        edge.source.runtime: other.id
        for other in foreground
        for edge in turn_edges(other)
        if isinstance(edge.source, RuntimeReference)
    }
    for runtime in runtimes:
        manifest = runtime.manifest
        if manifest.schedule.detached_limits is None or runtime.kind == "agent":
            continue
        reason = objection(
            agent=False,
            stage=manifest.schedule.stage,
            exports=manifest.io.output.record_as is not None,
            writes=manifest.effects.writes if manifest.effects else None,
            waited_for_by=waiting.get(runtime.id),
        )
        if reason is not None:
            message = f"the runtime stays in the foreground: {reason}"
            yield runtime.origin.advice(("schedule", "detached"), message, "what may be a job of its own")


def _advice(runtime: Runtime) -> Iterator[Diagnostic]:
    manifest, origin = runtime.manifest, runtime.origin
    if runtime.kind == "agent" and not runtime.body.strip():
        yield origin.advice((), f"{origin.file} has no prompt below its frontmatter", "the prompt text")
    contract = manifest.io.output.contract
    if contract is not None and runtime.contract_schema is None:
        message = f"{contract} has no schema, so any JSON is accepted"
        yield origin.advice(("io", "output", "contract"), message, f"contracts.{contract}.schema")
    if manifest.schedule.detached_limits is not None and runtime.kind == "agent":
        message = "an agent cannot run detached; it stays in the foreground"
        yield origin.advice(("schedule", "detached"), message, "a function runtime")
    if manifest.effects is None:
        works = runtime.kind == "function" or runtime.builtin_tools or runtime.plugin_tools
        if works and manifest.io.visibility != "story" and not manifest.schedule.subagent_only:
            message = "declares no effects, so hazards with its siblings are not seen"
            yield origin.advice((), f"{runtime.id} {message}", "effects.reads and effects.writes")
        return
    for field in ("reads", "writes"):
        for index, effect in enumerate(getattr(manifest.effects, field)):
            if effect.partition(":")[0] not in EFFECT_KINDS or ":" not in effect:
                message = f"{quoted(effect)} names no known kind of resource"
                accepted = ", ".join(f"{kind}:…" for kind in sorted(EFFECT_KINDS))
                yield origin.advice(("effects", field, index), message, accepted)
