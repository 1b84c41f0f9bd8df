"""Chinese variants of manifests: their texts count, and nothing else that they say."""

from __future__ import annotations

import pytest

from kernel.manifest.variants import read_variant, variant_of
from tests.kernel.manifest.packages import load

ENGLISH = {
    "description": "Notes.",
    "schedule": {"stage": "audit"},
    "contributes": {
        "prompt": [{"id": "a", "content": "One.", "role": "user"}, {"id": "b", "content": "Two."}]
    },
}


def read(text: str) -> tuple[str, list[str]]:
    body, problems = read_variant(text.encode(), file="PLUGIN.zh.md", english=ENGLISH)
    return body, [problem.render() for problem in problems]


def test_a_variant_stands_beside_its_manifest() -> None:
    assert variant_of("runtimes/a/RUNTIME.md") == "runtimes/a/RUNTIME.zh.md"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\n---\n记下来。\n", "记下来。"),
        ("---\ndescription: Notes.\n---\n", ""),
        ("---\ncontributes:\n  prompt: [{ id: b, content: 二。 }]\n---\n记。\n", "记。"),
    ],
)
def test_the_body_is_read_and_contents_of_segments_may_differ(text: str, body: str) -> None:
    assert read(text) == (body, [])


@pytest.mark.parametrize(
    ("front", "said"),
    [
        (
            "schedule: { stage: setup }",
            "PLUGIN.zh.md:2: package.advice: schedule.stage: differs",
        ),
        ("agent: {}", "agent: `agent` is not in the English version"),
        ("contributes: { prompt: [{ id: c, content: 三 }] }", "no English segment has the id `c`"),
        ("contributes: { prompt: [{ id: a, role: system }] }", "contributes.prompt[0].role: differs"),
        ("description: 笔记。", "description: differs from the English version, which counts"),
    ],
)
def test_a_changed_structure_is_told_and_counts_nothing(front: str, said: str) -> None:
    body, problems = read(f"---\n{front}\n---\n记。\n")
    assert body == "记。"
    assert said in "; ".join(problems)


@pytest.mark.parametrize("text", ["no fence", "---\na: [\n---\n", "---\na: 1\na: 2\n---\n"])
def test_a_variant_that_cannot_be_read_is_an_error(text: str) -> None:
    content = {
        "PLUGIN.md": b"---\nruntime:\n  schedule: { stage: audit }\n---\nLook.\n",
        "PLUGIN.zh.md": text.encode(),
    }
    assert load(content).package is None


def test_a_session_in_simplified_chinese_reads_the_variant() -> None:
    content = {
        "PLUGIN.md": b"---\ndescription: Two.\n---\n",
        "runtimes/a/RUNTIME.md": b"---\nschedule: { stage: audit }\n---\nLook.\n",
        "runtimes/a/RUNTIME.zh.md": "---\n---\n看。\n".encode(),
        "runtimes/b/RUNTIME.md": b"---\nschedule: { stage: audit }\n---\nLook.\n",
    }
    package = load(content).package
    assert package is not None
    found = [(one.instructions("en"), one.instructions("zh")) for one in package.runtimes]
    assert found == [("Look.", "看。"), ("Look.", "Look.")]
