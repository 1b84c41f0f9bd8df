"""The log of a process, on stderr: lines for people, or one JSON object on each line for programs."""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Final

from kernel.errors import TurnwrightError

FORMAT_VARIABLE: Final = "TURNWRIGHT_LOG_FORMAT"
"""`json` asks for JSON lines; everything else for text."""

LEVEL_VARIABLE: Final = "TURNWRIGHT_LOG_LEVEL"


class JsonLines(logging.Formatter):
    """`time` (seconds since 1970), `level`, `logger`, `message`; `code` and `trace` where there are any."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line."""
        line = {
            "time": record.created,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if code := getattr(record, "code", None):
            line["code"] = code
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def begin(level: str) -> None:
    """Log to stderr, in the format of the environment.

    Args:
        level: where the environment names none.
    """
    logging.basicConfig(level=os.environ.get(LEVEL_VARIABLE, level), stream=sys.stderr)
    if _as_json():
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLines())


def refuse(error: TurnwrightError) -> None:
    """Tell on stderr why this process ends."""
    if _as_json():
        logging.getLogger("turnwright").error("%s", error, extra={"code": error.code.value})
    else:
        print(f"error: {error}", file=sys.stderr)


def _as_json() -> bool:
    return os.environ.get(FORMAT_VARIABLE) == "json"
