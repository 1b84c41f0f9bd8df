"""JSON Pointer, strictly RFC 6901. Spec: plugin-model §7."""

from __future__ import annotations

import pytest

from kernel.errors import Code, TurnwrightError
from kernel.pointer import MISSING, parse, select

RFC = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", RFC),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_the_examples_of_the_rfc(pointer: str, value: object) -> None:
    assert select(RFC, pointer) == value


@pytest.mark.parametrize(
    "pointer",
    [
        *("/foo/01", "/foo/+1", "/foo/-1", "/foo/-", "/foo/ 1", "/foo/1.0", "/foo/1e0", "/foo/", "/foo/x"),
        *("/foo/2", "/foo/¹", "/foo/١", "/foo/" + "9" * 5000, "/foo/0/0", "/bar", "/m~n".replace("~", "~01")),
        *("/__class__", "/constructor", "/foo/length"),
    ],
)
def test_what_leads_to_nothing(pointer: str) -> None:
    assert select(RFC, pointer) is MISSING


def test_null_is_a_value_and_inherited_names_are_ordinary() -> None:
    assert select({"toString": {"constructor": None}}, "/toString/constructor") is None


def test_an_escaped_tilde_is_unescaped_once() -> None:
    assert parse("/~01/~10") == ("~1", "/0")
    assert repr(MISSING) == "MISSING"


@pytest.mark.parametrize("pointer", ["foo", "#/foo", "/~", "/a~2b", "/~a"])
def test_no_pointer_is_refused(pointer: str) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        select({}, pointer)
    assert refusal.value.code == Code.PACKAGE_FIELD
