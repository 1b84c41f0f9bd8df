"""What holds for the whole test run."""

from __future__ import annotations

import os
import sys

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remember how the run ended, for `pytest_unconfigure`."""
    session.config.stash[_STATUS] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave with the run's own status: the SDK can abort the interpreter while it exits (DESIGN §6)."""
    if hasattr(config, "workerinput") or _STATUS not in config.stash:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(config.stash[_STATUS])


_STATUS = pytest.StashKey[int]()
