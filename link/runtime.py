"""The one SDK runtime of a process: its core logs to Python logging, never to stdout."""

from __future__ import annotations

import functools
import logging
from typing import Final

from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

CORE_LOGGER: Final = "turnwright.temporal"


@functools.cache
def shared_runtime() -> Runtime:
    """The runtime that every client, worker and test environment of this process uses.

    The SDK's default writes core logs to stdout, in the middle of what `--json` prints.
    """
    forwarding = LogForwardingConfig(logger=logging.getLogger(CORE_LOGGER), append_target_to_name=False)
    filter_ = TelemetryFilter(core_level="WARN", other_level="ERROR")
    runtime = Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=filter_, forwarding=forwarding)))
    Runtime.set_default(runtime, error_if_already_set=False)
    return runtime
