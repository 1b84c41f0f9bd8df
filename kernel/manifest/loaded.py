"""A package as it was read: frozen, judged, every default and schema in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kernel.errors import Code, TurnwrightError
from kernel.manifest.contributes import ContributedTool
from kernel.manifest.diagnostics import Diagnostic, FieldPath, Lines, Severity, line_of, show_path
from kernel.manifest.locales import Locale, choose_locale
from kernel.manifest.package import PluginManifest
from kernel.manifest.runtime import RuntimeManifest
from kernel.manifest.schemas import Schema


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a manifest stands, so that a finding about a field can name its line.

    Args:
        file: the manifest's path from the package root.
        folder: its folder, from which its paths are resolved.
        lines: the line of every place in the file.
        prefix: where the manifest starts in the file: `runtime` for an inline one.
    """

    file: str
    folder: str
    lines: Lines
    prefix: FieldPath = ()

    def problem(
        self,
        code: Code,
        at: FieldPath,
        message: str,
        accepted: str = "",
        severity: Severity = "error",
    ) -> Diagnostic:
        """A finding about one field of this manifest."""
        path = (*self.prefix, *at)
        shown = show_path(path)
        text = f"{shown}: {message}" if shown else message
        return Diagnostic(code, text, self.file, line_of(self.lines, path), shown, accepted, severity)

    def advice(self, at: FieldPath, message: str, accepted: str = "") -> Diagnostic:
        """A finding that does not keep the package from loading."""
        return self.problem(Code.PACKAGE_ADVICE, at, message, accepted, "advice")


@dataclass(frozen=True, slots=True)
class Runtime:
    """One runtime of a package.

    Args:
        id: the package ID for an inline runtime, else `<package>/<folder>`.
        folder: the folder's name under `runtimes/`; empty for an inline runtime.
        body: the text below the frontmatter: an agent's prompt.
        body_zh: the same in Simplified Chinese; empty where there is none.
        handler: path of the handler module from the package root; None for an agent.
        guard: path of the guard module from the package root.
        output_schema: the private schema, `io.output.schema`.
        contract_schema: the public schema of `io.output.contract`; None when it has none.
        payload_schema: `io.payloadSchema`.
        input_schemas: what `accepts` names, by input name; a contract of others is left out.
        builtin_tools: the builtin tools it may call.
        plugin_tools: the package's own tools it may call, the single-runtime rule applied.
    """

    id: str
    package_id: str
    folder: str
    manifest: RuntimeManifest
    body: str
    body_zh: str = ""
    handler: str | None = None
    guard: str | None = None
    output_schema: Schema | None = None
    contract_schema: Schema | None = None
    payload_schema: Schema | None = None
    input_schemas: Mapping[str, Schema] = field(default_factory=dict)
    builtin_tools: tuple[str, ...] = ()
    plugin_tools: tuple[str, ...] = ()
    origin: Origin = field(default=Origin("PLUGIN.md", "", {}), repr=False, compare=False)

    @property
    def kind(self) -> Literal["agent", "function"]:
        """An agent asks a model; a function runs a handler."""
        return self.manifest.kind

    def instructions(self, language: Literal["en", "zh"]) -> str:
        """The body in a language, English where there is no other. Spec: plugin-model §29."""
        return (self.body_zh if language == "zh" else "") or self.body

    @property
    def file(self) -> str:
        """The manifest's path from the package root."""
        return self.origin.file


@dataclass(frozen=True, slots=True)
class Package:
    """One package.

    Args:
        id: the folder's name.
        runtimes: sorted by ID.
        schemas: every schema file that a manifest names, by path from the package root.
        contract_schemas: public schemas that the package declares, and the host's for what it publishes.
        event_schemas: payload schemas of its event topics.
        data_schemas: record schemas of its data namespaces.
        entry: path of the entry module, or None.
        locales: labels in other languages.

    Attributes:
        provides: every contract it provides: outputs of runtimes and `provides`, sorted.
    """

    id: str
    version: str
    manifest: PluginManifest
    runtimes: tuple[Runtime, ...] = ()
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    contract_schemas: Mapping[str, Schema] = field(default_factory=dict)
    event_schemas: Mapping[str, Schema] = field(default_factory=dict)
    data_schemas: Mapping[str, Schema] = field(default_factory=dict)
    entry: str | None = None
    locales: Mapping[str, Locale] = field(default_factory=dict)
    origin: Origin = field(default=Origin("PLUGIN.md", "", {}), repr=False, compare=False)
    provides: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = {provided.contract for provided in self.manifest.provides}
        found.update(c for runtime in self.runtimes if (c := runtime.manifest.io.output.contract))
        object.__setattr__(self, "provides", tuple(sorted(found)))  # activation asks for it many times

    @property
    def tools(self) -> tuple[ContributedTool, ...]:
        """The tools it declares, in their order."""
        return self.manifest.contributes.tools

    def title(self, locale: str) -> str:
        """Its name for people, in the nearest language that it has; its ID where it has no name."""
        chosen = choose_locale(locale, ("en", *sorted(self.locales)))
        labels = self.locales[chosen].labels if chosen and chosen in self.locales else {}
        return labels.get("PLUGIN.md", {}).get(("displayName",)) or self.manifest.display_name or self.id

    def runtime(self, runtime_id: str) -> Runtime | None:
        """The runtime of an ID."""
        return next((runtime for runtime in self.runtimes if runtime.id == runtime_id), None)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The answer of reading a package. `package` is None when there is any error."""

    package: Package | None
    problems: tuple[Diagnostic, ...] = ()

    def require(self, where: str) -> Package:
        """The package.

        Raises:
            TurnwrightError: `package.invalid` with every error; `where` is what was read.
        """
        if self.package is None:
            raise invalid(self.errors, where)
        return self.package

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """What keeps the package from loading."""
        return tuple(problem for problem in self.problems if problem.is_error)

    @property
    def advice(self) -> tuple[Diagnostic, ...]:
        """What an author should look at."""
        return tuple(problem for problem in self.problems if problem.severity == "advice")

    @property
    def ignored(self) -> tuple[Diagnostic, ...]:
        """What counts for nothing, and fails validation."""
        return tuple(problem for problem in self.problems if problem.severity == "ignored")


def invalid(errors: Iterable[Diagnostic], where: str) -> TurnwrightError:
    """The refusal of a package that has errors."""
    message = "; ".join(problem.render() for problem in errors)
    return TurnwrightError(Code.PACKAGE_INVALID, message, where=where)
