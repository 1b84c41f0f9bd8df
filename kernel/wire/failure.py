"""Why something failed, as every workflow tells it."""

from __future__ import annotations

from kernel.errors import Code
from kernel.wire.base import Outline, Wire


class Failure(Wire):
    """Why something failed: a code for programs, an outline for people."""

    code: Code
    message: Outline = ""
