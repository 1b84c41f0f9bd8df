"""`agent`: model, tools, completion and loop of an agent runtime. Spec: plugin-model §11; seed 000."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag

from kernel.manifest.fields import (
    FORM_MARK,
    MAX_MS,
    ContractId,
    Count,
    ManifestModel,
    Milliseconds,
    Name,
    Positive,
    Refusal,
    Slot,
    ToolName,
    UniqueItems,
)

Visibility: TypeAlias = Literal["story", "system"]
Profile: TypeAlias = Literal["story", "actor", "system"]
Truncation: TypeAlias = Literal["accept", "reject"]
Fallback: TypeAlias = Literal["answer-without-tools", "fail"]
DatasetTool: TypeAlias = Literal["get", "list", "upsert", "update"]
DATASET_TOOLS: Final[tuple[DatasetTool, ...]] = ("get", "list", "upsert", "update")

DEFAULT_MAX_STEPS: Final = 32
IDLE_TIMEOUT_MS: Final = 120_000

BUILTIN_TOOLS: Final = frozenset(
    {
        "create-form",
        "create-choices",
        "create-notification",
        "render-ui",
        "plugin-data-set",
        "plugin-data-set-batch",
        "plugin-data-get",
        "plugin-data-list",
        "plugin-data-delete",
        "create-character",
        "update-character",
        "sync-characters",
        "list-characters",
        "get-character",
        "world-dimension-list",
        "world-dimension-get",
        "delegate",
        "emit-event",
        "suspend",
        "runtime-done",
        "memory-search",
        "memory-get-block",
        "memory-update-block",
    }
)
"""Spec: plugin-model §12. `search-tools` is injected by `defer` and cannot be declared."""


class ForcedTool(ManifestModel):
    """`agent.toolChoice` as an object."""

    name: ToolName = Field(description="Name of the tool to force.")


def _by_shape(value: Any) -> str | None:
    if isinstance(value, str):
        return FORM_MARK + "word"
    return FORM_MARK + "object" if isinstance(value, dict | ManifestModel) else None


ToolChoice: TypeAlias = Annotated[
    Annotated[Literal["required"], Tag(FORM_MARK + "word")]
    | Annotated[ForcedTool, Tag(FORM_MARK + "object")],
    Discriminator(
        _by_shape,
        custom_error_type="manifest_form",
        custom_error_message="is neither required nor { name }",
    ),
]


class History(ManifestModel):
    """`agent.history`: bounds the prompt history."""

    include_summaries: bool = Field(
        False,
        description="Include persisted summaries alongside the bounded history window. Defaults to false.",
    )
    max_turns: Count = Field(
        description="Number of most recent turns kept in the agent's prompt history. 0 sends no history."
    )


def _defer_form(value: Any) -> str | None:
    if value is True:
        return FORM_MARK + "all"
    return FORM_MARK + "names" if isinstance(value, list | tuple) else None


Defer: TypeAlias = Annotated[
    Annotated[Literal[True], Tag(FORM_MARK + "all")]
    | Annotated[UniqueItems[ToolName], Tag(FORM_MARK + "names")],
    Discriminator(
        _defer_form,
        custom_error_type="manifest_form",
        custom_error_message="is neither true nor a list of tool names",
    ),
]


class ToolWhitelist(ManifestModel):
    """The tools a runtime may call: `function.tools`, and the first half of `agent.tools`."""

    builtin: UniqueItems[ToolName] = Field((), description="Names of builtin tools the runtime may call.")
    plugin: UniqueItems[ToolName] | None = Field(
        None,
        description="Names of this package's own tools the runtime may call. Each must be listed in "
        "contributes.tools. The runtime of a single-runtime package gets every contributed tool when this is "
        "omitted.",
    )
    defer: Defer | None = Field(
        None,
        description="Deferred tool loading. true defers the whole whitelist; a list defers only those names.",
    )


class ServiceImport(ManifestModel):
    """`agent.tools.services[]`."""

    contract: ContractId = Field(description="The contract ID of the model-facing service to import.")
    as_name: ToolName | None = Field(
        None,
        alias="as",
        description="The tool name the model sees. Defaults to the contract without its version, dots as "
        "dashes (inventory.items@1 → inventory-items).",
    )

    @property
    def tool_name(self) -> str:
        """The name the model sees."""
        return self.as_name or self.contract.partition("@")[0].replace(".", "-")


class DatasetImport(ManifestModel):
    """`agent.tools.datasets[]`. `tools` is None when the author gave the bare name: every offered tool."""

    dataset: Name = Field(description="A dataset of this package (contributes.datasets).")
    tools: UniqueItems[DatasetTool] | None = Field(
        description="The dataset tools this agent gets; each must be one the dataset offers."
    )


def _service(value: Any) -> Any:
    return {"contract": value} if isinstance(value, str) else value


def _dataset(value: Any) -> Any:
    return {"dataset": value, "tools": None} if isinstance(value, str) else value


class AgentTools(ToolWhitelist):
    """`agent.tools`: tools the agent's model may call."""

    services: UniqueItems[Annotated[ServiceImport, BeforeValidator(_service)]] = Field(
        (),
        description="Services the agent imports as tools. Each names a contract; the one active provider "
        "that offers it to models answers the call. Without one the tool is left out for the run. A write "
        "service's tool stages the provider's writes, which commit with this runtime's work; it is left out "
        "of a run that cannot change data there.",
    )
    datasets: UniqueItems[Annotated[DatasetImport, BeforeValidator(_dataset)]] = Field(
        (),
        description="Datasets of this package the agent reads and writes through generated tools "
        "(<dataset>-get, -list, -upsert, -update). A name gives every tool the dataset offers; "
        "{ dataset, tools } gives some of them.",
    )


class Completion(ManifestModel):
    """`agent.completion`: how the agent run ends."""

    require: Literal["explicit", "tool-use"] | None = Field(
        None,
        description="explicit needs a completing tool or runtime-done. tool-use needs a successful tool "
        "named in afterTools, or any successful business tool when afterTools is empty. Failed calls and "
        "runtime-done do not count.",
    )
    after_tools: UniqueItems[ToolName] = Field(
        (), description="The runtime completes after a successful call to one of these tools."
    )


class Corrections(ManifestModel):
    """`agent.loop.corrections`: independent budgets of one loop run; 0 disables a correction."""

    tool_use: Count = Field(
        1, description="Corrections for missing required tool use or explicit completion. Defaults to 1."
    )
    review: Count = Field(2, description="Corrections after a PostLLMResponse rejection. Defaults to 2.")
    loop_perturbation: Count = Field(
        1, description="Perturbations before the repeated-tool fallback. Defaults to 1."
    )
    output_repair: Count = Field(
        1, description="Requests with tools off to repair invalid output. Defaults to 1."
    )


class Finalizer(ManifestModel):
    """`agent.loop.finalizer`: the final answer step, with tools off."""

    max_steps: bool = Field(
        True,
        description="At the step limit or when the request no longer fits the model's context, ask once for "
        "the answer with tools off. false makes these stops always fail. Defaults to true.",
    )
    deadline_reserve_ms: Annotated[int, Field(ge=0, le=MAX_MS)] = Field(
        0,
        description="Stop starting steps this many ms before the time limit and ask for the answer with "
        "tools off, when prose can complete the runtime. At most half of timeoutMs is used; smaller than "
        "timeoutMs. Defaults to 0, off.",
    )


class Loop(ManifestModel):
    """`agent.loop` as written: None means the default, which depends on visibility and profile."""

    max_steps: Positive | None = Field(
        None,
        description="Maximum number of tool-call steps. Use 1 or 2 for a runtime that calls one tool and "
        f"stops. Defaults to {DEFAULT_MAX_STEPS}.",
    )
    timeout_ms: Milliseconds | None = Field(
        None,
        description="Time limit of the runtime in ms. The time a streamed model call spends writing does not "
        "count. Defaults to 120000; 240000 with io.visibility: story.",
    )
    call_timeout_ms: Milliseconds | None = Field(
        None,
        description="Time limit of one model call that is not streamed, in ms. Defaults to 60000; 120000 "
        "with io.visibility: story.",
    )
    first_token_timeout_ms: Milliseconds | None = Field(
        None,
        description="Time limit for the first streamed token in ms, the same for every attempt. Without it "
        "an attempt waits at most 120000, and no longer than leaves room in timeoutMs for the retries still "
        "allowed.",
    )
    idle_timeout_ms: Milliseconds | None = Field(
        None,
        description="Longest silence of a streamed model call that has started to write, in ms. A model that "
        "keeps writing is not cut off. Defaults to 120000.",
    )
    max_retries: Annotated[int, Field(ge=0, le=5)] | None = Field(
        None,
        description="Retries on a transient model failure; 0 disables retry, 5 is the most. Defaults to 3; 1 "
        "with io.visibility: story.",
    )
    loop_detection: Count | None = Field(
        None,
        description="Number of repeated tool calls that counts as a loop. Defaults to 3; 0 disables "
        "detection.",
    )
    max_recursion_depth: Count | None = Field(
        None, description="Maximum depth of nested ctx.recursive_call(). Defaults to 10."
    )
    profile: Profile | None = Field(
        None,
        description="Loop profile the other loop behaviour keys override. story streams to the player, reads "
        "interjections and keeps a cut reply; actor and system do neither, and actor answers without tools "
        "where system fails. Defaults to story with io.visibility: story, otherwise system; a sub-agent uses "
        "actor.",
    )
    stream: bool | None = Field(
        None,
        description="Show the model's text to the player as it streams. Needs io.visibility: story. Defaults "
        "to the profile's value: true for story.",
    )
    steering: bool | None = Field(
        None,
        description="Merge the player's interjections into the transcript before each step and after a prose "
        "finish. Needs io.visibility: story. Defaults to the profile's value: true for story.",
    )
    truncation: Truncation | None = Field(
        None,
        description="accept keeps a reply cut at the output limit; reject fails it. accept needs streaming. "
        "Defaults to accept for story, otherwise reject.",
    )
    fallback: Fallback | None = Field(
        None,
        description="What a repeated tool loop does: answer-without-tools takes the tools away and asks for "
        "the answer; fail stops the runtime. Defaults to fail for system, otherwise answer-without-tools.",
    )
    corrections: Corrections = Field(
        default_factory=Corrections,
        description="Independent correction budgets for one agent loop run; 0 disables that correction.",
    )
    finalizer: Finalizer = Field(
        default_factory=Finalizer, description="The final answer step, with tools off."
    )


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """`agent.loop` with every value resolved. Times are in ms.

    `first_token_timeout_ms` alone stays None when unset: the limit is derived for each attempt from the time
    and the retries left (spec §11.2).
    """

    profile: Profile
    max_steps: int
    timeout_ms: int
    call_timeout_ms: int
    first_token_timeout_ms: int | None
    idle_timeout_ms: int
    max_retries: int
    loop_detection: int
    max_recursion_depth: int
    stream: bool
    steering: bool
    truncation: Truncation
    fallback: Fallback
    corrections: Corrections
    finalizer: Finalizer

    @property
    def deadline_reserve_ms(self) -> int:
        """The reserve in force: at most half of the time limit is used."""
        return min(self.finalizer.deadline_reserve_ms, self.timeout_ms // 2)


class Agent(ManifestModel):
    """Settings of an agent runtime: it drives model tool calls from the prompt body."""

    model: Slot | None = Field(
        None,
        description="Model slot the agent uses. Defaults to story with io.visibility: story, otherwise "
        "plugin.",
    )
    tool_choice: ToolChoice | None = Field(
        None,
        description="required makes the model call a tool on every step. { name } makes it call that one "
        "tool. Without it, the model chooses.",
    )
    reasoning: bool = Field(
        True,
        description="false turns model reasoning off for this runtime. Defaults to true: the model's own "
        "reasoning setting applies.",
    )
    history: History | None = Field(
        None,
        description="Bounds the agent's prompt history. When omitted, the runtime sees the shared session "
        "history.",
    )
    tools: AgentTools = Field(default_factory=AgentTools, description="Tools the agent's model may call.")
    advertise_events: bool = Field(
        False,
        description="true lists the session's event directory in the prompt so the model knows which topics "
        "it may emit.",
    )
    finish_with: ToolName | None = Field(
        None,
        description="Tool that ends the run: the run completes after a successful call to it, and fails if "
        "it ends without one. The model must call a tool on every step (toolChoice: required) unless "
        "toolChoice says otherwise. Not with completion, which is the long form for several tools or "
        "explicit completion.",
    )
    completion: Completion | None = Field(
        None, description="How the agent run ends. For one completing tool, finishWith is shorter."
    )
    loop: Loop = Field(
        default_factory=Loop, description="Time, retry and step limits of the agent loop, and its profile."
    )

    def rules(self) -> Iterator[Refusal]:
        if self.finish_with is not None and self.completion is not None:
            message = "finishWith and completion exclude each other"
            yield Refusal(("finishWith",), message, "finishWith, or completion")

    def model_slot(self, visibility: Visibility) -> str:
        """The model slot in force."""
        return self.model or ("story" if visibility == "story" else "plugin")

    @property
    def forced_choice(self) -> Literal["required"] | ForcedTool | None:
        """The tool choice in force: `finishWith` forces a call unless `toolChoice` says otherwise."""
        return self.tool_choice or ("required" if self.finish_with is not None else None)

    def loop_defaults(self, visibility: Visibility, *, subagent: bool = False) -> LoopLimits:
        """Resolve every loop value. Spec: plugin-model §11.1.

        Times and retries follow visibility; stream, steering, truncation and fallback follow the profile.
        """
        loop, story = self.loop, visibility == "story"
        profile = loop.profile or ("story" if story else "actor" if subagent else "system")
        stream = _given(loop.stream, profile == "story")
        return LoopLimits(
            profile=profile,
            max_steps=loop.max_steps or DEFAULT_MAX_STEPS,
            timeout_ms=loop.timeout_ms or (240_000 if story else 120_000),
            call_timeout_ms=loop.call_timeout_ms or (120_000 if story else 60_000),
            first_token_timeout_ms=loop.first_token_timeout_ms,
            idle_timeout_ms=loop.idle_timeout_ms or IDLE_TIMEOUT_MS,
            max_retries=(1 if story else 3) if loop.max_retries is None else loop.max_retries,
            loop_detection=3 if loop.loop_detection is None else loop.loop_detection,
            max_recursion_depth=10 if loop.max_recursion_depth is None else loop.max_recursion_depth,
            stream=stream,
            steering=_given(loop.steering, profile == "story"),
            truncation=loop.truncation or ("accept" if profile == "story" and stream else "reject"),
            fallback=loop.fallback or ("fail" if profile == "system" else "answer-without-tools"),
            corrections=loop.corrections,
            finalizer=loop.finalizer,
        )

    def loop_rules(self, visibility: Visibility, *, subagent: bool = False) -> Iterator[Refusal]:
        """Yield what is wrong with the loop for this visibility, relative to `agent.loop`."""
        limits = self.loop_defaults(visibility, subagent=subagent)
        for name, value in (("stream", limits.stream), ("steering", limits.steering)):
            if value and visibility != "story":
                at = name if getattr(self.loop, name) else "profile"
                message = f"{name} needs io.visibility: story"
                yield Refusal((at,), message, f"io.visibility: story, or {name}: false")
        if limits.truncation == "accept" and not limits.stream:
            yield Refusal(("truncation",), "truncation: accept needs streaming", "truncation: reject")
        if limits.finalizer.deadline_reserve_ms >= limits.timeout_ms:
            message = f"deadlineReserveMs must be smaller than timeoutMs ({limits.timeout_ms})"
            accepted = f"less than {limits.timeout_ms}"
            yield Refusal(("finalizer", "deadlineReserveMs"), message, accepted)


def _given(value: bool | None, default: bool) -> bool:
    return default if value is None else value
