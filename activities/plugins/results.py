"""What a function returns, taken apart: its output, and its effects as proposals.

Spec: plugin-model §9 (results), §23 (guards).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from kernel.commit.proposals import parse_proposal, proposal_json
from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json, outline

Outcome = Literal["success", "skipped", "failed", "blocked"]
OUTCOMES: Final = ("success", "skipped", "failed", "blocked")

CHANNELS: Final[Mapping[str, str]] = {
    "pluginData": "plugin.data",
    "events": "event.emit",
    "statePatches": "state.patch",
}
"""Effect channels and the proposals that their entries become."""

LATER_CHANNELS: Final = frozenset({"interactions", "notifications", "ui", "assetGenerations"})

_KEYS: Final = frozenset({"outcome", "value", "effects", "completion", "skipReason", "error"})


@dataclass(frozen=True)
class HandlerResult:
    """A function's result in the host's terms.

    Attributes:
        output: the output object: an object value itself, `{"value": …}` for any other, else `{}`.
        value: the exact value, for contracts and exports; None when there is none.
        exports: whether there is a value to export.
        proposals: staged changes as JSON, in channel order; only a success has any.
        reason: why it was skipped, blocked or failed, as the function says.
    """

    outcome: Outcome
    output: dict[str, Json] = field(default_factory=dict)
    value: Json = None
    exports: bool = False
    proposals: tuple[dict[str, Json], ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class GuardVerdict:
    """A guard's answer: whether to skip, and with which output."""

    skip: bool
    output: dict[str, Json] = field(default_factory=dict)


def handler_result(result: Json) -> HandlerResult:
    """Take a handler's result apart.

    Raises:
        TurnwrightError: `runtime.output-schema-invalid` for a wrong shape, `feature.not-supported` for a
            channel of a later version, `handler.channel` for an unknown one, or the code of a proposal
            that is refused, with its place.
    """
    fields = _object(result, "the result", 'an object such as {"outcome": "success", "value": {}}')
    if unknown := sorted(fields.keys() - _KEYS):
        raise _invalid(f"unknown key {unknown[0]!r} in the result", ", ".join(sorted(_KEYS)))
    outcome = fields.get("outcome")
    if outcome not in OUTCOMES:
        raise _invalid(f"outcome is {outcome!r}"[:120], ", ".join(OUTCOMES))
    if fields.get("completion", "done") != "done":
        raise TurnwrightError(
            Code.NOT_SUPPORTED, "completion: pending is not in this version", accepted="done"
        )
    proposals = tuple(_proposals(fields.get("effects")))
    return HandlerResult(
        outcome=cast(Outcome, outcome),
        output=_output(fields),
        value=fields.get("value"),
        exports="value" in fields and outcome == "success",
        # A run that did not succeed changes nothing, whatever it had prepared.
        proposals=proposals if outcome == "success" else (),
        reason=_reason(fields),
    )


def guard_verdict(result: Json) -> GuardVerdict:
    """Take a guard's answer apart: `{"skip": false}`, or `{"skip": true, …output}`."""
    fields = _object(result, "the guard's answer", '{"skip": true or false}')
    if not isinstance(skip := fields.get("skip"), bool):
        raise _invalid("the guard's `skip` is no boolean", '{"skip": true or false}')
    return GuardVerdict(skip, {key: value for key, value in fields.items() if key != "skip"})


def _output(fields: Mapping[str, Json]) -> dict[str, Json]:
    if "value" not in fields:
        return {}
    value = fields["value"]
    return value if isinstance(value, dict) else {"value": value}


def _reason(fields: Mapping[str, Json]) -> str:
    said = fields.get("skipReason", fields.get("error", ""))
    if isinstance(said, dict):
        said = said.get("message", "")
    return outline(said) if isinstance(said, str) else ""


def _proposals(effects: Json) -> Iterator[dict[str, Json]]:
    if effects is None:
        return
    channels = _object(effects, "effects", "an object of channels")
    for channel in channels:
        _check_channel(channel, channels[channel])
    for channel, kind in CHANNELS.items():
        for index, entry in enumerate(channels.get(channel) or ()):
            yield _proposal(kind, entry, f"effects.{channel}[{index}]")


def _check_channel(channel: str, entries: Json) -> None:
    accepted = ", ".join(CHANNELS)
    if channel not in CHANNELS and channel not in LATER_CHANNELS:
        raise TurnwrightError(Code.HANDLER_CHANNEL, f"no effects channel {channel[:80]!r}", accepted=accepted)
    if not isinstance(entries, list):
        raise _invalid(f"effects.{channel} is no array", "an array of objects")
    if channel in LATER_CHANNELS and entries:
        message = f"effects.{channel} is not in this version"
        raise TurnwrightError(Code.NOT_SUPPORTED, message, accepted=accepted)


def _proposal(kind: str, entry: Json, place: str) -> dict[str, Json]:
    fields = _object(entry, place, "an object")
    if "type" in fields:
        raise _invalid(f"{place} has a `type`; the channel says it", "an entry without type")
    if kind == "event.emit":
        fields = {"payload": {}, **fields}
    try:
        return proposal_json(parse_proposal({"type": kind, **fields}, owner_code=True))
    except TurnwrightError as error:
        where = f"{place}.{error.where}" if error.where else place
        raise TurnwrightError(error.code, error.message, where=where, accepted=error.accepted) from None


def _object(value: Json, what: str, accepted: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(f"{what} is no object", accepted)
    return value


def _invalid(message: str, accepted: str) -> TurnwrightError:
    return TurnwrightError(Code.RUNTIME_OUTPUT, message, accepted=accepted)
