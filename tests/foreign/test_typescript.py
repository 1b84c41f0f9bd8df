"""The TypeScript example speaks the product's contract: its types are our models, its names are ours.

It is compiled and run by hand.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import unquote

import pytest
from pydantic import BaseModel
from temporalio import workflow

from kernel.errors import Code
from kernel.wire import names, session, turn
from kernel.wire.ids import session_workflow
from workflows.session import SessionWorkflow
from workflows.turn import TurnWorkflow

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "examples" / "typescript"
MODULE, ONE_TURN, TOUR = (
    (FOLDER / f"{name}.ts").read_text(encoding="utf-8") for name in ("turnwright", "session", "tour")
)

TEXT = (DOCS / "typescript.md").read_text(encoding="utf-8")
SESSION, TURN = (workflow._Definition.must_from_class(cls) for cls in (SessionWorkflow, TurnWorkflow))

MODELS: dict[str, type[BaseModel]] = {
    name: model
    for name, model in {**vars(session), **vars(turn)}.items()
    if inspect.isclass(model) and issubclass(model, BaseModel)
}
INTERFACES = dict(re.findall(r"^export interface (\w+) {\n(.*?)^}", MODULE, re.DOTALL | re.MULTILINE))

CONTRACT: dict[str, dict[str, str | None]] = {
    "SessionInput": {"snapshot": None},
    "Approval": {"status": "'open' | 'approved' | 'denied' | 'expired' | 'withdrawn'"},
    "GraphView": {"status": "'running' | 'committed' | 'rejected' | 'stopped'"},
}
"""Where the contract says more than the model: a field that is not for clients, one that is always told,
words that no workflow says of itself."""


def fields(interface: str) -> dict[str, str]:
    return dict(re.findall(r"^  (\w+\??): (.*?);$", interface, re.MULTILINE))


def expected(model: type[BaseModel]) -> dict[str, str]:
    """The fields that the interface of a model has; those with a default are optional."""
    own = {
        name if field.is_required() else f"{name}?": in_typescript(field.annotation)
        for name, field in model.model_fields.items()
    }
    for name, told in CONTRACT.get(model.__name__, {}).items():
        own.pop(name, own.pop(f"{name}?", None))
        own |= {} if told is None else {name: told}
    return own


def typed(handler: Any) -> list[str]:
    """Names of the types that a handler takes and answers."""
    types = [*(handler.arg_types or ()), getattr(handler, "ret_type", None)]
    return [one.__name__ for one in types if one is not None]


def words(model: type[BaseModel], name: str) -> set[str]:
    return set(get_args(model.model_fields[name].annotation))


def in_typescript(annotation: Any) -> str:
    plain = {Any: "unknown", NoneType: "null", str: "string", int: "number", float: "number"}
    plain |= {bool: "boolean", Code: "string"}
    if annotation in plain:
        return plain[annotation]
    arguments = get_args(annotation)
    match get_origin(annotation):
        case None:
            return str(annotation.__name__)
        case origin if origin is Annotated:
            return in_typescript(arguments[0])
        case origin if origin is Literal:
            return " | ".join(f"'{word}'" for word in arguments)
        case origin if origin in (Union, UnionType):
            return " | ".join(map(in_typescript, arguments))
        case origin if origin is dict:
            return f"Record<{', '.join(map(in_typescript, arguments))}>"
        case origin if origin is tuple and arguments[-1] is Ellipsis:
            return f"{in_typescript(arguments[0])}[]"
        case origin if origin is tuple:
            return f"[{', '.join(map(in_typescript, arguments))}]"
    raise AssertionError(annotation)


@pytest.mark.parametrize("name", INTERFACES)
def test_an_interface_is_our_model(name: str) -> None:
    assert fields(INTERFACES[name]) == expected(MODELS[name])
    assert len(fields(INTERFACES[name])) == len(INTERFACES[name].splitlines())


def test_every_message_has_its_types() -> None:
    [updates] = re.findall(r"^interface Updates {\n(.*?)^}", MODULE, re.DOTALL | re.MULTILINE)
    shown = {name: told.strip("[]").split(", ") for name, told in fields(updates).items()}
    assert shown == {name: typed(update) for name, update in SESSION.updates.items()}
    asked = {name: [answer] for answer, name in re.findall(r"\.query<(\w+)>\('(\w+)'\)", MODULE)}
    assert asked == {
        names.STATE: typed(SESSION.queries[names.STATE]),
        names.GRAPH: typed(TURN.queries[names.GRAPH]),
    }
    assert {word for told in (*shown.values(), *asked.values()) for word in told} <= {*INTERFACES}


@pytest.mark.parametrize("source", [ONE_TURN, TOUR], ids=["session", "tour"])
def test_signals_carry_their_types(source: str) -> None:
    sent = re.findall(r"\.signal<\[(\w+)\]>\('(\w+)'", source)
    assert len(sent) == len(re.findall(r"\bsession\.signal", source)) > 0
    assert [[message] for message, _ in sent] == [typed(SESSION.signals[name]) for _, name in sent]


def test_a_session_is_started_as_the_contract_says() -> None:
    started = re.search(r"workflow\.start\('(\w+)'.*?taskQueue: '([\w-]+)'", MODULE, re.DOTALL)
    assert started
    assert started.groups() == (names.SESSION, names.QUEUE)


def test_the_tour_goes_through_the_whole_contract() -> None:
    assert set(re.findall(r"update\(session, '(\w+)'", TOUR)) == {*SESSION.updates}
    assert set(re.findall(r"\.signal<\[\w+\]>\('(\w+)'", TOUR)) == {names.RESOLVE, names.INTERJECT}
    assert set(re.findall(r"action: '([\w-]+)'", TOUR)) == words(session.Control, "action")
    assert set(re.findall(r"decision: '(\w+)'", TOUR)) == words(session.Resolve, "decision")
    assert set(re.findall(r"Turnwright[A-Z]\w+", TOUR)) <= {*names.ATTRIBUTES}
    assert all(call in TOUR for call in ("start(client", "state(session", "graph(client", "resultOf(client"))
    assert ".cancel()" in TOUR


def test_what_the_tour_printed_has_a_line_for_each_step_and_the_ids_of_the_contract() -> None:
    """Turn ids follow from session and action, so the tour's are those of the interface."""
    printed = re.search(r"^start     .*?(?=^```)", TEXT, re.DOTALL | re.MULTILINE)
    assert printed
    ids = set(re.findall(r"\b[ta][0-9a-f]{20}\b", printed[0]))
    contract = (DOCS / "temporal-interface.md").read_text(encoding="utf-8")
    assert ids
    assert {one for one in ids if one not in contract} == set()
    assert {line.split()[0] for line in printed[0].splitlines()} == set(re.findall(r"say\('(\w+)'", TOUR))
    tried = {*re.findall(r"refused: ([\w.-]+)", printed[0]), *re.findall(r"\b(\w+\.\w+): ", printed[0])}
    assert {"session.paused", "approval.unknown", "package.unknown"} <= tried <= {*Code}


def test_the_calls_that_the_document_shows_exist() -> None:
    updates = re.findall(r"executeUpdate\('(\w+)', { args: \[{ (.*?) }\] }\)", TEXT)
    assert {name for name, _ in updates} == {*SESSION.updates}
    signals = re.findall(r"\.signal\('(\w+)', { (.*?) }\)", TEXT)
    assert {name for name, _ in signals} == {names.RESOLVE, names.INTERJECT}
    for name, message in (*updates, *signals):
        [model] = SESSION.updates[name].arg_types or []
        assert {part.split(":")[0] for part in message.split(", ")} <= {*model.model_fields}, (name, message)
    assert set(re.findall(r"\bquery\('(\w+)'\)", TEXT)) == {names.STATE, names.GRAPH}


def test_escaping_of_the_example_is_ours() -> None:
    """What `segment` keeps beside letters and digits is what a workflow id keeps."""
    escaped = set(re.search(r"/\[(.+?)\]/g", MODULE)[1])  # type: ignore[index]
    restored = {unquote(code) for code in re.findall(r"/(%[0-9A-F]{2})/g", MODULE)}
    kept = (set("-_.!~*'()") - escaped) | restored
    printable = [chr(code) for code in range(33, 127) if not chr(code).isalnum()]
    assert kept == {mark for mark in printable if session_workflow(mark) == f"session/{mark}"}


def test_versions_are_pinned_without_addresses() -> None:
    text = (FOLDER / "package.json").read_text(encoding="utf-8")
    package = json.loads(text)
    versions = {**package["dependencies"], **package["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
    assert all(version in TEXT for version in versions.values())
    assert "://" not in text
    assert not (FOLDER / "package-lock.json").exists()


def test_every_script_is_a_command_of_the_document() -> None:
    scripts = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))["scripts"]
    assert {command.split()[1] for name, command in scripts.items() if name != "check"} == {
        "session.ts",
        "tour.ts",
    }
    assert scripts["check"].endswith(" *.ts")
    assert all(f"npm run {name}" in TEXT for name in scripts)
