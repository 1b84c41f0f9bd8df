"""Where hooks will sit, in a turn and in an agent run."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from kernel.errors import Code
    from kernel.schedule.hooks import Event, subscribers
    from kernel.wire.hooks import HookSubscription


async def seat(hooks: Sequence[HookSubscription], event: Event) -> None:
    """Where the hooks of an event will run: nobody subscribed, nothing scheduled.

    Raises:
        ApplicationError: `feature.not-supported`, when somebody is subscribed.
    """
    if found := subscribers(hooks, event):
        raise ApplicationError(
            f"{found[0].package_id} hooks {event}", type=Code.NOT_SUPPORTED.value, non_retryable=True
        )
