"""Connects to the Temporal server, the same way for clients and workers."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, Interceptor, Plugin
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from kernel.errors import Code, TurnwrightError
from link import telemetry
from link.converter import data_converter
from link.runtime import shared_runtime
from link.settings import Settings, TemporalSettings, TlsSettings

CONNECT_S: Final = 5.0
"""Seconds after which a server that does not answer counts as unreachable."""


async def connect(
    settings: Settings, *, interceptors: Sequence[Interceptor] = (), plugins: Sequence[Plugin] = ()
) -> Client:
    """A client with the shared converter, codec, identity and, where configured, tracing.

    Raises:
        TurnwrightError: `server.unreachable` naming the address, or the namespace that the server
            lacks; `config.encryption-key` or `config.invalid` for settings that cannot be used.
    """
    where = settings.temporal
    tls, api_key = _tls(where), _api_key(where)
    tracing = telemetry.tracing(settings)
    client = Client.connect(
        where.address,
        namespace=where.namespace,
        data_converter=data_converter(settings),
        interceptors=[*tracing.before, *interceptors],
        plugins=[*tracing.plugins, *plugins],
        tls=tls,
        api_key=api_key,
        identity=identity(),
        runtime=shared_runtime(),
    )
    try:
        async with asyncio.timeout(CONNECT_S):
            connected = await client
            await _require_namespace(connected, where)
            return connected
    except (RuntimeError, OSError, TimeoutError, RPCError, ValueError) as error:
        raise TurnwrightError(
            Code.SERVER_UNREACHABLE,
            f"cannot connect to Temporal: {_reason(error)}",
            where=where.address,
            accepted="a running server; `turnwright dev` starts one",
        ) from None


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_S:g} s"
    text = str(error)
    return "connection refused" if "ConnectionRefused" in text else text[:300]


def identity() -> str:
    """`<pid>@<host>`, short: it stands in most events of every history."""
    return f"{os.getpid()}@{socket.gethostname().split('.')[0][:20]}"


async def _require_namespace(client: Client, where: TemporalSettings) -> None:
    try:
        request = DescribeNamespaceRequest(namespace=where.namespace)
        await client.workflow_service.describe_namespace(request)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise TurnwrightError(
                Code.SERVER_UNREACHABLE,
                f"the server has no namespace {where.namespace!r}",
                where=where.address,
                accepted=f"temporal operator namespace create --namespace {where.namespace}",
            ) from None
        if error.status != RPCStatusCode.PERMISSION_DENIED:
            raise


def _api_key(where: TemporalSettings) -> str | None:
    if where.api_key_env is None:
        return None
    key = os.environ.get(where.api_key_env)
    if not key:
        raise TurnwrightError(
            Code.CONFIG_INVALID,
            "the variable is not set, and temporal.api_key_env names it",
            where=where.api_key_env,
            accepted="the API key of the namespace",
        )
    return key


def _tls(where: TemporalSettings) -> TLSConfig | bool:
    if not isinstance(where.tls, TlsSettings):
        return where.tls
    tls = where.tls
    return TLSConfig(
        server_root_ca_cert=_pem(tls.server_root_ca),
        client_cert=_pem(tls.client_cert),
        client_private_key=_pem(tls.client_key),
        domain=tls.domain,
    )


def _pem(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise TurnwrightError(
            Code.CONFIG_INVALID, f"cannot be read: {error.strerror}", where=str(file), accepted="a PEM file"
        ) from None
