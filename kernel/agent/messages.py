"""The provider-neutral transcript: what a model is asked, what it answers, and how the answer arrives.

    ModelRequest       one question: messages, offered tools, limits
    Message, ToolCall  one entry of a transcript
    ModelReply, Usage  one finished answer and what it cost
    WireEvent          a piece of an answer as it streams
    ReplyBuilder       pieces in, reply out; how the answer was cut up makes no difference

Every text here is clean by construction: no model value can hold a lone surrogate, which would make each
later request of the session unsendable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "length", "tool_calls", "content_filter", "error", "other"]


def clean_text(text: str) -> str:
    """Join surrogate pairs and replace every lone surrogate by U+FFFD, so that UTF-8 can carry the text."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_json(value: Any) -> Any:
    """Apply `clean_text` to every string of a JSON value, keys included."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_json(item) for item in value]
    return value


def _clean_if_text(value: Any) -> Any:
    return clean_text(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_clean_if_text)]
Count = Annotated[int, Field(ge=0)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ToolCall(_Frozen):
    """A call as the model wrote it; `arguments` is its raw JSON text, judged by `judge_calls`."""

    id: Text = ""
    name: Text = ""
    arguments: Text = ""


class Message(_Frozen):
    """One entry of a transcript; `tool_call_id` names the call that a `tool` message answers."""

    role: Role
    text: Text = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: Text = ""


class ToolSpec(_Frozen):
    """A tool as it is offered to a model; `parameters` is a JSON Schema of the arguments object."""

    name: Text
    description: Text = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object"})


class ToolName(_Frozen):
    """The tool choice that demands one tool by name."""

    name: Text


ToolChoice = Literal["auto", "required", "none"] | ToolName


class ModelRequest(_Frozen):
    """One question to a model, complete but for the endpoint.

    `reasoning=False` asks the provider not to think aloud where it can be asked
    (Spec: plugin-model §11.1).
    """

    model: Text
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    output_schema: dict[str, Any] | None = None
    max_output_tokens: Annotated[int, Field(gt=0)] = 16384
    temperature: float | None = None
    stream: bool = True
    reasoning: bool = True


class Usage(_Frozen):
    """Tokens of one call; `reported` is false when the provider named none and the numbers are zeros."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: Count = 0
    reported: bool = False


class ModelReply(_Frozen):
    """One finished answer. `finish` is one of plugin-model §33; `model` is what the provider says it ran."""

    text: Text = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish = "other"
    usage: Usage = Usage()
    reasoning_text: Text = ""
    model: Text = ""


class TextDelta(_Frozen):
    """More of the text that a reader may see."""

    kind: Literal["text"] = "text"
    text: Text


class ReasoningDelta(_Frozen):
    """More of the model's thinking, never shown as story."""

    kind: Literal["reasoning"] = "reasoning"
    text: Text


class ToolCallDelta(_Frozen):
    """More of the call at `index`: the first non-empty id counts, name and arguments are joined."""

    kind: Literal["tool_call"] = "tool_call"
    index: Count
    id: Text = ""
    name: Text = ""
    arguments: Text = ""


class Finished(_Frozen):
    """The end of an answer."""

    kind: Literal["finished"] = "finished"
    finish: Finish
    usage: Usage = Usage()
    model: Text = ""


WireEvent = Annotated[TextDelta | ReasoningDelta | ToolCallDelta | Finished, Field(discriminator="kind")]


class ReplyBuilder:
    """Collect the events of one answer. Any chunking of the same answer builds the same reply."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, _OpenCall] = {}
        self._end: Finished | None = None

    @property
    def finished(self) -> bool:
        """Whether the end has been seen; a reply without it is a fragment."""
        return self._end is not None

    def feed(self, event: TextDelta | ReasoningDelta | ToolCallDelta | Finished) -> None:
        """Add one event."""
        match event:
            case TextDelta():
                self._text.append(event.text)
            case ReasoningDelta():
                self._reasoning.append(event.text)
            case ToolCallDelta():
                self._calls.setdefault(event.index, _OpenCall()).add(event)
            case Finished():
                self._end = event

    def reply(self) -> ModelReply:
        """The reply as far as it is known; `finish` is `other` until the end has been seen."""
        end = self._end or Finished(finish="other")
        return ModelReply(
            text="".join(self._text),
            tool_calls=tuple(self._calls[index].call() for index in sorted(self._calls)),
            finish=end.finish,
            usage=end.usage,
            reasoning_text="".join(self._reasoning),
            model=end.model,
        )


class _OpenCall:
    """One call that is still being written."""

    def __init__(self) -> None:
        self.id = ""
        self.name: list[str] = []
        self.arguments: list[str] = []

    def add(self, delta: ToolCallDelta) -> None:
        self.id = self.id or delta.id
        self.name.append(delta.name)
        self.arguments.append(delta.arguments)

    def call(self) -> ToolCall:
        return ToolCall(id=self.id, name="".join(self.name), arguments="".join(self.arguments))
