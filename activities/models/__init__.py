"""Models: slots, wires, and the one HTTP client behind them."""

from __future__ import annotations

from collections.abc import Mapping

from activities.models.http import close_shared_client, shared_client
from activities.models.openai_chat import OpenAIChat
from activities.models.slots import Slot, load_slots
from activities.models.wire import CallLimits, Endpoint, OnEvent, Wire, WireError

WIRES: Mapping[str, Wire] = {"openai-chat": OpenAIChat()}

__all__ = [
    "WIRES",
    "CallLimits",
    "Endpoint",
    "OnEvent",
    "OpenAIChat",
    "Slot",
    "Wire",
    "WireError",
    "close_shared_client",
    "load_slots",
    "shared_client",
]
