"""An agent's ending in JSON: found in the reply's text, judged by the runtime's own schema."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from kernel.wire.base import Json

_FENCE = re.compile(r"\s*```(?:json)?\s*\n(?P<body>.*)\n\s*```\s*", re.DOTALL)


def json_ending(text: str) -> Json:
    """The JSON value that a reply consists of; a fence around it is allowed, prose is not.

    Raises:
        ValueError: with the place of the mistake.
    """
    fenced = _FENCE.fullmatch(text)
    return json.loads(fenced["body"] if fenced else text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
