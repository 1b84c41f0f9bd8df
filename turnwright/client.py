"""The typed client for programs: connect, play, answer, read.

async with await Turnwright.connect() as client:
    await client.new_session("tale")
    receipt = await client.submit("tale", "I open the door.")
    print((await client.wait(receipt)).story.text)
"""

from client.api import SessionSummary, Turnwright
from client.choices import SessionPackages
from client.history import ToolUse, TurnRecord
from kernel.errors import Code, TurnwrightError
from kernel.wire.approvals import Approval
from kernel.wire.nodes import NodeState
from kernel.wire.session import (
    ControlReceipt,
    InterjectReceipt,
    Receipt,
    ResolveReceipt,
    SessionView,
)
from kernel.wire.turn import GraphView, TurnResult
from kernel.wire.usage import UsageTotals
from link.settings import Settings, load_settings
from store.stream import Piece, StreamOffset

__all__ = [
    "Approval",
    "Code",
    "ControlReceipt",
    "GraphView",
    "InterjectReceipt",
    "NodeState",
    "Piece",
    "Receipt",
    "ResolveReceipt",
    "SessionPackages",
    "SessionSummary",
    "SessionView",
    "Settings",
    "StreamOffset",
    "ToolUse",
    "TurnRecord",
    "TurnResult",
    "Turnwright",
    "TurnwrightError",
    "UsageTotals",
    "load_settings",
]
