"""Settings: what the file and the environment may say, and how a mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.errors import Code, TurnwrightError
from link.settings import ROLES, Settings, TlsSettings, load_settings


def load(tmp_path: Path, toml: str = "", **environ: str) -> Settings:
    if toml:
        (tmp_path / "turnwright.toml").write_text(toml)
    return load_settings(environ, cwd=tmp_path)


def test_defaults_stand_without_file_and_environment(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.home == tmp_path / ".turnwright"
    assert settings.config_file is None
    assert settings.temporal.model_dump() == {
        "address": "localhost:7233",
        "namespace": "default",
        "queue": "turnwright",
        "tls": False,
        "api_key_env": None,
    }
    assert settings.store_url == f"sqlite:///{tmp_path}/.turnwright/turnwright.db"
    assert settings.approvals.deadline_s == 86_400
    assert settings.worker.roles == ROLES
    assert not settings.worker.sandbox
    assert not settings.telemetry.enabled
    assert settings.encryption.key_env is None


FILE = """
[temporal]
address = "temporal.example:7233"
namespace = "games"
queue = "q"
api_key_env = "KEY"
[temporal.tls]
server_root_ca = "ca.pem"
[store]
url = "postgresql://db/turnwright"
[packages]
path = ["mine", "/abs"]
[slots.story]
provider = "openai"
[encryption]
key_env = "K1"
previous_key_envs = ["K0"]
[deployment]
name = "d"
build_id = "b"
[approvals]
deadline_s = 60
[worker]
roles = ["workflows", "functions"]
sandbox = true
max_concurrent_activities = 7
[telemetry]
otlp_endpoint = "http://otel:4318"
"""


def test_every_table_of_the_file_is_read(tmp_path: Path) -> None:
    settings = load(tmp_path, FILE)
    assert settings.config_file == tmp_path / "turnwright.toml"
    assert settings.temporal.address == "temporal.example:7233"
    assert settings.temporal.tls == TlsSettings(server_root_ca=tmp_path / "ca.pem")
    assert settings.store_url == "postgresql://db/turnwright"
    assert settings.packages.path == (tmp_path / "mine", Path("/abs"))
    assert settings.slots == {"story": {"provider": "openai"}}
    assert settings.encryption.previous_key_envs == ("K0",)
    assert (settings.deployment.name, settings.deployment.build_id) == ("d", "b")
    assert settings.approvals.deadline_s == 60
    assert settings.worker.roles == ("workflows", "functions")
    assert settings.worker.max_concurrent_activities == 7
    assert settings.telemetry.otlp_endpoint == "http://otel:4318"


def test_environment_lies_over_the_file(tmp_path: Path) -> None:
    environ = {
        "TURNWRIGHT_HOME": "elsewhere",
        "TURNWRIGHT_ADDRESS": "other:1",
        "TURNWRIGHT_NAMESPACE": "n",
        "TURNWRIGHT_QUEUE": "",
        "TURNWRIGHT_STORE": "sqlite:///x.db",
        "TURNWRIGHT_PACKAGES": "a:/b",
        "TURNWRIGHT_PACKAGE_STORE": "contents",
        "TURNWRIGHT_WATCH": "true",
        "TURNWRIGHT_ENCRYPTION_KEY_ENV": "K9",
        "TURNWRIGHT_ROLES": "functions, workflows",
        "TURNWRIGHT_SANDBOX": "false",
        "TURNWRIGHT_APPROVAL_DEADLINE_S": "5",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://general",
        "TURNWRIGHT_TRACE_FILE": "spans.jsonl",
    }
    settings = load(tmp_path, FILE, **environ)
    assert settings.home == tmp_path / "elsewhere"
    assert (settings.temporal.address, settings.temporal.namespace) == ("other:1", "n")
    assert settings.temporal.queue == "q", "an empty variable counts as not set"
    assert settings.store_url == "sqlite:///x.db"
    assert settings.packages.path == (tmp_path / "a", Path("/b"))
    assert (settings.packages.store, settings.packages.watch) == (str(tmp_path / "contents"), True)
    assert settings.package_folders == (*settings.packages.path, tmp_path / "elsewhere/packages")
    assert settings.encryption.key_env == "K9"
    assert settings.worker.roles == ("functions", "workflows")
    assert not settings.worker.sandbox
    assert settings.approvals.deadline_s == 5
    assert settings.telemetry.otlp_endpoint == "http://general"
    assert settings.telemetry.trace_file == tmp_path / "spans.jsonl"


def test_our_own_endpoint_wins_over_the_general_one(tmp_path: Path) -> None:
    settings = load(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://a", TURNWRIGHT_OTLP_ENDPOINT="http://b")
    assert settings.telemetry.otlp_endpoint == "http://b"


REFUSED = {
    "unknown table": ("[tempral]\n", {}, "turnwright.toml: tempral", "temporal, store"),
    "unknown key": (
        '[temporal]\nadress = "x"\n',
        {},
        "turnwright.toml: temporal.adress",
        "address, namespace",
    ),
    "unknown key of tls": ("[temporal.tls]\nca = 1\n", {}, "temporal.tls.ca", "server_root_ca"),
    "number for text": ("[temporal]\naddress = 7233\n", {}, "turnwright.toml: temporal.address", ""),
    "text for a flag": ('[worker]\nsandbox = "yes"\n', {}, "worker.sandbox", ""),
    "text for a number": ('[approvals]\ndeadline_s = "60"\n', {}, "approvals.deadline_s", ""),
    "number for a place": ("[packages]\nstore = 5\n", {}, "turnwright.toml: packages.store", ""),
    "no place": ('[packages]\nstore = ""\n', {}, "turnwright.toml: packages.store", ""),
    "nothing for a number": ("[approvals]\ndeadline_s = 0\n", {}, "approvals.deadline_s", "1 or more"),
    "unknown role": ('[worker]\nroles = ["cook"]\n', {}, "worker.roles.0", "workflows"),
    "no role": ("[worker]\nroles = []\n", {}, "worker.roles", ""),
    "text for a table": ('temporal = "x"\n', {}, "turnwright.toml: temporal", ""),
    "text for a slot": ('[slots]\nstory = "x"\n', {}, "slots.story", ""),
    "half a deployment": ('[deployment]\nname = "d"\n', {}, "deployment", ""),
    "current without a build": ("[deployment]\nset_current = true\n", {}, "deployment", ""),
    "previous keys alone": ('[encryption]\nprevious_key_envs = ["K"]\n', {}, "encryption", ""),
    "home in the file": ('home = "x"\n', {}, "turnwright.toml", "TURNWRIGHT_HOME"),
    "no TOML": ("[temporal\n", {}, "turnwright.toml", "TOML"),
    "number from the environment": (
        "",
        {"TURNWRIGHT_APPROVAL_DEADLINE_S": "soon"},
        "TURNWRIGHT_APPROVAL",
        "number",
    ),
    "flag from the environment": ("", {"TURNWRIGHT_SANDBOX": "maybe"}, "TURNWRIGHT_SANDBOX", "true or false"),
    "role from the environment": (
        "",
        {"TURNWRIGHT_ROLES": "cook"},
        "TURNWRIGHT_ROLES: worker.roles.0",
        "functions",
    ),
    "file that is not there": ("", {"TURNWRIGHT_CONFIG": "no.toml"}, "no.toml", "TOML"),
    "broken inheritance": ("", {"TURNWRIGHT_SETTINGS": "{}"}, "TURNWRIGHT_SETTINGS", ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mistake_is_told_with_its_place_and_what_is_accepted(tmp_path: Path, case: str) -> None:
    toml, environ, where, accepted = REFUSED[case]
    with pytest.raises(TurnwrightError) as caught:
        load(tmp_path, toml, **environ)
    assert caught.value.code == Code.CONFIG_INVALID
    assert where in caught.value.where
    assert accepted in caught.value.accepted


@pytest.mark.parametrize("toml", ["", FILE], ids=["defaults", "everything"])
def test_child_process_gets_exactly_the_same_settings(tmp_path: Path, toml: str) -> None:
    settings = load(tmp_path, toml)
    child = load_settings({**settings.to_env(), "TURNWRIGHT_ADDRESS": "ignored:1"}, cwd=Path("/"))
    assert child == settings


def test_named_file_must_exist_and_is_read_from_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text('[packages]\npath = ["here"]\n')
    settings = load_settings({"TURNWRIGHT_CONFIG": str(file)}, cwd=Path("/"))
    assert settings.packages.path == (tmp_path / "here",)
