"""The search attributes: the typed keys that clients use, and making sure that the server knows them."""

from __future__ import annotations

from typing import Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from kernel.errors import Code, TurnwrightError
from kernel.wire import names

SESSION: Final = SearchAttributeKey.for_keyword(names.ATTRIBUTE_SESSION)
STATUS: Final = SearchAttributeKey.for_keyword(names.ATTRIBUTE_STATUS)

_KEYWORD = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD


async def ensure_attributes(client: Client) -> None:
    """Register the four Keyword attributes, or see that they are there.

    Raises:
        TurnwrightError: `server.search-attributes` when one is missing and may not be added here, or
            exists with another type; it carries the command line that adds them.
    """
    known = await _known(client)
    if known is None:
        return  # no right to look: the first workflow that writes one will tell
    wrong = sorted(name for name in names.ATTRIBUTES if known.get(name, _KEYWORD) != _KEYWORD)
    if wrong:
        raise _refused(client, f"{', '.join(wrong)} exist, but not as Keyword")
    missing = [name for name in names.ATTRIBUTES if name not in known]
    if missing:
        await _add(client, missing)


def creation_command(namespace: str) -> str:
    """The command line that registers the attributes."""
    pairs = " ".join(f"--name {name} --type Keyword" for name in names.ATTRIBUTES)
    return f"temporal operator search-attribute create --namespace {namespace} {pairs}"


async def _known(client: Client) -> dict[str, int] | None:
    try:
        reply = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
    except RPCError as error:
        if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
            return None
        raise _refused(client, f"they cannot be listed: {error.message}") from None
    return {**reply.custom_attributes, **reply.system_attributes}


async def _add(client: Client, missing: list[str]) -> None:
    request = AddSearchAttributesRequest(
        namespace=client.namespace, search_attributes=dict.fromkeys(missing, _KEYWORD)
    )
    try:
        await client.operator_service.add_search_attributes(request)
    except RPCError as error:
        if error.status != RPCStatusCode.ALREADY_EXISTS:  # another worker that starts at the same moment
            raise _refused(client, f"{', '.join(missing)} cannot be added: {error.message}") from None


def _refused(client: Client, what: str) -> TurnwrightError:
    return TurnwrightError(
        Code.SERVER_ATTRIBUTES,
        f"search attributes: {what}",
        where=f"namespace {client.namespace}",
        accepted=creation_command(client.namespace),
        details={"command": creation_command(client.namespace)},
    )
