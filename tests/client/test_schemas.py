"""What is generated from the models: schemas that editors read, and the field tables of the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from client import published
from client.cli import app
from kernel.manifest.frontmatter import split_frontmatter
from kernel.manifest.schemas import check_schema
from kernel.manifest.yaml_core import parse_yaml
from kernel.schemas import problem

ROOT = Path(__file__).parents[2]
SCHEMAS = published.schemas()
MANIFESTS = sorted(
    path
    for folder in ("plugins", "tests/fixtures/seed", "templates")
    for name in ("PLUGIN.md", "RUNTIME.md")
    for path in (ROOT / folder).rglob(name)
)


def written(path: Path) -> Any:
    text = path.read_text().replace("@name@", "name").replace("@contract@", "name").encode()
    return parse_yaml(split_frontmatter(text, file=path.name).yaml, file=path.name).data or {}


@pytest.mark.parametrize("name", published.pages())
def test_the_reference_is_what_the_models_say(name: str) -> None:
    assert (ROOT / "docs/reference" / name).read_text() == published.pages()[name]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_schema_accepts_what_the_loader_accepts(path: Path) -> None:
    kind = "plugin" if path.name == "PLUGIN.md" else "runtime"
    assert problem(SCHEMAS[f"{kind}.schema.json"], written(path)) is None


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("plugin", {"descripton": "x"}, "descripton"),
        ("runtime", {"schedule": {"stage": "dawn"}}, "dawn"),
        ("cases", {"cases": [{"name": 1}]}, "1"),
        ("configuration", {"store": {"urll": "x"}}, "urll"),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(kind: str, value: Any, said: str) -> None:
    assert said in (problem(SCHEMAS[f"{kind}.schema.json"], value) or "")


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_of_a_schema_is_described(name: str) -> None:
    if name != "configuration.schema.json":
        assert check_schema(SCHEMAS[name]) == ""
        for table in published.tables(SCHEMAS[name]):
            assert all(row.description for row in table.fields), table.path


def test_the_command_writes_into_a_folder_that_it_makes(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "schemas"
    answer = CliRunner().invoke(app, ["schemas", "--out", str(out)])
    assert answer.exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == sorted(SCHEMAS)
    assert CliRunner().invoke(app, ["schemas"]).exit_code == 2
