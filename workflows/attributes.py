"""Search attributes and details that workflows show to people; never used as truth."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

with workflow.unsafe.imports_passed_through():
    from kernel.wire import names

_LIMIT = 500
"""Most characters of one value: past 2 KiB the server terminates the workflow."""

SESSION = SearchAttributeKey.for_keyword(names.ATTRIBUTE_SESSION)
TURN = SearchAttributeKey.for_keyword(names.ATTRIBUTE_TURN)
STATUS = SearchAttributeKey.for_keyword(names.ATTRIBUTE_STATUS)
WAITING_FOR = SearchAttributeKey.for_keyword(names.ATTRIBUTE_WAITING_FOR)


def of(session_id: str, turn_id: str | None = None, status: str | None = None) -> TypedSearchAttributes:
    """Attributes that a child is started with."""
    pairs = [SearchAttributePair(SESSION, session_id[:_LIMIT])]
    if turn_id:
        pairs.append(SearchAttributePair(TURN, turn_id))
    if status:
        pairs.append(SearchAttributePair(STATUS, status))
    return TypedSearchAttributes(pairs)


def status(value: str) -> None:
    """Show a new status."""
    workflow.upsert_search_attributes([STATUS.value_set(value)])


def waiting_for(refs: Sequence[str]) -> None:
    """Show which approvals are open; none unsets the attribute."""
    value = " ".join(refs)[:_LIMIT]
    workflow.upsert_search_attributes([WAITING_FOR.value_set(value) if value else WAITING_FOR.value_unset()])
