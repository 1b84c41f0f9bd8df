"""The tools of a runtime: those it may call, and every place that names one. Spec: plugin-model §1, §13."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from kernel.errors import Code
from kernel.manifest.agent import BUILTIN_TOOLS, Agent, AgentTools, ToolWhitelist
from kernel.manifest.contributes import Contributes
from kernel.manifest.diagnostics import Diagnostic, FieldPath, quoted
from kernel.manifest.loaded import Runtime


def effective_tools(
    runtime: Runtime, contributes: Contributes, *, single: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The builtin and the plugin tools of a runtime. Spec: plugin-model §1, last rule.

    An agent, or a function with a `tools` block, that is the package's only runtime and leaves `tools.plugin`
    out gets every contributed tool; one among several gets none.
    """
    whitelist = _whitelist(runtime)
    if whitelist is None:
        return (), ()
    every = tuple(tool.name for tool in contributes.tools) if single else ()
    return whitelist.builtin, every if whitelist.plugin is None else whitelist.plugin


def _whitelist(runtime: Runtime) -> ToolWhitelist | None:
    function = runtime.manifest.function
    return runtime.manifest.agent_settings.tools if function is None else function.tools


def tool_problems(runtime: Runtime, contributes: Contributes) -> Iterator[Diagnostic]:
    """Yield tools that a runtime names and does not have, and names that two of its tools share."""
    whitelist = _whitelist(runtime)
    if whitelist is None:
        return
    root = "agent" if runtime.kind == "agent" else "function"
    own = [tool.name for tool in contributes.tools]
    for field, names, offered in (
        ("builtin", whitelist.builtin, sorted(BUILTIN_TOOLS)),
        ("plugin", whitelist.plugin or (), own),
    ):
        for index, name in enumerate(names):
            if name not in offered:
                yield _unknown_tool(runtime, (root, "tools", field, index), name, offered, field)
    available = [*runtime.builtin_tools, *runtime.plugin_tools]
    if isinstance(whitelist, AgentTools):
        yield from _datasets(runtime, whitelist, contributes)
        yield from _services(runtime, whitelist, contributes)
        available += [service.tool_name for service in whitelist.services]
        available += _dataset_tools(whitelist, contributes)
    for name in sorted({name for name in available if available.count(name) > 1}):
        message = f"two tools have the name {quoted(name)}"
        yield runtime.origin.problem(Code.PACKAGE_COMBINATION, (root, "tools"), message, "names that differ")
    for at, name in _named_tools(runtime, whitelist, root):
        if name not in available:
            yield _unknown_tool(runtime, at, name, available, "the runtime's tools")


def _named_tools(runtime: Runtime, whitelist: ToolWhitelist, root: str) -> Iterator[tuple[FieldPath, str]]:
    """Every place that names one of the runtime's own tools."""
    for index, name in enumerate(whitelist.defer if isinstance(whitelist.defer, tuple) else ()):
        yield (root, "tools", "defer", index), name
    if (agent := runtime.manifest.agent) is None:
        return
    yield from _ending_tools(agent)


def _ending_tools(agent: Agent) -> Iterator[tuple[FieldPath, str]]:
    if agent.finish_with is not None:
        yield ("agent", "finishWith"), agent.finish_with
    if agent.tool_choice is not None and not isinstance(agent.tool_choice, str):
        yield ("agent", "toolChoice", "name"), agent.tool_choice.name
    for index, name in enumerate(agent.completion.after_tools if agent.completion else ()):
        yield ("agent", "completion", "afterTools", index), name


def _unknown_tool(
    runtime: Runtime, at: FieldPath, name: str, offered: Sequence[str], where: str
) -> Diagnostic:
    if name == "search-tools":
        message = "search-tools cannot be declared; defer brings it"
        return runtime.origin.problem(Code.PACKAGE_REFERENCE, at, message, "tools.defer")
    place = {"builtin": "no builtin tool", "plugin": "not in contributes.tools"}.get(where, f"not in {where}")
    near = get_close_matches(name, offered, n=3, cutoff=0.5) or sorted(offered)[:8]
    accepted = ", ".join(near) or "nothing; the list of tools is empty"
    return runtime.origin.problem(Code.PACKAGE_REFERENCE, at, f"the tool {quoted(name)} is {place}", accepted)


def _datasets(runtime: Runtime, tools: AgentTools, contributes: Contributes) -> Iterator[Diagnostic]:
    for index, wanted in enumerate(tools.datasets):
        at = ("agent", "tools", "datasets", index)
        if (dataset := contributes.datasets.get(wanted.dataset)) is None:
            message = f"{quoted(wanted.dataset)} is not in contributes.datasets"
            accepted = ", ".join(sorted(contributes.datasets)) or "a declared dataset"
            yield runtime.origin.problem(Code.PACKAGE_REFERENCE, at, message, accepted)
            continue
        for tool in wanted.tools or ():
            if tool not in dataset.tools:
                message = f"the dataset {wanted.dataset} does not offer {tool}"
                accepted = ", ".join(dataset.tools)
                yield runtime.origin.problem(Code.PACKAGE_REFERENCE, at, message, accepted)


def _dataset_tools(tools: AgentTools, contributes: Contributes) -> list[str]:
    names: list[str] = []
    for wanted in tools.datasets:
        dataset = contributes.datasets.get(wanted.dataset)
        offered = dataset.tools if dataset else ()
        names += [f"{wanted.dataset}-{tool}" for tool in wanted.tools or offered]
    return names


def _services(runtime: Runtime, tools: AgentTools, contributes: Contributes) -> Iterator[Diagnostic]:
    """Refuse the import of a service that this package keeps to code."""
    own = {service.contract: service.model_facing for service in contributes.services}
    for index, wanted in enumerate(tools.services):
        if own.get(wanted.contract) is False:
            message = f"the service {wanted.contract} of this package is for code alone"
            at = ("agent", "tools", "services", index)
            yield runtime.origin.problem(Code.PACKAGE_REFERENCE, at, message, "modelFacing: true on it")
