"""Labels in other languages, and which language is shown."""

from __future__ import annotations

import pytest

from kernel.manifest.locales import choose_locale, locale_of, read_locale
from tests.kernel.manifest.packages import load

MANIFESTS = {
    "PLUGIN.md": {
        "displayName": "Notes",
        "author": {"name": "J", "about": "x"},
        "contributes": {
            "data": {"facts": {"authoring": {"title": "Known facts"}}},
            "settings": [{"key": "tone", "label": "Tone"}, {"key": "pace"}],
            "events": [{"topic": "a.b"}],
        },
    },
    "runtimes/a/RUNTIME.md": {"description": "Looks."},
}


def read(text: str) -> tuple[dict[str, dict[tuple[str | int, ...], str]], dict[str, str], list[str]]:
    locale, problems = read_locale(text.encode(), file="locales/zh.yaml", manifests=MANIFESTS)
    labels = {file: dict(found) for file, found in locale.labels.items()}
    return labels, dict(locale.messages), [f"{one.severity} {one.line}: {one.message}" for one in problems]


def test_labels_stand_by_manifest_and_place_and_lists_by_what_names_their_items() -> None:
    labels, messages, problems = read(
        "PLUGIN.md:\n"
        "  displayName: 笔记\n"
        "  contributes:\n"
        "    data: { facts: { authoring: { title: 已知事实 } } }\n"
        "    settings: [{ key: tone, label: 语气 }]\n"
        "    events: [{ topic: a.b, description: 事件 }]\n"
        "runtimes/a/RUNTIME.md: { description: 看 }\n"
        "messages: { hello: 你好 }\n"
    )
    assert problems == []
    assert labels["PLUGIN.md"] == {
        ("displayName",): "笔记",
        ("contributes", "data", "facts", "authoring", "title"): "已知事实",
        ("contributes", "settings", "tone", "label"): "语气",
        ("contributes", "events", "a.b", "description"): "事件",
    }
    assert labels["runtimes/a/RUNTIME.md"] == {("description",): "看"}
    assert messages == {"hello": "你好"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("OTHER.md: {}", "ignored 1: OTHER.md: `OTHER.md` is no manifest of this package"),
        ("PLUGIN.md: { version: 2 }", "`version` is nowhere in the manifest"),
        ("PLUGIN.md: { author: { name: 张 } }", "`name` is no label"),
        ("PLUGIN.md: { contributes: { settings: [{ key: mood, label: x }] } }", "matches no item"),
        ("PLUGIN.md: { displayName: [x] }", "is no label"),
        ("PLUGIN.md: x", "is no label"),
        ("messages: [x]", "is no map of texts"),
        ("messages: { a: 1 }", "`a` is no text"),
        ("[x]", "is no map of sections"),
    ],
)
def test_anything_else_is_ignored_and_told(text: str, said: str) -> None:
    labels, messages, problems = read(text)
    assert not any(labels.values())
    assert messages == {}
    assert said in "; ".join(problems)


def test_what_is_ignored_keeps_no_package_from_loading_and_what_cannot_be_read_does() -> None:
    manifest = b"---\ndescription: x\n---\n"
    ignored = load({"PLUGIN.md": manifest, "locales/zh.yaml": b"PLUGIN.md: { version: 2 }"})
    assert (ignored.package is None, len(ignored.ignored), ignored.errors) == (False, 1, ())
    assert load({"PLUGIN.md": manifest, "locales/zh.yaml": b"a: ["}).package is None


@pytest.mark.parametrize(
    ("path", "tag"),
    [
        ("locales/zh.yaml", "zh"),
        ("locales/zh-Hans-CN.yml", "zh-Hans-CN"),
        ("locales/readme.txt", None),
        ("locales/a/zh.yaml", None),
        ("locales/messages.yaml", None),
    ],
)
def test_a_language_is_the_name_of_its_file(path: str, tag: str | None) -> None:
    assert locale_of(path) == tag


@pytest.mark.parametrize(
    ("wanted", "offered", "chosen"),
    [
        ("zh-CN", ["en", "zh"], "zh"),
        ("zh", ["en", "zh-Hans"], "zh-Hans"),
        ("zh-Hant", ["en", "zh"], "en"),
        ("zh-TW", ["en", "zh", "zh-Hant"], "zh-Hant"),
        ("de-AT", ["en", "de"], "de"),
        ("de", ["en", "de", "de-AT"], "de"),
        ("fr", ["en", "de"], "en"),
        ("fr", ["de", "es"], "de"),
        ("fr", [], None),
    ],
)
def test_a_language_is_the_same_or_of_the_same_script_or_english_or_the_first(
    wanted: str, offered: list[str], chosen: str | None
) -> None:
    assert choose_locale(wanted, offered) == chosen


@pytest.mark.parametrize(
    ("locale", "title"), [("en", "Notes"), ("zh-CN", "笔记"), ("zh-Hant", "Notes"), ("fr", "Notes")]
)
def test_a_package_has_its_name_in_the_nearest_language(locale: str, title: str) -> None:
    content = {
        "PLUGIN.md": b"---\ndisplayName: Notes\n---\n",
        "locales/zh.yaml": "PLUGIN.md: { displayName: 笔记 }".encode(),
    }
    package = load(content).package
    assert package is not None
    assert package.title(locale) == title


def test_a_package_without_a_name_is_called_by_its_id() -> None:
    package = load({"PLUGIN.md": b"---\ndescription: x\n---\n"}, "notes").package
    assert package is not None
    assert package.title("zh") == "notes"
