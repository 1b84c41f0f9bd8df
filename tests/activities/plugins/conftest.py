"""Where the code of a test's packages runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from activities.plugins.child.code import IsolatedCode, Isolation
from activities.plugins.child.pool import Children
from activities.plugins.child.process import Channel
from activities.plugins.code import CodeFiles
from tests.activities.plugins import packages

ISOLATION = Isolation(memory_bytes=512 * 1024 * 1024)


async def admitted(session_id: str) -> None:
    """Every session may run everything."""


class Later:
    """Code that is loaded in a child process when it is first called."""

    def __init__(self, children: Children, folder: Path, files: CodeFiles, digest: str) -> None:
        self._children = children
        self._folder, self._files, self._digest = folder, files, digest

    async def connect(self, session_id: str) -> Channel:
        code = await isolated(self._children, self._folder, self._files, self._digest)
        return await code.connect(session_id)


async def isolated(children: Children, folder: Path, files: CodeFiles, digest: str) -> IsolatedCode:
    """Load files in a child process."""
    return await IsolatedCode.load(
        folder,
        files,
        digest=digest,
        children=children,
        admit=admitted,
        isolation=ISOLATION,
    )


@pytest.fixture
async def children() -> AsyncIterator[Children]:
    """The child processes of a test."""
    children = Children()
    yield children
    async with asyncio.timeout(30):
        await children.close()


@pytest.fixture(params=["in-process", "child"])
async def transport(request: pytest.FixtureRequest, children: Children) -> AsyncIterator[str]:
    """Run the packages of a test in this process, then in a child."""
    if request.param == "child":
        packages.in_child = lambda folder, files, digest: Later(children, folder, files, digest)
    yield request.param
    packages.in_child = None
