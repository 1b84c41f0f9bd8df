"""The packages that the source documents print, written out in Python, and the troubles that they list."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from activities.plugins.loader import code_files, load_code
from client.cli import app
from kernel.manifest import Package, load_package
from store.package_files import read_folder
from tests.kernel.manifest.packages import load

SEED = Path(__file__).parents[2] / "fixtures" / "seed"
PACKAGES = sorted(path.name for path in SEED.iterdir())
AGENT = "---\nschedule: { stage: post-turn }\n---\nLook.\n"
BODY = "async def handler(ctx):\n    return {}\n"


def package(name: str) -> Package:
    found = load_package(read_folder(SEED / name).files, name=name).package
    assert found is not None
    return found


@pytest.mark.parametrize("name", PACKAGES)
def test_a_printed_package_validates(name: str) -> None:
    answer = CliRunner().invoke(app, ["package", "validate", str(SEED / name)])
    first, second = answer.stdout.splitlines()
    assert first == f"✓ Static package validation: {SEED / name}"
    assert second.startswith("  languages: text en")
    assert answer.exit_code == 0


@pytest.mark.parametrize("name", PACKAGES)
def test_the_entry_of_a_printed_package_registers_what_it_declares(name: str) -> None:
    found = package(name)
    code = load_code(SEED / name, code_files(found), digest=f"sha256:seed-{name}", foreign=True)
    declared = [service.contract for service in found.manifest.contributes.services]
    assert sorted(one.contract for one in code.registered.services.values()) == sorted(declared)


def troubles(files: dict[str, str]) -> list[str]:
    content = {path: text.encode() for path, text in files.items()}
    return [f"{one.severity}: {one.message}" for one in load(content, "work").problems]


TROUBLES: dict[str, tuple[dict[str, str], str]] = {
    "a package of several runtimes that still has one inline": (
        {
            "PLUGIN.md": "---\nruntime:\n  schedule: { stage: audit }\n---\nLook.\n",
            "runtimes/a/RUNTIME.md": AGENT,
        },
        "error: inline runtime and runtimes/ cannot coexist",
    ),
    "two runtimes that output one capability": (
        {
            "PLUGIN.md": "---\ndescription: x\n---\n",
            **{
                f"runtimes/{name}/RUNTIME.md": "---\nschedule: { stage: audit }\n"
                "io: { output: { contract: facts.x@1 } }\n---\nLook.\n"
                for name in "ab"
            },
        },
        "ambiguous output contract facts.x@1: work/a and work/b both output it",
    ),
    "an example that does not match its schema": (
        {
            "PLUGIN.md": "---\ncontributes:\n  data:\n    facts:\n      schema: ./s.json\n      authoring:\n"
            "        example: ./e.json\n        source: { path: data/facts.yaml }\n---\n",
            "s.json": '{"type": "object", "required": ["text"]}',
            "e.json": '[{"text": "x"}, {"id": 1}]',
        },
        "the example e.json does not match the schema: at /: 'text' is a required property",
    ),
    "a background function that asks a model without a slot": (
        {
            "PLUGIN.md": "---\nruntime:\n  schedule: { stage: audit, detached: true }\n  function: {}\n"
            "  effects: {}\n---\n",
            "handler.py": BODY.replace("{}", 'await ctx.gateway.generate_text("x")'),
        },
        "advice: runtime.function: work calls a model in the background and declares no function.model",
    ),
    "a request to an address that is not declared": (
        {
            "PLUGIN.md": "---\nruntime:\n  schedule: { stage: audit }\n  function: {}\n  effects: {}\n---\n",
            "handler.py": BODY.replace("{}", 'await ctx.utils.fetch_with_retry("https://a.example")'),
        },
        "work sends requests and declares no permissions.http: every one is refused",
    ),
    "an address that is not https": (
        {
            "PLUGIN.md": "---\nruntime:\n  schedule: { stage: audit }\n  function: {}\n"
            "  permissions: { http: [{ origin: 'http://a.example' }] }\n---\n",
            "handler.py": BODY,
        },
        "error: runtime.permissions.http[0].origin: origin `http://a.example` does not start with https://",
    ),
    "a hook that looks for the runtime in its payload": (
        {
            "PLUGIN.md": "---\ncontributes: { hooks: [PreToolUse] }\n---\n",
            "server/__init__.py": "async def look(ctx, payload):\n    return payload['runtimeId']\n"
            "def register(host):\n    host.on('PreToolUse', look)\n",
        },
        "advice: a hook's payload has no runtimeId or pluginId, so that this never matches",
    ),
    "an entry that sends requests to addresses it does not declare": (
        {
            "PLUGIN.md": "---\ncontributes: { tools: [look] }\n---\n",
            "server/__init__.py": "async def look(args, ctx):\n"
            "    return await ctx.utils.fetch_with_retry('x')\n"
            "def register(host):\n    host.register_tool(name='look', handler=look)\n",
        },
        "advice: permissions: the entry sends requests and the package declares no permissions.http",
    ),
    "a file of model settings beside a runtime": (
        {
            "PLUGIN.md": "---\ndescription: x\n---\n",
            "runtimes/a/RUNTIME.md": "---\nschedule: { stage: audit }\n---\nLook.\n",
            "runtimes/a/llm.toml": "",
        },
        "advice: llm.toml in a package does nothing; delete it",
    ),
    "a file of model settings": (
        {"PLUGIN.md": "---\ndescription: x\n---\n", "llm.toml": ""},
        "advice: llm.toml in a package does nothing; delete it",
    ),
}


@pytest.mark.parametrize("case", TROUBLES)
def test_a_trouble_of_the_sources_is_named(case: str) -> None:
    files, said = TROUBLES[case]
    assert any(said in trouble for trouble in troubles(files)), troubles(files)
