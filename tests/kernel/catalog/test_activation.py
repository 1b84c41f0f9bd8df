"""Activation: the paragraph on provider choice, row by row, and what holds of every answer.

Spec: plugin-model §5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.catalog import Activation, activate, in_force
from kernel.errors import Code, TurnwrightError
from kernel.manifest import Package
from tests.kernel.catalog.packages import HANDLER, STORY, gives, needs, package

BELL = "contributes:\n  events: [{ topic: bell.rang, description: x }]\n"


def known(*packages: Package) -> dict[str, Package]:
    return {one.id: one for one in packages}


def run(requested: Sequence[str], *packages: Package, **more: object) -> Activation:
    """Activation where everything is approved, unless `approved` says otherwise."""
    given = {"approved": [one.id for one in packages], **more}
    return activate(requested, known(*packages), **given)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Row:
    """One sentence of the paragraph.

    Attributes:
        active: id and reason of what runs.
        inactive: id and code of what was asked for and does not.
        blocked: the code that the session's creation is refused with.
    """

    sentence: str
    there: Sequence[Package]
    active: dict[str, str]
    requested: Sequence[str] = ("a",)
    excluded: Sequence[str] = ()
    unapproved: Sequence[str] = ()
    disabled: Sequence[str] = ()
    choices: dict[str, str] = field(default_factory=dict)
    inactive: dict[str, Code] = field(default_factory=dict)
    blocked: Code | None = None


A = needs("a", "x@1")
SOLE, DEFAULT = "sole provider of x@1, which a requires", "default provider of x@1, which a requires"
ASKED = "requested"
DEFAULT_STORY = package("tale", STORY, root="provides: [{ contract: narrative-engine@2, default: true }]\n")

ROWS = [
    Row("what was asked for is active", [package("a")], {"a": ASKED}),
    Row(
        "exclusion beats everything",
        [package("a"), package("b")],
        {"b": ASKED},
        requested=["a", "b"],
        excluded=["a"],
        inactive={"a": Code.ACTIVATION_EXCLUDED},
    ),
    Row(
        "exclusion beats a choice too",
        [A, gives("p", "x@1"), gives("q", "x@1")],
        {},
        excluded=["p"],
        choices={"x@1": "p"},
        inactive={"a": Code.ACTIVATION_EXCLUDED, "p": Code.ACTIVATION_EXCLUDED},
    ),
    Row("a sole ordinary provider is added", [A, gives("p", "x@1")], {"a": ASKED, "p": SOLE}),
    Row(
        "a sole ordinary provider comes before a default one",
        [A, gives("p", "x@1"), gives("d", "x@1", default=True)],
        {"a": ASKED, "p": SOLE},
    ),
    Row("else the sole default", [A, gives("d", "x@1", default=True)], {"a": ASKED, "d": DEFAULT}),
    Row(
        "also where several ordinary ones leave it open",
        [A, gives("p", "x@1"), gives("q", "x@1"), gives("d", "x@1", default=True)],
        {"a": ASKED, "d": DEFAULT},
    ),
    Row(
        "what was added brings in what it requires",
        [A, gives("p", "x@1", root="requires: [y@1]\n"), gives("q", "y@1")],
        {"a": ASKED, "p": SOLE, "q": "sole provider of y@1, which p requires"},
    ),
    Row("otherwise missing-provider", [A], {}, blocked=Code.ACTIVATION_MISSING_PROVIDER),
    Row(
        "otherwise ambiguous-provider",
        [A, gives("p", "x@1"), gives("q", "x@1")],
        {},
        blocked=Code.ACTIVATION_AMBIGUOUS_PROVIDER,
    ),
    Row(
        "otherwise approval-required, which does not block",
        [A, gives("p", "x@1"), package("b")],
        {"b": ASKED},
        requested=["a", "b"],
        unapproved=["p"],
        inactive={"a": Code.PACKAGE_APPROVAL},
    ),
    Row(
        "otherwise excluded, which does not block",
        [A, gives("p", "x@1"), package("b")],
        {"b": ASKED},
        requested=["a", "b"],
        excluded=["p"],
        inactive={"a": Code.ACTIVATION_EXCLUDED},
    ),
    Row(
        "leaving one out is a choice",
        [A, gives("p", "x@1"), gives("q", "x@1")],
        {"a": ASKED, "q": SOLE},
        excluded=["p"],
    ),
    Row(
        "the session chooses",
        [A, gives("p", "x@1"), gives("q", "x@1")],
        {"a": ASKED, "q": "chosen as the provider of x@1"},
        choices={"x@1": "q"},
    ),
    Row(
        "a choice must provide the contract",
        [A, gives("p", "x@1"), package("b")],
        {},
        choices={"x@1": "b"},
        blocked=Code.ACTIVATION_MISSING_PROVIDER,
    ),
    Row(
        "a default provider exits when another one is active",
        [A, gives("p", "x@1"), gives("d", "x@1", default=True)],
        {"a": ASKED, "p": ASKED},
        requested=["a", "p", "d"],
        inactive={"d": Code.ACTIVATION_STEPPED_ASIDE},
    ),
    Row(
        "and does so before conflicts are looked for",
        [gives("p", "x@1"), gives("d", "x@1", default=True, root="conflicts: [p]\n")],
        {"p": ASKED},
        requested=["p", "d"],
        inactive={"d": Code.ACTIVATION_STEPPED_ASIDE},
    ),
    Row(
        "unless it was chosen",
        [gives("p", "x@1"), gives("d", "x@1", default=True)],
        {"d": ASKED, "p": ASKED},
        requested=["p", "d"],
        choices={"x@1": "d"},
    ),
    Row(
        "a default story steps aside for another",
        [DEFAULT_STORY, package("own", STORY)],
        {"own": ASKED},
        requested=["tale", "own"],
        inactive={"tale": Code.ACTIVATION_STEPPED_ASIDE},
    ),
    Row(
        "what was added for one that stepped aside goes with it",
        [gives("p", "x@1"), gives("d", "x@1", default=True, root="requires: [y@1]\n"), gives("q", "y@1")],
        {"p": ASKED},
        requested=["p", "d"],
        inactive={"d": Code.ACTIVATION_STEPPED_ASIDE},
    ),
    Row(
        "a package whose required provider vanished is removed",
        [needs("a", "y@1"), gives("b", "y@1", root="requires: [x@1]\n"), gives("p", "x@1"), package("c")],
        {"c": ASKED},
        requested=["a", "b", "c"],
        excluded=["p"],
        inactive={"a": Code.ACTIVATION_EXCLUDED, "b": Code.ACTIVATION_EXCLUDED},
    ),
    Row(
        "one declarer for each event topic: the first that was asked for",
        [package("a", root=BELL), package("b", root=BELL)],
        {"b": ASKED},
        requested=["b", "a"],
        inactive={"a": Code.ACTIVATION_EVENT_TOPIC},
    ),
    Row(
        "one that was asked for wins over an addition",
        [A, gives("p", "x@1", root=BELL), package("z", root=BELL)],
        {"z": ASKED},
        requested=["a", "z"],
        inactive={"a": Code.ACTIVATION_EVENT_TOPIC},
    ),
    Row(
        "packages that conflict are refused",
        [package("a", root="conflicts: [b]\n"), package("b")],
        {"a": ASKED, "b": ASKED},
        requested=["a", "b"],
        blocked=Code.ACTIVATION_CONFLICT,
    ),
    Row(
        "and so are those of a contract that one does not bear",
        [package("a", root="conflicts: [x@1]\n"), gives("b", "x@1")],
        {"a": ASKED, "b": ASKED},
        requested=["a", "b"],
        blocked=Code.ACTIVATION_CONFLICT,
    ),
    Row(
        "two stories are refused",
        [package("a", STORY), package("b", STORY)],
        {"a": ASKED, "b": ASKED},
        requested=["a", "b"],
        blocked=Code.ACTIVATION_TWO_STORIES,
    ),
    Row(
        "a package that waits for approval is not active",
        [package("a")],
        {},
        unapproved=["a"],
        inactive={"a": Code.PACKAGE_APPROVAL},
    ),
    Row("an unknown package is refused", [package("b")], {}, blocked=Code.PACKAGE_UNKNOWN),
    Row(
        "one that is switched off is refused",
        [package("a")],
        {},
        disabled=["a"],
        blocked=Code.PACKAGE_DISABLED,
    ),
    Row(
        "and is not added either",
        [A, gives("p", "x@1"), gives("q", "x@1")],
        {"a": ASKED, "q": SOLE},
        disabled=["p"],
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.sentence)
def test_the_paragraph_on_provider_choice(row: Row) -> None:
    found = run(
        row.requested,
        *row.there,
        approved=[one.id for one in row.there if one.id not in row.unapproved],
        excluded=row.excluded,
        disabled=row.disabled,
        choices=row.choices,
    )
    blocking = next((problem.code for problem in found.problems if problem.blocks), None)
    assert blocking == row.blocked
    assert {one.package.id: one.reason for one in found.active} == row.active
    if not row.blocked:
        assert {one.package_id: one.code for one in found.inactive} == row.inactive


def test_a_blocked_answer_raises_with_every_blocking_problem() -> None:
    found = run(["a", "nope"], needs("a", "x.y@1", "x.z@1"))
    with pytest.raises(TurnwrightError) as refused:
        found.require()
    assert refused.value.code == Code.PACKAGE_UNKNOWN
    assert all(word in refused.value.message for word in ("nope", "x.y@1", "x.z@1"))
    assert run(["b"], package("b")).require().packages[0].id == "b"


GIVES = "schedule: { stage: pre-turn }\n  io: { output: { contract: a.b@1 } }\n  function: {}"
TAKES = (
    "schedule: { stage: post-turn }\n  function: {}\n  io: { inputs: { x: { from: { contract: a.b@1 }%s } } }"
)


def test_a_required_input_of_one_provider_needs_a_decision() -> None:
    one, two = package("one", GIVES, **HANDLER), package("two", GIVES, **HANDLER)
    needy, easy = (
        package("needy", TAKES % "", **HANDLER),
        package("easy", TAKES % ", required: false", **HANDLER),
    )
    [problem] = run(["one", "two", "needy"], one, two, needy).problems
    assert (problem.code, problem.blocks) == (Code.ACTIVATION_AMBIGUOUS_PROVIDER, True)
    assert not run(["one", "needy"], one, needy).problems
    assert not run(["one", "two", "easy"], one, two, easy).problems
    assert not run(["one", "two", "needy"], one, two, needy, choices={"a.b@1": "two"}).problems


def test_a_default_provider_that_stays_for_another_contract_does_not_answer_for_the_first() -> None:
    both = package("both", GIVES, root="provides: [{ contract: a.b@1, default: true }, y@1]\n", **HANDLER)
    one, needy = package("one", GIVES, **HANDLER), package("needy", TAKES % "", **HANDLER)
    found = run(["both", "one", "needy"], both, one, needy)
    assert not found.problems
    assert in_force(found.packages, {}) == {"a.b@1": "one"}
    assert in_force(found.packages, {"a.b@1": "both"}) == {"a.b@1": "both"}


def test_what_this_version_does_not_run_is_refused_by_name() -> None:
    [problem] = run(["late"], package("late", "schedule: { stage: setup }")).problems
    assert (problem.code, problem.blocks) == (Code.PACKAGE_UNSUPPORTED, True)
    assert "late" in problem.message
    [problem] = run(["words"], package("words", STORY, body="Use {{ world.lore }}.")).problems
    assert problem.code == Code.PACKAGE_UNSUPPORTED


def test_a_prompt_names_settings_of_its_own_package() -> None:
    settings = "contributes:\n  settings: [{ key: tone, type: text }]\n"
    assert not run(["a"], package("a", STORY, root=settings, body="{{ userSettings.tone }}")).problems
    [problem] = run(["a"], package("a", STORY, root=settings, body="{{ userSettings.mood }}")).problems
    assert "userSettings.tone" in problem.accepted


NAMES = st.sampled_from("abcdefg")
CONTRACTS = st.sampled_from(["x@1", "y@1", "z@1"])
SETS = st.lists(CONTRACTS, max_size=2, unique=True)


@dataclass(frozen=True)
class World:
    """Some packages that need and give each other things, and what a session asks of them."""

    there: dict[str, Package]
    requested: list[str]
    approved: set[str]
    excluded: set[str]
    disabled: set[str]
    choices: dict[str, str]

    def answer(self, order: Sequence[str]) -> Activation:
        return activate(
            self.requested,
            {name: self.there[name] for name in order},
            approved=self.approved,
            excluded=self.excluded,
            disabled=self.disabled,
            choices=self.choices,
        )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    there = {}
    for name in sorted(draw(st.sets(NAMES, min_size=1))):
        provided = ", ".join(
            f"{{ contract: {one}, default: {str(draw(st.booleans())).lower()} }}" for one in draw(SETS)
        )
        root = f"provides: [{provided}]\nrequires: [{', '.join(draw(SETS))}]\n"
        there[name] = package(name, root=root + (BELL if draw(st.booleans()) else ""))
    return World(
        there,
        requested=draw(st.lists(NAMES, max_size=4)),
        approved=draw(st.sets(NAMES, min_size=4)),
        excluded=draw(st.sets(NAMES, max_size=2)),
        disabled=draw(st.sets(NAMES, max_size=1)),
        choices=draw(st.dictionaries(CONTRACTS, NAMES, max_size=1)),
    )


@given(worlds(), st.data())
def test_what_holds_of_every_answer(world: World, data: st.DataObject) -> None:
    found = world.answer(list(world.there))
    ids = {package.id for package in found.packages}
    provided = {contract for package in found.packages for contract in package.provides}
    assert all(contract in provided for package in found.packages for contract in package.manifest.requires)
    assert ids <= world.approved - world.excluded - world.disabled
    assert set(world.requested) <= ids | {one.package_id for one in found.inactive}
    assert world.answer(data.draw(st.permutations(list(world.there)))) == found


def reads(name: str, binding: str, root: str = "", **files: bytes) -> Package:
    """A package whose runtime has one input."""
    io = f"schedule: {{ stage: audit }}\n  io: {{ inputs: {{ word: {{ {binding} }} }} }}"
    return package(name, io, root, **files)


def publishes(name: str, schema: bytes, contract: str = "x@1") -> Package:
    """A package that declares the schema of a contract and has no runtime."""
    return package(name, root=f"contracts: {{ {contract}: {{ schema: ./s.json }} }}\n", **{"s.json": schema})


OBJECT = b'{"type": "object", "properties": {"a": {}}, "additionalProperties": false}'
TEXT = b'{"type": "string", "title": "A text"}'


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize(
    ("binding", "there", "code", "said"),
    [
        ("from: { contract: x@1 }, accepts: 'contract:y@1'", [], Code.ACTIVATION_ACCEPTS, "accepts y@1"),
        (
            "from: { contract: x@1 }, accepts: 'contract:y@1'",
            [publishes("p", OBJECT), publishes("q", TEXT, "y@1")],
            Code.PACKAGE_SCHEMA,
            "input word of a: no value of x@1 is accepted: object and string at /",
        ),
        (
            "from: { contract: x@1 }, select: /b",
            [publishes("p", OBJECT)],
            Code.PACKAGE_SCHEMA,
            "/b leads to nothing",
        ),
    ],
)
def test_an_input_that_no_active_package_can_fill_blocks_when_it_is_required(
    required: bool, binding: str, there: list[Package], code: Code, said: str
) -> None:
    one = reads("a", f"{binding}, required: {str(required).lower()}")
    answer = run([one.id, *(other.id for other in there)], one, *there)
    (problem,) = answer.problems
    assert (problem.code, problem.package_id, problem.blocks) == (code, "a", required)
    assert said in problem.message
    assert [active.package.id for active in answer.active] == ["a", *(other.id for other in there)]


def test_two_packages_describe_a_contract_alike_or_not_at_all() -> None:
    alike = publishes("q", b'{"type": "string"}')
    assert run(["p", "q"], publishes("p", TEXT), alike).problems == ()
    (problem,) = run(["o", "q"], publishes("o", OBJECT), alike).problems
    assert (problem.code, problem.blocks) == (Code.ACTIVATION_CONFLICT, True)
    assert problem.message == "packages 'o' and 'q' publish different schemas of x@1"
