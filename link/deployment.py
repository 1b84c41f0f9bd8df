"""The worker deployment: which version is current, and making this one current.

Spec: DESIGN §2, versioning. A version that is not current gets no new session task and no new turn; a
worker that nobody told so would look healthy and stay idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from temporalio.api.deployment.v1 import WorkerDeploymentVersion as WireVersion
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    DescribeWorkerDeploymentVersionRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode

from kernel.errors import Code, TurnwrightError
from link.connect import identity
from link.settings import DeploymentSettings

REGISTER_S: Final = 30.0
"""Seconds for the server to register the version's task queues once its workers poll."""

_PAUSE_S: Final = 0.1
_NOT_YET: Final = (
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.FAILED_PRECONDITION,  # queues of the current version are still missing here
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.ABORTED,
    RPCStatusCode.UNAVAILABLE,
)


def version_of(settings: DeploymentSettings) -> WorkerDeploymentVersion | None:
    """The configured version; None where versioning is off."""
    if settings.name is None or settings.build_id is None:
        return None
    return WorkerDeploymentVersion(deployment_name=settings.name, build_id=settings.build_id)


async def current_build(client: Client, name: str) -> str | None:
    """The build id that is current in a deployment; None where no version is."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    try:
        reply = await client.workflow_service.describe_worker_deployment(request)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise
    routing = reply.worker_deployment_info.routing_config
    return routing.current_deployment_version.build_id or None


async def set_current(client: Client, version: WorkerDeploymentVersion, queues: Iterable[str]) -> None:
    """Make this version current once the server knows the queues that this worker polls.

    Args:
        queues: task queues of this process; new turns need them all.

    Raises:
        TurnwrightError: `worker.not-current` with what the server said last.
    """
    wanted, said = set(queues), "the server has not registered the version"
    try:
        async with asyncio.timeout(REGISTER_S):
            async for _ in _rounds():
                try:
                    if await _registered(client, version) >= wanted:
                        await _set(client, version)
                        return
                except RPCError as error:
                    if error.status not in _NOT_YET:
                        raise
                    said = error.message
    except (TimeoutError, RPCError) as error:
        said = error.message if isinstance(error, RPCError) else said
        raise TurnwrightError(
            Code.WORKER_NOT_CURRENT,
            f"build {version.build_id} cannot be made current: {said}",
            where=f"deployment {version.deployment_name}",
            accepted=command(client, version),
        ) from None


async def not_current(client: Client, version: WorkerDeploymentVersion) -> TurnwrightError | None:
    """What a worker says on start whose version is not the current one; None when it is."""
    try:
        current = await current_build(client, version.deployment_name)
    except RPCError as error:
        instead = f"as far as the server tells: {error.message}"
    else:
        if current == version.build_id:
            return None
        instead = f"{f'build {current}' if current else 'no build'} is: it gets no new turns"
    return TurnwrightError(
        Code.WORKER_NOT_CURRENT,
        f"build {version.build_id} is not the current version, {instead}",
        where=f"deployment {version.deployment_name}",
        accepted=command(client, version),
    )


def command(client: Client, version: WorkerDeploymentVersion) -> str:
    """The command line that makes a version current."""
    return (
        f"temporal worker deployment set-current-version --namespace {client.namespace}"
        f" --deployment-name {version.deployment_name} --build-id {version.build_id}"
    )


async def _registered(client: Client, version: WorkerDeploymentVersion) -> set[str]:
    wire = WireVersion(deployment_name=version.deployment_name, build_id=version.build_id)
    reply = await client.workflow_service.describe_worker_deployment_version(
        DescribeWorkerDeploymentVersionRequest(namespace=client.namespace, deployment_version=wire)
    )
    return {queue.name for queue in reply.version_task_queues}


async def _set(client: Client, version: WorkerDeploymentVersion) -> None:
    await client.workflow_service.set_worker_deployment_current_version(
        SetWorkerDeploymentCurrentVersionRequest(
            namespace=client.namespace,
            deployment_name=version.deployment_name,
            build_id=version.build_id,
            identity=identity(),
        )
    )


async def _rounds() -> AsyncIterator[None]:
    while True:
        yield
        await asyncio.sleep(_PAUSE_S)
