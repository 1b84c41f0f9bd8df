"""How large workflow histories are."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import Client


@dataclass(frozen=True)
class Size:
    """Events and bytes, as the server counts them."""

    events: int = 0
    size_bytes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.events + other.events, self.size_bytes + other.size_bytes)

    def __sub__(self, other: Size) -> Size:
        return Size(self.events - other.events, self.size_bytes - other.size_bytes)


def size_in(described: DescribeWorkflowExecutionResponse) -> Size:
    """The history that a description tells of."""
    info = described.workflow_execution_info
    return Size(info.history_length, info.history_size_bytes)


async def size_of(client: Client, workflow_id: str) -> Size:
    """The history of a workflow's latest run."""
    return size_in((await client.get_workflow_handle(workflow_id).describe()).raw_description)
