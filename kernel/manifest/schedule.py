"""`schedule`: when and in what order a runtime runs. Spec: plugin-model §4, §5, §18; seed 000."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from kernel.manifest.fields import (
    FORM_MARK,
    AsReference,
    ByForm,
    ContractReference,
    ContractTag,
    Items,
    ManifestModel,
    Milliseconds,
    Positive,
    Refusal,
    RuntimeReference,
    RuntimeTag,
    Topic,
)

Stage: TypeAlias = Literal["setup", "pre-turn", "narrative", "post-turn", "audit"]
STAGES: Final[tuple[Stage, ...]] = ("setup", "pre-turn", "narrative", "post-turn", "audit")
"""The stages in their order."""

TriggerType: TypeAlias = Literal["auto", "manual", "event"]
GateScope: TypeAlias = Literal["turn", "session"]

SETTLE_WAIT_MS: Final = 30_000
QUEUE_MS: Final = 300_000
EXECUTION_MS: Final = 120_000

_SCOPE = (
    "turn gates on the same execution. session gates on the persistent setup snapshot and is valid only on "
    "stage setup."
)


class Trigger(ManifestModel):
    """When a runtime is activated."""

    type: TriggerType = Field(
        "auto",
        description="auto runs in its stage every turn, or every schedule.every-th turn. manual runs on an "
        "explicit call. event runs when topic is emitted. Defaults to auto.",
    )
    topic: Topic | None = Field(None, description="Event topic to subscribe to. Required for event.")
    max_trigger_count: Positive | None = Field(None, description="Maximum number of triggers in one session.")
    cooldown_turns: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Minimum number of turns between two triggers."
    )
    start_turn: Positive | None = Field(
        None,
        description="First logical turn at which the runtime may trigger. When unset, it triggers as soon as "
        "its stage opens.",
    )

    def rules(self) -> Iterator[Refusal]:
        if self.type == "event" and self.topic is None:
            yield Refusal(("topic",), "topic is required for an event trigger", "the topic to subscribe to")
        if self.type != "event" and self.topic is not None:
            yield Refusal(("topic",), f"topic goes with an event trigger, not {self.type}", "type: event")


class RuntimeNeed(RuntimeReference):
    """`schedule.needs[]`, naming a runtime."""

    scope: GateScope = Field("turn", description=_SCOPE)


class ContractNeed(ContractReference):
    """`schedule.needs[]`, naming a contract."""

    scope: GateScope = Field("turn", description=_SCOPE)


Need: TypeAlias = Annotated[
    Annotated[RuntimeNeed, RuntimeTag] | Annotated[ContractNeed, ContractTag], ByForm, AsReference
]
After: TypeAlias = Annotated[
    Annotated[RuntimeReference, RuntimeTag] | Annotated[ContractReference, ContractTag], ByForm, AsReference
]


class DetachedOptions(ManifestModel):
    """`schedule.detached` as an object: the options of the background job."""

    settle: bool = Field(
        False,
        description="true makes the next player action wait until this runtime's job has finished, for at "
        "most maxSettleWaitMs. Defaults to false.",
    )
    max_settle_wait_ms: Annotated[int, Field(ge=1, le=120_000)] | None = Field(
        None,
        description="Longest time in ms the next action waits for the job, at most 120000. Requires settle: "
        f"true. Defaults to {SETTLE_WAIT_MS}.",
    )
    max_queue_ms: Milliseconds = Field(
        QUEUE_MS, description=f"Longest time in ms the job may wait in the queue. Defaults to {QUEUE_MS}."
    )
    max_execution_ms: Milliseconds = Field(
        EXECUTION_MS, description=f"Longest time in ms the job may run. Defaults to {EXECUTION_MS}."
    )

    def rules(self) -> Iterator[Refusal]:
        if self.max_settle_wait_ms is not None and not self.settle:
            yield Refusal(("maxSettleWaitMs",), "maxSettleWaitMs requires settle: true", "settle: true")


@dataclass(frozen=True, slots=True)
class DetachedLimits:
    """The options of a detached job with every default in place. Decision 7."""

    settle: bool
    max_settle_wait_ms: int
    max_queue_ms: int
    max_execution_ms: int


def _detached_form(value: Any) -> str | None:
    if isinstance(value, bool):
        return FORM_MARK + "flag"
    return FORM_MARK + "options" if isinstance(value, dict | DetachedOptions) else None


Detached: TypeAlias = Annotated[
    Annotated[bool, Tag(FORM_MARK + "flag")] | Annotated[DetachedOptions, Tag(FORM_MARK + "options")],
    Discriminator(
        _detached_form,
        custom_error_type="manifest_form",
        custom_error_message="is neither true, false nor the options of a detached job",
    ),
]


class Schedule(ManifestModel):
    """`schedule`: the stage, the trigger and the order of a runtime."""

    stage: Stage | None = Field(
        None,
        description="Stage the runtime runs in. Required for an auto trigger, the default. Order: setup, "
        "pre-turn, narrative, post-turn, audit.",
    )
    every: Positive = Field(
        1,
        description="auto only: run on the logical turns that are a multiple of this number. Defaults to 1, "
        "every turn.",
    )
    trigger: Trigger = Field(
        default_factory=Trigger,
        description="When the runtime is activated. Leave it out for an auto runtime without options.",
    )
    needs: Items[Need] = Field(
        (),
        description="Upstream runtimes or contracts that must succeed first. Sets order and gates this "
        "runtime. A bare string is a contract when it ends in @N, otherwise a runtime.",
    )
    after: Items[After] = Field(
        (),
        description="Upstream runtimes or contracts that run first. Sets order only; it does not gate and "
        "does not activate a provider.",
    )
    detached: Detached = Field(
        False,
        description="true lets the turn finish before this runtime does: it runs afterwards as a durable "
        "background job. Only on stage post-turn or audit. An object sets the job's options and also makes "
        "it detached. Defaults to false: the turn waits.",
    )
    background: bool = Field(
        False,
        description="true runs a manual or event activation as a durable background job: the caller gets a "
        "job ID at once. Defaults to false: the caller waits for the result.",
    )
    subagent_only: bool = Field(
        False,
        description="true makes this agent runtime a sub-agent provider: the scheduler never runs it, and "
        "another runtime runs it with ctx.agents.run or the delegate tool. It implies trigger: manual and "
        "allows no stage, needs, after, background, io.output.recordAs, guard or io.visibility: story. "
        "Defaults to false.",
    )

    @property
    def activation(self) -> TriggerType:
        """The trigger type in force: a sub-agent provider is manual."""
        return "manual" if self.subagent_only else self.trigger.type

    @property
    def detached_limits(self) -> DetachedLimits | None:
        """The job's options with defaults, or None for a runtime that the turn waits for."""
        if self.detached is False:
            return None
        options = self.detached if isinstance(self.detached, DetachedOptions) else DetachedOptions()
        wait = options.max_settle_wait_ms or SETTLE_WAIT_MS
        return DetachedLimits(options.settle, wait, options.max_queue_ms, options.max_execution_ms)

    def rules(self) -> Iterator[Refusal]:
        yield from self._subagent_rules() if self.subagent_only else self._trigger_rules()
        if self.declares("every") and self.activation != "auto":
            yield Refusal(("every",), f"every goes with an auto trigger, not {self.activation}")
        if self.detached_limits is not None and self.stage not in ("post-turn", "audit"):
            yield Refusal(
                ("detached",), "detached is allowed only on stage post-turn or audit", "post-turn, audit"
            )
        if self.stage != "setup":
            for index, need in enumerate(self.needs):
                if need.scope == "session":
                    at = ("needs", index, "scope")
                    yield Refusal(at, "scope: session is valid only on stage setup", "scope: turn")

    def _trigger_rules(self) -> Iterator[Refusal]:
        if self.activation == "auto" and self.stage is None:
            yield Refusal(("stage",), "stage is required for an auto trigger, the default", ", ".join(STAGES))
        if self.activation != "auto" and self.stage is not None:
            message = f"stage is not allowed with a {self.activation} trigger"
            yield Refusal(("stage",), message, "no stage, or trigger.type: auto")
        if self.background and self.activation == "auto":
            yield Refusal(
                ("background",), "background goes with a manual or event trigger", "schedule.detached"
            )

    def _subagent_rules(self) -> Iterator[Refusal]:
        for name in ("stage", "needs", "after", "background"):
            if getattr(self, name):
                yield Refusal((name,), f"{name} is not allowed with subagentOnly", f"no {name}")
        if self.trigger.declares("type") and self.trigger.type != "manual":
            message = f"trigger {self.trigger.type} is not allowed with subagentOnly"
            yield Refusal(("trigger", "type"), message, "manual, or no trigger")
