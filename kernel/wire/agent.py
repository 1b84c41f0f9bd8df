"""Payloads of the `Agent` workflow and its activities."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kernel.errors import Code
from kernel.wire.base import Outline, Wire
from kernel.wire.failure import Failure
from kernel.wire.hooks import HookSubscription
from kernel.wire.usage import UsageTotals

Finish = Literal["stop", "length", "tool_calls", "content_filter", "error", "other"]


class ToolFacts(Wire):
    """What the loop must know of a tool: where it runs, and whether a person must say yes."""

    builtin: bool = False
    gated: bool = False


class AgentSpec(Wire):
    """The loop of one agent runtime, resolved; defaults are not written. Spec: plugin-model §11.1.

    Attributes:
        slot: model slot that answers.
        tool_choice: 'auto', 'required', or `=name` for one tool.
        finish_with: tool that ends the run.
        story: the ending is prose for the player.
        schema_ending: the ending is JSON that satisfies the output schema.
        max_steps: most replies of the model that call tools.
        loop_detection: equal calls in a row that count as a loop; 0 turns it off.
        tool_use_corrections, output_repairs, loop_perturbations: budgets of the run.
        fallback_answers: a loop takes the tools away and asks for the answer; else it fails.
        final_answer: at the step limit, ask once for the answer with tools off; else fail.
        accept_truncated: keep a story text that was cut at the output limit.
        approval_deadline_ms: how long a person may take.
    """

    slot: str
    tools: dict[str, ToolFacts] = Field(default_factory=dict)
    tool_choice: str = "auto"
    finish_with: str | None = None
    story: bool = False
    schema_ending: bool = False
    max_steps: int = 32
    loop_detection: int = 3
    tool_use_corrections: int = 1
    output_repairs: int = 1
    loop_perturbations: int = 1
    fallback_answers: bool = False
    final_answer: bool = True
    accept_truncated: bool = False
    timeout_ms: int = 120_000
    approval_deadline_ms: int = 86_400_000


class AgentInput(Wire):
    """Starts an agent run.

    Attributes:
        upstream: runtimes whose success this run may read.
        hooks: who listens to the run's moments, as registered; not written while nobody does.
    """

    session_id: str
    turn_id: str
    runtime_id: str
    spec: AgentSpec
    upstream: tuple[str, ...] = ()
    call: str | None = None
    hooks: tuple[HookSubscription, ...] = ()


Nudge = Literal["tool-use", "loop", "empty-reply", "output-repair", "final-answer", "shorter"]


class CallModel(Wire):
    """Input of `call_model`: one step of one run.

    Attributes:
        step: ordinal of the reply, from 1; with the run it is the idempotency key.
        tool_choice: 'auto', 'required', 'none', or `=name`.
        nudge: correction to put before the request; its text is chosen where the prompt is.
        remaining_ms: what is left of the run's time.
        upstream: as in AgentInput; only the first step carries it.
    """

    session_id: str
    turn_id: str
    runtime_id: str
    step: int
    tool_choice: str = "auto"
    nudge: Nudge | None = None
    remaining_ms: int = 120_000
    upstream: tuple[str, ...] = ()


class CallOutline(Wire):
    """One tool call of a reply; its arguments stand in the store.

    Attributes:
        digest: over name and canonical arguments; equal digests are equal calls.
        error: code of a call that must not run; its answer to the model is already stored.
        outline: arguments, for a person; only of calls that need approval.
    """

    id: str
    name: str
    digest: str
    error: Code | None = None
    outline: Outline = ""


class ModelStep(Wire):
    """Result of `call_model`: small, whatever the reply's size.

    Attributes:
        calls: tool calls in the order of the reply, or none.
        text: whether the reply has non-empty text.
        ending: for a reply without calls: does it satisfy the output schema?
        failed: no usable reply: every attempt failed, or the run's inputs are missing.
        skipped: a required input has no value; the run never called a model.
    """

    finish: Finish = "stop"
    calls: tuple[CallOutline, ...] = ()
    text: bool = False
    ending: Literal["valid", "invalid"] | None = None
    failed: Failure | None = None
    skipped: Failure | None = None
    usage: UsageTotals = Field(default_factory=UsageTotals)


class RunTool(Wire):
    """Input of `run_tool`: one call of a stored reply.

    Attributes:
        refused: the call must not run; store this code as its answer.
        finishing: a success becomes the run's output.
    """

    session_id: str
    turn_id: str
    runtime_id: str
    step: int
    index: int
    name: str
    finishing: bool = False
    refused: Code | None = None
    note: Outline = ""


class ToolOutcome(Wire):
    """Result of `run_tool`; the model reads the whole from the store."""

    ok: bool
    code: Code | None = None
    message: Outline = ""
