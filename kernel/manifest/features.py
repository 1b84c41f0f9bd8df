"""What a manifest can say and this version does not do yet: activation refuses it by name.

Each entry names a field and what stands for it meanwhile; an entry goes when its behaviour comes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, TypeAlias

from kernel.errors import Code
from kernel.manifest.agent import Agent
from kernel.manifest.diagnostics import Diagnostic, FieldPath, ordered
from kernel.manifest.loaded import Package, Runtime
from kernel.manifest.runtime import KernelReference, RuntimeManifest

SUPPORTED_BUILTIN_TOOLS: Final = frozenset(
    {
        "plugin-data-set",
        "plugin-data-set-batch",
        "plugin-data-get",
        "plugin-data-list",
        "plugin-data-delete",
    }
)

_CONTRIBUTES: Final = {
    "actions": "actions",
    "commands": "commands",
    "services": "services",
    "datasets": "datasets",
    "extensions": "extensions",
    "hooks": "hooks",
    "wires": "wires",
    "forms": "forms",
    "ui": "ui",
    "world_projections": "worldProjections",
    "prompt": "prompt",
}
_LOOP: Final = {
    "profile": "profile",
    "stream": "stream",
    "steering": "steering",
    "truncation": "truncation",
    "fallback": "fallback",
    "call_timeout_ms": "callTimeoutMs",
    "max_recursion_depth": "maxRecursionDepth",
}

Used: TypeAlias = Iterator[tuple[FieldPath, str]]
"""Fields that are used and not supported, each with what is accepted instead."""


def unsupported(package: Package) -> tuple[Diagnostic, ...]:
    """Name every feature of a package that this version does not run."""
    contributes = package.manifest.contributes
    found = [
        _refuse(package.origin.problem, ("contributes", alias))
        for name, alias in _CONTRIBUTES.items()
        if getattr(contributes, name)
    ]
    found += [_refuse(package.origin.problem, at, accepted) for at, accepted in _package_wide(package)]
    for runtime in package.runtimes:
        found += [_refuse(runtime.origin.problem, at, accepted) for at, accepted in _used(runtime)]
    return ordered(found)


def unanswerable(package: Package, gated: Collection[str]) -> tuple[Diagnostic, ...]:
    """Name every function that may call a tool which needs approval: only agents can ask for one.

    Args:
        gated: the tools that need approval, known once the package's code is loaded.
    """
    return ordered(
        runtime.origin.problem(
            Code.PACKAGE_UNSUPPORTED,
            ("function", "tools", "plugin"),
            f"{name} needs approval, which a function cannot ask for in this version",
            "a tool that needs no approval, or an agent",
        )
        for runtime in package.runtimes
        if runtime.kind == "function"
        for name in runtime.plugin_tools
        if name in gated
    )


def _refuse(problem: Callable[..., Diagnostic], at: FieldPath, accepted: str = "") -> Diagnostic:
    return problem(Code.PACKAGE_UNSUPPORTED, at, "is not supported in this version", accepted)


def _package_wide(package: Package) -> Used:
    manifest = package.manifest
    if manifest.permissions.http:
        yield ("permissions", "http"), "permissions.http of a function runtime"
    for name, data in manifest.contributes.data.items():
        for option in ("search", "version"):
            if getattr(data, option) is not None:
                yield ("contributes", "data", name, option), f"no {option}"


def _used(runtime: Runtime) -> Used:
    manifest = runtime.manifest
    yield from _schedule(manifest)
    yield from _io(manifest)
    if manifest.guard is not None:
        yield ("guard",), "no guard"
    if manifest.agent is not None:
        yield from _agent(manifest.agent)
    if manifest.kind == "agent" and manifest.permissions.http:
        yield ("permissions", "http"), "permissions.http of a function runtime"
    if manifest.function is not None and manifest.function.tools is not None:
        yield from _builtin_tools("function", manifest.function.tools.builtin)
        if manifest.function.tools.defer is not None:
            yield ("function", "tools", "defer"), "no defer"


def _schedule(manifest: RuntimeManifest) -> Used:
    schedule = manifest.schedule
    if schedule.stage == "setup":
        yield ("schedule", "stage"), "pre-turn, narrative, post-turn, audit"
    if schedule.trigger.type == "event":
        yield ("schedule", "trigger", "type"), "auto, manual"
    for name, alias in (
        ("start_turn", "startTurn"),
        ("cooldown_turns", "cooldownTurns"),
        ("max_trigger_count", "maxTriggerCount"),
    ):
        if getattr(schedule.trigger, name) is not None:
            yield ("schedule", "trigger", alias), f"no {alias}"
    if schedule.background:
        yield ("schedule", "background"), "false"
    if schedule.subagent_only:
        yield ("schedule", "subagentOnly"), "false"
    for index, need in enumerate(schedule.needs):
        if need.scope == "session":
            yield ("schedule", "needs", index, "scope"), "turn"


def _io(manifest: RuntimeManifest) -> Used:
    for name, binding in manifest.io.inputs.items():
        if binding.scope == "committed":
            yield ("io", "inputs", name, "scope"), "turn"
        if isinstance(binding.source, KernelReference):
            yield ("io", "inputs", name, "from", "kernel"), "a runtime or a contract"
    if manifest.io.self_data:
        yield ("io", "selfData"), "no selfData"
    if manifest.io.concealed:
        yield ("io", "concealed"), "false"


def _agent(agent: Agent) -> Used:
    yield from _builtin_tools("agent", agent.tools.builtin)
    for name in ("defer", "services", "datasets"):
        if getattr(agent.tools, name):
            yield ("agent", "tools", name), f"no {name}"
    if agent.completion is not None:
        yield ("agent", "completion"), "finishWith"
    if agent.advertise_events:
        yield ("agent", "advertiseEvents"), "false"
    if agent.history is not None and agent.history.include_summaries:
        yield ("agent", "history", "includeSummaries"), "false"
    for name, alias in _LOOP.items():
        # `stream: true` asks for what a story does anyway.
        if (value := getattr(agent.loop, name)) is not None and (name, value) != ("stream", True):
            yield ("agent", "loop", alias), f"no {alias}"
    if agent.loop.declares("finalizer"):
        yield ("agent", "loop", "finalizer"), "no finalizer"
    for name, alias in (("review", "review"), ("loop_perturbation", "loopPerturbation")):
        if agent.loop.corrections.declares(name):
            yield ("agent", "loop", "corrections", alias), f"no {alias}"


def _builtin_tools(root: str, names: tuple[str, ...]) -> Used:
    for index, name in enumerate(names):
        if name not in SUPPORTED_BUILTIN_TOOLS:
            yield (root, "tools", "builtin", index), ", ".join(sorted(SUPPORTED_BUILTIN_TOOLS))
