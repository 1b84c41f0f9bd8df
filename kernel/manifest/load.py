"""Reads a whole package from bytes: one run collects every problem, in every file.

Spec: plugin-model §1, §26-28; DESIGN §5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeVar

from kernel.errors import Code
from kernel.manifest.advice import code_advice, manifest_advice
from kernel.manifest.checks import contract_problems, package_problems
from kernel.manifest.diagnostics import Diagnostic, FieldPath, ordered, quoted
from kernel.manifest.fields import NAME_PATTERN, ManifestModel
from kernel.manifest.files import PackageFiles, PathError, folder_of
from kernel.manifest.frontmatter import split_frontmatter
from kernel.manifest.loaded import Loaded, Origin, Package, Runtime
from kernel.manifest.locales import Locale, locale_of, read_locale
from kernel.manifest.modules import GUARD
from kernel.manifest.package import PluginManifest
from kernel.manifest.problems import validate
from kernel.manifest.references import References
from kernel.manifest.runtime import RuntimeManifest
from kernel.manifest.schemas import Schema, read_json
from kernel.manifest.variants import read_variant, variant_of
from kernel.manifest.versions import PRODUCT_VERSION
from kernel.manifest.well_known import WELL_KNOWN
from kernel.manifest.whitelists import effective_tools
from kernel.manifest.yaml_core import parse_yaml
from kernel.schemas import problem

PLUGIN: Final = "PLUGIN.md"
RUNTIME: Final = "RUNTIME.md"
RUNTIMES: Final = "runtimes"
MAX_RUNTIMES: Final = 64
_NO_LINKS: Final[Mapping[str, str]] = MappingProxyType({})

Model = TypeVar("Model", bound=ManifestModel)


def load_package(
    files: Mapping[str, bytes],
    *,
    name: str,
    links: Mapping[str, str] = _NO_LINKS,
    product_version: str = PRODUCT_VERSION,
) -> Loaded:
    """Read and judge a package; never raises.

    Args:
        files: POSIX paths from the package root to content, regular files alone.
        name: the folder's name, which is the package ID.
        links: the symbolic links that were found, path to target text; one that stays inside the package is
            followed, one that leaves it is an error.
        product_version: what `turnwright:` is checked against.

    Returns:
        the package, or None when there is any error; and every problem, sorted by file and line.
    """
    reader = _Reader(PackageFiles(files, links), name, product_version)
    package = reader.read()
    problems = ordered([*reader.problems, *reader.references.problems])
    return Loaded(None if any(problem.is_error for problem in problems) else package, problems)


@dataclass(frozen=True, slots=True)
class _Manifest:
    """A manifest file that was read."""

    origin: Origin
    body: str
    data: object


@dataclass(slots=True)
class _Reader:
    files: PackageFiles
    name: str
    product_version: str
    problems: list[Diagnostic] = field(default_factory=list)
    manifests: dict[str, object] = field(default_factory=dict)
    references: References = field(init=False)

    def __post_init__(self) -> None:
        self.references = References(self.files)

    def read(self) -> Package | None:
        self.problems += self.files.problems()
        if any(problem.code == Code.PACKAGE_SIZE for problem in self.problems):
            return None
        self._check_name()
        source = self._manifest(PLUGIN)
        manifest = self._model(PluginManifest, source)
        folders = self._runtime_folders()
        inline = source is not None and isinstance(source.data, Mapping) and "runtime" in source.data
        if inline and folders and source is not None:
            message = "inline runtime and runtimes/ cannot coexist"
            accepted = "runtime: in PLUGIN.md, or folders in runtimes/"
            problem = source.origin.problem(Code.PACKAGE_LAYOUT, ("runtime",), message, accepted)
            self.problems.append(replace(problem, message=message))
        runtimes = [runtime for folder in folders if (runtime := self._runtime(folder)) is not None]
        if manifest is None or source is None:
            return None
        if manifest.runtime is not None:
            origin = replace(source.origin, prefix=("runtime",))
            variant = self._variant(source)
            runtimes.append(
                Runtime(self.name, self.name, "", manifest.runtime, source.body, variant, origin=origin)
            )
        elif source is not None:
            self._variant(source)
        ids = {f"{self.name}/{folder}" for folder in folders} | {runtime.id for runtime in runtimes}
        return self._package(manifest, source.origin, sorted(runtimes, key=lambda r: r.id), ids)

    def _package(
        self, manifest: PluginManifest, origin: Origin, runtimes: list[Runtime], ids: set[str]
    ) -> Package:
        self._check_layout(manifest, origin)
        contracts = self._contracts(manifest, origin)
        single = len(ids) == 1
        resolved = [self._resolve(runtime, manifest, contracts, single=single) for runtime in runtimes]
        entry = self.references.entry(origin, manifest.entry)
        self.problems += package_problems(
            manifest,
            resolved,
            origin=origin,
            entry=entry,
            product_version=self.product_version,
            runtime_ids=ids,
            contracts=contracts,
        )
        files = self.files.files
        self.problems += manifest_advice(resolved)
        self.problems += code_advice(manifest, origin, resolved, entry, files)
        return Package(
            id=self.name,
            version=manifest.version,
            manifest=manifest,
            runtimes=tuple(resolved),
            event_schemas=self._event_schemas(manifest, origin),
            data_schemas=self._data_schemas(manifest, origin),
            contract_schemas=contracts,
            schemas=self.references.schemas,
            entry=entry,
            locales=self._locales(),
            origin=origin,
        )

    def _manifest(self, path: str) -> _Manifest | None:
        """Read one manifest file as far as plain data."""
        try:
            found = self.files.find(path)
        except PathError:
            return None
        if found is None:
            message = f"the package has no {path}"
            self._note(Code.PACKAGE_LAYOUT, message, path, f"{path} with frontmatter")
            return None
        front = split_frontmatter(self.files.files[found], file=path)
        if front.problem is not None:
            self.problems.append(front.problem)
            return None
        document = parse_yaml(front.yaml, file=path, first_line=front.first_line)
        self.problems += document.problems
        if document.problems:
            return None
        data = {} if document.data is None else document.data
        self.manifests[path] = data
        return _Manifest(Origin(path, folder_of(path), document.lines), front.body, data)

    def _model(self, model: type[Model], source: _Manifest | None) -> Model | None:
        if source is None:
            return None
        file, lines = source.origin.file, source.origin.lines
        value, found = validate(model, source.data, file=file, lines=lines)
        self.problems += found
        return value

    def _runtime_folders(self) -> list[str]:
        """The folders under `runtimes/`, each of which has to hold a `RUNTIME.md`."""
        under = [path.split("/") for path in (*self.files.files, *self.files.links)]
        folders = {parts[1] for parts in under if parts[0] == RUNTIMES and len(parts) > 2}
        folders |= {path.split("/")[1] for path in self.files.links if re.fullmatch(r"runtimes/[^/]+", path)}
        if RUNTIME in self.files.files:
            accepted = "runtimes/<folder>/RUNTIME.md, or runtime: in PLUGIN.md"
            self._note(Code.PACKAGE_LAYOUT, "RUNTIME.md at the root is not read", RUNTIME, accepted)
        if len(folders) > MAX_RUNTIMES:
            message = f"the package has more than {MAX_RUNTIMES} runtimes"
            self._note(Code.PACKAGE_SIZE, message, PLUGIN, f"at most {MAX_RUNTIMES}")
        return sorted(folders)[:MAX_RUNTIMES]

    def _runtime(self, folder: str) -> Runtime | None:
        path = f"{RUNTIMES}/{folder}/{RUNTIME}"
        if not re.fullmatch(NAME_PATTERN[1:-1], folder):
            message = f"{quoted(folder)} cannot be the name of a runtime"
            self._note(
                Code.PACKAGE_LAYOUT, message, quoted(path).strip("`"), "lower-case letters, digits, - and _"
            )
            return None
        source = self._manifest(path)
        manifest = self._model(RuntimeManifest, source)
        if source is None or manifest is None:
            return None
        runtime_id = f"{self.name}/{folder}"
        variant = self._variant(source)
        return Runtime(runtime_id, self.name, folder, manifest, source.body, variant, origin=source.origin)

    def _locales(self) -> dict[str, Locale]:
        found: dict[str, Locale] = {}
        for path in sorted(self.files.files):
            if (tag := locale_of(path)) is not None:
                content = self.files.files[path]
                found[tag], problems = read_locale(content, file=path, manifests=self.manifests)
                self.problems += problems
        return found

    def _variant(self, source: _Manifest) -> str:
        """The body of the Chinese variant beside a manifest; empty where there is none."""
        path = variant_of(source.origin.file)
        if (content := self.files.files.get(path)) is None:
            return ""
        variant, problems = read_variant(content, file=path, english=source.data)
        self.problems += problems
        return variant

    def _check_name(self) -> None:
        if not re.fullmatch(NAME_PATTERN[1:-1], self.name):
            message = f"the folder name {quoted(self.name)} cannot be a package ID"
            self._note(Code.PACKAGE_LAYOUT, message, PLUGIN, "lower-case letters, digits, - and _")

    def _check_layout(self, manifest: PluginManifest, origin: Origin) -> None:
        if manifest.id is not None and manifest.id != self.name:
            message = f"{quoted(manifest.id)} is not the folder name"
            self.problems.append(origin.problem(Code.PACKAGE_LAYOUT, ("id",), message, self.name))
        for path in self.files.files:
            if path.rpartition("/")[2] == "llm.toml":
                message = "llm.toml in a package does nothing; delete it"
                accepted = "a model slot in the manifest"
                self.problems.append(
                    Diagnostic(Code.PACKAGE_ADVICE, message, path, accepted=accepted, severity="advice")
                )

    def _resolve(
        self, runtime: Runtime, plugin: PluginManifest, contracts: Mapping[str, Schema], *, single: bool
    ) -> Runtime:
        """Follow every path of a runtime and apply the tool rule."""
        manifest, origin, follow = runtime.manifest, runtime.origin, self.references
        io = manifest.io
        builtin, own = effective_tools(runtime, plugin.contributes, single=single)
        guard = manifest.guard
        return replace(
            runtime,
            handler=follow.handler(origin, manifest.function) if manifest.function else None,
            guard=follow.module(origin, ("guard",), guard, GUARD) if guard else None,
            output_schema=follow.schema(origin, ("io", "output", "schema"), io.output.schema_path),
            contract_schema=contracts.get(io.output.contract or "")
            or WELL_KNOWN.get(io.output.contract or ""),
            payload_schema=follow.schema(origin, ("io", "payloadSchema"), io.payload_schema),
            input_schemas=dict(self._input_schemas(runtime, contracts)),
            builtin_tools=builtin,
            plugin_tools=own,
        )

    def _input_schemas(
        self, runtime: Runtime, contracts: Mapping[str, Schema]
    ) -> Iterator[tuple[str, Schema]]:
        for name, binding in runtime.manifest.io.inputs.items():
            contract = binding.accepts_contract
            if contract is not None:
                schema = contracts.get(contract) or WELL_KNOWN.get(contract)
            else:
                at = ("io", "inputs", name, "accepts")
                schema = self.references.schema(runtime.origin, at, binding.accepts)
            if schema is not None:
                yield name, schema

    def _contracts(self, manifest: PluginManifest, origin: Origin) -> dict[str, Schema]:
        """The public schemas the package declares: of data it accepts, and under `contracts`."""
        declared: list[tuple[str, Schema, FieldPath]] = []
        for namespace, data in manifest.contributes.data.items():
            at: FieldPath = ("contributes", "data", namespace, "schema")
            schema = self.references.schema(origin, at, data.schema_path)
            declared += [(contract, schema, at) for contract in data.accepts if schema is not None]
        for contract, declaration in manifest.contracts.items():
            at = ("contracts", contract, "schema")
            schema = self.references.schema(origin, at, declaration.schema_path)
            if schema is not None:
                declared.append((contract, schema, at))
        self.problems += contract_problems(declared, WELL_KNOWN, origin)
        return {contract: schema for contract, schema, _ in declared}

    def _event_schemas(self, manifest: PluginManifest, origin: Origin) -> dict[str, Schema]:
        found: dict[str, Schema] = {}
        for index, event in enumerate(manifest.contributes.events):
            at = ("contributes", "events", index, "schema")
            if (schema := self.references.schema(origin, at, event.schema_path)) is not None:
                found[event.topic] = schema
        return found

    def _data_schemas(self, manifest: PluginManifest, origin: Origin) -> dict[str, Schema]:
        found: dict[str, Schema] = {}
        for name, data in manifest.contributes.data.items():
            at = ("contributes", "data", name)
            if (schema := self.references.schema(origin, (*at, "schema"), data.schema_path)) is not None:
                found[name] = schema
            if data.authoring is not None and data.authoring.example is not None:
                self._check_example(origin, (*at, "authoring", "example"), data.authoring.example, schema)
        for name, dataset in manifest.contributes.datasets.items():
            at_dataset = ("contributes", "datasets", name, "schema")
            self.references.schema(origin, at_dataset, dataset.schema_path)
        return found

    def _check_example(self, origin: Origin, at: FieldPath, example: str, schema: Schema | None) -> None:
        """Hold an example of world content against the schema of its namespace. Seed 001."""
        path = self.references.file(origin, at, example)
        if path is None or schema is None or not path.endswith(".json"):
            return
        value, fault = read_json(self.files.files[path])
        if not fault:
            records = value if isinstance(value, list) else [value]
            fault = next((found for record in records if (found := problem(schema, record))), "")
        if fault:
            message = f"the example {path} does not match the schema: {fault}"
            self.problems.append(origin.problem(Code.PACKAGE_SCHEMA, at, message, "a valid example"))

    def _note(self, code: Code, message: str, file: str, accepted: str) -> None:
        self.problems.append(Diagnostic(code, message, file, accepted=accepted))
