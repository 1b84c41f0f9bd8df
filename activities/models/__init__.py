"""Models: slots, wires, and the HTTP connections behind them."""

from __future__ import annotations

from collections.abc import Mapping

from activities.models.http import close_shared_transport, shared_transport
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
    "close_shared_transport",
    "load_slots",
    "shared_transport",
]
