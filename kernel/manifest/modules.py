"""Judges the modules that manifests name by their text; nothing of a package runs.

Only what is sure is refused: a function that is imported, assigned or decorated is judged when it loads.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, quoted

HANDLER: Final = "async def handler(ctx)"
GUARD: Final = "async def guard(ctx)"
REGISTER: Final = "def register(host)"
TOOL: Final = "async def fn(args, ctx)"

MAX_MODULE_BYTES: Final = 512 * 1024
"""Of one module: a parsed text takes a hundred times its size."""

_PYTHON: Final = "the text of a Python module"
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Binding: TypeAlias = _Function | ast.ClassDef | ast.Name | ast.alias | ast.arg


def module_problems(content: bytes, signature: str, *, file: str) -> list[Diagnostic]:
    """Why a module cannot be what a manifest names it for.

    Args:
        signature: what it has to define, as `async def handler(ctx)`; an entry's tools are judged too.
    """
    if len(content) > MAX_MODULE_BYTES:
        accepted = f"at most {MAX_MODULE_BYTES} bytes"
        return [Diagnostic(Code.PACKAGE_SIZE, "the module is too large to be read", file, accepted=accepted)]
    try:
        tree = ast.parse(content, file)
        found = [*_function(tree, signature, file), *(_tools(tree, file) if signature == REGISTER else ())]
        if not found:  # some errors show in no tree, as `await` in a plain function
            compile(tree, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        message = f"this is no Python: {quoted(error.msg)}"
        return [_refuse(file, error.lineno or None, message, _PYTHON)]
    except (ValueError, RecursionError, MemoryError) as error:
        return [_refuse(file, None, f"this cannot be read as Python: {type(error).__name__}", _PYTHON)]
    return found


def names_used(content: bytes) -> frozenset[str]:
    """Attributes that a module reads, as `gateway` of `ctx.gateway`; of a text that is no Python, none."""
    try:
        tree = ast.parse(content[:MAX_MODULE_BYTES])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def asks_payload_for_runtime(content: bytes) -> int | None:
    """The line where a hook looks for `runtimeId` in its payload, which never has it."""
    try:
        tree = ast.parse(content[:MAX_MODULE_BYTES])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    given = [
        node
        for call in _registrations(tree, "on")
        for node in (*call.args[1:2], *(one.value for one in call.keywords if one.arg == "handler"))
    ]
    hooks = {node.id for node in given if isinstance(node, ast.Name)}
    lines = [
        _looks_up(node, node.args.args[1].arg)
        for node in ast.walk(tree)
        if isinstance(node, _Function) and node.name in hooks and len(node.args.args) > 1
    ]
    return next((line for line in lines if line is not None), None)


def _looks_up(function: _Function, payload: str) -> int | None:
    """The line where a function asks its payload for the runtime or the package."""
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value="runtimeId" | "pluginId")):
                found = name
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get"),
                args=[ast.Constant(value="runtimeId" | "pluginId"), *_],
            ):
                found = name
            case _:
                continue
        if found == payload:
            return int(node.lineno)
    return None


def _function(tree: ast.Module, signature: str, file: str) -> Iterator[Diagnostic]:
    name = signature.partition("(")[0].split()[-1]
    bound = list(_bindings(_outside_functions(tree)))
    found = [node for known, node in bound if known == name]
    if not found and "*" not in dict(bound):
        yield _refuse(file, None, f"the module defines no `{name}`", signature)
    sync = signature.startswith("def")
    if found and all(_is_plain(node, ast.AsyncFunctionDef if sync else ast.FunctionDef) for node in found):
        yield _refuse(file, found[-1].lineno, f"`{name}` is {'' if sync else 'not '}async", signature)


def _tools(tree: ast.Module, file: str) -> Iterator[Diagnostic]:
    """Yield the tools that `register` gives a handler which is not async."""
    bound: defaultdict[str, list[_Binding]] = defaultdict(list)
    for known, node in _bindings(ast.walk(tree)):
        bound[known].append(node)
    for call in _registrations(tree, "register_tool"):
        given = {argument.arg: argument.value for argument in call.keywords}
        handler, name = given.get("handler"), given.get("name")
        tool = f"tool {quoted(name.value)}" if isinstance(name, ast.Constant) else "a tool"
        if isinstance(handler, ast.Lambda):
            yield _refuse(file, handler.lineno, f"{tool}: a lambda is not async", TOOL)
        elif isinstance(handler, ast.Name) and len(bound[handler.id]) == 1:
            definition = bound[handler.id][0]
            if _is_plain(definition, ast.FunctionDef):
                yield _refuse(file, definition.lineno, f"{tool}: `{handler.id}` is not async", TOOL)


def _registrations(tree: ast.Module, method: str) -> Iterator[ast.Call]:
    """Calls of `host.<method>` inside `register(host)`."""
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == "register" and function.args.args:
            wanted = f"{function.args.args[0].arg}.{method}"
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == wanted:
                    yield node


def _outside_functions(tree: ast.Module) -> Iterator[ast.AST]:
    todo: list[ast.AST] = [tree]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            yield node
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                todo.append(node)


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, _Binding]]:
    """Names that are given a value, each with what gives it; `*` is a star import."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Name(ctx=ast.Store()):
                yield node.id, node
            case ast.alias():
                yield node.asname or node.name.partition(".")[0], node
            case ast.arg():
                yield node.arg, node


def _is_plain(node: _Binding, kind: type[_Function]) -> bool:
    return isinstance(node, kind) and not node.decorator_list


def _refuse(file: str, line: int | None, message: str, accepted: str) -> Diagnostic:
    return Diagnostic(Code.PACKAGE_MODULE, message, file, line, accepted=accepted)
