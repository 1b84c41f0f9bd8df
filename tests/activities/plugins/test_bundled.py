"""What the functions and tools of the bundled packages do, through the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from activities.plugins.code import PackageCode
from activities.plugins.host import invoke
from activities.plugins.loader import code_files, load_code
from activities.plugins.results import handler_result
from kernel.manifest.load import load_package
from kernel.manifest.loaded import Package
from tests.activities.plugins.packages import call

PLUGINS = Path(__file__).parents[3] / "plugins"


def bundled(name: str) -> tuple[Package, PackageCode]:
    folder = PLUGINS / name
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    package = load_package(files, name=name).package
    assert package is not None
    return package, load_code(folder, code_files(package), digest=f"sha256:bundled-{name}")


def valid(schema: Any, value: Any) -> None:
    assert schema is not None
    Draft202012Validator(schema).validate(value)


class Facts:
    """A `plugin_data.list` that pages as the store does."""

    def __init__(self, records: dict[str, Any]) -> None:
        self.records = records

    async def __call__(self, params: dict[str, Any]) -> Any:
        assert params["namespace"] == "facts"
        keys = [key for key in sorted(self.records) if key > params.get("after", "")]
        return [{"key": key, "value": self.records[key]} for key in keys[: params["limit"]]]


FACTS = Facts(
    {f"k{n:03}": {"facts": [{"text": f"Door {n} is shut."}]} for n in range(250)}
    | {"mara": {"facts": [{"text": "The key is lost.", "speaker": "Mara"}, {"text": "It rains."}]}}
)


async def test_a_die_rolls_the_same_for_the_same_seed_and_counts() -> None:
    package, code = bundled("dice")
    results = [
        handler_result(await invoke(code, call(seed=seed), {}, timeout_s=1)) for seed in ("a", "a", "b")
    ]
    assert results[0] == results[1]
    valid(package.runtimes[0].output_schema, results[0].value)
    valid(package.event_schemas["dice.rolled"], results[0].value)
    event, patch = results[0].proposals
    assert event == {"type": "event.emit", "topic": "dice.rolled", "payload": results[0].value}
    assert patch["path"] == "/dice"


async def test_a_query_finds_every_word_on_every_page() -> None:
    package, code = bundled("fact-index")

    async def ask(payload: dict[str, Any]) -> Any:
        question = call(module="runtimes/query/handler.py", manual_payload=payload)
        value = handler_result(await invoke(code, question, {"plugin_data.list": FACTS}, timeout_s=1)).value
        valid(package.contract_schemas["facts.query@1"], value)
        return value

    assert await ask({"text": "MARA key"}) == {
        "matches": [{"key": "mara", "text": "The key is lost.", "speaker": "Mara"}],
        "total": 1,
    }
    everything = await ask({"text": "", "limit": 3})
    assert (len(everything["matches"]), everything["total"]) == (3, 252)


async def test_the_digest_counts_and_keeps_one_record() -> None:
    package, code = bundled("fact-index")
    run = call(module="runtimes/digest/handler.py")
    result = handler_result(await invoke(code, run, {"plugin_data.list": FACTS}, timeout_s=1))
    assert result.value == {"turn": 3, "records": 251, "facts": 252, "speakers": {"Mara": 1}}
    valid(package.data_schemas["digest"], result.value)
    assert result.proposals == (
        {"type": "plugin.data", "namespace": "digest", "key": "latest", "value": result.value},
    )


async def test_a_milestone_is_staged_under_a_key_that_a_repeat_meets() -> None:
    package, code = bundled("chronicle")
    staged: list[dict[str, Any]] = []

    async def write(params: dict[str, Any]) -> None:
        staged.append(params)

    mark = call("tool", "server/__init__.py", "mark-milestone", {"title": "The Oath, sworn!"})
    for _ in range(2):
        await invoke(code, mark, {"plugin_data.set": write}, timeout_s=1)
    assert staged[0] == staged[1]
    assert (staged[0]["namespace"], staged[0]["key"]) == ("milestones", "00003-the-oath-sworn")
    valid(package.data_schemas["milestones"], staged[0]["value"])
