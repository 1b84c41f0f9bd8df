"""Finds imports that cannot work before the code runs, also those inside functions.

A lazy import of a missing module would otherwise fail in the middle of a turn. What is guarded by
`except ImportError` or `TYPE_CHECKING` is the author's own decision and is left alone.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from kernel.errors import Code, TurnwrightError

_FORGIVING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


_Node = ast.Import | ast.ImportFrom | ast.Call


def check_imports(folder: Path, *, foreign: bool = False) -> None:
    """Refuse a package whose source imports a module that does not exist, or that is not for it.

    Args:
        foreign: the package is not bundled, and may import the standard library, `turnwright.sdk`, pydantic
            and its own files alone, guarded or not (DECISIONS 25).

    Raises:
        TurnwrightError: `package.load-failed` with file, line and the module's name; also for source that
            is no Python.
    """
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder)
        if inside.parts[0] != "tests":
            _check_file(folder, path, inside, foreign=foreign)


def _check_file(folder: Path, path: Path, inside: Path, *, foreign: bool) -> None:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 0
        problem = f"{type(error).__name__}: {getattr(error, 'msg', error)}"
        raise _refused(f"{inside.as_posix()}:{line}", problem[:300]) from None
    for node in _judged(tree, foreign=foreign):
        where = f"{inside.as_posix()}:{node.lineno}"
        for module in _absolute(node) if foreign else ():
            if not _is_offered(module):
                raise _refused(where, f"imports {module}, which only bundled packages may")
        for module in _missing(node, folder, path):
            raise _refused(where, f"imports {module}, which does not exist")


def _judged(node: ast.AST, *, foreign: bool) -> Iterator[_Node]:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
        yield node
    for child in _children(node, foreign=foreign):
        yield from _judged(child, foreign=foreign)


def _children(node: ast.AST, *, foreign: bool) -> Iterator[ast.AST]:
    guarded = isinstance(node, ast.Try) and not foreign
    if guarded and isinstance(node, ast.Try) and any(_forgives(handler) for handler in node.handlers):
        yield from (*node.handlers, *node.orelse, *node.finalbody)
    elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        yield from node.orelse
    else:
        yield from ast.iter_child_nodes(node)


def _forgives(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(name, ast.Name) and name.id in _FORGIVING for name in ast.walk(handler.type))


def _absolute(node: _Node) -> Iterator[str]:
    """The modules of other folders that a node imports, as far as its text says."""
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom(level=0, module=str(module)):
            if module == "turnwright":
                yield from (f"turnwright.{alias.name}" for alias in node.names)
            else:
                yield module
        case ast.Call():
            if (name := _literal_import(node)) and not name.startswith("."):
                yield name


def _is_offered(module: str) -> bool:
    top = module.partition(".")[0]
    if top == "turnwright":
        return module == "turnwright.sdk" or module.startswith("turnwright.sdk.")
    return top == "pydantic" or top in sys.stdlib_module_names


def _missing(node: _Node, folder: Path, path: Path) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.level:
        yield from _missing_relative(node, folder, path)
    elif isinstance(node, ast.ImportFrom):
        yield from (module for module in (node.module,) if module and not _exists(module))
    else:
        yield from (module for module in _absolute(node) if not _exists(module))


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
