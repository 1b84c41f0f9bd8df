"""The YAML profile: what every scalar becomes, and what is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.manifest import parse_yaml, yaml_core

SCALARS: list[tuple[str, Any]] = [
    ("on", "on"),
    ("off", "off"),
    ("yes", "yes"),
    ("NO", "NO"),
    ("y", "y"),
    ("true", True),
    ("True", True),
    ("FALSE", False),
    ("tRue", "tRue"),
    ("null", None),
    ("~", None),
    ("", None),
    ("nULL", "nULL"),
    ("12", 12),
    ("-7", -7),
    ("+7", 7),
    ("0666", 666),
    ("0o17", 15),
    ("0x1F", 31),
    ("1_000", "1_000"),
    ("0b11", "0b11"),
    ("190:20:30", "190:20:30"),
    (".8", 0.8),
    ("8.", 8.0),
    ("1e3", 1000.0),
    ("-1.5", -1.5),
    ("2024-01-01", "2024-01-01"),
    ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
    ("'12'", "12"),
    ('"true"', "true"),
    ("<<", "<<"),
    ("=", "="),
    ("1.2.3", "1.2.3"),
    ("٣", "٣"),
]


@pytest.mark.parametrize(("written", "value"), SCALARS)
def test_scalar_becomes(written: str, value: Any) -> None:
    document = parse_yaml(f"v: {written}\n".encode(), file="f")
    assert document.problems == ()
    assert document.data == {"v": value}
    assert type(document.data["v"]) is type(value)


REFUSED: list[tuple[str, str]] = [
    (".inf", "yaml.number"),
    ("-.INF", "yaml.number"),
    (".nan", "yaml.number"),
    ("1e999", "yaml.number"),
    ("9223372036854775808", "yaml.number"),
    ("9" * 10_000, "yaml.number"),
    ("0x" + "f" * 17, "yaml.number"),
    ("!!str 5", "yaml.tag"),
    ("!custom x", "yaml.tag"),
    ("!!python/object/apply:os.system ['id']", "yaml.tag"),
    ("! x", "yaml.tag"),
    ("*missing", "yaml.alias"),
    ("&a [*a]", "yaml.alias"),
    ("[", "yaml.syntax"),
    ('"\\ud800"', "yaml.syntax"),
    ('"\\0"', "yaml.syntax"),
    ('"\\UFFFFFFFF"', "yaml.syntax"),
    ("{1: 2}", "yaml.syntax"),
    ("{[a]: 2}", "yaml.syntax"),
    ("{true: 2}", "yaml.syntax"),
    ("{a: 1, a: 2}", "yaml.duplicate-key"),
]


@pytest.mark.parametrize(("written", "code"), REFUSED)
def test_value_is_refused(written: str, code: str) -> None:
    document = parse_yaml(f"a: 1\nv: {written}\n".encode(), file="f")
    assert document.data is None
    assert [problem.code.value for problem in document.problems][:1] == [code]
    assert all(problem.file == "f" for problem in document.problems)


WHOLE: list[tuple[bytes, str]] = [
    (b"a: 1\n---\nb: 2\n", "yaml.syntax"),
    (b"%YAML 1.1\n---\na: 1\n", "yaml.syntax"),
    (b"\xff\xfe", "yaml.syntax"),
    (b"a: \x00", "yaml.syntax"),
    (b"a: \xed\xa0\x80", "yaml.syntax"),
    (b"[" * 40 + b"]" * 40, "package.size"),
    (b"a: " + b"[" * 33 + b"]" * 33, "package.size"),
    (b"[" + b"1," * 60_000 + b"]", "package.size"),
    (b"#" * (yaml_core.MAX_BYTES + 1), "package.size"),
    ("é".encode() * yaml_core.MAX_BYTES, "package.size"),
]


@pytest.mark.parametrize(("content", "code"), WHOLE)
def test_document_is_refused(content: bytes, code: str) -> None:
    document = parse_yaml(content, file="f")
    assert document.data is None
    assert code in {problem.code.value for problem in document.problems}


@pytest.mark.parametrize("content", [b"", b"# only a comment\n", b"---\n"])
def test_empty_document_is_null(content: bytes) -> None:
    assert parse_yaml(content, file="f").data is None
    assert parse_yaml(content, file="f").problems == ()


def test_byte_order_mark_is_ignored() -> None:
    assert parse_yaml(b"\xef\xbb\xbfa: 1\n", file="f").data == {"a": 1}


def test_yaml_1_2_directive_is_accepted() -> None:
    assert parse_yaml(b"%YAML 1.2\n---\na: 1\n", file="f").data == {"a": 1}


def test_every_place_has_its_line() -> None:
    document = parse_yaml(b"a:\n  b: 1\n  c:\n    - x\n    - d: 2\n", file="f", first_line=2)
    assert document.lines[("a",)] == 2
    assert document.lines[("a", "b")] == 3
    assert document.lines[("a", "c", 0)] == 5
    assert document.lines[("a", "c", 1, "d")] == 6


def test_syntax_error_names_its_line() -> None:
    (problem,) = parse_yaml(b"a: 1\nb: [\nc: }\n", file="f", first_line=2).problems
    assert problem.line == 4


def test_all_problems_of_one_document_are_reported() -> None:
    found = parse_yaml(b"a: .nan\nb: !x 1\na: 2\n", file="f").problems
    assert [problem.code.value for problem in found] == ["yaml.number", "yaml.tag", "yaml.duplicate-key"]


def test_small_alias_is_expanded() -> None:
    document = parse_yaml(b"a: &x {k: [1, 2]}\nb: *x\n*z : 1\n".replace(b"*z : 1\n", b""), file="f")
    assert document.data == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}}


def test_merge_key_is_an_ordinary_key() -> None:
    assert parse_yaml(b"a: &x {k: 1}\nb:\n  <<: *x\n", file="f").data["b"] == {"<<": {"k": 1}}


def test_alias_of_a_long_text_is_capped() -> None:
    content = b"a: &x " + b"z" * 60_000 + b"\nb: [*x, *x]\n"
    assert parse_yaml(content, file="f").problems[0].code.value == "yaml.alias"


def test_pure_loader_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_core, "_LOADER", yaml.Loader)
    for written, value in SCALARS:
        assert parse_yaml(f"v: {written}\n".encode(), file="f").data == {"v": value}
    for written, code in REFUSED:
        assert parse_yaml(f"v: {written}\n".encode(), file="f").problems[0].code.value == code


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    document = parse_yaml(content, file="f")
    assert document.data is None or not document.problems


@settings(max_examples=300, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from(list("ab:-?[]{}&*!|>'\"%@`#,~<\n \t0.1e\\ud8é\u2028\ufeff")), max_size=120
    )
)
def test_any_text_is_read_or_refused(content: str) -> None:
    document = parse_yaml(content.encode(), file="f")
    json.dumps(document.data, allow_nan=False)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(
        alphabet=st.characters(
            exclude_categories=("Cs", "Cc"), exclude_characters="\x85\u2028\u2029\ufeff\ufffe\uffff"
        ),
        max_size=20,
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_json_means_the_same(value: Any) -> None:
    document = parse_yaml(json.dumps(value, ensure_ascii=False).encode(), file="f")
    assert document.problems == ()
    assert document.data == value


@pytest.mark.parametrize(
    "content",
    [
        b"- " * 100_000,
        b"? " * 100_000,
        b"{" * 100_000,
        b"[" * 500_000,
        b"&a " * 100_000,
        b'"' + b"\\" * 500_000,
        b"|" + b"\n" * 500_000,
        b"a: " + b"9" * 1_000_000,
        b"a: 1." + b"9" * 1_000_000,
    ],
)
def test_hostile_document_is_read_to_its_end(content: bytes) -> None:
    """Within the suite's time-out."""
    parse_yaml(content, file="f")
