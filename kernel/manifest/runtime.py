"""A runtime's manifest: the frontmatter of `RUNTIME.md`, or `runtime:` of `PLUGIN.md`.

Spec: plugin-model §4-11, §25; seed 000, every field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from kernel.manifest.agent import Agent, LoopLimits, ToolWhitelist, Visibility
from kernel.manifest.fields import (
    FORM_MARK,
    ByForm,
    ContractId,
    ContractReference,
    ContractTag,
    HttpsOrigin,
    Items,
    KernelTag,
    Key,
    ManifestModel,
    Milliseconds,
    PathText,
    Pointer,
    Positive,
    Refusal,
    RuntimeReference,
    RuntimeTag,
    Slot,
    Text,
    UniqueItems,
    is_contract_id,
)
from kernel.manifest.schedule import Schedule

FUNCTION_TIMEOUT_MS: Final = 120_000
_PLAIN: Final = Agent()
CONTRACT_PREFIX: Final = "contract:"
HttpMethod: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
EFFECT_KINDS: Final = frozenset(
    {
        "state",
        "narrative",
        "characters",
        "assets",
        "media",
        "lorebook",
        "ui",
        "interaction",
        "unknown",
        "plugin-data",
        "event",
        "http",
    }
)


class KernelReference(ManifestModel):
    """A value that the host itself provides."""

    kernel: Literal["turn-digest@1", "operations@1"] = Field(
        description="Kernel input: the turn digest or staged operations from completed upstream runs."
    )

    @property
    def form_tag(self) -> str:
        """The union tag of this form."""
        return FORM_MARK + "kernel"


InputSource: TypeAlias = Annotated[
    Annotated[RuntimeReference, RuntimeTag]
    | Annotated[ContractReference, ContractTag]
    | Annotated[KernelReference, KernelTag],
    ByForm,
]


class InputBinding(ManifestModel):
    """`io.inputs.*`: one typed input."""

    source: InputSource = Field(
        alias="from",
        description="Producer of the value: a runtime in this package, a contract, or a kernel input. A "
        "kernel input takes no other field.",
    )
    scope: Literal["turn", "committed"] = Field(
        "turn",
        description="turn reads the same execution's upstream result. committed reads the latest committed "
        "export and needs recordAs. Defaults to turn.",
    )
    select: Pointer | None = Field(
        None,
        description="JSON Pointer applied to the upstream value. Declaring select with scope: committed is "
        "rejected; committed inputs read the complete export.",
    )
    required: bool = Field(
        True,
        description="true stops this runtime when the upstream value is missing or failed. Defaults to true. "
        "A story runtime (io.visibility: story) must set it to false for contract inputs.",
    )
    accepts: PathText | None = Field(
        None,
        description="Schema the bound value must satisfy: a local path or contract:<contractId>. It adds to "
        "the public contract check.",
    )
    record_as: Key | None = Field(
        None, description="Export key to read from the producer. Required with scope: committed."
    )

    @property
    def accepts_contract(self) -> str | None:
        """The contract that `accepts` names, or None for a path."""
        named = self.accepts is not None and self.accepts.startswith(CONTRACT_PREFIX)
        return (self.accepts or "").removeprefix(CONTRACT_PREFIX) if named else None

    def rules(self) -> Iterator[Refusal]:
        if isinstance(self.source, KernelReference):
            for name in sorted(self.model_fields_set - {"source"}):
                alias = type(self).model_fields[name].alias or name
                yield Refusal((alias,), f"a kernel input takes no {alias}", "from alone")
            return
        if self.scope == "committed":
            yield from self._committed_rules()
        elif self.record_as is not None:
            yield Refusal(("recordAs",), "recordAs goes with scope: committed", "scope: committed")
        if (contract := self.accepts_contract) is not None and not is_contract_id(contract):
            yield Refusal(("accepts",), "accepts names no contract id", "contract:<name>@<N>")

    def _committed_rules(self) -> Iterator[Refusal]:
        if self.declares("select"):
            message = "select is rejected with scope: committed, which reads the complete export"
            yield Refusal(("select",), message, "no select, or scope: turn")
        if self.record_as is None:
            yield Refusal(("recordAs",), "recordAs is required with scope: committed", "the export key")


class SelfData(ManifestModel):
    """`io.selfData[]`: own plugin data inlined into the agent prompt."""

    namespace: str = Field(
        min_length=1,
        max_length=128,
        description="Own data namespace to inline. Data of other plugins cannot be read.",
    )
    as_tag: Annotated[str, Field(pattern=r"^<[A-Za-z][A-Za-z0-9_-]{0,63}>$")] = Field(
        alias="as",
        description="Tag that wraps the injected block in the prompt, in its brackets: "
        '"<existing-affinity>".',
    )
    format: Literal["summary", "full", "ids-only"] = Field(
        "summary",
        description="summary lists key, update time and truncated JSON. ids-only lists keys. full lists "
        "complete JSON. Defaults to summary.",
    )
    max_entries: Positive = Field(
        50,
        description="Maximum number of entries injected. Above it, half are the oldest and half the most "
        "recently updated. Defaults to 50.",
    )

    def rules(self) -> Iterator[Refusal]:
        if self.namespace.startswith("_"):
            message = f"namespace {self.namespace} is hidden or reserved and cannot be injected"
            yield Refusal(("namespace",), message, "a namespace that does not start with _")


class Output(ManifestModel):
    """`io.output`: what the runtime produces."""

    contract: ContractId | None = Field(
        None,
        description="Contract this runtime's output publishes. The package provides it; provides needs no "
        "entry for it.",
    )
    schema_path: PathText | None = Field(
        None, alias="schema", description="Private schema that validates the runtime's output."
    )
    record_as: Key | None = Field(
        None,
        description="Export key under which the output is persisted for later executions. Requires schema.",
    )

    def rules(self) -> Iterator[Refusal]:
        if self.record_as is not None and self.schema_path is None:
            yield Refusal(("recordAs",), "recordAs requires schema", "io.output.schema")


class Io(ManifestModel):
    """`io`: what the runtime reads and produces."""

    inputs: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")], InputBinding] = Field(
        default_factory=dict,
        description="Typed input bindings keyed by local name. An agent reads them at "
        "runtime-inputs.<name>.value.",
    )
    self_data: Items[SelfData] = Field((), description="Own plugin data inlined into the agent prompt.")
    payload_schema: PathText | None = Field(None, description="Schema that validates the activation payload.")
    output: Output = Field(default_factory=Output, description="What the runtime produces.")
    visibility: Visibility = Field(
        "system",
        description="Output kind the kernel dispatches on: story for the main narrative provider, system for "
        "every other runtime. Defaults to system.",
    )
    concealed: bool = Field(
        False,
        description="true for a runtime that handles hidden content. Its prompt, model reply, tool "
        "arguments, results and output are removed from traces, live streams and API results, and text it "
        "returns is not written to the conversation. Not allowed with visibility: story.",
    )

    def rules(self) -> Iterator[Refusal]:
        if self.visibility != "story":
            return
        if self.concealed:
            yield Refusal(("concealed",), "concealed is not allowed with visibility: story", "false")
        for name, binding in self.inputs.items():
            if isinstance(binding.source, ContractReference) and binding.required:
                message = "a story runtime must set required: false on a contract input"
                yield Refusal(("inputs", name, "required"), message, "required: false")


class Function(ManifestModel):
    """`function`: a runtime that runs a Python handler instead of a model."""

    handler: PathText | None = Field(
        None,
        description="Path of the handler module, relative to this manifest; it defines `async def "
        "handler(ctx)`. Defaults to ./handler.py next to the manifest when that file exists.",
    )
    model: Slot | None = Field(
        None,
        description="Model slot the handler's gateway calls route through. Declared so a detached job's "
        "credential readiness check judges the same slot the call resolves.",
    )
    timeout_ms: Milliseconds = Field(
        FUNCTION_TIMEOUT_MS,
        description=f"Time limit of the handler in ms. Defaults to {FUNCTION_TIMEOUT_MS}.",
    )
    tools: ToolWhitelist | None = Field(
        None, description="Tools the handler may call through ctx.tools.call."
    )


Effect: TypeAlias = Annotated[str, Field(min_length=1, max_length=256)]


class Effects(ManifestModel):
    """`effects`: declared read and write sets, used to detect parallel hazards."""

    reads: UniqueItems[Effect] = Field(
        (),
        description="Resources the runtime reads, such as narrative:* or plugin-data:self:<namespace>. "
        "Entries must be unique.",
    )
    writes: UniqueItems[Effect] = Field(
        (),
        description="Resources the runtime writes, such as state:* or event:<topic>. Entries must be unique.",
    )
    parallel_safe: bool = Field(
        False,
        description="true states that the runtime is safe to run in parallel with its stage siblings.",
    )


class HttpPermission(ManifestModel):
    """`permissions.http[]`. `methods` is None when every method is allowed."""

    origin: HttpsOrigin = Field(
        description="HTTPS origin the runtime may call, without path, query or credentials."
    )
    methods: UniqueItems[HttpMethod] | None = Field(
        None, description="HTTP methods the runtime may use there. Entries must be unique."
    )


class Permissions(ManifestModel):
    """`permissions`: declared upper bounds."""

    http: UniqueItems[HttpPermission] = Field(
        (), description="Upper bound of the HTTP origins and methods the runtime may use."
    )


class RuntimeManifest(ManifestModel):
    """Every field of a runtime."""

    description: Text | None = Field(
        None, description="What the runtime does. Plain string; translations go in locale files."
    )
    schedule: Schedule = Field(description="When and in what order the runtime runs.")
    io: Io = Field(default_factory=Io, description="What the runtime reads and produces.")
    agent: Agent | None = Field(
        None,
        description="Settings of an agent runtime, the kind of a runtime without a function block: it drives "
        "model tool calls from the prompt body.",
    )
    function: Function | None = Field(
        None,
        description="Makes this a function runtime, which runs a Python handler instead of a model. "
        "function: {} takes every default. Not allowed with agent.",
    )
    guard: PathText | None = Field(
        None, description="Path of the guard module. It runs before the runtime and can skip it."
    )
    effects: Effects | None = Field(
        None, description="Declared read and write sets, used to detect parallel hazards."
    )
    permissions: Permissions = Field(
        default_factory=Permissions, description="Declared permission upper bounds."
    )

    @property
    def kind(self) -> Literal["agent", "function"]:
        """A runtime without a function block is an agent."""
        return "agent" if self.function is None else "function"

    @property
    def agent_settings(self) -> Agent:
        """`agent`, or its defaults when the block is left out."""
        return self.agent or _PLAIN

    @property
    def loop_limits(self) -> LoopLimits:
        """The agent loop with every value resolved for this runtime."""
        subagent = self.schedule.subagent_only
        return self.agent_settings.loop_defaults(self.io.visibility, subagent=subagent)

    @property
    def model_slot(self) -> str | None:
        """The model slot in force; None for a function that declares none."""
        if self.function is not None:
            return self.function.model
        return self.agent_settings.model_slot(self.io.visibility)

    def rules(self) -> Iterator[Refusal]:
        if self.agent is not None and self.function is not None:
            yield Refusal(("function",), "agent and function exclude each other", "agent, or function")
        if self.agent is not None:
            loop_rules = self.agent.loop_rules(self.io.visibility, subagent=self.schedule.subagent_only)
            for found in loop_rules:
                yield Refusal(("agent", "loop", *found.at), found.message, found.accepted)
        if self.schedule.subagent_only:
            yield from self._subagent_rules()
        if self.schedule.background:
            for name, binding in self.io.inputs.items():
                if binding.scope == "turn" and not isinstance(binding.source, KernelReference):
                    message = "a background run belongs to no turn whose results it could read"
                    yield Refusal(("io", "inputs", name, "scope"), message, "scope: committed")

    def _subagent_rules(self) -> Iterator[Refusal]:
        if self.function is not None:
            yield Refusal(("function",), "subagentOnly is for agent runtimes", "an agent runtime")
        if self.guard is not None:
            yield Refusal(("guard",), "guard is not allowed with subagentOnly", "no guard")
        if self.io.visibility == "story":
            yield Refusal(
                ("io", "visibility"), "visibility: story is not allowed with subagentOnly", "system"
            )
        if self.io.output.record_as is not None:
            message = "recordAs is not allowed with subagentOnly"
            yield Refusal(("io", "output", "recordAs"), message, "no recordAs")
