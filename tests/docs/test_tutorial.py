"""The README's tutorial and the page on packages, run as they are printed."""

from __future__ import annotations

import json

import pytest

from tests.docs.printed import Block, Reader, blocks


def shape(found: list[Block]) -> list[str]:
    return [block.kind for block in found]


@pytest.mark.slow
def test_the_tutorial_runs_as_printed(reader: Reader) -> None:
    found = blocks("README.md")
    assert shape(found) == ["file", "file", "file", "run", "file", "background", "run"]
    for block in (block for block in found if block.kind == "file"):
        reader.write(block)
    checked = reader.run(f"({found[3].body.strip()}) 2>&1")
    assert "✓ Static package validation" in checked
    assert "advice" not in checked
    with reader.left_running(found[5].body.strip()):
        assert "committed" in reader.run(found[6].body)
        turn_id = json.loads(reader.run("turnwright session show first --json"))["last_turn"]["turn_id"]
        assert "omens" in reader.run(f"turnwright turn show {turn_id}")


@pytest.mark.slow
def test_the_page_on_packages_runs_as_printed(reader: Reader) -> None:
    found = blocks("docs/packages.md")
    assert shape(found) == ["run", *["file"] * 4, "run", "run", "background", "run", "run"]
    new, *files, test, install, dev, play, end = found
    assert "wrote my-packages/lantern/PLUGIN.md" in reader.run(new.body)
    for block in files:
        reader.write(block)
    tested = reader.run(f"({test.body}) 2>&1")
    assert "✓ Static package validation" in tested
    assert "1 of 1 cases passed" in tested
    assert "advice" not in tested
    assert "lantern" in reader.run(install.body)
    with reader.left_running(dev.body.strip()):
        assert "committed" in reader.run(play.body)
        assert "removed lantern" in reader.run(end.body)
