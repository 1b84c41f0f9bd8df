"""The settings of one process: `turnwright.toml`, then the environment over it.

    Settings          everything a client or a worker must know, frozen
    load_settings     read them, refusing what is unknown or of the wrong type
    Settings.to_env   hand exactly these settings to a child process

Secrets never stand here: a setting names the environment variable that holds one.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator

from kernel.errors import Code, TurnwrightError
from kernel.policy import Level
from kernel.wire import names
from link.settings_environment import CONFIG_VARIABLE, HOME_VARIABLE, WHOLE_VARIABLE, overlay
from link.settings_refusal import explain

CONFIG_NAME = "turnwright.toml"
DATABASE = "database"

Flag = Annotated[bool, Strict()]
Count = Annotated[int, Strict(), Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]
Role = Literal["workflows", "functions"]
ROLES: tuple[Role, ...] = ("workflows", "functions")


class Section(BaseModel):
    """A table of the file: closed, so that a misspelt key is an error and not a silence."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TlsSettings(Section):
    """Files in PEM; `domain` overrides the server name that the certificate must carry."""

    server_root_ca: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    domain: Name | None = None


class TemporalSettings(Section):
    """Where the Temporal server is. `api_key_env` names the variable that holds the API key."""

    address: Name = "localhost:7233"
    namespace: Name = "default"
    queue: Name = names.QUEUE
    tls: Flag | TlsSettings = False
    api_key_env: Name | None = None


class StoreSettings(Section):
    """`url`: `sqlite:///file` or `postgresql://…`; empty means a file in the home folder."""

    url: str = ""


class PackageSettings(Section):
    """Folders that packages are looked for in, between the bundled and the installed ones.

    `store`: where the content of packages that sessions play is kept, `database` or a folder that every
    worker reaches. `watch`: sessions follow what these folders hold, as `turnwright dev` has it.
    """

    path: tuple[Path, ...] = ()
    store: Name = DATABASE
    watch: Flag = False


class IsolationSettings(Section):
    """How the code of packages that are not bundled is kept apart: docs/isolation.md.

    `minimum` is the level below which a worker refuses to run such code; `memory_mib` is the most of memory
    that one of its processes may map.
    """

    minimum: Level = "process"
    memory_mib: Annotated[int, Strict(), Field(ge=256)] = 1024


class EncryptionSettings(Section):
    """Names of variables that hold base64 keys of 32 bytes; `key_env` turns encryption on.

    `key_env` encrypts; `previous_key_envs` still decrypt what an older key wrote.
    """

    key_env: Name | None = None
    previous_key_envs: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _previous_need_a_key(self) -> Self:
        if self.previous_key_envs and not self.key_env:
            raise ValueError("previous_key_envs need a key_env: without one nothing is encrypted")
        return self


class DeploymentSettings(Section):
    """Worker versioning; off while both are empty.

    `set_current`: a worker makes its own build the current one as it starts.
    """

    name: Name | None = None
    build_id: Name | None = None
    set_current: Flag = False

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.name is None) != (self.build_id is None):
            raise ValueError("name and build_id belong together: set both, or neither")
        if self.set_current and self.name is None:
            raise ValueError("set_current needs a name and a build_id")
        return self


class ApprovalSettings(Section):
    """How long a person may take to answer, in seconds."""

    deadline_s: Count = 86_400


class WorkerSettings(Section):
    """What one worker process does, and how much of it at once."""

    roles: Annotated[tuple[Role, ...], Field(min_length=1)] = ROLES
    sandbox: Flag = False
    max_concurrent_workflow_tasks: Count = 100
    max_concurrent_activities: Count = 100
    max_concurrent_local_activities: Count = 100
    max_cached_workflows: Count = 1_000


class NetworkSettings(Section):
    """Requests of package code. `ca_file`: further certificates to trust, in PEM.

    `allow_private` lets them reach private and loopback addresses: for tests of packages alone.
    """

    ca_file: Path | None = None
    allow_private: Flag = False


class TelemetrySettings(Section):
    """Where spans go: an OTLP endpoint (HTTP), a file of JSON lines, or nowhere."""

    otlp_endpoint: Name | None = None
    trace_file: Path | None = None

    @property
    def enabled(self) -> bool:
        """Whether any span is written."""
        return self.otlp_endpoint is not None or self.trace_file is not None


class Settings(Section):
    """Everything a client or a worker must know.

    Attributes:
        home: folder of the local store, dev server and logs; absolute.
        config_file: the file these settings were read from, or None.
        slots: `[slots.<name>]` tables as written; the model wires check them.
    """

    home: Path
    config_file: Path | None = None
    temporal: TemporalSettings = Field(default_factory=TemporalSettings)
    store: StoreSettings = Field(default_factory=StoreSettings)
    packages: PackageSettings = Field(default_factory=PackageSettings)
    isolation: IsolationSettings = Field(default_factory=IsolationSettings)
    slots: dict[str, dict[str, Any]] = Field(default_factory=dict)
    encryption: EncryptionSettings = Field(default_factory=EncryptionSettings)
    deployment: DeploymentSettings = Field(default_factory=DeploymentSettings)
    approvals: ApprovalSettings = Field(default_factory=ApprovalSettings)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    network: NetworkSettings = Field(default_factory=NetworkSettings)
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings)

    @property
    def store_url(self) -> str:
        """The store's URL, the default filled in."""
        return self.store.url or f"sqlite:///{self.home / 'turnwright.db'}"

    @property
    def installed(self) -> Path:
        """Folder of the packages that `package install` put there; it need not exist."""
        return self.home / "packages"

    @property
    def package_folders(self) -> tuple[Path, ...]:
        """Where packages that are not bundled are looked for; an id that stands in two is not played."""
        return tuple(dict.fromkeys((*self.packages.path, self.installed)))

    def to_env(self) -> dict[str, str]:
        """Environment that makes `load_settings` of a child process return exactly these settings."""
        return {WHOLE_VARIABLE: self.model_dump_json()}


def load_settings(
    environ: Mapping[str, str] | None = None, *, config: Path | None = None, cwd: Path | None = None
) -> Settings:
    """Read the settings: defaults, then the file, then the environment.

    Args:
        environ: the environment; the process's own when left out.
        config: a file that must exist; else `TURNWRIGHT_CONFIG` names one, else `turnwright.toml`
            is read where it exists.
        cwd: what relative paths of the environment start from; paths in the file start from its folder.

    Raises:
        TurnwrightError: `config.invalid`, with file or variable, path and what is accepted.
    """
    environ = os.environ if environ is None else environ
    cwd = cwd or Path.cwd()
    if whole := environ.get(WHOLE_VARIABLE):
        return _restore(whole)
    file = _config_file(environ, config, cwd)
    data = _read(file) if file else {}
    origins = overlay(data, environ)
    _refuse_process_keys(data, file)
    data["home"] = cwd / Path(environ.get(HOME_VARIABLE) or ".turnwright").expanduser()
    data["config_file"] = file
    try:
        settings = Settings.model_validate(data)
    except ValidationError as error:
        raise explain(error, Settings, file, origins) from None
    return _absolute(settings, file.parent if file else cwd, cwd, origins)


def _config_file(environ: Mapping[str, str], config: Path | None, cwd: Path) -> Path | None:
    named = config or environ.get(CONFIG_VARIABLE)
    if not named:
        default = cwd / CONFIG_NAME
        return default.resolve() if default.is_file() else None
    file = (cwd / named).resolve()
    if not file.is_file():
        raise TurnwrightError(
            Code.CONFIG_INVALID,
            "there is no such configuration file",
            where=str(file),
            accepted="a TOML file",
        )
    return file


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise TurnwrightError(
            Code.CONFIG_INVALID, f"cannot be read: {error}", where=str(file), accepted="TOML 1.0 in UTF-8"
        ) from None


def _refuse_process_keys(data: Mapping[str, Any], file: Path | None) -> None:
    for key in ("home", "config_file"):
        if key in data:
            raise TurnwrightError(
                Code.CONFIG_INVALID,
                f"{key!r} is not a setting of the file",
                where=str(file),
                accepted=f"the environment variables {HOME_VARIABLE} and {CONFIG_VARIABLE}",
            )


def _absolute(
    settings: Settings, folder: Path, cwd: Path, origins: Mapping[tuple[str, ...], str]
) -> Settings:
    """Make every path absolute: a worker may start in another folder."""

    def anchored(path: Path, *where: str) -> Path:
        return ((cwd if where in origins else folder) / path.expanduser()).absolute()

    packages = settings.packages
    packages = packages.model_copy(
        update={
            "path": tuple(anchored(path, "packages", "path") for path in packages.path),
            "store": (
                packages.store
                if packages.store == DATABASE
                else str(anchored(Path(packages.store), "packages", "store"))
            ),
        }
    )
    telemetry = settings.telemetry
    if telemetry.trace_file:
        trace_file = anchored(telemetry.trace_file, "telemetry", "trace_file")
        telemetry = telemetry.model_copy(update={"trace_file": trace_file})
    network = settings.network
    if network.ca_file:
        network = network.model_copy(update={"ca_file": anchored(network.ca_file)})
    temporal = settings.temporal
    if isinstance(temporal.tls, TlsSettings):
        files = {k: anchored(v) for k, v in temporal.tls if isinstance(v, Path)}
        temporal = temporal.model_copy(update={"tls": temporal.tls.model_copy(update=files)})
    changes = {"packages": packages, "telemetry": telemetry, "network": network, "temporal": temporal}
    return settings.model_copy(update={"home": settings.home.absolute(), **changes})


def _restore(whole: str) -> Settings:
    try:
        return Settings.model_validate_json(whole)
    except ValidationError as error:
        raise explain(error, Settings, None, {(): WHOLE_VARIABLE}) from None
