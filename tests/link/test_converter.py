"""The converter alone: what goes through unchanged, and what is refused in which words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import RawValue
from temporalio.converter import ActivitySerializationContext, DataConverter
from temporalio.exceptions import ApplicationError

from kernel.errors import Code, TurnwrightError
from kernel.wire.session import SessionInput, Submit
from kernel.wire.turn import TurnResult
from link.converter import MAX_PAYLOAD_BYTES, UnreadableResultError, WirePayloadConverter
from link.failures import EncodedWireFailureConverter, WireFailureConverter
from link.interceptors import failure_of
from tests.link.probe import json_payload

DATA = DataConverter(
    payload_converter_class=WirePayloadConverter, failure_converter_class=WireFailureConverter
)
converter = DATA.payload_converter


def code_of(call: Callable[[], object]) -> str | None:
    with pytest.raises(ApplicationError) as caught:
        call()
    assert caught.value.non_retryable
    return caught.value.type


@pytest.mark.parametrize(
    "value",
    [None, b"\x00\xff", "text", "", 5, True, 1.5, [], {"a": [1, None]}, {"b": {"c": "d"}}, "ü\U0001f600"],
)
def test_plain_values_come_back(value: object) -> None:
    assert converter.from_payloads(converter.to_payloads([value]), None) == [value]
    hint: Any = type(value)
    assert converter.from_payloads(converter.to_payloads([value]), [hint]) == [value]


def test_unset_fields_are_not_written() -> None:
    [payload] = converter.to_payloads([Submit(action_id="a", text="t")])
    assert payload.data == b'{"action_id":"a","text":"t"}'
    assert converter.from_payload(payload, Submit) == Submit(action_id="a", text="t")


def test_optional_model_takes_null_and_model_does_not() -> None:
    for null in (converter.to_payload(None), json_payload("null")):
        optional: Any = SessionInput | None
        assert converter.from_payloads([null], [optional]) == [None]
        assert code_of(partial(converter.from_payloads, [null], [SessionInput])) == Code.WIRE_MALFORMED


def test_refusal_names_the_type_and_the_place_but_not_the_value() -> None:
    payload = json_payload('{"action_id": "a", "text": {"secret": "s3cret"}, "colour": 1}')
    with pytest.raises(ApplicationError) as caught:
        converter.from_payload(payload, Submit)
    assert caught.value.message == (
        "wire.malformed: argument 1, expected Submit: text: Input should be a valid string; "
        "colour: Extra inputs are not permitted"
    )


LARGE = "x" * 300_000
PARTS: dict[str, object] = {
    "Submit.payload.items[3]": Submit(action_id="a", text="", payload={"items": [1, 2, 3, LARGE]}),
    "Submit.text": Submit(action_id="a", text=LARGE),
    "Submit.payload['a b']": Submit(action_id="a", text="", payload={"a b": LARGE}),
    "Submit.payload.items": Submit(action_id="a", text="", payload={"items": ["y" * 1_000] * 300}),
    "str": LARGE,
    "list[0].deep": [{"deep": LARGE}],
    "bytes": LARGE.encode(),
}


@pytest.mark.parametrize("path", PARTS)
def test_oversize_value_is_refused_with_the_path_of_its_largest_part(path: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        converter.to_payloads([PARTS[path]])
    assert caught.value.type == Code.WIRE_TOO_LARGE
    assert f": {path} makes a payload of " in caught.value.message


def test_largest_payload_passes() -> None:
    text = "x" * (MAX_PAYLOAD_BYTES - 2)
    assert converter.from_payloads(converter.to_payloads([text]), [str]) == [text]


@pytest.mark.parametrize(
    "value",
    [object(), "\ud800", {"a": "\udfff"}, print],
    ids=["object", "surrogate", "surrogate inside", "function"],
)
def test_value_that_json_cannot_hold_is_refused(value: object) -> None:
    assert code_of(lambda: converter.to_payloads([value])) == Code.WIRE_MALFORMED


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_nesting_is_bounded_both_ways_and_text_does_not_count() -> None:
    assert converter.from_payload(converter.to_payload(nested(100))) == nested(100)
    for depth in (101, 400):
        assert code_of(partial(converter.to_payloads, [nested(depth)])) == Code.WIRE_MALFORMED
    text = '[[\\"NaN' * 500
    assert converter.from_payload(converter.to_payload(text)) == text
    assert converter.from_payload(converter.to_payload([{"a": 1}] * 500)) == [{"a": 1}] * 500


def test_self_containing_value_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    assert code_of(lambda: converter.to_payloads([value])) == Code.WIRE_MALFORMED


def test_several_payloads_need_as_many_types() -> None:
    two = converter.to_payloads([1, "a"])
    assert converter.from_payloads(two, [int, str]) == [1, "a"]
    too_few: list[list[Any] | None] = [None, [int], [int, str, str]]
    for hints in too_few:
        assert code_of(partial(converter.from_payloads, two, hints)) == Code.WIRE_MALFORMED


def test_raw_values_pass_untouched() -> None:
    payload = Payload(metadata={"encoding": b"anything"}, data=b"\xff")
    assert converter.to_payloads([RawValue(payload)]) == [payload]
    assert converter.from_payloads([payload], [RawValue])[0].payload == payload


def test_result_of_an_activity_that_cannot_be_read_waits_for_another_worker() -> None:
    context = ActivitySerializationContext(
        namespace="default",
        workflow_id="w",
        workflow_type="W",
        activity_type="a",
        activity_id="1",
        activity_task_queue="q",
        is_local=False,
    )
    results = DATA.with_context(context).payload_converter
    with pytest.raises(UnreadableResultError, match=r"wire\.malformed"):
        results.from_payloads([json_payload('{"new": 1}')], [TurnResult])


def through(error: BaseException, data: DataConverter = DATA) -> BaseException:
    failure = Failure()
    data.failure_converter.to_failure(error, data.payload_converter, failure)
    return data.failure_converter.from_failure(failure, data.payload_converter)


def test_refusal_keeps_code_text_and_details_and_no_stack() -> None:
    refusal = TurnwrightError(Code.SESSION_PAUSED, "no", where="s1", accepted="resume", details={"since": 3})
    try:
        raise failure_of(refusal)
    except ApplicationError as error:
        failure = Failure()
        DATA.failure_converter.to_failure(error, DATA.payload_converter, failure)
    assert failure.message == "s1: session.paused: no (accepted: resume)"
    assert failure.application_failure_info.type == "session.paused"
    assert failure.application_failure_info.non_retryable
    assert not failure.stack_trace
    back = DATA.failure_converter.from_failure(failure, DATA.payload_converter)
    assert isinstance(back, ApplicationError)
    assert back.details == ({"since": 3},)


def test_defect_keeps_the_end_of_its_stack() -> None:
    try:
        raise KeyError("x")
    except KeyError as error:
        failure = Failure()
        DATA.failure_converter.to_failure(error, DATA.payload_converter, failure)
    assert "test_converter.py" in failure.stack_trace


@pytest.mark.parametrize(
    "error",
    [
        ApplicationError("\ud800 broken", {"a": "\ud800"}, type="t"),
        ValueError("\udfff"),
        ApplicationError("large", LARGE, type="t"),
        ApplicationError("odd", object(), type="t"),
        RuntimeError("m" * 1_000_000),
        ApplicationError("several", 1, "two", None, type="t"),
    ],
    ids=["surrogate", "surrogate of a defect", "large details", "no JSON", "long message", "several details"],
)
def test_failure_always_fits(error: BaseException) -> None:
    failure = Failure()
    DATA.failure_converter.to_failure(error, DATA.payload_converter, failure)
    assert failure.ByteSize() < 10_000
    assert isinstance(through(error), ApplicationError)


def test_unreadable_details_hide_nothing_else() -> None:
    failure = Failure(message="what happened")
    failure.application_failure_info.type = "t"
    failure.application_failure_info.details.payloads.append(
        Payload(metadata={"encoding": b"binary/encrypted"})
    )
    error = DATA.failure_converter.from_failure(failure, DATA.payload_converter)
    assert isinstance(error, ApplicationError)
    assert error.message == "what happened"
    assert "codec.encrypted-payload" in error.details[0]["message"]


def test_retryable_wrapper_of_the_sdk_gives_way_to_the_refusal_inside() -> None:
    wrapper = ApplicationError("Failed decoding arguments")
    wrapper.__cause__ = UnreadableResultError("x")
    wrapper.__cause__.__cause__ = ApplicationError("bad", type=Code.WIRE_MALFORMED, non_retryable=True)
    back = through(wrapper)
    assert isinstance(back, ApplicationError)
    assert (back.type, back.non_retryable) == (Code.WIRE_MALFORMED, True)


@pytest.mark.parametrize(
    ("type_", "shown"), [("tool.failed", "tool.failed: encrypted"), ("a secret", "Encoded failure")]
)
def test_encoded_failure_shows_nothing_but_its_code(type_: str, shown: str) -> None:
    data = DataConverter(
        payload_converter_class=WirePayloadConverter, failure_converter_class=EncodedWireFailureConverter
    )
    failure = Failure()
    data.failure_converter.to_failure(ApplicationError("secret", type=type_), data.payload_converter, failure)
    assert failure.message == shown
    back = data.failure_converter.from_failure(failure, data.payload_converter)
    assert isinstance(back, ApplicationError)
    assert back.message == "secret"
    again = Failure()
    data.failure_converter.to_failure(back, data.payload_converter, again)
    assert again.message == shown
