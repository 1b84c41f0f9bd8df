"""What people may see of a model's endpoint, and what can be sent to it as a key."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def shown_url(url: str) -> str:
    """A URL without user information, query and fragment, which may hold secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def key_problem(variable: str, value: str) -> str:
    """Why the value of an environment variable is no key; empty where it is one, spaces around it apart."""
    key = value.strip()
    if not key:
        return f"the environment variable {variable} is not set"
    if not key.isascii() or not key.isprintable() or " " in key:
        return f"the environment variable {variable} holds no usable key"
    return ""
