"""Says how far this machine can confine package code: `python -m activities.plugins.child.probe`.

One JSON object: `{"level": …, "missing": {layer: reason}}`. The process confines itself for it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from activities.plugins.child.confinement import confine
from kernel.policy import level_of

_MEMORY = 1024 * 1024 * 1024


def main() -> None:
    """Confine this process, and tell what came of it."""
    found = confine(Path(sys.prefix), memory_bytes=_MEMORY)
    print(json.dumps({"level": level_of(found.applied), "missing": found.missing}))


if __name__ == "__main__":
    main()
