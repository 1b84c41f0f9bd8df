from __future__ import annotations

import pytest

from kernel.wire.endpoints import key_problem, shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://api.example/v1", "https://api.example/v1"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("https://me:secret@api.example:8/v1?key=secret#secret", "https://api.example:8/v1"),
        ("https://a@b:secret@api.example/v1", "https://api.example/v1"),
        ("https://[::1", "an address that cannot be read"),
    ],
)
def test_a_shown_address_holds_no_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("sk-1\n", ""),
        ("", "the environment variable KEY is not set"),
        (" \n", "the environment variable KEY is not set"),
        ("two words", "the environment variable KEY holds no usable key"),
        ("schlüssel", "the environment variable KEY holds no usable key"),
        ("a\nb", "the environment variable KEY holds no usable key"),
    ],
)
def test_a_key_is_one_word_of_ascii(value: str, problem: str) -> None:
    assert key_problem("KEY", value) == problem
