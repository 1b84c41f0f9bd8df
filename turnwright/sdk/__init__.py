"""What package authors import. Nothing else of Turnwright is for package code (DECISIONS 22, 23)."""

from kernel.commit.proposals import Segment
from turnwright.sdk.clients import (
    Gateway,
    HttpResponse,
    Json,
    Logger,
    Network,
    ObjectReply,
    PluginData,
    Progress,
    Record,
    SessionState,
    Signal,
    TextReply,
    Tools,
)
from turnwright.sdk.context import Context, FunctionContext, ToolContext
from turnwright.sdk.contracts import (
    CHARACTER_ACTOR_CONTRACT,
    NARRATIVE_ENGINE_CONTRACT,
    OPERATIONS_CONTRACT,
    SCENE_CAST_CONTRACT,
    TURN_DIGEST_CONTRACT,
    TURN_POLICY_CONTRACT,
    CharacterReply,
    Narrative,
    Operations,
    SceneCast,
    TurnDigest,
    TurnPolicy,
    TurnPolicyInput,
    contract_schema,
)
from turnwright.sdk.errors import ToolError
from turnwright.sdk.locale import instruction_locale_for
from turnwright.sdk.registration import Host, RegisteredTool, Risk
from turnwright.sdk.seeded import SeededRandom

__all__ = [
    "CHARACTER_ACTOR_CONTRACT",
    "NARRATIVE_ENGINE_CONTRACT",
    "OPERATIONS_CONTRACT",
    "SCENE_CAST_CONTRACT",
    "TURN_DIGEST_CONTRACT",
    "TURN_POLICY_CONTRACT",
    "CharacterReply",
    "Context",
    "FunctionContext",
    "Gateway",
    "Host",
    "HttpResponse",
    "Json",
    "Logger",
    "Narrative",
    "Network",
    "ObjectReply",
    "Operations",
    "PluginData",
    "Progress",
    "Record",
    "RegisteredTool",
    "Risk",
    "SceneCast",
    "SeededRandom",
    "Segment",
    "SessionState",
    "Signal",
    "TextReply",
    "ToolContext",
    "ToolError",
    "Tools",
    "TurnDigest",
    "TurnPolicy",
    "TurnPolicyInput",
    "contract_schema",
    "instruction_locale_for",
]
