"""The server tuning of `deploy/dynamic-config.yaml`, as flags of the development server."""

from __future__ import annotations

import json
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

from kernel.errors import Code, TurnwrightError

_NAME = "dynamic-config.yaml"


def dynamic_config_flags() -> list[str]:
    """`--dynamic-config-value key=value` for every key of the file.

    Raises:
        TurnwrightError: `server.start-failed` when the file is missing or not in the server's format.
    """
    source = _file()
    flags: list[str] = []
    try:
        entries: dict[str, Any] = yaml.safe_load(source.read_text(encoding="utf-8"))
        for key, [entry] in entries.items():
            flags += ["--dynamic-config-value", f"{key}={json.dumps(entry['value'])}"]
    except (OSError, yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise TurnwrightError(
            Code.SERVER_START_FAILED,
            f"the server tuning cannot be read: {error}",
            where=str(source),
            accepted="keys with one list entry each, `- value: …`",
        ) from None
    return flags


def _file() -> Traversable:
    """The file of a checkout, else the one in the wheel."""
    checkout = Path(__file__).parents[1] / "deploy" / _NAME
    return checkout if checkout.is_file() else resources.files("turnwright") / "bundled" / "deploy" / _NAME
