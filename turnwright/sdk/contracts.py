"""The contracts that the host knows: their ids, and their shapes as pydantic models (DECISIONS 21).

A package may restate such a schema, not change it. To return a model as JSON, dump it with
`mode="json", by_alias=True, exclude_none=True`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from kernel.commit.proposals import Segment
from kernel.manifest.well_known import WELL_KNOWN

NARRATIVE_ENGINE_CONTRACT: Final = "narrative-engine@2"
CHARACTER_ACTOR_CONTRACT: Final = "character-actor@1"
TURN_POLICY_CONTRACT: Final = "turn-policy@1"
SCENE_CAST_CONTRACT: Final = "scene-cast@1"
TURN_DIGEST_CONTRACT: Final = "turn-digest@1"
OPERATIONS_CONTRACT: Final = "operations@1"

Yield = Literal["user", "continue"]


class ContractModel(BaseModel):
    """A shape of a contract; a key it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class Narrative(ContractModel):
    """`narrative-engine@2`: the story of a turn."""

    segments: tuple[Segment, ...]
    yield_: Annotated[Yield | None, Field(alias="yield")] = None


class CharacterReply(ContractModel):
    """`character-actor@1`: what one character says and does; `intent` is private."""

    segments: tuple[Segment, ...]
    intent: str | None = None


class Person(ContractModel):
    """A character, by id and name."""

    character_id: str
    name: str


class TurnPolicyInput(ContractModel):
    """Input of `turn-policy@1`."""

    actions: tuple[Any, ...]
    present: tuple[Person, ...]
    recent_segments: tuple[Segment, ...]


class PlannedActor(ContractModel):
    """One character that should speak."""

    character_id: str
    instruction: str | None = None


class TurnPolicy(ContractModel):
    """Output of `turn-policy@1`: who speaks, and in which order."""

    actors: tuple[PlannedActor, ...]
    order: Literal["parallel", "sequential"]
    narrator: Literal["before", "after", "none"]
    yield_hint: Yield


class CastMember(Person):
    """A character of the scene, and whether it is there."""

    present: bool
    seat: str | None = None


class SceneCast(ContractModel):
    """`scene-cast@1`: who is in the scene."""

    cast: tuple[CastMember, ...]


class DigestStory(ContractModel):
    """The story of a digest."""

    runtime_id: str
    text: str


class RuntimeResult(ContractModel):
    """How one runtime of the turn ended."""

    runtime_id: str
    status: str
    reason: str | None = None


class TurnDigest(ContractModel):
    """`turn-digest@1`: the turn so far, from the host."""

    turn_id: str
    logical_turn: int
    last_player_input: Any = None
    story: DigestStory | None = None
    runtime_results: tuple[RuntimeResult, ...] = ()


class Operation(ContractModel):
    """One staged change of an upstream run."""

    runtime_id: str
    ordinal: int
    type: str
    target: str
    value: Any = None


class Operations(ContractModel):
    """`operations@1`: what upstream runs have staged, from the host."""

    operations: tuple[Operation, ...]


def contract_schema(contract: str) -> dict[str, Any] | None:
    """The JSON Schema of a well-known contract's value, or None for another contract."""
    schema = WELL_KNOWN.get(contract)
    return None if schema is None else deepcopy(schema)
