"""Declarations of a manifest against what its entry registered. Spec: plugin-model §1; DECISIONS 13.

Either without the other fails the whole entry: people approve what a manifest says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from activities.plugins.code import CodeFiles, failed
from kernel.manifest.contributes import ContributedTool
from turnwright.sdk.registration import Registered

ENTRY = "server/__init__.py"


class Tool(Protocol):
    """What the check needs of a registered tool."""

    @property
    def risk(self) -> str:
        """The most a call can do."""

    @property
    def needs_approval(self) -> bool:
        """Whether a person is asked."""


def check_entry(files: CodeFiles, registered: Registered) -> None:
    """Refuse an entry whose registrations differ from `contributes`.

    Raises:
        TurnwrightError: `package.load-failed`, naming the first difference.
    """
    where = files.entry or ENTRY
    check_tools(where, files.contributes.tools, registered.tools)
    services = Counter(
        _service(service.contract, service.model_facing, service.access)
        for service in registered.services.values()
    )
    declared = Counter(
        _service(service.contract, service.model_facing, service.access)
        for service in files.contributes.services
    )
    _same_names(
        where, "contributes.services", (declared - services).elements(), (services - declared).elements()
    )
    _hooks(where, files, registered)
    extensions = {f"{extension.point} as {extension.id}" for extension in files.contributes.extensions}
    provided = {f"{point} as {name}" for point, name in registered.extensions}
    _same_names(where, "contributes.extensions", extensions - provided, provided - extensions)


def check_tools(where: str, declared: Iterable[ContributedTool], registered: Mapping[str, Tool]) -> None:
    """Refuse tools that are declared and not registered, or the other way round, or that differ.

    Raises:
        TurnwrightError: `package.load-failed`.
    """
    expected = {tool.name: tool for tool in declared}
    names = registered.keys()
    _same_names(where, "contributes.tools", expected.keys() - names, names - expected.keys())
    for name, tool in expected.items():
        _same(where, name, "risk", tool.risk, registered[name].risk)
        _same(where, name, "needsApproval", tool.needs_approval, registered[name].needs_approval)


def _hooks(where: str, files: CodeFiles, registered: Registered) -> None:
    declared = {hook.event: hook.enforce for hook in files.contributes.hooks}
    events: set[str] = {hook.event for hook in registered.hooks}
    _same_names(where, "contributes.hooks", declared.keys() - events, events - declared.keys())
    for hook in registered.hooks:
        group = next(enforce for event, enforce in declared.items() if event == hook.event)
        if group != hook.enforce:
            message = (
                f"hook {hook.event}: contributes.hooks says enforce {group!r}, the entry {hook.enforce!r}"
            )
            raise failed(where, message, "the same in both")


def _service(contract: str, model_facing: bool, access: str) -> str:
    words = (contract, *(["modelFacing"] if model_facing else []), *(["write"] if access == "write" else []))
    return " ".join(words)


def _same_names(where: str, field: str, missing: Iterable[str], extra: Iterable[str]) -> None:
    if found := sorted(missing):
        raise failed(where, f"{field} lists {_quoted(found)}, which the entry does not register")
    if found := sorted(extra):
        raise failed(where, f"the entry registers {_quoted(found)}, which {field} does not list")


def _quoted(names: Collection[str]) -> str:
    return repr(next(iter(names)))


def _same(where: str, name: str, what: str, declared: object, registered: object) -> None:
    if declared is not None and declared != registered:
        message = f"tool {name!r}: contributes.tools says {what} {declared!r}, the entry {registered!r}"
        raise failed(where, message, "the same in both, or left out of the manifest")
