"""The server tuning of `deploy/dynamic-config.yaml`, as flags of the development server."""

from __future__ import annotations

import json
from typing import Any

import yaml

from kernel.errors import Code, TurnwrightError
from link.bundled import bundled

_FILE = "deploy/dynamic-config.yaml"


def dynamic_config_flags() -> list[str]:
    """`--dynamic-config-value key=value` for every key of the file.

    Raises:
        TurnwrightError: `server.start-failed` when the file is missing or not in the server's format.
    """
    source = bundled(_FILE)
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
