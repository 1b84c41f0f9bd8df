"""Finds imports that cannot work before the code runs, also those inside functions.

A lazy import of a missing module would otherwise fail in the middle of a turn. What is guarded by
`except ImportError` or `TYPE_CHECKING` is the author's own decision and is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from kernel.errors import Code, TurnwrightError

_FORGIVING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def check_imports(folder: Path) -> None:
    """Refuse a package whose source imports a module that does not exist.

    Raises:
        TurnwrightError: `package.load-failed` with file, line and the module's name; also for source that
            is no Python.
    """
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder)
        if inside.parts[0] != "tests":
            _check_file(folder, path, inside)


def _check_file(folder: Path, path: Path, inside: Path) -> None:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 0
        problem = f"{type(error).__name__}: {getattr(error, 'msg', error)}"
        raise _refused(f"{inside.as_posix()}:{line}", problem[:300]) from None
    for node in _unguarded(tree):
        for module in _missing(node, folder, path):
            raise _refused(f"{inside.as_posix()}:{node.lineno}", f"imports {module}, which does not exist")


def _unguarded(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom | ast.Call]:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
        yield node
    for child in _children(node):
        yield from _unguarded(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Try) and any(_forgives(handler) for handler in node.handlers):
        yield from (*node.handlers, *node.orelse, *node.finalbody)
    elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        yield from node.orelse
    else:
        yield from ast.iter_child_nodes(node)


def _forgives(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(name, ast.Name) and name.id in _FORGIVING for name in ast.walk(handler.type))


def _missing(node: ast.Import | ast.ImportFrom | ast.Call, folder: Path, path: Path) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names if not _exists(alias.name))
        case ast.ImportFrom(level=0, module=str(module)):
            if not _exists(module):
                yield module
        case ast.ImportFrom():
            yield from _missing_relative(node, folder, path)
        case ast.Call():
            if (name := _literal_import(node)) and not name.startswith(".") and not _exists(name):
                yield name


def _missing_relative(node: ast.ImportFrom, folder: Path, path: Path) -> Iterator[str]:
    start = path.parent
    for _ in range(node.level - 1):
        start = start.parent
    if start != folder and folder not in start.parents:
        yield "." * node.level + (node.module or "") + ", outside the package"
    elif node.module:
        if not _is_module(start.joinpath(*node.module.split("."))):
            yield "." * node.level + node.module
    elif not (start / "__init__.py").is_file():
        names = (alias.name for alias in node.names)
        yield from ("." * node.level + name for name in names if not _is_module(start / name))


def _is_module(place: Path) -> bool:
    return place.is_dir() or place.with_name(place.name + ".py").is_file()


def _literal_import(node: ast.Call) -> str | None:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called not in {"import_module", "__import__"} or not node.args:
        return None
    first = node.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _refused(where: str, problem: str) -> TurnwrightError:
    accepted = "the standard library, turnwright.sdk, pydantic, and relative imports of the package's files"
    return TurnwrightError(Code.PACKAGE_LOAD, problem, where=where, accepted=accepted)
