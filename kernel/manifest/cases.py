"""Cases of a package: `tests/runtime-cases.json`, read strictly. Spec: plugin-model §31.

Every field of the source parses. What no run of this version can do is refused by name when the case runs:
`later` lists it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic
from kernel.manifest.fields import Items, Label, ManifestModel, Namespace, Refusal, Text, ToolName
from kernel.manifest.problems import validate

CASE_FILES: Final = ("tests/runtime-cases.json", "covel.test.json")
"""Where cases stand in a package; the first that exists counts."""

MAX_BYTES: Final = 1024 * 1024

_REPLIES: Final = ("llm_content", "llm_object", "llm_response", "llm_responses")

Status = Literal["success", "skipped", "failed", "suspended"]


class ScriptedCall(ManifestModel):
    """`llmResponse.toolCalls[]`: a tool that the model calls."""

    id: Label | None = Field(None, description="ID of the call. Made up when it is left out.")
    name: ToolName = Field(description="Name of the tool.")
    arguments: str = Field("{}", description="Arguments as a JSON string; it need not be valid.")


class ScriptedUsage(ManifestModel):
    """`llmResponse.usage`: tokens that the reply reports."""

    prompt_tokens: Annotated[int, Field(ge=0)] = Field(0, description="Tokens of the request.")
    completion_tokens: Annotated[int, Field(ge=0)] = Field(0, description="Tokens of the reply.")


class ScriptedReply(ManifestModel):
    """`llmResponse`, and each of `llmResponses`: one reply of the model."""

    content: str = Field("", description="Text of the reply.")
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"] | None = Field(
        None, description="Why the reply ends. Defaults to tool_calls with toolCalls, otherwise stop."
    )
    tool_calls: Items[ScriptedCall] = Field((), description="Tools that the reply calls.")
    usage: ScriptedUsage = Field(default_factory=ScriptedUsage, description="Tokens that it reports.")


class ExpectedRun(ManifestModel):
    """`expect.runtimeResults[]`: how a runtime ends."""

    runtime_id: str = Field(min_length=1, max_length=140, description="The runtime.")
    status: Status = Field(description="How it ends.")
    error_includes: Text | None = Field(None, description="Part of its message, or its code.")


class ExpectedEvent(ManifestModel):
    """`expect.events[]`: an event that is committed."""

    topic: Label = Field(description="Topic of the event.")


class ExpectedRecord(ManifestModel):
    """`expect.pluginData[]`: a record of the package under test after the commit."""

    namespace: Namespace = Field(description="Namespace of the record.")
    key: Annotated[str, Field(min_length=1, max_length=512)] | None = Field(
        None, description="Its key. Without it, any record of the namespace counts."
    )
    status: Literal["present", "absent"] = Field(
        "present", description="Whether it is there. Defaults to present."
    )
    field: Label | None = Field(
        None, description="A field that the value has, or a JSON Pointer to a place that it has."
    )


class ExpectedAsset(ManifestModel):
    """`expect.assetGenerations[]`."""

    modality: Label = Field(description="Kind of the asset.")
    field: Label | None = Field(None, description="Field that refers to it.")


class Expectation(ManifestModel):
    """`expect`: what has to come out. A failure that is not expected fails the case anyway."""

    runtime_results: Items[ExpectedRun] = Field((), description="How runtimes end.")
    events: Items[ExpectedEvent] = Field((), description="Events that are committed.")
    logs: Items[Text] = Field((), description="Parts of lines that the code logs.")
    plugin_data: Items[ExpectedRecord] = Field((), description="Records of the package afterwards.")
    asset_generations: Items[ExpectedAsset] = Field((), description="Assets that are generated.")


class Artifacts(ManifestModel):
    """`artifacts`: what a case writes to disk."""

    save_images: Any = Field(None, description="{ namespace, field, dir } of images to save.")


class Case(ManifestModel):
    """One case: a turn or a manual run, the model's replies, and what is expected."""

    name: Label = Field(description="Name of the case, unique in its file.")
    runtime_id: str | None = Field(
        None,
        min_length=1,
        max_length=140,
        description="Runtime under test: <pluginId>/<runtimeId>, or the package ID for a single runtime. "
        "Required in a package of several runtimes.",
    )
    message: Text | None = Field(None, description="What the player does. Defaults to a neutral sentence.")
    payload: Any = Field(None, description="Payload of a manual run.")
    user_settings: dict[str, Any] = Field(
        default_factory=dict, description="Settings of the package, by key, as a player sets them."
    )
    mode: Literal["mock", "live"] = Field(
        "mock",
        description="live plays against the configured models; --live does so for every case. "
        "Defaults to mock.",
    )
    character_schema: Any = Field(None, description="Attributes of the world's characters.")
    with_plugins: Items[Label] = Field(
        (), description="Further packages that are active: IDs, or paths from this package's folder."
    )
    ignore_upstreams: bool = Field(False, description="true runs the runtime without its upstreams.")
    llm_content: str | None = Field(None, description="The one reply of the model, as text.")
    llm_object: Any = Field(None, description="The one reply of the model, as JSON.")
    llm_response: ScriptedReply | None = Field(None, description="The one reply of the model, whole.")
    llm_responses: Items[ScriptedReply] = Field((), description="Replies of the model, in order.")
    artifacts: Artifacts | None = Field(None, description="What is written to disk afterwards.")
    expect: Expectation = Field(default_factory=Expectation, description="What has to come out.")

    def rules(self) -> Iterator[Refusal]:
        given = [name for name in _REPLIES if self.declares(name)]
        if len(given) > 1:
            first, second = (_camel(name) for name in given[:2])
            yield Refusal((second,), f"{second} goes not with {first}", "one of them")

    @property
    def replies(self) -> tuple[ScriptedReply, ...] | None:
        """The model's replies to the runtime under test; None leaves them to the offline model."""
        if self.llm_content is not None:
            return (ScriptedReply.model_construct(content=self.llm_content),)
        if self.declares("llm_object"):
            return (ScriptedReply.model_construct(content=json.dumps(self.llm_object)),)
        if self.llm_response is not None:
            return (self.llm_response,)
        return self.llm_responses if self.declares("llm_responses") else None


class CaseFile(ManifestModel):
    """`tests/runtime-cases.json`: `{ "cases": […] }`, or the array alone."""

    cases: Items[Case] = Field(description="The cases, each with a name of its own.")

    def rules(self) -> Iterator[Refusal]:
        names = [case.name for case in self.cases]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Refusal(("cases", index, "name"), f"{name} names two cases", "each name once")


def read_cases(content: bytes, *, file: str) -> tuple[tuple[Case, ...], list[Diagnostic]]:
    """The cases of a file, or every problem of it."""
    if len(content) > MAX_BYTES:
        message = f"{file} is larger than {MAX_BYTES} bytes"
        return (), [Diagnostic(Code.PACKAGE_SIZE, message, file, accepted=f"at most {MAX_BYTES} bytes")]
    try:
        data = json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        message = f"{file} is not JSON: {error.msg}"
        return (), [Diagnostic(Code.PACKAGE_FIELD, message, file, error.lineno, accepted="JSON")]
    except (ValueError, RecursionError) as error:
        message = f"{file} is not JSON: {type(error).__name__}"
        return (), [Diagnostic(Code.PACKAGE_FIELD, message, file, accepted="JSON in UTF-8")]
    whole = {"cases": data} if isinstance(data, list) else data
    found, problems = validate(CaseFile, whole, file=file, lines={})
    return (found.cases if found else ()), problems


def later(case: Case) -> tuple[str, ...]:
    """Fields of a case that no run of this version can heed."""
    asked = {
        "characterSchema": case.character_schema is not None,
        "ignoreUpstreams": case.ignore_upstreams,
        "artifacts": case.artifacts is not None,
        "expect.assetGenerations": bool(case.expect.asset_generations),
    }
    return tuple(name for name, used in asked.items() if used)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)
