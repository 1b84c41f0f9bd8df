"""Modules are judged by their text: what is sure to fail at loading is refused, with its line."""

from __future__ import annotations

from textwrap import dedent

import pytest

from kernel.manifest.modules import MAX_MODULE_BYTES

from .packages import AUTO, GUARD, HANDLER, files, load

FUNCTION = {"runtime": {"schedule": AUTO, "function": {}, "guard": "./guard.py"}}
TOOL = "host.register_tool(name='greet', description='Greets.', parameters={}, handler="


def found(**modules: str) -> list[tuple[str, str, int | None, str, str]]:
    """Code, file, line, message and what is accepted of every error; `entry` stands for the entry module."""
    texts = {name: dedent(text).encode() for name, text in modules.items()}
    content = {"handler.py": HANDLER, "guard.py": GUARD}
    content |= {
        "server/__init__.py" if name == "entry" else f"{name}.py": text for name, text in texts.items()
    }
    problems = load(files(FUNCTION, **content)).errors
    return [(one.code.value, one.file, one.line, one.message, one.accepted) for one in problems]


@pytest.mark.parametrize(
    ("handler", "line", "said"),
    [
        ("import os\nasync def handler(ctx:\n", 2, "this is no Python: `'(' was never closed`"),
        (
            "def other(ctx):\n    await ctx\nasync def handler(ctx): ...",
            2,
            "`'await' outside async function`",
        ),
        ("# coding: klingon\n", None, "this is no Python: `unknown encoding: klingon`"),
        ("x = 'a\0b'", None, "null bytes"),
        (f"x = {'-' * 100_000}1", None, "this cannot be read as Python"),
        (f"x = a{'.a' * 50_000}", None, "this cannot be read as Python"),
    ],
)
def test_text_that_is_no_python_is_refused(handler: str, line: int | None, said: str) -> None:
    ((code, file, at, message, accepted),) = found(handler=handler)
    assert (code, file, at, accepted) == ("package.module", "handler.py", line, "the text of a Python module")
    assert said in message


@pytest.mark.parametrize(
    ("handler", "line", "said"),
    [
        ("", None, "the module defines no `handler`"),
        ("async def handle(ctx): ...", None, "the module defines no `handler`"),
        ("class Run:\n    async def handler(self, ctx): ...", None, "the module defines no `handler`"),
        ("\ndef handler(ctx):\n    await ctx", 2, "`handler` is not async"),
        ("if 1:\n    def handler(ctx): ...\nelse:\n    def handler(ctx): ...", 4, "`handler` is not async"),
    ],
)
def test_a_module_without_its_function_is_refused(handler: str, line: int | None, said: str) -> None:
    assert found(handler=handler) == [("package.module", "handler.py", line, said, "async def handler(ctx)")]


def test_a_guard_and_an_entry_are_judged_too() -> None:
    assert found(guard="def guard(ctx): ...", entry="async def register(host): ...") == [
        ("package.module", "guard.py", 1, "`guard` is not async", "async def guard(ctx)"),
        ("package.module", "server/__init__.py", 1, "`register` is async", "def register(host)"),
    ]


@pytest.mark.parametrize(
    "handler",
    [
        "async def handler(ctx): ...",
        "from .run import run as handler",
        "from .run import *",
        "from .run import make\nhandler = make()",
        "from .run import wrapped\n@wrapped\ndef handler(ctx): ...",
        "try:\n    from .run import handler\nexcept ImportError:\n    def handler(ctx): ...",
        "with open as handler: ...",
    ],
)
def test_what_only_loading_can_tell_is_left_to_it(handler: str) -> None:
    assert found(handler=handler) == []


@pytest.mark.parametrize(
    ("entry", "line", "said"),
    [
        (f"def greet(args, ctx): ...\ndef register(host):\n    {TOOL}greet)", 1, "`greet` is not async"),
        (f"def register(h):\n    h{TOOL[4:]}lambda args, ctx: 1)", 2, "a lambda is not async"),
        (f"def register(host):\n    def greet(args, ctx): ...\n    {TOOL}greet)", 2, "`greet` is not async"),
    ],
)
def test_a_tool_with_a_handler_that_is_not_async_is_refused(entry: str, line: int, said: str) -> None:
    expected = (
        "package.module",
        "server/__init__.py",
        line,
        f"tool `greet`: {said}",
        "async def fn(args, ctx)",
    )
    assert found(entry=entry) == [expected]


@pytest.mark.parametrize(
    "entry",
    [
        f"async def greet(args, ctx): ...\ndef register(host):\n    {TOOL}greet)",
        f"def greet(args, ctx): ...\ndef register(host):\n    for greet in ():\n        {TOOL}greet)",
        f"def make(): ...\ndef register(host):\n    {TOOL}make())",
        f"from .tools import greet\ndef register(host):\n    {TOOL}greet)",
        f"def greet(args, ctx): ...\ndef other(host):\n    {TOOL}greet)\nfrom .tools import register",
    ],
)
def test_a_tool_whose_handler_may_be_async_is_left_to_loading(entry: str) -> None:
    assert found(entry=entry) == []


def test_a_module_too_large_to_read_is_refused() -> None:
    ((code, file, *_, accepted),) = found(handler="#" * (MAX_MODULE_BYTES + 1))
    assert (code, file, accepted) == ("package.size", "handler.py", f"at most {MAX_MODULE_BYTES} bytes")


def test_nothing_of_a_module_runs() -> None:
    assert found(handler="raise SystemExit\nasync def handler(ctx): ...") == []
