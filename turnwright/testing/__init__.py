"""For tests of packages: scripted models, contexts in memory, and sessions on the real thing.

    function_context        `ctx` of a handler or a guard, backed by dictionaries
    ScriptedModel           replies of `ctx.gateway`, written beforehand
    execute_tool_and_commit a registered tool, called as the host calls it; its writes end in the data
    call_test_service       a registered service, with both schemas checked
    seeded_random           the numbers of `ctx.random`
    play_package            a session of a package: real server, worker and store, for tests with pytest

What runs in memory runs no Temporal, no worker and no isolation: it shows what the code does. `play_package`
and `turnwright package test` show how it fits.
"""

from client.testing.driver import PackageDriver, play_package
from turnwright.testing.context import TestData, function_context, seeded_random, tool_context
from turnwright.testing.entries import call_test_service, execute_tool_and_commit
from turnwright.testing.model import ScriptedModel

__all__ = [
    "PackageDriver",
    "ScriptedModel",
    "TestData",
    "call_test_service",
    "execute_tool_and_commit",
    "function_context",
    "play_package",
    "seeded_random",
    "tool_context",
]
