"""The agent loop as a state machine: feed it a reply or the results of a batch, it answers with a step.

Spec: plugin-model §11.3 (completion) and §11.4 (step mechanics).

    start() ─────────► Ask
    on_reply(reply) ─► RunTools   some call of the reply can run
                       Ask        a correction, or every call was unusable
                       Done
    on_results(…) ───► Ask | Done

Whoever drives it does the I/O. An ending is judged in one place (`_ended`), whatever led to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernel.errors import Code, TurnwrightError
from kernel.wire.agent import AgentSpec, CallOutline, ModelStep, Nudge, ToolFacts, ToolOutcome
from kernel.wire.base import outline
from kernel.wire.failure import Failure
from kernel.wire.usage import UsageTotals

EMPTY_REPLIES = 3
"""Corrections of empty replies in one run; the next empty reply fails it (cases B9, B11)."""

NO_PROGRESS = 3
"""Replies in a row whose every call is unusable that count as a loop (DECISIONS 10)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Call the model.

    Attributes:
        step: ordinal of the reply, from 1.
        tool_choice: 'auto', 'required', 'none', or `=name`.
        nudge: correction to put before the request.
    """

    step: int
    tool_choice: str
    nudge: Nudge | None = None


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call that may run. `index` is its place among all calls of the reply, from 0."""

    index: int
    call: CallOutline
    gated: bool
    builtin: bool
    finishing: bool


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls of reply `step`, and answer with their results in this order."""

    step: int
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The run ended. `usage` adds up all replies, failed ones too."""

    status: Literal["success", "failed", "skipped"]
    reason: Code | Literal[""]
    message: str
    usage: UsageTotals


Step = Ask | RunTools | Done


class AgentLoop:
    """One agent run, from the first request to its end. Pure: the same feed gives the same steps.

    Raises:
        TurnwrightError: `internal`, from every method, when it is fed out of turn.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._usage = UsageTotals()
        self._last: Step | None = None
        self._step = 0
        self._tool_replies = 0
        self._left: dict[Nudge, int] = {
            "tool-use": spec.tool_use_corrections,
            "output-repair": spec.output_repairs,
            "loop": spec.loop_perturbations,
            "empty-reply": EMPTY_REPLIES,
            "shorter": 1,
        }
        self._tools_off = False
        self._finished = False
        self._batch_has_error = False
        self._batch: tuple[str, ...] = ()
        self._repeats = 0
        self._unusable = 0

    @property
    def usage(self) -> UsageTotals:
        """What the replies so far have cost; a run that is stopped reports it."""
        return self._usage

    def start(self) -> Step:
        """The first request."""
        if self._last is not None:
            raise TurnwrightError(Code.INTERNAL, "the agent loop was started twice")
        return self._ask()

    def on_reply(self, reply: ModelStep) -> Step:
        """Judge the reply to the last `Ask`."""
        if not isinstance(self._last, Ask):
            raise TurnwrightError(Code.INTERNAL, "the agent loop got a reply that it did not ask for")
        self._usage += reply.usage
        if reply.skipped:
            return self._done("skipped", reply.skipped)
        if reply.failed:
            return self._done("failed", reply.failed)
        if reply.finish == "length":
            return self._cut(reply, self._last)
        self._left["shorter"] = 1
        if reply.calls and not self._tools_off:
            return self._called(reply.calls)
        return self._ended(reply)

    def on_results(self, results: Sequence[ToolOutcome]) -> Step:
        """Go on after a batch of calls, whose results come in the order of `RunTools.calls`."""
        if not isinstance(self._last, RunTools) or len(results) != len(self._last.calls):
            raise TurnwrightError(Code.INTERNAL, "the agent loop got results that it did not ask for")
        outcomes = list(zip(self._last.calls, results, strict=True))
        if any(planned.finishing and outcome.ok for planned, outcome in outcomes):
            self._finished = True
            # The model first answers an error beside the completing call: it may want to repair it.
            if not self._batch_has_error and all(outcome.ok for _, outcome in outcomes):
                return self._success()
        return self._go_on()

    # Replies

    def _called(self, calls: tuple[CallOutline, ...]) -> Step:
        """A reply with calls: run the usable ones; the others have their answers already."""
        self._tool_replies += 1
        self._batch_has_error = any(call.error for call in calls)
        batch = tuple(sorted(call.digest for call in calls))
        self._repeats = self._repeats + 1 if batch == self._batch else 1
        self._batch = batch
        planned = tuple(self._plan(i, call) for i, call in enumerate(calls) if call.error is None)
        if not planned:
            self._unusable += 1
            return self._go_on()
        self._unusable = 0
        return self._take(RunTools(self._step, planned))

    def _plan(self, index: int, call: CallOutline) -> PlannedCall:
        facts = self._spec.tools.get(call.name, ToolFacts())
        finishing = call.name == self._spec.finish_with
        return PlannedCall(index, call, facts.gated, facts.builtin, finishing)

    def _cut(self, reply: ModelStep, asked: Ask) -> Step:
        """The output limit cut the reply: its calls are unusable, its text is kept where allowed."""
        if self._spec.story and self._spec.accept_truncated and reply.text and not reply.calls:
            return self._ended(reply)
        if self._spend("shorter"):
            return self._ask("shorter", choice=asked.tool_choice)
        return self._fail(Code.MODEL_TRUNCATED, "the output limit cut the reply twice in a row")

    # Endings

    def _ended(self, reply: ModelStep) -> Step:
        """The model wants to end: it calls nothing, or was not allowed to call anything."""
        if self._finished:
            return self._success()
        if reply.calls or not reply.text:
            return self._empty()
        if self._spec.finish_with:
            return self._unfinished(self._spec.finish_with)
        if self._spec.schema_ending and not self._spec.story and reply.ending != "valid":
            return self._repair()
        return self._success()

    def _empty(self) -> Step:
        if self._spend("empty-reply"):
            return self._ask("empty-reply")
        return self._fail(Code.MODEL_EMPTY, f"the model kept replying with nothing ({EMPTY_REPLIES} nudges)")

    def _unfinished(self, tool: str) -> Step:
        if self._spend("tool-use"):
            return self._ask("tool-use")
        return self._fail(Code.AGENT_UNFINISHED, f"the run ended without a successful call of {tool}")

    def _repair(self) -> Step:
        if self._spend("output-repair"):
            return self._ask_without_tools("output-repair")
        return self._fail(Code.RUNTIME_OUTPUT, "the final reply does not satisfy the output schema")

    # Going on after calls

    def _go_on(self) -> Step:
        if self._tool_replies >= self._spec.max_steps:
            return self._step_limit()
        if self._in_a_loop():
            return self._break_loop()
        return self._ask()

    def _step_limit(self) -> Step:
        """Out of steps: one request for the answer, where an answer can complete the run."""
        if self._finished:
            return self._success()
        if self._spec.final_answer and not self._spec.finish_with:
            return self._ask_without_tools("final-answer")
        steps = self._spec.max_steps
        return self._fail(Code.AGENT_STEPS, f"the run used its {steps} steps without coming to an end")

    def _in_a_loop(self) -> bool:
        limit = self._spec.loop_detection
        return self._unusable >= NO_PROGRESS or 0 < limit <= self._repeats

    def _break_loop(self) -> Step:
        """A loop: a nudge, then the answer without tools or the end.

        The counts stay: a model that repeats itself once more after the nudge has not heeded it.
        """
        if self._spend("loop"):
            return self._ask("loop")
        if self._finished:
            return self._success()
        if self._spec.fallback_answers and not self._spec.finish_with:
            return self._ask_without_tools("final-answer")
        if self._unusable >= NO_PROGRESS:
            return self._fail(Code.AGENT_LOOP, f"{self._unusable} replies in a row had no usable tool call")
        return self._fail(Code.AGENT_LOOP, f"the same tool calls came {self._repeats} times in a row")

    # Steps

    def _ask_without_tools(self, nudge: Nudge) -> Step:
        """Once the tools are off they stay off: only an ending is wanted now."""
        self._tools_off = True
        return self._ask(nudge)

    def _ask(self, nudge: Nudge | None = None, choice: str | None = None) -> Step:
        self._step += 1
        return self._take(Ask(self._step, choice or self._choice(), nudge))

    def _choice(self) -> str:
        if self._tools_off:
            return "none"
        if self._spec.finish_with and self._spec.tool_choice == "auto":
            return "auto" if self._finished else "required"
        return self._spec.tool_choice

    def _spend(self, nudge: Nudge) -> bool:
        """Take one correction from its budget; False when none is left."""
        self._left[nudge] -= 1
        return self._left[nudge] >= 0

    def _success(self) -> Step:
        return self._done("success", None)

    def _fail(self, code: Code, message: str) -> Step:
        return self._done("failed", Failure(code=code, message=outline(message)))

    def _done(self, status: Literal["success", "failed", "skipped"], why: Failure | None) -> Step:
        reason: Code | Literal[""] = why.code if why else ""
        return self._take(Done(status, reason, why.message if why else "", self._usage))

    def _take(self, step: Step) -> Step:
        self._last = step
        return step
