"""The closed list of error codes, and the one exception that carries them.

    TurnwrightError          a refusal with a code, a place and what would be accepted
    Code                     every code there is; nothing else may reach a person, a log or a history

A code is dotted, `<concern>.<what>`; codes that a source document names keep their name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """Every error code of the product."""

    # Messages and connection
    WIRE_MALFORMED = "wire.malformed"
    WIRE_TOO_LARGE = "wire.too-large"
    CODEC_ENCRYPTED = "codec.encrypted-payload"
    CODEC_PLAINTEXT = "codec.plaintext-payload"
    CODEC_KEY = "codec.wrong-key"
    SERVER_UNREACHABLE = "server.unreachable"
    SERVER_ATTRIBUTES = "server.search-attributes"
    SERVER_START_FAILED = "server.start-failed"
    WORKER_START_FAILED = "worker.start-failed"
    WORKER_ABSENT = "worker.absent"
    WORKER_NOT_CURRENT = "worker.not-current"
    WORKFLOW_STUCK = "workflow.stuck"
    WORKFLOW_FAILED = "workflow.failed"

    # Configuration and store
    CONFIG_INVALID = "config.invalid"
    CONFIG_ENCRYPTION_KEY = "config.encryption-key"
    STORE_UNREACHABLE = "store.unreachable"
    STORE_NOT_MIGRATED = "store.not-migrated"
    STORE_CONFLICT = "store.conflict"

    # Sessions, turns, answers
    SESSION_UNKNOWN = "session.unknown"
    SESSION_EXISTS = "session.exists"
    SESSION_ID = "session.id-invalid"
    SESSION_PAUSED = "session.paused"
    SESSION_ENDED = "session.ended"
    SESSION_QUEUE_FULL = "session.queue-full"
    SESSION_SETTLE_TIMEOUT = "session.settle-timeout"
    SESSION_STALE = "session.stale-incarnation"
    TURN_UNKNOWN = "turn.unknown"
    TURN_STOPPED = "turn.stopped"
    TURN_REJECTED = "turn.rejected"
    ACTION_INVALID = "action.invalid"
    RUNTIME_UNKNOWN = "runtime.unknown"
    RUNTIME_NOT_MANUAL = "runtime.not-manual"
    APPROVAL_UNKNOWN = "approval.unknown"
    NOT_SUPPORTED = "feature.not-supported"

    # Packages
    PACKAGE_UNKNOWN = "package.unknown"
    PACKAGE_EXISTS = "package.exists"
    PACKAGE_DISABLED = "package.disabled"
    PACKAGE_INVALID = "package.invalid"
    PACKAGE_DIGEST = "package.digest-mismatch"
    PACKAGE_UNSUPPORTED = "package.unsupported-feature"
    PACKAGE_LOAD = "package.load-failed"
    PACKAGE_APPROVAL = "package.approval-required"
    PACKAGE_ISOLATION = "package.isolation"
    PACKAGE_LAYOUT = "package.layout"
    PACKAGE_PATH = "package.path"
    PACKAGE_FIELD = "package.field"
    PACKAGE_COMBINATION = "package.combination"
    PACKAGE_REFERENCE = "package.reference"
    PACKAGE_CYCLE = "package.cycle"
    PACKAGE_CONTRACT = "package.contract"
    PACKAGE_AMBIGUOUS_CONTRACT = "package.ambiguous-output-contract"
    PACKAGE_SCHEMA = "package.schema"
    PACKAGE_RANGE = "package.range"
    PACKAGE_MODULE = "package.module"
    PACKAGE_SIZE = "package.size"
    PACKAGE_RETIRED = "package.retired-field"
    PACKAGE_LOCALE = "package.locale"
    PACKAGE_ADVICE = "package.advice"
    YAML_SYNTAX = "yaml.syntax"
    YAML_DUPLICATE_KEY = "yaml.duplicate-key"
    YAML_ALIAS = "yaml.alias"
    YAML_NUMBER = "yaml.number"
    YAML_TAG = "yaml.tag"
    ACTIVATION_MISSING_PROVIDER = "activation.missing-provider"
    ACTIVATION_AMBIGUOUS_PROVIDER = "activation.ambiguous-provider"
    ACTIVATION_EXCLUDED = "activation.excluded"
    ACTIVATION_STEPPED_ASIDE = "activation.stepped-aside"
    ACTIVATION_CONFLICT = "activation.conflict"
    ACTIVATION_TWO_STORIES = "activation.two-stories"
    ACTIVATION_EVENT_TOPIC = "activation.event-topic-conflict"
    ACTIVATION_ACCEPTS = "activation.accepts-unresolved"

    SETTING_UNKNOWN = "setting.unknown"
    SETTING_INVALID = "setting.invalid"

    # Runtimes, models, tools
    RUNTIME_TIMEOUT = "runtime.timeout"
    RUNTIME_FAILED = "runtime.failed"
    RUNTIME_OUTPUT = "runtime.output-schema-invalid"
    RUNTIME_PAYLOAD = "runtime.payload-invalid"
    RUNTIME_INPUT = "runtime.input-missing"
    MODEL_UNCONFIGURED = "model.unconfigured"
    MODEL_AUTH = "model.auth"
    MODEL_RATE_LIMIT = "model.rate-limit"
    MODEL_OVERLOADED = "model.overloaded"
    MODEL_TRANSPORT = "model.transport"
    MODEL_CONTEXT = "model.context-overflow"
    MODEL_REFUSAL = "model.refusal"
    MODEL_REQUEST = "model.invalid-request"
    MODEL_TRUNCATED = "model.truncated"
    MODEL_EMPTY = "model.empty-reply"
    TOOL_UNKNOWN = "tool.unknown"
    TOOL_ARGUMENTS = "tool.arguments"
    TOOL_VALIDATION = "tool.validation"
    TOOL_UNAUTHORIZED = "tool.unauthorized"
    TOOL_FAILED = "tool.failed"
    TOOL_DENIED = "tool.denied"
    TOOL_EXPIRED = "tool.expired"
    TOOL_CANCELLED = "tool.cancelled"
    AGENT_STEPS = "agent.step-limit"
    AGENT_LOOP = "agent.loop"
    AGENT_UNFINISHED = "agent.unfinished"
    AGENT_TIMEOUT = "agent.timeout"
    HANDLER_CHANNEL = "handler.channel"
    HANDLER_CAPABILITY = "handler.capability"

    # Commit
    COMMIT_REJECTED = "commit.rejected"
    COMMIT_PROPOSAL = "commit.proposal-invalid"
    COMMIT_CONFLICT = "commit.conflict"
    COMMIT_RESERVED = "commit.reserved-namespace"
    COMMIT_VALUE_TOO_LARGE = "commit.value-too-large"

    INTERNAL = "internal"


class TurnwrightError(Exception):
    """A refusal that a person can act on.

    Args:
        code: one of the closed list.
        message: what was refused, in one sentence.
        where: file, field, node or workflow id; empty when the message says it.
        accepted: what would have been accepted; empty when nothing would.
        details: small JSON facts for programs.
    """

    def __init__(
        self, code: Code, message: str, *, where: str = "", accepted: str = "", details: Any = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.accepted = accepted
        self.details = details

    @property
    def account(self) -> str:
        """All that `str` says except the code, for where the code stands beside it."""
        return account_in(str(self), self.code)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f" (accepted: {self.accepted})" if self.accepted else ""
        return f"{place}{self.code}: {self.message}{hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.code, self.message, self.where, self.accepted, self.details))


def account_in(text: str, code: str) -> str:
    """The account in the text of a refusal, which is all that Temporal carries beside the code."""
    place, _, rest = text.partition(f"{code}: ")
    return place + rest


def _rebuild(code: Code, message: str, where: str, accepted: str, details: Any) -> TurnwrightError:
    return TurnwrightError(code, message, where=where, accepted=accepted, details=details)
