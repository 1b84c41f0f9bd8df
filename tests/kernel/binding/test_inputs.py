"""Binding upstream outputs to declared names. Spec: plugin-model §7."""

from __future__ import annotations

import pytest

from kernel.binding.inputs import Bound, Trouble, bind
from kernel.manifest import InputBinding

OUTPUTS = {
    "q/b": {"segments": [{"text": "B"}], "n": 2},
    "p/a": {"segments": [{"text": "A"}], "n": 1},
    "solo": None,
}
PROVIDERS = {"story@2": ["q/b", "p/a", "r/silent"], "none@1": ["r/silent"]}


def one_problem(schema: str, value: object) -> str | None:
    """`contract:bad@1` and `no.json` fit nothing; `contract:gone@1` is published by nobody."""
    if schema in ("contract:gone@1", "contract:free@1"):
        raise KeyError(schema)
    return "wrong" if schema in ("contract:bad@1", "no.json") else None


def bound(validate=one_problem, **bindings: dict) -> Bound:
    read = {name: InputBinding.model_validate(binding) for name, binding in bindings.items()}
    return bind(read, OUTPUTS, {**PROVIDERS, "bad@1": ["p/a"], "free@1": ["p/a"]}, validate)


def troubles(result: Bound) -> list[tuple[str, str]]:
    return [(diagnostic.name, diagnostic.trouble) for diagnostic in result.diagnostics]


def slot(value: object, plugin: str, runtime: str) -> dict:
    return {"value": value, "provenance": {"pluginId": plugin, "runtimeId": runtime}}


def test_a_runtime_of_the_package() -> None:
    result = bound(v={"from": {"runtime": "p/a"}, "select": "/segments/0/text"})
    assert result == Bound({"v": slot("A", "p", "p/a")}, None, ())


def test_null_is_a_value() -> None:
    assert bound(v={"from": {"runtime": "solo"}}).slots == {"v": slot(None, "solo", "solo")}


def test_one_provider_is_the_first_by_id_with_a_diagnostic() -> None:
    result = bound(v={"from": {"contract": "story@2"}, "select": "/n"})
    assert result.slots == {"v": slot(1, "p", "p/a")}
    assert troubles(result) == [("v", Trouble.SEVERAL_PROVIDERS)]
    assert result.missing is None


def test_all_providers_come_by_id() -> None:
    result = bound(v={"from": {"contract": "story@2", "cardinality": "all"}, "select": "/n"})
    assert result.slots == {"v": {"items": [slot(1, "p", "p/a"), slot(2, "q", "q/b")]}}
    assert result.diagnostics == ()


@pytest.mark.parametrize(
    ("binding", "trouble"),
    [
        ({"from": {"runtime": "p/gone"}}, Trouble.NO_VALUE),
        ({"from": {"contract": "none@1"}}, Trouble.NO_VALUE),
        ({"from": {"contract": "none@1", "cardinality": "all"}}, Trouble.NO_VALUE),
        ({"from": {"contract": "unheard@1"}}, Trouble.NO_VALUE),
        ({"from": {"runtime": "p/a"}, "select": "/segments/01"}, Trouble.SELECTS_NOTHING),
        ({"from": {"contract": "bad@1"}, "select": "/n"}, Trouble.CONTRACT_INVALID),
        ({"from": {"runtime": "p/a"}, "accepts": "no.json"}, Trouble.ACCEPTS_INVALID),
        ({"from": {"runtime": "p/a"}, "accepts": "contract:gone@1"}, Trouble.ACCEPTS_UNRESOLVED),
        (
            {"from": {"contract": "story@2"}, "scope": "committed", "recordAs": "last"},
            Trouble.UNSUPPORTED,
        ),
    ],
)
@pytest.mark.parametrize("required", [True, False])
def test_an_input_without_value_has_no_slot_and_leaves_the_others_alone(
    binding: dict, trouble: Trouble, required: bool
) -> None:
    good = {"from": {"runtime": "solo"}}
    result = bound(v={**binding, "required": required}, good=good)
    assert list(result.slots) == ["good"]
    assert result.missing == ("v" if required else None)
    assert troubles(result) == [("v", trouble)]


def test_a_kernel_input_is_not_bound_in_this_version() -> None:
    result = bound(v={"from": {"kernel": "turn-digest@1"}})
    assert (result.missing, troubles(result)) == ("v", [("v", Trouble.UNSUPPORTED)])


def test_the_first_required_one_is_named() -> None:
    gone = {"from": {"runtime": "gone"}}
    assert bound(z={**gone, "required": False}, b=gone, a=gone).missing == "b"


def test_a_contract_is_judged_whole_and_before_select() -> None:
    seen: list[tuple[str, object]] = []

    def watch(schema: str, value: object) -> None:
        seen.append((schema, value))

    binding = {"from": {"contract": "story@2", "cardinality": "all"}, "select": "/n", "accepts": "list.json"}
    bound(watch, v=binding)
    assert seen == [
        ("contract:story@2", OUTPUTS["p/a"]),
        ("contract:story@2", OUTPUTS["q/b"]),
        ("list.json", [1, 2]),
    ]


def test_a_contract_without_a_schema_takes_any_json() -> None:
    assert "v" in bound(v={"from": {"contract": "free@1"}}).slots


def test_names_that_objects_inherit_elsewhere_are_ordinary() -> None:
    result = bound(constructor={"from": {"runtime": "toString"}}, __proto__={"from": {"runtime": "solo"}})
    assert list(result.slots) == ["__proto__"]
    assert result.missing == "constructor"


def test_a_chosen_provider_answers_alone_and_only_for_inputs_of_one() -> None:
    one = {"from": {"contract": "story@2"}, "select": "/n"}
    all_of_them = {"from": {"contract": "story@2", "cardinality": "all"}, "select": "/n"}
    read = {name: InputBinding.model_validate(b) for name, b in {"v": one, "w": all_of_them}.items()}
    result = bind(read, OUTPUTS, PROVIDERS, one_problem, {"v": "q", "w": None})
    assert result.slots["v"] == slot(2, "q", "q/b")
    assert len(result.slots["w"]["items"]) == 2
    assert result.diagnostics == ()
