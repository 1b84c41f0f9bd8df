"""The content that comes with the product: packages, worlds, what a deployment needs."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def bundled(name: str) -> Path:
    """A folder or a file: under `turnwright/bundled` in a wheel, beside the rooms in a checkout."""
    installed = Path(str(resources.files("turnwright") / "bundled" / name))
    return installed if installed.exists() else Path(__file__).resolve().parents[1] / name
