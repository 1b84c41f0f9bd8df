"""Follows the paths that manifests name: schemas, modules, examples. Spec: plugin-model §1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, FieldPath, quoted
from kernel.manifest.files import PackageFiles, PathError
from kernel.manifest.loaded import Origin
from kernel.manifest.modules import HANDLER, REGISTER, module_problems
from kernel.manifest.runtime import Function
from kernel.manifest.schemas import Schema, read_schema

ENTRY: Final = "server/__init__.py"
MAX_SCHEMA_BYTES: Final = 512 * 1024
"""Of all schema files that one package names: judging a schema costs far more than reading it."""
_PATH: Final = "a path inside the package, from the folder of this manifest"
_FOREIGN_MODULES: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")


@dataclass(slots=True)
class References:
    """Resolves references of one package, each schema file once, and collects what is wrong."""

    files: PackageFiles
    problems: list[Diagnostic] = field(default_factory=list)
    schemas: dict[str, Schema] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)
    _schema_bytes: int = 0

    def schema(self, origin: Origin, at: FieldPath, text: str | None) -> Schema | None:
        """The JSON Schema that a field names."""
        if text is None or (path := self.file(origin, at, text)) is None:
            return None
        if path not in self._read and self._affords(origin, at, path):
            self._read.add(path)
            schema, problem = read_schema(self.files.files[path], file=path)
            if problem is not None:
                self.problems.append(problem)
            if schema is not None:
                self.schemas[path] = schema
        return self.schemas.get(path)

    def _affords(self, origin: Origin, at: FieldPath, path: str) -> bool:
        """Charge a schema file; past the limit the first one is refused and the rest are not read."""
        before = self._schema_bytes
        self._schema_bytes += len(self.files.files[path])
        if before <= MAX_SCHEMA_BYTES < self._schema_bytes:
            message = f"the package's schemas are together larger than {MAX_SCHEMA_BYTES} bytes"
            accepted = f"at most {MAX_SCHEMA_BYTES} bytes"
            self.problems.append(origin.problem(Code.PACKAGE_SIZE, at, message, accepted))
        return self._schema_bytes <= MAX_SCHEMA_BYTES

    def file(self, origin: Origin, at: FieldPath, text: str) -> str | None:
        """The file that a field names, as a path from the package root."""
        try:
            path = self.files.find(text, origin.folder)
        except PathError as error:
            message = f"the path {quoted(text)} {error.reason}"
            self.problems.append(origin.problem(Code.PACKAGE_PATH, at, message, _PATH))
            return None
        if path is None:
            message = f"{quoted(text)} does not exist in the package"
            self.problems.append(origin.problem(Code.PACKAGE_REFERENCE, at, message, _PATH))
        return path

    def module(self, origin: Origin, at: FieldPath, text: str, function: str) -> str | None:
        """The Python module that a field names; `function` is what it has to define."""
        accepted = f"a .py file with `{function}`"
        if text.lower().endswith(_FOREIGN_MODULES):
            message = f"{quoted(text)} is a JavaScript module and cannot run here"
            self.problems.append(origin.problem(Code.PACKAGE_MODULE, at, message, accepted))
            return None
        if not text.endswith(".py"):
            message = f"{quoted(text)} is not a Python module"
            self.problems.append(origin.problem(Code.PACKAGE_MODULE, at, message, accepted))
            return None
        if (path := self.file(origin, at, text)) is not None:
            self.problems += module_problems(self.files.files[path], function, file=path)
        return path

    def handler(self, origin: Origin, function: Function) -> str | None:
        """The handler of a function runtime: the named one, else `handler.py` beside the manifest."""
        if function.handler is not None:
            return self.module(origin, ("function", "handler"), function.handler, HANDLER)
        for name in ("handler.py", "handler.js"):
            if self._beside(origin, name):
                return self.module(origin, ("function",), name, HANDLER)
        message = "the function runtime has no handler.py beside its manifest"
        accepted = f"handler.py with `{HANDLER}`, or function.handler"
        self.problems.append(origin.problem(Code.PACKAGE_REFERENCE, ("function",), message, accepted))
        return None

    def entry(self, origin: Origin, named: str | None) -> str | None:
        """The entry module: the named one, else `server/__init__.py` when it exists."""
        if named is not None:
            return self.module(origin, ("entry",), named, REGISTER)
        for name in (ENTRY, "server/index.js"):
            if self._beside(origin, name):
                return self.module(origin, (), name, REGISTER)
        return None

    def _beside(self, origin: Origin, name: str) -> bool:
        try:
            return self.files.find(name, origin.folder) is not None
        except PathError:
            return False
