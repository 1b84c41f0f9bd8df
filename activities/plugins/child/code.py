"""A package's code that runs in child processes, as the rest of the worker sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from activities.plugins.child.messages import Start, Started, ToolEntry
from activities.plugins.child.pool import Children
from activities.plugins.child.process import Channel
from activities.plugins.code import CodeFiles, failed, find_tool
from activities.plugins.entry import ENTRY, check_tools
from kernel.errors import TurnwrightError
from kernel.manifest.schemas import check_schema
from kernel.policy import Level

Admit = Callable[[str], Awaitable[None]]
"""Raises when a session may not run the package (any more)."""


@dataclass(frozen=True)
class Isolation:
    """How child processes are confined.

    Attributes:
        minimum: the level below which nothing runs.
        memory_bytes: most of memory that one process may map.
    """

    minimum: Level = "process"
    memory_bytes: int = 1024 * 1024 * 1024


_CHECKED = {"tools", "services", "hooks", "extensions"}


@dataclass(frozen=True)
class IsolatedCode:
    """A package of one digest; `tools` are what it said when it was loaded, checked here."""

    package: str
    digest: str
    tools: Mapping[str, ToolEntry]
    started: Started
    _start: Start
    _children: Children
    _admit: Admit

    @classmethod
    async def load(
        cls,
        folder: Path,
        files: CodeFiles,
        *,
        digest: str,
        children: Children,
        admit: Admit,
        isolation: Isolation,
    ) -> IsolatedCode:
        """Load a package in a process of its own.

        Raises:
            TurnwrightError: `package.load-failed`, `package.isolation`.
        """
        declared = files.contributes
        start = Start(
            package=files.package,
            digest=digest,
            folder=str(folder),
            handlers=files.handlers,
            guards=files.guards,
            entry=files.entry,
            contributes=declared.model_dump(mode="json", by_alias=True, exclude_unset=True, include=_CHECKED),
            memory_bytes=isolation.memory_bytes,
            minimum=isolation.minimum,
        )
        started = await children.load(start)
        tools = {tool.name: tool for tool in started.tools}
        where = files.entry or ENTRY
        try:
            check_tools(where, declared.tools, tools)
            for tool in tools.values():
                _check_schemas(where, tool)
        except TurnwrightError:
            children.end(files.package, digest)
            raise
        return cls(files.package, digest, tools, started, start, children, admit)

    def tool(self, name: str) -> ToolEntry:
        """A registered tool.

        Raises:
            TurnwrightError: `tool.unknown`.
        """
        return find_tool(self.package, self.tools, name)

    async def connect(self, session_id: str) -> Channel:
        """A channel for one invocation of a session.

        Raises:
            TurnwrightError: `package.approval-required`, or what starting a process raises.
        """
        await self._admit(session_id)
        return await self._children.open(self._start, session_id)


def _check_schemas(where: str, tool: ToolEntry) -> None:
    for name, schema in (("parameters", tool.parameters), ("output", tool.output)):
        if schema is not None and (problem := check_schema(schema)):
            raise failed(where, f"tool {tool.name!r}: {name}: {problem}", "a JSON Schema (2020-12)")
